"""A crash at every disk operation and a power cut: what was durable is there, the rest is a prefix.

Each test crashes its work at every operation in turn, loses unsynced sectors, sizes and names at
random, opens the log again and compares it with what was appended.
"""

import pytest

from lograft_log import compaction, maintenance
from lograft_log.hot.record import Record
from lograft_log.log import Log
from lograft_log.positions import Positions
from lograft_log.settings import Codec, IndexKind, LogSettings
from sim.disk import SimDisk
from support import log_desk
from support.crash_disk import crashes

SEEDS = 4


def check(log: Log, *, durable_next: int, appended_next: int, first: int = 0) -> None:
    """Everything below `durable_next`, nothing damaged, every record where it belongs."""
    found = log_desk.numbers(log_desk.read_all(log))
    assert log.damages() == []
    assert found == list(range(log.first_offset, log.next_offset))
    assert log.first_offset <= first
    assert durable_next <= log.next_offset <= appended_next, log
    for offset in (log.first_offset, log.next_offset - 1):
        item = log.get(offset)
        assert (item is None) == (log.first_offset == log.next_offset)
        assert item is None or item.offset == offset
    health = log.index_health()
    assert health.entry_count > 0 or log.settings.index is IndexKind.NONE or not found


@pytest.mark.parametrize("kind", list(IndexKind))
@pytest.mark.parametrize("with_positions", [True, False])
def test_appends_rolls_and_syncs(kind: IndexKind, with_positions: bool) -> None:
    settings = log_desk.settings(kind)
    state: dict[str, int] = {}
    kept: dict[str, Positions] = {}

    def work(disk: SimDisk) -> None:
        state.update(durable=0, appended=0)
        kept.clear()
        log = log_desk.open_small(disk, settings=settings)
        for turn in range(6):
            state["appended"] = log.next_offset + 12
            log_desk.fill(log, 12)
            if turn % 2:
                kept["positions"] = log.sync()
                state["durable"] = log.next_offset
        log.close()

    for disk, finished in crashes(lambda _: None, work, seeds=SEEDS):
        durable = kept.get("positions") if with_positions else None
        log = log_desk.open_small(disk, settings=settings, durable=durable)
        check(log, durable_next=state["durable"], appended_next=state["appended"])
        if finished:
            assert log.next_offset == state["appended"]
            assert log.recovery.cut_bytes == 0
        # And it goes on as if nothing had been.
        log_desk.fill(log, 5)
        log.close()
        again = log_desk.open_small(disk, settings=settings)
        assert again.next_offset == log.next_offset
        check(again, durable_next=log.next_offset, appended_next=log.next_offset)


def test_a_crash_while_recovering_from_a_crash() -> None:
    state = {"appended": 0}

    def prepare(disk: SimDisk) -> None:
        log = log_desk.open_small(disk)
        log_desk.fill(log, 10)
        log.sync()
        log_desk.fill(log, 60)
        state["appended"] = log.next_offset
        disk.volume.power_cut()

    def work(disk: SimDisk) -> None:
        log = log_desk.open_small(disk)
        check(log, durable_next=10, appended_next=state["appended"])
        log.sync()

    for disk, _ in crashes(prepare, work, seeds=SEEDS):
        log = log_desk.open_small(disk)
        check(log, durable_next=10, appended_next=state["appended"])


def test_trim_removes_from_the_head_only() -> None:
    def prepare(disk: SimDisk) -> None:
        log = log_desk.open_small(disk)
        log_desk.fill(log, 100)
        log.close()

    def work(disk: SimDisk) -> None:
        log = log_desk.open_small(disk)
        log.trim(60)
        log.sync()
        log.trim(100)
        log.sync()

    for disk, finished in crashes(prepare, work, seeds=SEEDS):
        log = log_desk.open_small(disk)
        check(log, durable_next=100, appended_next=100, first=100)
        if finished:
            assert log.first_offset == 100


