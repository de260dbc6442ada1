"""What one thread does between two steps of another, made to happen there every time."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lograft_log import compaction, maintenance
from lograft_log.damage import ChangedError, Damage
from lograft_log.env import RealClock, RealDisk, RealFile
from lograft_log.hot.record import Record
from lograft_log.log import Log, open_log
from lograft_log.reading import Reading
from lograft_log.secondary import KeyTerm
from lograft_log.segment import Segment
from lograft_log.settings import IndexKind, LogLimits, LogSettings
from sim.disk import SimDisk
from support import log_desk
from support.crash_disk import new_disk, reboot


def nothing() -> None:
    return


class SlowFile(RealFile):
    """`before_read` runs when the number of the file is chosen but not yet used."""

    before_read: Callable[[], None] = staticmethod(nothing)

    def read_at(self, position: int, size: int) -> bytes:
        number = self._fd
        hook, SlowFile.before_read = SlowFile.before_read, staticmethod(nothing)
        hook()
        return os.pread(number, size, position)


class SlowDisk(RealDisk):
    def open(self, path: str, *, create: bool = False, writable: bool = True) -> SlowFile:
        return SlowFile(path, create=create, writable=writable)


def test_a_file_number_that_is_used_again_gives_no_records_of_another_segment(
    tmp_path: Path,
) -> None:
    log = open_log(f"{tmp_path}/log", disk=SlowDisk(), clock=RealClock())
    log.append([Record(b"old", timestamp_ms=1) for _ in range(5)])
    number = log._writer.file._fd  # type: ignore[attr-defined]

    def replace_file() -> None:
        log.roll()
        log.sync()  # closes the old file
        log.append([Record(b"new", timestamp_ms=1) for _ in range(5)])
        os.dup2(log._writer.file._fd, number)  # type: ignore[attr-defined]

    SlowFile.before_read = staticmethod(replace_file)
    try:
        items = log.read(0).records()
    finally:
        os.close(number)
    assert [(item.offset, item.body) for item in items] == [(n, b"old") for n in range(5)]
    log.close()


def test_a_cut_leaves_mapped_index_files_as_long_as_they_are(tmp_path: Path) -> None:
    """A reader that touches a mapped byte behind the end of its file is killed (SIGBUS)."""
    log = open_log(
        f"{tmp_path}/log",
        disk=RealDisk(),
        clock=RealClock(),
        settings=LogSettings(index=IndexKind.DENSE),
    )
    log.append([Record(bytes(100)) for _ in range(500)])
    log.sync()
    log._writer.flush_indexes()
    held = [(tmp_path / "log" / f"{0:020d}{end}").open("rb") for end in (".index", ".timeindex")]
    sizes = [os.fstat(file.fileno()).st_size for file in held]
    assert min(sizes) > 48
    log.truncate(3)
    log.append([Record(b"x")])
    log._writer.flush_indexes()
    assert [os.fstat(file.fileno()).st_size for file in held] == sizes
    for file in held:
        file.close()
    log.close()


def test_readers_look_for_no_file_that_a_cut_has_removed() -> None:
    disk = new_disk(1)
    log_desk.fill(log := log_desk.open_small(disk), 100)
    log.close()
    log = log_desk.open_small(disk)
    seen: list[int] = []
    remove = SimDisk.remove

    def look(self: SimDisk, path: str) -> None:
        remove(self, path)
        seen.append(log_desk.numbers(log.read_backward(bytes_max=100).records())[-1])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SimDisk, "remove", look)
        log.truncate(30)
    assert seen
    assert max(seen) < 99
    assert log_desk.numbers(log_desk.read_all(log)) == list(range(30))


def test_a_finder_of_the_past_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader builds the short way to single records while the end of the log is cut."""
    log = log_desk.open_small(new_disk(1))
    log_desk.fill(log, 100)
    log.sync()
    log_desk.read_all(log)  # now all is mapped
    part = Segment.part
    pending = [50]

    def cut_then_part(self: Segment) -> object:
        found = part(self)
        if pending and self is log.segments()[-1]:
            log.truncate(pending.pop())
            log.append([Record(b"new") for _ in range(50)])
        return found

    monkeypatch.setattr(Segment, "part", cut_then_part)
    log.get(5)
    assert not pending
    for _ in range(2):
        found = log.get(60)
        assert found is not None
        assert found.body == b"new"


def test_a_record_that_was_read_is_given_though_the_short_way_cannot_be_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = log_desk.open_small(new_disk(1))
    log_desk.fill(log, 100)
    log.sync()

    def gone(self: Segment) -> object:
        raise ChangedError(self.path)

    monkeypatch.setattr(Segment, "part", gone)
    found = log.get(5)
    assert found is not None
    assert log_desk.numbers([found]) == [5]


