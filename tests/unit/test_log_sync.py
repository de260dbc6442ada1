"""Syncs in the background, failing syncs, and which syncs are needed."""

import asyncio
from collections.abc import Callable

import pytest

from lograft_log.background import ThreadBackground
from lograft_log.env import RealClock, RealDisk
from lograft_log.hot.record import Record
from lograft_log.log import open_log
from lograft_log.positions import Positions
from lograft_log.settings import LogSettings
from lograft_wire.errors import StorageError
from sim.disk import SimDisk, SimFile
from support import log_desk
from support.crash_disk import crashes, new_disk


def test_positions_move_only_when_a_sync_is_done() -> None:
    log = log_desk.open_small(new_disk(1))
    log_desk.fill(log, 50)
    assert log.positions().next_offset == 0
    work = log.pending_sync()
    log_desk.fill(log, 10)
    promised = work()
    assert log.positions().next_offset == 0
    log.sync_done(work)
    assert promised.next_offset == 50
    assert log.positions().next_offset == 50
    assert log.sync().next_offset == 60


def test_rolls_and_trims_during_a_sync_are_kept_for_the_next() -> None:
    disk = new_disk(1)
    log = log_desk.open_small(disk)
    log_desk.fill(log, 50)
    work = log.pending_sync()
    log_desk.fill(log, 50)
    log.trim(70)
    work()
    log.sync_done(work)
    assert log.positions().first_offset == 70
    log.sync()
    log.close()
    again = log_desk.open_small(disk)
    assert again.next_offset == 100
    assert again.first_offset <= 70
    assert again.damages() == []


async def test_a_background_thread_syncs_while_the_loop_appends(tmp_path: object) -> None:
    loop = asyncio.get_running_loop()
    background = ThreadBackground("sync", loop)
    settings = LogSettings(limits=log_desk.SMALL)
    log = open_log(f"{tmp_path}/log", disk=RealDisk(), clock=RealClock(), settings=settings)
    for _ in range(10):
        log_desk.fill(log, 30)
        done: asyncio.Future[object] = loop.create_future()
        work = log.pending_sync()

        def finish(
            result: object, error: BaseException | None, done: asyncio.Future[object] = done
        ) -> None:
            if error is None:
                done.set_result(result)
            else:
                done.set_exception(error)

        background.run(work, finish)
        log_desk.fill(log, 30)
        result = await done
        log.sync_done(work)
        assert result == log.positions()
    background.close()
    log.close()
    again = open_log(f"{tmp_path}/log", disk=RealDisk(), clock=RealClock(), settings=settings)
    assert log_desk.numbers(log_desk.read_all(again)) == list(range(600))
    again.close()


def test_after_a_failed_sync_the_log_takes_nothing_more() -> None:
    disk = new_disk(1)
    log = log_desk.open_small(disk)
    log_desk.fill(log, 5)
    disk.volume.sync_errors = 1
    with pytest.raises(StorageError, match="sync failed"):
        log.sync()
    for attempt in (lambda: log.append([Record(b"x")]), log.sync):
        with pytest.raises(StorageError, match="takes nothing more"):
            attempt()
    assert log_desk.numbers(log_desk.read_all(log)) == list(range(5))
    log.close()


def never(*_: object) -> None:
    """In the place of a sync: leave it out."""


def skip_logs(file: SimFile) -> None:
    if not file.path.endswith((".log", ".log.new")):
        REAL_SYNC(file)


def skip_seals(file: SimFile) -> None:
    if not file.path.endswith(".seal"):
        REAL_SYNC(file)


REAL_SYNC = SimFile.sync


def losing_work() -> bool:
    """Whether power cuts lose something that was promised."""
    kept: dict[str, Positions] = {}

    def work(disk: SimDisk) -> None:
        kept.clear()
        log = log_desk.open_small(disk)
        for turn in range(4):
            log_desk.fill(log, 15)
            kept["durable"] = log.sync()
            if turn == 2:
                log.trim(25)
                kept["durable"] = log.sync().below(40)
                log.truncate(40)
                kept["durable"] = log.sync()

    for disk, _ in crashes(never, work, seeds=4):
        log = log_desk.open_small(disk, durable=kept.get("durable"))
        if log.damages() or log.next_offset < (kept["durable"].next_offset if kept else 0):
            return True
        again = log_desk.open_small(disk)
        try:
            found = log_desk.numbers(log_desk.read_all(again))
        except StorageError:
            return True
        if found != list(range(again.first_offset, again.next_offset)):
            return True
    return False


def test_with_all_syncs_nothing_is_lost() -> None:
    assert not losing_work()


@pytest.mark.parametrize(
    ("owner", "name", "mutant"),
    [(SimFile, "sync", skip_logs), (SimDisk, "sync_folder", never)],
)
def test_every_kind_of_sync_is_needed(
    owner: type, name: str, mutant: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, mutant)
    assert losing_work()


def test_a_seal_without_its_sync_only_costs_a_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimFile, "sync", skip_seals)
    assert not losing_work()


def forgetful_trim() -> bool:
    """Whether a power cut around a trim of everything loses the log's next offset."""

    def prepare(disk: SimDisk) -> None:
        log = log_desk.open_small(disk)
        log_desk.fill(log, 100)
        log.close()

    def work(disk: SimDisk) -> None:
        log = log_desk.open_small(disk)
        log.trim(100)
        log.sync()

    opened = (log_desk.open_small(disk) for disk, _ in crashes(prepare, work, seeds=4))
    return any(log.next_offset != 100 for log in opened)


def test_the_mark_of_the_first_segment_is_synced_before_the_others_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not forgetful_trim()
    monkeypatch.setattr(SimFile, "sync", skip_seals)
    assert forgetful_trim()
