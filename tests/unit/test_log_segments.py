"""Rolling, trimming, truncating: which segments there are, and which files."""

import pytest

from lograft_log import layout
from lograft_log.hot.record import Record
from lograft_log.segment import State
from lograft_log.settings import Codec, LogLimits, LogSettings
from sim.disk import SimDisk
from support import log_desk
from support.crash_disk import new_disk


def names(disk: SimDisk, ending: str) -> list[int]:
    found = [layout.parse_name(name) for name in disk.names(log_desk.FOLDER)]
    return [item[0] for item in found if item is not None and item[1] == ending]


def test_segments_roll_by_size_and_are_sealed_by_the_next_sync() -> None:
    disk = new_disk(1)
    log = log_desk.open_small(disk)
    log_desk.fill(log, 100)
    segments = log.segments()
    assert len(segments) > 3
    assert all(s.length <= log_desk.SMALL.segment_bytes_max for s in segments)
    assert [s.state for s in segments] == [State.FULL] * (len(segments) - 1) + [State.ACTIVE]
    assert names(disk, ".seal") == []
    log.sync()
    assert names(disk, ".seal") == [s.base_offset for s in segments[:-1]]
    assert [s.base_offset for s in segments[1:]] == [s.next_offset for s in segments[:-1]]


def test_segments_roll_by_age() -> None:
    clock = log_desk.StillClock()
    settings = LogSettings(limits=LogLimits(segment_age_ms_max=1000))
    log = log_desk.open_small(new_disk(1), settings=settings, clock=clock)
    clock.now_ms += 5000
    assert not log.roll_if_old()  # empty segments do not age
    log_desk.fill(log, 1)
    clock.now_ms += 5000
    log_desk.fill(log, 1)
    assert [s.base_offset for s in log.segments()] == [0, 1]
    clock.now_ms += 1000
    assert log.roll_if_old()
    assert [s.base_offset for s in log.segments()] == [0, 1, 2]


def test_trim_removes_whole_segments_with_all_their_files() -> None:
    disk = new_disk(1)
    log = log_desk.open_small(disk)
    log_desk.fill(log, 100)
    log.sync()
    second = log.segments()[1]
    log.trim(second.base_offset + 1)
    assert log.first_offset == second.base_offset + 1
    assert log.segments()[0] is second
    log.sync()
    for ending in (".log", ".index", ".timeindex", ".seal"):
        assert 0 not in names(disk, ending)
    assert log_desk.numbers(log_desk.read_all(log)) == list(range(log.first_offset, 100))


def test_a_wholly_trimmed_log_frees_its_space_and_keeps_its_next_offset() -> None:
    disk = new_disk(1)
    log = log_desk.open_small(disk)
    log_desk.fill(log, 100)
    log.trim(1000)
    log.sync()
    assert (log.first_offset, log.next_offset) == (100, 100)
    assert names(disk, ".log") == [100]
    log.close()
    again = log_desk.open_small(disk)
    assert (again.first_offset, again.next_offset) == (100, 100)
    log_desk.fill(again, 2)
    assert log_desk.numbers(log_desk.read_all(again)) == [100, 101]


@pytest.mark.parametrize("cut", [0, 1, 21, 37, 99])
def test_truncate_removes_the_end_durably(cut: int) -> None:
    disk = new_disk(1)
    log = log_desk.open_small(disk)
    log_desk.fill(log, 100)
    log.truncate(cut)
    assert log.next_offset == cut
    assert log_desk.numbers(log_desk.read_all(log)) == list(range(cut))
    log.append([Record(b"new")])
    disk.volume.power_cut()  # the append is lost or not; the cut holds
    again = log_desk.open_small(new_boot(disk))
    assert again.next_offset in (cut, cut + 1)
    assert [item.body for item in log_desk.read_all(again)][cut:] in ([], [b"new"])


def new_boot(disk: SimDisk) -> SimDisk:
    return SimDisk(disk.volume, on_crash=lambda: None)


def test_truncate_inside_a_compressed_batch_keeps_its_head() -> None:
    log = log_desk.open_small(new_disk(1), settings=LogSettings(codec=Codec.LZ4))
    log_desk.fill(log, 30, batch=30)
    log.truncate(11)
    assert log_desk.numbers(log_desk.read_all(log)) == list(range(11))


def test_a_new_log_may_begin_anywhere() -> None:
    from lograft_log.log import open_log

    disk = new_disk(1)
    log = open_log("log", disk=disk, clock=log_desk.StillClock(), base_offset=500)
    assert (log.first_offset, log.next_offset) == (500, 500)
    log.close()
    again = open_log("log", disk=disk, clock=log_desk.StillClock())
    assert again.next_offset == 500


def test_a_cut_below_a_trim_in_a_gap_leaves_an_empty_log_that_goes_on() -> None:
    disk = new_disk(1)
    log = log_desk.open_small(disk)
    log.append([Record(b"x")] * 5)
    log.append([Record(b"x")] * 5, offset=10)
    log.trim(8)
    durable = log.sync().below(9)
    log.truncate(9)
    assert (log.first_offset, log.next_offset) == (8, 8)
    assert log.append([Record(b"y")]) == (8, 9)
    assert [item.body for item in log_desk.read_all(log)] == [b"y"]
    log.sync()
    again = log_desk.open_small(disk, durable=durable)
    assert [item.body for item in log_desk.read_all(again)] == [b"y"]
    assert again.damages() == []