def test_indexes_that_another_reader_lets_go_of_are_still_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = new_disk(1)
    log_desk.fill(log := log_desk.open_small(disk), 100)
    log.close()
    log = log_desk.open_small(disk)
    load = Segment._load_indexes

    def load_and_lose(self: Segment) -> object:
        loaded = load(self)
        self.drop_views()
        return loaded

    def rebuild_and_lose(self: Segment) -> object:
        made = rebuild(self)
        self.drop_views()
        return made

    rebuild = Segment.rebuild
    monkeypatch.setattr(Segment, "_load_indexes", load_and_lose)
    monkeypatch.setattr(Segment, "rebuild", rebuild_and_lose)
    assert log_desk.numbers(log_desk.read_all(log)) == list(range(100))
    assert log.offset_at(1050) == 50
    disk.remove(log.segments()[1].path.replace(".log", ".index"))
    log = log_desk.open_small(disk)
    assert log_desk.numbers(log_desk.read_all(log)) == list(range(100))
    log.sync()  # saves what was made anew


def keyed_log(disk: SimDisk, count: int = 100) -> Log:
    settings = LogSettings(limits=log_desk.SMALL, term=KeyTerm())
    log = log_desk.open_small(disk, settings=settings)
    while log.next_offset < count:
        log.append([Record(bytes(40), key=b"k", timestamp_ms=1)])
    log.close()
    return log_desk.open_small(disk, settings=settings)


def test_a_lookup_goes_on_behind_what_is_removed_under_it() -> None:
    log = keyed_log(new_disk(1))
    found = log.lookup(b"k")
    assert next(found).offset == 0
    behind = log.segments()[0].next_offset
    log.trim(90)
    log.sync()
    offsets = [item.offset for item in found]
    assert offsets == sorted(set(offsets))
    assert set(offsets) - set(range(behind)) == set(range(90, 100))


def test_a_lookup_goes_on_in_segments_that_are_replaced_under_it() -> None:
    log = keyed_log(new_disk(1))
    found = log.lookup(b"k")
    assert next(found).offset == 0
    for segment in log.segments()[:-1]:
        base_offset, codec = segment.base_offset, log.settings.codec
        maintenance.adopt(log, maintenance.pending_archive(log, base_offset, codec)())
    log.sync()
    assert [item.offset for item in found] == list(range(1, 100))


def test_a_trim_between_two_steps_of_a_reader_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_desk.open_small(new_disk(1))
    log_desk.fill(log, 100)
    look = Reading._look

    def trim_first(self: Reading, offset: int | None, work: Callable[..., object]) -> object:
        log.trim(80)
        log.sync()
        return look(self, offset, work)

    monkeypatch.setattr(Reading, "_look", trim_first)
    assert log.get(10) is None
    assert log.offset_at(0) == 80
    assert log.index_health().entry_count > 0


def test_compaction_of_what_is_trimmed_meanwhile_comes_to_nothing() -> None:
    log = keyed_log(new_disk(1))
    work = maintenance.pending_compaction(log, compaction.CompactionLimits())
    archive = maintenance.pending_archive(log, 0, log.settings.codec)
    log.trim(90)
    log.sync()
    assert maintenance.adopt(log, work()) == []
    assert maintenance.adopt(log, archive()) == []


def test_a_cut_at_a_quarantined_segment_is_durable_and_so_is_what_follows() -> None:
    disk = new_disk(1)
    log_desk.fill(log := log_desk.open_small(disk), 100)
    log.close()
    hurt = log.segments()[1]
    disk.volume.flip_bit(hurt.path, 300)
    log = log_desk.open_small(disk)
    with pytest.raises(Exception, match="quarantined"):
        log_desk.read_all(log)
    log.truncate(hurt.base_offset + 5)
    log.append([Record(b"behind")])
    positions = log.sync()
    for _ in range(5):
        disk = reboot(disk)
        again = log_desk.open_small(disk, durable=positions)
        found = again.get(positions.next_offset - 1)
        assert found is not None
        assert found.body == b"behind"


def test_damage_met_while_sealing_quarantines_that_segment_alone() -> None:
    disk = new_disk(1)
    settings = LogSettings(limits=LogLimits(segment_bytes_max=1200), term=KeyTerm())
    log = log_desk.open_small(disk, settings=settings)
    log_desk.fill(log, 10)
    log._writer.file.sync()
    disk.volume.flip_bit(log.segments()[0].path, 300)
    log_desk.fill(log, 50)
    log.sync()
    found: list[Damage] = log.damages()
    assert [one.base_offset for one in found] == [0]
    log.sync()
    assert disk.exists(f"{log_desk.FOLDER}/{0:020d}.log.damaged")
    behind = log.segments()[0].next_offset
    assert log_desk.numbers(log.read(behind, bytes_max=1 << 20).records())[0] == behind
