"""Reading: forward, backward, by time, one by one, at the edges and while the log changes."""

import pytest

from lograft_log.env import RealClock, RealDisk
from lograft_log.hot.record import Record
from lograft_log.log import open_log
from lograft_log.settings import Codec, IndexKind, LogLimits, LogSettings
from lograft_wire.errors import RefusedError
from support import log_desk
from support.crash_disk import new_disk


def test_reading_outside_of_the_log_is_refused() -> None:
    log = log_desk.open_small(new_disk(1))
    log_desk.fill(log, 40)
    log.trim(5)
    assert len(log.read(40)) == 0
    assert log.read(40).offset_next == 40
    for offset in (4, 41):
        with pytest.raises(RefusedError, match="holds 5 to 40"):
            log.read(offset)
    assert log.get(4) is None
    assert log.get(40) is None


def test_a_chunk_is_bounded_but_holds_one_frame_at_least() -> None:
    log = log_desk.open_small(new_disk(1))
    log.append([Record(bytes(400)), Record(b"a"), Record(b"b")])
    assert log.read(0, bytes_max=1).record_count == 1
    assert log.read(1, bytes_max=1000).record_count == 2
    assert log.read(1, bytes_max=66).record_count == 2
    assert log.read(1, bytes_max=65).record_count == 1


def test_frames_longer_than_any_window_are_read_whole() -> None:
    settings = LogSettings(limits=LogLimits(map_step_bytes=1 << 20))
    log = log_desk.open_small(new_disk(1), settings=settings)
    log.append([Record(b"a" * 5), Record(b"b" * 9000), Record(b"c" * 20000)])
    assert [len(item.body) for item in log_desk.read_all(log, bytes_max=64)] == [5, 9000, 20000]


def test_a_reader_follows_the_log_over_rolls() -> None:
    log = log_desk.open_small(new_disk(1))
    reader = log.reader_at(0)
    found = []
    for _ in range(30):
        log_desk.fill(log, 4)
        while len(chunk := reader.next(100)):
            found += chunk.records()
        assert reader.offset == log.next_offset
    assert log_desk.numbers(found) == list(range(120))
    assert len(log.segments()) > 3


def test_a_reader_finishes_its_segment_though_it_was_removed(tmp_path: object) -> None:
    settings = LogSettings(limits=log_desk.SMALL)
    log = open_log(f"{tmp_path}/log", disk=RealDisk(), clock=RealClock(), settings=settings)
    log_desk.fill(log, 100)
    log.sync()
    reader = log.reader_at(0)
    found = reader.next(100).records()
    behind = log.segments()[0].next_offset
    log.trim(60)
    log.sync()
    assert f"{0:020d}.log" not in RealDisk().names(f"{tmp_path}/log")
    while reader.offset < behind:
        found += reader.next(100).records()
    assert log_desk.numbers(found) == list(range(behind))
    with pytest.raises(RefusedError, match="holds 60 to 100"):
        reader.next(100)
    log.close()


def test_a_reader_does_not_see_what_was_cut() -> None:
    log = log_desk.open_small(new_disk(1))
    log_desk.fill(log, 50)
    reader, far = log.reader_at(0), log.reader_at(40)
    reader.next(100)
    far.next(100)
    log.truncate(20)
    log.append([Record(b"other")])
    found = []
    while len(chunk := reader.next(100)):
        found += chunk.records()
    assert found[-1].body == b"other"
    assert found[-1].offset == 20
    with pytest.raises(RefusedError):
        far.next(100)


@pytest.mark.parametrize("kind", list(IndexKind))
def test_backward_scan_meets_every_record_once(kind: IndexKind) -> None:
    log = log_desk.open_small(new_disk(1), settings=log_desk.settings(kind))
    log_desk.fill(log, 90)
    log.trim(3)
    found: list[Record] = []
    end = log.next_offset
    while (chunk := log.read_backward(end, bytes_max=150)).record_count:
        assert len(chunk) < 600
        found = [item for item in chunk.records() if item.offset >= 3] + found
        end = chunk.offset_first
    assert log_desk.numbers(found) == list(range(3, 90))
    assert [item.offset for item in log.tail(5)] == [89, 88, 87, 86, 85]


def test_time_seek_finds_the_first_record_not_older() -> None:
    log = log_desk.open_small(new_disk(1), settings=log_desk.settings())
    times = [50, 10, 60, 60, 20, 70] * 12
    for at in times:
        log.append([Record(bytes(30), timestamp_ms=at)])
    for wanted in (0, 10, 11, 50, 51, 60, 61, 70):
        assert log.offset_at(wanted) == next(n for n, at in enumerate(times) if at >= wanted)
    assert log.offset_at(71) == log.next_offset
    log.trim(9)
    assert log.offset_at(0) == 9


def test_time_seek_inside_a_compressed_batch() -> None:
    log = log_desk.open_small(new_disk(1), settings=LogSettings(codec=Codec.ZSTD))
    log.append([Record(b"x" * 50, timestamp_ms=100 + n) for n in range(20)])
    assert log.offset_at(113) == 13


def test_single_records_are_found_in_mapped_and_in_fresh_parts() -> None:
    log = log_desk.open_small(new_disk(1))
    for _ in range(25):
        log_desk.fill(log, 4)
        for offset in range(0, log.next_offset, 3):
            item = log.get(offset)
            assert item is not None
            assert log_desk.numbers([item]) == [offset]


def test_only_so_many_segments_stay_mapped() -> None:
    limits = LogLimits(segment_bytes_max=300, views_max=2)
    log = log_desk.open_small(new_disk(1), settings=LogSettings(limits=limits))
    log_desk.fill(log, 60)
    log.sync()
    for offset in range(60):
        assert log.get(offset) is not None
        assert sum(segment.mapped for segment in log.segments()) <= 2
    assert len(log_desk.read_all(log)) == 60
    assert sum(segment.mapped for segment in log.segments()) <= 2


@pytest.mark.parametrize("kind", list(IndexKind))
@pytest.mark.parametrize("bytes_max", [0, 1, 200, 100_000])
def test_backward_steps_of_any_size_meet_every_record(kind: IndexKind, bytes_max: int) -> None:
    log = log_desk.open_small(new_disk(1), settings=log_desk.settings(kind))
    log_desk.fill(log, 60)
    log.sync()
    log_desk.fill(log, 15)
    found: list[int] = []
    end = log.next_offset
    while (chunk := log.read_backward(end, bytes_max=bytes_max)).record_count:
        found = log_desk.numbers(chunk.records()) + found
        end = chunk.offset_first
    assert found == list(range(75))
