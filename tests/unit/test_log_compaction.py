"""Compaction and archiving: what stays, what is rewritten, what readers see meanwhile."""

import pytest

from lograft_log import compaction, maintenance
from lograft_log.compaction import Candidate, CompactionLimits
from lograft_log.hot.record import Record
from lograft_log.log import Log
from lograft_log.segment import State
from lograft_log.settings import Codec
from lograft_wire.errors import RefusedError
from support import log_desk
from support.crash_disk import new_disk

DAY_MS = 24 * 3600 * 1000


def item(offset: int, key: bytes | None, *, tombstone: bool = False, at_ms: int = 1) -> Record:
    return Record(b"v", key=key, offset=offset, tombstone=tombstone, timestamp_ms=at_ms)


def test_only_the_newest_of_a_key_survives() -> None:
    latest = {b"a": 5}
    stays = [
        compaction.survives(one, latest, tombstones_before_ms=0)
        for one in (item(4, b"a"), item(5, b"a"), item(6, b"b"), item(7, None))
    ]
    assert stays == [False, True, True, True]


def test_a_tombstone_stays_for_a_while() -> None:
    dead = item(5, b"a", tombstone=True, at_ms=100)
    assert compaction.survives(dead, {b"a": 5}, tombstones_before_ms=100)
    assert not compaction.survives(dead, {b"a": 5}, tombstones_before_ms=101)


def test_tombstones_stay_when_something_cannot_be_rewritten() -> None:
    limits = CompactionLimits()
    free = Candidate(base_offset=0, next_offset=10, fixed=False)
    fixed = Candidate(base_offset=10, next_offset=20, fixed=True)
    now_ms = 10 * DAY_MS
    assert compaction.tombstones_before_ms([free], limits, now_ms=now_ms) == 9 * DAY_MS
    assert compaction.tombstones_before_ms([free, fixed], limits, now_ms=now_ms) == 0
    assert compaction.targets([free, fixed]) == [0]
    assert compaction.targets([free], hold_offset=9) == []


def test_keys_beyond_the_limit_are_left_alone() -> None:
    latest = compaction.LatestKeys(CompactionLimits(keys_max=1))
    for one in (item(0, b"a"), item(1, b"b"), item(2, b"a"), item(3, b"b"), item(4, None)):
        latest.note(one)
    assert latest.offsets == {b"a": 2}


def keyed_log(clock: log_desk.StillClock | None = None) -> Log:
    log = log_desk.open_small(new_disk(1), clock=clock)
    for number in range(100):
        log.append([Record(b"%d" % number, key=b"k%d" % (number % 4), timestamp_ms=1)])
    log.append([Record(b"gone", key=b"k0", tombstone=True, timestamp_ms=1)])
    log.roll()
    log.sync()
    return log


def compact(log: Log) -> list[int]:
    return maintenance.adopt(log, maintenance.pending_compaction(log, CompactionLimits())())


def test_compaction_rewrites_sealed_segments_and_keeps_offsets() -> None:
    log = keyed_log()
    before = log.log_bytes
    assert compact(log)
    found = log_desk.read_all(log)
    assert [one.offset for one in found] == [97, 98, 99, 100]
    assert found[-1].tombstone
    assert log.log_bytes < before / 3
    assert log.next_offset == 101
    assert compact(log) == []
    assert log.get(50) is None
    assert log.read(0).offset_first == 97


def test_old_tombstones_go_with_what_they_deleted() -> None:
    clock = log_desk.StillClock()
    log = keyed_log(clock)
    clock.now_ms += 2 * DAY_MS
    compact(log)
    assert [one.offset for one in log_desk.read_all(log)] == [97, 98, 99]


def test_a_reader_inside_a_segment_is_not_disturbed_by_its_compaction() -> None:
    log = keyed_log()
    reader = log.reader_at(0)
    first = reader.next(100).records()
    behind = log.segments()[0].next_offset
    compact(log)
    log.sync()
    found = first
    while reader.offset < behind:
        found += reader.next(100).records()
    assert [one.offset for one in found] == list(range(behind))
    assert reader.next(100).offset_first == 97


def test_a_tombstone_stays_while_what_it_deletes_could_not_go() -> None:
    """Between the slow half and the quick one, the segment of the old value was archived."""
    clock = log_desk.StillClock()
    log = log_desk.open_small(new_disk(1), clock=clock)
    for body, tombstone in ((b"old", False), (b"", True)):
        log.append([Record(body, key=b"k", tombstone=tombstone, timestamp_ms=1), Record(b"else")])
        log.roll()
    log.sync()
    clock.now_ms += 2 * DAY_MS
    done = maintenance.pending_compaction(log, CompactionLimits())()
    maintenance.archive_as_is(log, 0)
    maintenance.adopt(log, maintenance.pending_archive(log, 0, Codec.ZSTD)())
    maintenance.adopt(log, done)
    assert [one.tombstone for one in log_desk.read_all(log) if one.key] == [False, True]


def test_what_was_trimmed_meanwhile_is_not_brought_back() -> None:
    log = keyed_log()
    done = maintenance.pending_compaction(log, CompactionLimits())()
    log.trim(101)
    log.sync()
    assert maintenance.adopt(log, done) == []
    assert not any(name.endswith(".new") for name in log.disk.names(log.folder))
    log.close()
    assert log_desk.open_small(log.disk).next_offset == 101


@pytest.mark.parametrize("codec", list(Codec))
def test_archived_segments_are_listed_read_only_and_stay_readable(codec: Codec) -> None:
    disk = new_disk(1)
    log = log_desk.open_small(disk)
    log_desk.fill(log, 100)
    log.sync()
    bases = [s.base_offset for s in log.segments()[:2]]
    for base_offset in bases:
        maintenance.adopt(log, maintenance.pending_archive(log, base_offset, codec)())
    assert [s.base_offset for s in maintenance.archived(log)] == bases
    assert log_desk.numbers(log_desk.read_all(log)) == list(range(100))
    assert log.get(3) is not None
    assert not log.segments()[0].mapped
    log.close()
    again = log_desk.open_small(disk)
    assert [s.state for s in again.segments()[:3]] == [State.ARCHIVED, State.ARCHIVED, State.FULL]
    assert log_desk.numbers(log_desk.read_all(again)) == list(range(100))


def test_archiving_without_recompression_leaves_the_bytes() -> None:
    log = log_desk.open_small(new_disk(1))
    log_desk.fill(log, 100)
    log.sync()
    header = log.segments()[0].header
    maintenance.archive_as_is(log, 0)
    assert maintenance.archived(log)[0].header == header
    with pytest.raises(RefusedError, match="no sealed segment"):
        maintenance.archive_as_is(log, log.segments()[-1].base_offset)
