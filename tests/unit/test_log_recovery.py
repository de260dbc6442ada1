"""Opening: torn tails, damage below the durable end, foreign files, leftovers."""

import pytest

from lograft_log import layout, maintenance, positions
from lograft_log.damage import QuarantinedError
from lograft_log.hot.record import Record
from lograft_log.log import Log
from lograft_log.positions import Positions
from lograft_log.segment import State
from lograft_log.settings import Codec, LogLimits, LogSettings
from lograft_wire.errors import RefusedError, StorageError
from oracle import record as oracle
from sim.disk import SimDisk
from support import log_desk
from support.crash_disk import new_disk


def filled(disk: SimDisk, count: int = 100, *, close: bool = True) -> Log:
    log = log_desk.open_small(disk)
    log_desk.fill(log, count)
    if close:
        log.close()
    return log


def path(base_offset: int, ending: str = ".log") -> str:
    return f"{log_desk.FOLDER}/{layout.name(base_offset, ending)}"


def flip(disk: SimDisk, base_offset: int, position: int, ending: str = ".log") -> None:
    disk.volume.flip_bit(path(base_offset, ending), position)


def test_a_torn_tail_is_cut_and_reported() -> None:
    disk = new_disk(1)
    log = log_desk.open_small(disk)
    log_desk.fill(log, 10)
    end = log.segments()[-1].length
    file = disk.open(path(0))
    file.write_at(end, [b"half a frame, and then the power went"])
    again = log_desk.open_small(disk)
    assert again.next_offset == 10
    assert again.recovery.cut_bytes == 37
    assert again.recovery.cut_path == path(0)
    assert disk.open(path(0)).size() == end


def test_everything_behind_a_bad_frame_above_the_durable_end_goes() -> None:
    disk = new_disk(1)
    log = log_desk.open_small(disk)
    log_desk.fill(log, 10)
    durable = log.sync()
    log_desk.fill(log, 60)
    log._writer.file.sync()
    for held in log._sealing:
        held.file.sync()
    hurt = log.segments()[1]
    flip(disk, hurt.base_offset, hurt.length - 1)
    again = log_desk.open_small(disk, durable=durable)
    assert again.damages() == []
    assert again.next_offset == hurt.next_offset - 1
    assert [s.base_offset for s in again.segments()] == [0, hurt.base_offset]
    log_desk.fill(again, 70 - again.next_offset)
    assert log_desk.numbers(log_desk.read_all(again)) == list(range(70))


def test_a_bad_frame_below_the_durable_end_quarantines_and_the_log_goes_on_behind() -> None:
    disk = new_disk(1)
    log = filled(disk, 10, close=False)
    durable = log.sync()
    log._writer.file.sync()
    flip(disk, 0, durable.segments[0].log_bytes - 1)
    again = log_desk.open_small(disk, durable=durable)
    assert [found.base_offset for found in again.damages()] == [0]
    assert again.recovery.damages == again.damages()
    assert again.next_offset == 10
    with pytest.raises(QuarantinedError) as caught:
        again.read(3)
    assert caught.value.offset_next == 10
    assert again.append([log_desk.record_of(10)]) == (10, 11)
    assert log_desk.numbers(again.read(10).records()) == [10]
    assert disk.exists(path(0, ".log.damaged"))


def test_a_bad_record_in_a_sealed_segment_quarantines_that_segment_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = new_disk(1)
    segments = filled(disk).segments()
    hurt = segments[1]
    flip(disk, hurt.base_offset, 300)
    log = log_desk.open_small(disk)
    with pytest.raises(QuarantinedError) as caught:
        log_desk.read_all(log)
    assert caught.value.path == path(hurt.base_offset)
    assert 48 <= caught.value.position <= 300
    assert "log_damaged" in caplog.text
    assert log.get(hurt.base_offset - 1) is not None
    reader = log.reader_at(caught.value.offset_next)
    assert reader.next(100).offset_first == hurt.next_offset
    with pytest.raises(QuarantinedError):
        log.read(hurt.next_offset - 1)  # intact, but nothing of the segment is believed any more
    log.sync()
    assert disk.exists(path(hurt.base_offset, ".log.damaged"))
    assert not disk.exists(path(hurt.base_offset))
    log.close()
    again = log_desk.open_small(disk)
    assert [s.state for s in again.segments()][1] is State.QUARANTINED
    assert again.segments()[1].next_offset == hurt.next_offset
    assert again.next_offset == 100


