"""A failed write or sync stops the journal once and for all."""

import random
from collections.abc import Callable

import pytest

from lograft_wire import errors
from sim.disk import SimDisk, SimVolume
from support.journal_desk import JournalDesk, fill


@pytest.fixture
def volume() -> SimVolume:
    return SimVolume(random.Random(1))


@pytest.fixture
def desk(volume: SimVolume) -> JournalDesk:
    disk = SimDisk(volume, on_crash=lambda: None)
    disk.make_folder("data")
    return JournalDesk(disk, "data/journal")


def assert_stopped(desk: JournalDesk, durable: int) -> None:
    assert desk.failures == [desk.journal.failed]
    view = desk.journal.group(1)
    attempts: list[Callable[[], None]] = [
        lambda: view.append(b"", index=view.last_index + 1, term=9),
        lambda: view.save_state(term=99, vote=None),
        lambda: view.truncate(view.last_index),
        lambda: view.trim(view.last_index),
        lambda: view.reset(base_index=500, base_term=9),
    ]
    for refused in attempts:
        with pytest.raises(errors.StorageError):
            refused()
    desk.quiet()
    assert desk.journal.durable_sequence == durable
    assert len(desk.failures) == 1
    assert not desk.writer.waiting


def test_failed_sync_is_told_once_and_never_tried_again(
    desk: JournalDesk, volume: SimVolume
) -> None:
    fill(desk, 1, count=3)
    desk.quiet()
    durable = desk.journal.durable_sequence
    volume.sync_errors = 1
    fill(desk, 1, count=3)
    desk.scheduler.turn()
    fill(desk, 1, count=3)
    desk.settle()
    assert isinstance(desk.failures[0].__cause__, OSError)
    assert desk.failures[0].path.endswith("1.journal")
    assert desk.journal.group(1).durable_index == 3
    assert_stopped(desk, durable)


def test_listeners_hear_nothing_of_a_failed_sync(desk: JournalDesk, volume: SimVolume) -> None:
    told: list[int] = []
    desk.journal.add_listener(lambda: told.append(1))
    volume.sync_errors = 1
    fill(desk, 1, count=1)
    desk.settle()
    assert not told


def test_full_disk_while_the_next_file_is_made_stops_the_journal(
    desk: JournalDesk, volume: SimVolume
) -> None:
    volume.capacity_bytes = volume.used_bytes + 1000
    for _ in range(8):
        fill(desk, 1, count=1, size=1000)
        desk.settle()
        if desk.failures:
            break
    assert "ENOSPC" in str(desk.failures[0])
    assert_stopped(desk, desk.journal.durable_sequence)


def test_flush_that_ends_after_the_failure_makes_nothing_durable(
    desk: JournalDesk, volume: SimVolume
) -> None:
    fill(desk, 1, count=1)
    desk.settle()
    durable = desk.journal.durable_sequence
    volume.capacity_bytes = volume.used_bytes
    fill(desk, 1, count=12, size=1000)  # asks for the next file
    desk.scheduler.turn()
    desk.helper.step()
    assert len(desk.failures) == 1
    desk.writer.drain()
    assert_stopped(desk, durable)


def test_failed_recycling_stops_the_journal(desk: JournalDesk, volume: SimVolume) -> None:
    fill(desk, 1, count=20, size=1000)
    desk.settle()
    desk.journal.group(1).trim(19)
    desk.scheduler.turn()
    desk.writer.drain()
    volume.sync_errors = 1
    desk.helper.step()
    assert len(desk.failures) == 1
    assert_stopped(desk, desk.journal.durable_sequence)


def test_failed_journal_can_be_closed(desk: JournalDesk, volume: SimVolume) -> None:
    volume.sync_errors = 1
    fill(desk, 1, count=1)
    desk.settle()
    desk.close()


def test_journal_that_fails_while_closing_says_so_and_ends(
    desk: JournalDesk, volume: SimVolume
) -> None:
    fill(desk, 1, count=1)
    volume.sync_errors = 1
    desk.close()
    assert len(desk.failures) == 1
