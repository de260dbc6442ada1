"""Retention: the decision alone, then carried out."""

from lograft_log import maintenance
from lograft_log.retention import RetentionLimits, SegmentFacts, expired
from support import log_desk
from support.crash_disk import new_disk


def facts(*rows: tuple[int, int | None]) -> list[SegmentFacts]:
    """(bytes, timestamp) of segments of ten records each; the last one is active."""
    return [
        SegmentFacts(
            base_offset=10 * number,
            next_offset=10 * number + 10,
            log_bytes=size,
            timestamp_ms_max=timestamp_ms,
            active=number == len(rows) - 1,
        )
        for number, (size, timestamp_ms) in enumerate(rows)
    ]


def test_the_oldest_go_by_age() -> None:
    segments = facts((5, 100), (5, 200), (5, 300), (5, 100))
    assert expired(segments, RetentionLimits(age_ms_max=150), now_ms=351) == [0, 10]
    assert expired(segments, RetentionLimits(age_ms_max=150), now_ms=350) == [0]
    assert expired(segments, RetentionLimits(age_ms_max=1), now_ms=9999) == [0, 10, 20]


def test_a_young_segment_shields_older_ones_behind_it() -> None:
    segments = facts((5, 900), (5, 1), (5, 1))
    assert expired(segments, RetentionLimits(age_ms_max=100), now_ms=950) == []


def test_the_oldest_go_by_bytes() -> None:
    segments = facts((100, 1), (100, 2), (100, 3), (50, 4))
    limits = RetentionLimits(age_ms_max=None, bytes_max=260)
    assert expired(segments, limits, now_ms=10) == [0]
    limits = RetentionLimits(age_ms_max=None, bytes_max=0)
    assert expired(segments, limits, now_ms=10) == [0, 10, 20]


def test_nothing_goes_that_somebody_still_reads() -> None:
    segments = facts((5, 1), (5, 1), (5, 1), (5, 1))
    limits = RetentionLimits(age_ms_max=1)
    assert expired(segments, limits, now_ms=99, hold_offset=25) == [0, 10]
    assert expired(segments, limits, now_ms=99, hold_offset=0) == []


def test_a_segment_of_unknown_age_is_as_young_as_the_next() -> None:
    segments = facts((5, None), (5, 500), (5, 600))
    assert expired(segments, RetentionLimits(age_ms_max=100), now_ms=550) == []
    assert expired(segments, RetentionLimits(age_ms_max=100), now_ms=601) == [0, 10]


def test_without_limits_nothing_goes() -> None:
    limits = RetentionLimits(age_ms_max=None)
    assert expired(facts((5, 1), (5, 1)), limits, now_ms=1 << 50) == []


def test_expired_segments_leave_the_log_and_the_disk() -> None:
    disk = new_disk(1)
    clock = log_desk.StillClock(now_ms=1100)
    log = log_desk.open_small(disk, clock=clock)
    log_desk.fill(log, 100)  # stamped 1000 + offset
    log.sync()
    old = [s for s in log.segments() if s.timestamp_ms_max < 1050]
    gone = maintenance.retain(log, RetentionLimits(age_ms_max=50))
    assert gone == [s.base_offset for s in old]
    assert log.first_offset == old[-1].next_offset
    log.sync()
    left = [name for name in disk.names(log_desk.FOLDER) if int(name[:20]) in gone]
    assert left == []
    log.close()
    assert log_desk.open_small(disk).first_offset == old[-1].next_offset