def test_damage_found_in_the_active_segment_rolls_it() -> None:
    disk = new_disk(1)
    log = filled(disk, 10, close=False)
    log.sync()
    flip(disk, 0, 200)
    log.segments()[0].drop_views()
    with pytest.raises(QuarantinedError):
        log_desk.read_all(log)
    log_desk.fill(log, 3)
    log.sync()
    assert [s.state for s in log.segments()] == [State.QUARANTINED, State.ACTIVE]
    assert log_desk.numbers(log.read(10).records()) == [10, 11, 12]


def test_a_sealed_segment_that_lost_its_end_is_damage() -> None:
    disk = new_disk(1)
    segments = filled(disk).segments()
    disk.open(path(0)).truncate(segments[0].length - 1)
    log = log_desk.open_small(disk)
    assert [found.position for found in log.damages()] == [segments[0].length - 1]
    assert log.next_offset == 100


def test_a_segment_that_the_positions_know_and_the_folder_lacks_is_damage() -> None:
    disk = new_disk(1)
    log = filled(disk, close=False)
    durable = log.sync()
    log.close()
    missing = log.segments()[2]
    disk.remove(path(missing.base_offset))
    again = log_desk.open_small(disk, durable=durable)
    assert [found.reason for found in again.damages()] == ["segment is missing"]
    with pytest.raises(QuarantinedError):
        again.read(missing.base_offset)
    assert again.next_offset == 100


def test_lost_durable_records_are_never_numbered_again() -> None:
    disk = new_disk(1)
    log = filled(disk, close=False)
    durable = log.sync()
    last = log.segments()[-1]
    log.close()
    disk.remove(path(last.base_offset))
    again = log_desk.open_small(disk, durable=durable)
    assert again.next_offset == 100
    assert len(again.damages()) == 1


def test_a_foreign_file_is_named_and_left_alone() -> None:
    disk = new_disk(1)
    disk.make_folder(log_desk.FOLDER)
    file = disk.open(path(0), create=True)
    file.write_at(0, [b"SQLite format 3\0" * 10])
    with pytest.raises(StorageError, match="not a Lograft file") as caught:
        log_desk.open_small(disk)
    assert caught.value.path == path(0)
    assert disk.exists(path(0))


def test_a_sealed_segment_whose_first_bytes_are_damaged_is_quarantined_alone() -> None:
    disk = new_disk(1)
    hurt = filled(disk).segments()[1]
    flip(disk, hurt.base_offset, 2)  # in the magic
    log = log_desk.open_small(disk)
    assert [(found.base_offset, found.position) for found in log.damages()] == [
        (hurt.base_offset, 0)
    ]
    assert log.next_offset == 100
    assert log.get(hurt.next_offset) is not None


def test_a_file_header_that_turns_bad_under_an_open_log_is_damage() -> None:
    disk = new_disk(1)
    hurt = filled(disk).segments()[1]
    log = log_desk.open_small(disk)
    flip(disk, hurt.base_offset, 20)
    with pytest.raises(QuarantinedError):
        log_desk.read_all(log)
    assert [found.base_offset for found in log.damages()] == [hurt.base_offset]


def test_a_reader_steps_over_a_quarantined_segment() -> None:
    disk = new_disk(1)
    hurt = filled(disk).segments()[1]
    flip(disk, hurt.base_offset, 300)
    reader = log_desk.open_small(disk).reader_at(hurt.base_offset)
    assert reader.next(10_000).offset_first == hurt.base_offset  # up to the bad frame
    for _ in range(2):
        with pytest.raises(QuarantinedError) as caught:
            reader.next(10_000)
    reader.offset = caught.value.offset_next
    assert reader.next(1).offset_first == hurt.next_offset


def test_a_folder_that_lost_every_durable_segment_is_damage() -> None:
    disk = new_disk(1)
    log = filled(disk, 30, close=False)
    durable = log.sync()
    log.close()
    for name in disk.names(log_desk.FOLDER):
        disk.remove(f"{log_desk.FOLDER}/{name}")
    again = log_desk.open_small(disk, durable=durable)
    assert {found.reason for found in again.damages()} == {"segment is missing"}
    assert (again.first_offset, again.next_offset) == (0, 30)
    with pytest.raises(QuarantinedError):
        again.read(0)


def test_a_smaller_limit_for_new_records_harms_no_stored_one() -> None:
    disk = new_disk(1)
    log = log_desk.open_small(disk, settings=LogSettings())
    log.append([Record(b"a"), Record(bytes(5000), key=b"k"), Record(b"c")])
    log.append([Record(bytes(5000)), Record(b"e")], codec=Codec.LZ4)
    log.roll()
    log.append([Record(b"f"), Record(bytes(5000)), Record(b"h")])
    log.sync()
    smaller = LogSettings(limits=LogLimits(payload_bytes_max=1000))
    again = log_desk.open_small(disk, settings=smaller)
    assert again.recovery.cut_bytes == 0
    assert [item.offset for item in log_desk.read_all(again)] == list(range(8))
    assert again.get(1) == log.get(1)
    again.sync()
    maintenance.adopt(again, maintenance.pending_archive(again, 0, Codec.ZSTD)())
    assert [item.offset for item in log_desk.read_all(again)] == list(range(8))
    with pytest.raises(RefusedError, match="impossible length"):
        again.append([Record(bytes(5000))])