def test_truncate_leaves_the_old_end_or_the_new_one_or_a_place_between() -> None:
    def prepare(disk: SimDisk) -> None:
        log = log_desk.open_small(disk)
        log_desk.fill(log, 100)
        log.close()

    def work(disk: SimDisk) -> None:
        log = log_desk.open_small(disk)
        log.truncate(37)
        assert log.next_offset == 37

    for disk, finished in crashes(prepare, work, seeds=SEEDS):
        log = log_desk.open_small(disk)
        check(log, durable_next=37, appended_next=100)
        if finished:
            assert log.next_offset == 37
        log.truncate(37)
        log_desk.fill(log, 20)
        log.close()
        check(log_desk.open_small(disk), durable_next=57, appended_next=57)


def keyed(number: int) -> Record:
    return Record(b"%d" % number, key=b"k%d" % (number % 5), timestamp_ms=1000 + number)


def test_compaction_keeps_the_newest_of_every_key() -> None:
    def prepare(disk: SimDisk) -> None:
        log = log_desk.open_small(disk)
        for number in range(100):
            log.append([keyed(number)])
        log.roll()
        log.append([keyed(100)])
        log.close()

    def work(disk: SimDisk) -> None:
        log = log_desk.open_small(disk)
        done = maintenance.pending_compaction(log, compaction.CompactionLimits())()
        assert maintenance.adopt(log, done)
        log.sync()

    for disk, finished in crashes(prepare, work, seeds=SEEDS):
        log = log_desk.open_small(disk)
        assert log.damages() == []
        assert log.next_offset == 101
        items = log_desk.read_all(log)
        assert [item.offset for item in items[-6:]] == [95, 96, 97, 98, 99, 100]
        assert all(item.body == b"%d" % item.offset for item in items)
        assert len(items) == 6 or not finished
        log.append([keyed(101)])
        assert log.tail(1)[0].offset == 101


def test_no_power_cut_brings_back_what_a_tombstone_deleted() -> None:
    """The old value and its tombstone stand in different segments, whose new names a power cut may
    lose in any order."""
    day_ms = 24 * 3600 * 1000
    clock = log_desk.StillClock(10 * day_ms)

    def prepare(disk: SimDisk) -> None:
        log = log_desk.open_small(disk, clock=clock)
        for turn in range(3):
            log.append([Record(b"old", key=b"k", timestamp_ms=1), keyed(turn)])
            log.roll()
        log.append([Record(b"", key=b"k", timestamp_ms=1, tombstone=True), keyed(3)])
        log.roll()
        log.close()

    def work(disk: SimDisk) -> None:
        log = log_desk.open_small(disk, clock=clock)
        limits = compaction.CompactionLimits(tombstone_age_ms=day_ms)
        maintenance.adopt(log, maintenance.pending_compaction(log, limits)())
        log.sync()

    for disk, finished in crashes(prepare, work, seeds=3 * SEEDS):
        found = [item for item in log_desk.read_all(log_desk.open_small(disk)) if item.key == b"k"]
        assert not found or found[-1].tombstone, found
        assert not (finished and found)


def test_archiving_changes_no_record() -> None:
    def prepare(disk: SimDisk) -> None:
        log = log_desk.open_small(disk)
        log_desk.fill(log, 100)
        log.close()

    def work(disk: SimDisk) -> None:
        log = log_desk.open_small(disk)
        base_offset = log.segments()[1].base_offset
        maintenance.adopt(log, maintenance.pending_archive(log, base_offset, Codec.ZSTD)())
        maintenance.archive_as_is(log, 0)
        log.sync()

    for disk, finished in crashes(prepare, work, seeds=SEEDS):
        log = log_desk.open_small(disk)
        check(log, durable_next=100, appended_next=100)
        if finished:
            assert len(maintenance.archived(log)) == 2


def test_compressed_batches_survive_whole_or_not_at_all() -> None:
    settings = LogSettings(limits=log_desk.SMALL, codec=Codec.LZ4)
    state = {"durable": 0, "appended": 0}

    def work(disk: SimDisk) -> None:
        state.update(durable=0, appended=0)
        log = log_desk.open_small(disk, settings=settings)
        for _ in range(4):
            state["appended"] = log.next_offset + 20
            log_desk.fill(log, 20, batch=20)
            log.sync()
            state["durable"] = log.next_offset

    for disk, _ in crashes(lambda _: None, work, seeds=SEEDS):
        log = log_desk.open_small(disk, settings=settings)
        check(log, durable_next=state["durable"], appended_next=state["appended"])
        assert log.next_offset % 20 == 0
