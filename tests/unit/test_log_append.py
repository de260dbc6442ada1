"""Appending: numbers given by the log or by the caller, gaps, repeats, limits."""

import random

import pytest

from lograft_log import compression
from lograft_log.hot import record
from lograft_log.hot.record import Record
from lograft_log.settings import Codec, IndexKind, LogLimits, LogSettings
from lograft_wire.errors import RefusedError
from support import log_desk
from support.crash_disk import new_disk


def test_log_numbers_records_and_stamps_those_without_time() -> None:
    log = log_desk.open_small(new_disk(1), clock=log_desk.StillClock(now_ms=77))
    assert log.append([Record(b"a"), Record(b"b", timestamp_ms=5)]) == (0, 2)
    assert log.append([Record(b"c", key=b"k", headers=b"h")]) == (2, 3)
    assert [(r.offset, r.timestamp_ms) for r in log_desk.read_all(log)] == [
        (0, 77),
        (1, 5),
        (2, 77),
    ]
    assert log.get(2) == Record(b"c", key=b"k", headers=b"h", timestamp_ms=77, offset=2)


def test_given_offsets_may_leave_gaps() -> None:
    log = log_desk.open_small(new_disk(1))
    log.append([Record(b"a")], offset=10)
    log.append([Record(b"b"), Record(b"c")], offsets=[15, 20])
    assert log.next_offset == 21
    assert [item.offset for item in log_desk.read_all(log)] == [10, 15, 20]
    assert log.get(12) is None
    assert log.read(12).offset_first == 15


def test_offsets_below_the_end_are_refused_and_nothing_is_written() -> None:
    log = log_desk.open_small(new_disk(1))
    log_desk.fill(log, 5)
    with pytest.raises(RefusedError, match="offset 4 is below 5"):
        log.append([Record(b"x")], offset=4)
    assert log_desk.numbers(log_desk.read_all(log)) == [0, 1, 2, 3, 4]


def test_replay_writes_only_what_is_missing() -> None:
    log = log_desk.open_small(new_disk(1))
    log_desk.fill(log, 5)
    again = [log_desk.record_of(number) for number in range(3, 8)]
    assert log.append(again, offset=3, skip_existing=True) == (5, 8)
    assert log.append(again, offset=3, skip_existing=True) == (8, 8)
    assert log_desk.numbers(log_desk.read_all(log)) == list(range(8))


def test_replay_of_a_compressed_batch_over_the_end_adds_its_rest() -> None:
    source = log_desk.open_small(new_disk(1))
    source.append([log_desk.record_of(n) for n in range(8)], codec=Codec.ZSTD)
    batch = source.read(0)
    assert batch.batch_count == 1
    log = log_desk.open_small(new_disk(2))
    log_desk.fill(log, 5)
    assert log.append_frames(batch.data, skip_existing=True) == (5, 8)
    assert log_desk.numbers(log_desk.read_all(log)) == list(range(8))


def test_frames_are_taken_as_they_are() -> None:
    frames = record.encode([Record(b"a", timestamp_ms=1), Record(b"b", timestamp_ms=2)], 7)
    log = log_desk.open_small(new_disk(1))
    assert log.append_frames(frames) == (7, 9)
    assert bytes(log.read(7).data) == frames


@pytest.mark.parametrize("damage", [0, 13, 20, -1])
def test_bad_frames_never_reach_the_disk(damage: int) -> None:
    frames = bytearray(record.encode([Record(b"abc")], 0))
    frames[damage] ^= 1
    log = log_desk.open_small(new_disk(1))
    with pytest.raises(RefusedError, match="frame at 0"):
        log.append_frames(frames)
    assert log.next_offset == 0


def test_a_record_above_the_limit_is_refused() -> None:
    settings = LogSettings(limits=LogLimits(payload_bytes_max=100))
    log = log_desk.open_small(new_disk(1), settings=settings)
    log.append([Record(bytes(84))])
    with pytest.raises(RefusedError, match="impossible length"):
        log.append([Record(bytes(85))])


def test_an_empty_batch_changes_nothing() -> None:
    log = log_desk.open_small(new_disk(1))
    assert log.append([]) == (0, 0)


def test_a_batch_larger_than_a_segment_gets_one_of_its_own() -> None:
    log = log_desk.open_small(new_disk(1))
    log_desk.fill(log, 3)
    log.append([Record(bytes(500)) for _ in range(10)])
    log_desk.fill(log, 1)
    assert [s.base_offset for s in log.segments()] == [0, 3, 13]


