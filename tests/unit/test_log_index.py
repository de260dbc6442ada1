"""Offset and time indexes: made, believed, rebuilt, measured."""

from collections.abc import Callable

import pytest

from lograft_log import layout
from lograft_log.env import File
from lograft_log.hot.record import Record
from lograft_log.log import Log
from lograft_log.settings import IndexKind
from sim.disk import SimDisk
from support import log_desk
from support.crash_disk import new_disk


def path(base_offset: int, ending: str) -> str:
    return f"{log_desk.FOLDER}/{layout.name(base_offset, ending)}"


def make(disk: SimDisk, kind: IndexKind = IndexKind.SPARSE) -> Log:
    log = log_desk.open_small(disk, settings=log_desk.settings(kind))
    log_desk.fill(log, 100)
    return log


def reopen(disk: SimDisk, kind: IndexKind = IndexKind.SPARSE) -> Log:
    return log_desk.open_small(disk, settings=log_desk.settings(kind))


def test_dense_has_an_entry_per_record_and_sparse_one_per_interval() -> None:
    dense = make(new_disk(1), IndexKind.DENSE).index_health()
    assert (dense.entry_count, dense.index_bytes, dense.rebuild_count) == (100, 2400, 0)
    sparse = make(new_disk(1)).index_health()
    assert 100 * 0.2 < sparse.entry_count < 100 * 0.6
    assert sparse.density == pytest.approx(1024 * sparse.entry_count / sparse.log_bytes)


def test_no_index_means_no_file() -> None:
    disk = new_disk(1)
    log = make(disk, IndexKind.NONE)
    log.close()
    assert not any(name.endswith(".index") for name in disk.names(log_desk.FOLDER))
    assert reopen(disk, IndexKind.NONE).index_health().entry_count == 0


def lose(file: File) -> None:
    file.truncate(0)


def misalign(file: File) -> None:
    file.truncate(file.size() - 5)


def shorten(file: File) -> None:
    file.truncate(layout.FILE_HEADER_BYTES + 24 * 2)


def damage(file: File) -> None:
    file.write_at(layout.FILE_HEADER_BYTES + 30, [b"\xff\xff"])


def zero(file: File) -> None:
    file.write_at(layout.FILE_HEADER_BYTES, [bytes(48)])


def foreign(file: File) -> None:
    file.write_at(0, [b"SQLite format 3\0"])


@pytest.mark.parametrize("kind", [IndexKind.SPARSE, IndexKind.DENSE])
@pytest.mark.parametrize("hurt", [lose, misalign, shorten, damage, zero, foreign])
def test_a_bad_index_is_rebuilt_from_the_log(kind: IndexKind, hurt: Callable[[File], None]) -> None:
    disk = new_disk(1)
    log = make(disk, kind)
    log.close()
    expected = reopen(disk, kind).index_health().entry_count
    for segment in log.segments():
        hurt(disk.open(path(segment.base_offset, ".index")))
    again = reopen(disk, kind)
    for offset in range(100):
        item = again.get(offset)
        assert item is not None
        assert log_desk.numbers([item]) == [offset]
    health = again.index_health()
    assert health.entry_count == expected
    assert health.rebuild_count >= len(log.segments()) - 1
    again.close()
    assert reopen(disk, kind).index_health().rebuild_count == 0


def test_a_lost_time_index_is_rebuilt() -> None:
    disk = new_disk(1)
    log = make(disk)
    log.close()
    for segment in log.segments():
        disk.remove(path(segment.base_offset, ".timeindex"))
    again = reopen(disk)
    assert again.offset_at(1055) == 55
    again.index_health()  # looks at every segment
    again.close()
    assert all(disk.exists(path(s.base_offset, ".timeindex")) for s in log.segments())


def test_another_strategy_makes_another_index() -> None:
    disk = new_disk(1)
    make(disk, IndexKind.SPARSE).close()
    dense = reopen(disk, IndexKind.DENSE)
    assert dense.index_health().entry_count == 100
    assert dense.index_health().rebuild_count > 0


def test_the_index_of_another_segment_is_not_believed() -> None:
    disk = new_disk(1)
    log = make(disk)
    log.close()
    first, second, *_ = (s.base_offset for s in log.segments())
    data = disk.open(path(first, ".index")).read_at(0, 1 << 20)
    disk.open(path(second, ".index")).write_at(0, [data])
    again = reopen(disk)
    assert again.get(second + 1) is not None
    assert again.segments()[1].rebuild_count == 1


def test_entries_above_what_was_cut_never_come_back() -> None:
    disk = new_disk(1)
    log = log_desk.open_small(disk, settings=log_desk.settings(IndexKind.DENSE))
    log_desk.fill(log, 15)
    log._writer.flush_indexes()
    log._writer.sync_indexes()
    length = log.segments()[0].length
    file = disk.open(path(0, ".log"))
    file.truncate(length - 1)
    file.sync()
    again = reopen(disk, IndexKind.DENSE)
    assert again.next_offset == 14
    assert again.index_health().entry_count == 14
    assert disk.open(path(0, ".index")).size() <= layout.FILE_HEADER_BYTES + 14 * 24


@pytest.mark.parametrize("kind", [IndexKind.SPARSE, IndexKind.DENSE])
def test_an_index_that_is_intact_but_of_other_records_is_found_out(kind: IndexKind) -> None:
    """Same name, same creation time, other bytes: no header tells, only the log itself."""
    disk, other = new_disk(1), new_disk(2)
    log = make(disk, kind)
    log.close()
    strange = log_desk.open_small(other, settings=log_desk.settings(kind))
    for number in range(100):
        strange.append([Record(bytes(number * 13 % 90), timestamp_ms=1)])
    strange.close()
    shared = {s.base_offset for s in log.segments()} & {s.base_offset for s in strange.segments()}
    assert 0 in shared
    for base_offset in shared:
        for ending in (".index", ".timeindex"):
            data = other.open(path(base_offset, ending)).read_at(0, 1 << 20)
            file = disk.open(path(base_offset, ending))
            file.truncate(0)
            file.write_at(0, [data])
    again = reopen(disk, kind)
    assert again.damages() == []
    for offset in range(100):
        item = again.get(offset)
        assert item is not None
        assert log_desk.numbers([item]) == [offset]


def test_strange_indexes_do_not_make_the_active_segment_look_damaged() -> None:
    disk, other = new_disk(1), new_disk(2)
    for one, size in ((disk, 40), (other, 11)):
        log = log_desk.open_small(one, settings=log_desk.settings())
        log.append([log_desk.record_of(number, size=size) for number in range(15)])
        log.close()
    for ending in (".index", ".timeindex"):
        data = other.open(path(0, ending)).read_at(0, 1 << 20)
        disk.open(path(0, ending)).write_at(0, [data])
    again = reopen(disk)
    assert again.damages() == []
    assert log_desk.numbers(log_desk.read_all(again)) == list(range(15))
