"""A disk that refuses in the middle of a change: the log takes nothing more, leaves no file open,
and opens again with everything it had."""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lograft_log import compaction, maintenance
from lograft_log.env import RealDisk
from lograft_log.hot.record import Record
from lograft_log.log import Log
from lograft_log.settings import Codec
from lograft_wire.errors import StorageError
from sim.disk import SimDisk, SimFile, SimVolume
from support import log_desk
from support.crash_disk import new_disk


def assert_stopped(log: Log) -> None:
    attempts: list[Callable[[], object]] = [
        lambda: log.append([Record(b"x")]), log.sync, log.roll, lambda: log.truncate(1),
    ]  # fmt: skip
    for attempt in attempts:
        with pytest.raises(StorageError, match="takes nothing more"):
            attempt()


def leave_free(disk: SimDisk, free_bytes: int) -> None:
    disk.volume.capacity_bytes = disk.volume.used_bytes + free_bytes


@pytest.mark.parametrize("free_bytes", [0, 10, 600])
def test_after_a_failed_write_the_log_takes_nothing_more(free_bytes: int) -> None:
    disk = new_disk(1)
    log = log_desk.open_small(disk)
    log_desk.fill(log, 5)
    leave_free(disk, free_bytes)
    with pytest.raises(StorageError, match="ENOSPC"):
        log.append([Record(bytes(1000))])
    assert log.next_offset == 5
    leave_free(disk, 1 << 30)
    assert_stopped(log)
    assert log_desk.numbers(log_desk.read_all(log)) == list(range(5))
    log.close()
    again = log_desk.open_small(disk)
    log_desk.fill(again, 5)
    assert log_desk.numbers(log_desk.read_all(again)) == list(range(10))


def test_after_a_failed_roll_the_log_takes_nothing_more() -> None:
    """Else the segment that was begun and given up would stay between two others."""
    disk = new_disk(1)
    log = log_desk.open_small(disk)
    log_desk.fill(log, 10)
    leave_free(disk, 150)  # for what waits for the old indexes, not for all of the new files
    with pytest.raises(StorageError, match="ENOSPC"):
        log.roll()
    leave_free(disk, 1 << 30)
    assert_stopped(log)
    log.close()
    again = log_desk.open_small(disk)
    log_desk.fill(again, 90)
    again.close()
    assert log_desk.numbers(log_desk.read_all(log_desk.open_small(disk))) == list(range(100))


def test_after_a_failed_cut_the_log_takes_nothing_more() -> None:
    disk = new_disk(1)
    log = log_desk.open_small(disk)
    log_desk.fill(log, 10)
    log.sync()
    leave_free(disk, 0)
    with pytest.raises(StorageError, match="ENOSPC"):
        log.truncate(5)
    leave_free(disk, 1 << 30)
    assert_stopped(log)
    log.close()
    again = log_desk.open_small(disk)
    assert again.next_offset >= 5
    assert log_desk.numbers(log_desk.read_all(again)) == list(range(again.next_offset))


def test_a_rewrite_that_finds_no_room_leaves_nothing_behind() -> None:
    disk = new_disk(1)
    log = log_desk.open_small(disk)
    for number in range(100):
        log.append([Record(bytes(50), key=b"%d" % (number // 5))])
    log.sync()
    before = disk.names(log_desk.FOLDER)
    for free_bytes in range(0, 3000, 200):
        leave_free(disk, free_bytes)
        work = maintenance.pending_compaction(log, compaction.CompactionLimits())
        with pytest.raises(StorageError, match="ENOSPC"):
            work()
        assert disk.names(log_desk.FOLDER) == before
    leave_free(disk, 1 << 30)
    assert maintenance.adopt(log, maintenance.pending_compaction(log, work.limits)())
    log.append([Record(b"it goes on")])


class CountedFile(SimFile):
    """Knows how many of its kind are open."""

    count = 0

    def __init__(self, file: SimFile) -> None:
        super().__init__(file._disk, file.path, file._inode, writable=file._writable)
        CountedFile.count += 1

    def close(self) -> None:
        CountedFile.count -= self._open
        super().close()


class FailingDisk(SimDisk):
    """Refuses its n-th change."""

    def __init__(self, point: int, volume: SimVolume | None = None) -> None:
        super().__init__(volume or new_disk(1).volume, on_crash=lambda: None)
        self.left = point

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> SimFile:
        return CountedFile(super().open(path, create=create, writable=writable))

    def strike(self, torn: Callable[[], None] | None = None) -> None:
        self.left -= 1
        if self.left == 0:
            raise OSError(5, "EIO")
        super().strike(torn)


def busy_life(disk: SimDisk, opened: list[Log]) -> None:
    log = log_desk.open_small(disk)
    opened.append(log)
    log_desk.fill(log, 60)
    log.sync()
    maintenance.adopt(log, maintenance.pending_archive(log, 0, Codec.ZSTD)())
    log.truncate(45)
    log_desk.fill(log, 20)
    log.trim(30)
    log.close()


def test_whichever_change_fails_no_file_stays_open_and_the_log_opens_again() -> None:
    point = 0
    failed = True
    while failed:
        point += 1
        CountedFile.count = 0
        disk = FailingDisk(point)
        opened: list[Log] = []
        with contextlib.suppress(StorageError):
            busy_life(disk, opened)
        failed = disk.left <= 0
        disk.left = 0  # from now on it works
        for log in opened:
            log.close()
        assert CountedFile.count == 0, point
        again = log_desk.open_small(disk)
        found = log_desk.numbers(log_desk.read_all(again))
        assert found == list(range(again.first_offset, again.next_offset)), point
        again.close()
        assert again.damages() == []
    assert point > 50


@pytest.mark.parametrize("trimmed", [False, True])
def test_whichever_change_of_an_opening_fails_no_file_stays_open(trimmed: bool) -> None:
    """After a crash there is much to do: to cut, to remove, and to begin a segment behind it."""
    point = 0
    failed = True
    while failed:
        point += 1
        before = new_disk(1)
        log = log_desk.open_small(before)
        log_desk.fill(log, 30)
        durable = log.sync()
        log_desk.fill(log, 60)
        before.open(log.segments()[-2].path).truncate(200)
        if trimmed:
            durable = replace(durable, first_offset=50, next_offset=120)
        CountedFile.count = 0
        disk = FailingDisk(point, before.volume)
        opened = None
        with contextlib.suppress(StorageError):
            opened = log_desk.open_small(disk, durable=durable)
        failed = disk.left <= 0
        disk.left = 0
        if opened is not None:
            opened.close()
        assert CountedFile.count == 0, point
        again = log_desk.open_small(disk, durable=durable)
        assert again.damages() == []
        assert again.next_offset >= durable.next_offset
        again.close()
    assert point > 8


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="file/log"):
        log_desk.open_small(RealDisk(), folder=f"{tmp_path}/file/log")