@pytest.mark.parametrize("codec", [Codec.LZ4, Codec.ZSTD])
def test_compressed_batches_are_smaller_and_read_the_same(codec: Codec) -> None:
    settings = LogSettings(codec=codec)
    log = log_desk.open_small(new_disk(1), settings=settings)
    items = [Record(b"the same words " * 20, timestamp_ms=n + 1) for n in range(50)]
    log.append(items)
    chunk = log.read(10)
    assert (chunk.batch_count, chunk.record_count, chunk.offset_first) == (1, 50, 0)
    assert len(chunk) < 2000
    assert [item.offset for item in chunk.records(10)] == list(range(10, 50))
    found = log.get(33)
    assert found is not None
    assert found.body == items[33].body


def test_what_does_not_compress_is_stored_plain() -> None:
    log = log_desk.open_small(new_disk(1), settings=LogSettings(codec=Codec.LZ4))
    log.append([Record(bytes(range(7)))])
    assert log.read(0).batch_count == 0


def test_a_batch_that_would_be_too_large_compressed_stays_plain() -> None:
    limits = LogLimits(payload_bytes_max=1000)
    log = log_desk.open_small(new_disk(1), settings=LogSettings(codec=Codec.LZ4, limits=limits))
    noise = random.Random(1)
    bodies = [noise.randbytes(100) + bytes(60) for _ in range(50)]
    log.append([Record(body) for body in bodies])
    assert [item.body for item in log_desk.read_all(log)] == bodies


def test_a_batch_that_does_not_unfold_never_reaches_the_disk() -> None:
    whole = compression.fold(
        record.encode([log_desk.record_of(n) for n in range(8)], 0), Codec.LZ4, LogLimits()
    )
    inner = bytearray(whole[compression.FIXED_BYTES :])
    inner[40] ^= 255
    bad = record.wrap(
        inner, codec=1, record_count=8, offset_first=0, offset_last=7, timestamp_ms=1,
        plain_bytes=record.frames(whole)[0][6],
    )  # fmt: skip
    log = log_desk.open_small(new_disk(1))
    with pytest.raises(RefusedError, match="does not unfold"):
        log.append_frames(bad)
    assert log.append_frames(whole) == (0, 8)


TOP = (1 << 64) - 2  # the highest offset there is; the one behind it must be a number too


@pytest.mark.parametrize("offset", [(1 << 63) - 2, 1 << 63, TOP - 2])
@pytest.mark.parametrize("kind", list(IndexKind))
def test_the_highest_offsets_work_like_others(offset: int, kind: IndexKind) -> None:
    disk = new_disk(1)
    log = log_desk.open_small(disk, settings=log_desk.settings(kind))
    for _ in range(2):
        log.append([Record(b"low", timestamp_ms=1)])
    log.append([Record(b"high", timestamp_ms=(1 << 64) - 1) for _ in range(3)], offset=offset)
    positions = log.sync()
    log.close()
    again = log_desk.open_small(disk, settings=log_desk.settings(kind), durable=positions)
    assert again.next_offset == offset + 3
    assert [item.offset for item in again.tail(4)] == [offset + 2, offset + 1, offset, 1]
    for wanted in (offset, offset + 2):
        for _ in range(2):
            item = again.get(wanted)
            assert item is not None
            assert item.body == b"high"
    assert again.get(offset - 1) is None
    assert again.offset_at((1 << 64) - 1) == offset
    assert again.read(2).offset_first == offset
    again.truncate(offset + 1)
    assert again.next_offset == offset + 1


def test_offsets_end_below_the_largest_number() -> None:
    log = log_desk.open_small(new_disk(1))
    assert log.append([Record(b"last")], offset=TOP) == (TOP, TOP + 1)
    for offset in (TOP + 1, None):
        with pytest.raises(RefusedError, match="does not rise"):
            log.append([Record(b"none")], offset=offset)
    assert log.get(1 << 64) is None
    assert log.get(1 << 70) is None
    assert log.get(-1) is None
    assert log.offset_at(-1) == TOP


def test_smallest_and_largest_records_come_back_as_they_were() -> None:
    limits = LogLimits(payload_bytes_max=100_000)
    log = log_desk.open_small(new_disk(1), settings=LogSettings(limits=limits))
    items = [
        Record(b"", timestamp_ms=7),
        Record(b"", key=b"", timestamp_ms=7),
        Record(b"", key=b"", tombstone=True, timestamp_ms=7),
        Record(b"", key=bytes(65535), timestamp_ms=7),
        Record(b"", headers=bytes(99_984), timestamp_ms=7),
        Record(bytes(99_984), timestamp_ms=7),
        Record(bytes(34_449), key=bytes(65535), timestamp_ms=7),
    ]
    log.append(items)
    found = log_desk.read_all(log)
    assert [(f.key, f.headers, f.body, f.tombstone) for f in found] == [
        (i.key, i.headers, i.body, i.tombstone) for i in items
    ]
    for over in (Record(bytes(99_985)), Record(b"", headers=bytes(99_985))):
        with pytest.raises(RefusedError, match="impossible length"):
            log.append([over])