def test_health_counts_what_is_sound_when_looking_finds_damage() -> None:
    disk = new_disk(1)
    hurt = filled(disk).segments()[1]
    flip(disk, hurt.base_offset, 300)
    disk.remove(path(hurt.base_offset, ".index"))
    log = log_desk.open_small(disk)
    assert log.index_health().entry_count > 0
    assert len(log.damages()) == 1


def test_a_newer_file_is_refused_with_both_versions() -> None:
    disk = new_disk(1)
    filled(disk, 5)
    file = disk.open(path(0))
    head = bytearray(file.read_at(0, 44))
    head[8] = 9
    from lograft_log.hot import crc

    file.write_at(0, [head, crc.checksum(head).to_bytes(4, "little")])
    with pytest.raises(StorageError, match=r"format 9; this program reads format 1"):
        log_desk.open_small(disk)


@pytest.mark.parametrize("sealed", [False, True])
def test_a_record_of_a_newer_format_is_refused_and_not_cut(sealed: bool) -> None:
    disk = new_disk(1)
    log = log_desk.open_small(disk)
    frames = bytearray(oracle.encode([(0, 1, None, b"", b"newer", False)]))
    frames[:] = oracle.frame(1, b"\x02" + bytes(frames[17:]))
    log_desk.fill(log, 5)
    segment = log.segments()[0]
    log._writer.file.write_at(segment.length, [frames])
    if sealed:
        segment.length += len(frames)
        log.close()
    size = disk.open(path(0)).size()
    with pytest.raises(StorageError, match="written by a newer program") as caught:
        log_desk.read_all(log_desk.open_small(disk))
    assert (caught.value.path, caught.value.position) == (path(0), size - len(frames))
    assert disk.open(path(0)).size() == size


def test_leftovers_of_unfinished_work_are_swept() -> None:
    disk = new_disk(1)
    filled(disk)
    strays = [path(0, ".log.new"), path(0, ".seal.new"), path(9999, ".index"), path(9999, ".seal")]
    for stray in strays:
        disk.open(stray, create=True).write_at(0, [b"x"])
    disk.open(f"{log_desk.FOLDER}/notes.txt", create=True)
    log = log_desk.open_small(disk)
    assert sorted(log.recovery.removed) == sorted(stray.rpartition("/")[2] for stray in strays)
    assert disk.exists(f"{log_desk.FOLDER}/notes.txt")
    assert log_desk.numbers(log_desk.read_all(log)) == list(range(100))


def test_positions_bound_the_scan() -> None:
    disk = new_disk(1)
    settings = log_desk.settings()
    log = log_desk.open_small(disk, settings=settings)
    log_desk.fill(log, 20)
    log._writer.flush_indexes()
    durable = log.sync()
    log_desk.fill(log, 1)
    again = log_desk.open_small(disk, settings=settings, durable=durable)
    assert again.next_offset == 21
    assert again.recovery.scanned_bytes < durable.segments[0].log_bytes / 2


def test_positions_survive_their_own_encoding() -> None:
    log = filled(new_disk(1), close=False)
    log.trim(30)
    durable = log.sync()
    assert positions.decode(durable.encode()) == durable
    assert isinstance(durable, Positions)


def test_first_offset_comes_back_with_the_positions() -> None:
    disk = new_disk(1)
    log = filled(disk, close=False)
    log.trim(30)
    durable = log.sync()
    log.close()
    again = log_desk.open_small(disk, durable=durable)
    assert again.first_offset == 30
    with pytest.raises(RefusedError):
        again.read(29)


def test_the_end_is_lost_cleanly_and_the_next_segment_is_not_believed() -> None:
    """A file that ends at a frame looks whole; only the next one's header tells."""
    disk = new_disk(1)
    log = filled(disk, 50, close=False)
    _, second, *_ = log.segments()
    chunk = log.read(0, bytes_max=300)
    disk.open(path(0)).truncate(48 + len(chunk))
    again = log_desk.open_small(disk)
    assert again.next_offset == chunk.offset_next
    assert not disk.exists(path(second.base_offset))
    assert log_desk.numbers(log_desk.read_all(again)) == list(range(chunk.offset_next))
