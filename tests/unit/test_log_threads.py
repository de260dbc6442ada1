"""Readers in other threads while the log is appended to, rolled, synced, trimmed, cut and
compacted; and what it all leaves open."""

import os
import threading
from collections.abc import Callable

import pytest

from lograft_log import compaction, maintenance
from lograft_log.env import RealClock, RealDisk
from lograft_log.hot.record import Record
from lograft_log.log import Log, open_log
from lograft_log.secondary import KeyTerm
from lograft_log.segment import State
from lograft_log.settings import Codec, IndexKind, LogLimits, LogSettings
from lograft_wire.errors import RefusedError

ROUNDS = 150
LIMITS = LogLimits(
    segment_bytes_max=20_000, index_pending_bytes_max=200, map_step_bytes=4000, views_max=4
)


def expected(offset: int) -> bytes:
    return b"%d;" % offset + b"." * (offset % 50)


def write(log: Log) -> None:
    for turn in range(ROUNDS):
        first = log.next_offset
        log.append([Record(expected(first + n), key=b"%d" % (first + n)) for n in range(20)])
        if turn % 7 == 0:
            log.sync()
        if turn % 20 == 0:
            log.trim(log.next_offset - 1500)
        if turn % 30 == 0:
            work = maintenance.pending_compaction(log, compaction.CompactionLimits())
            maintenance.adopt(log, work())


def follow(log: Log, ended: threading.Event) -> int:
    reader = log.reader_at(log.first_offset)
    count = 0
    while True:
        last_look = ended.is_set()
        try:
            chunk = reader.next(700)
        except RefusedError:  # the trim overtook it between two segments
            reader = log.reader_at(log.first_offset)
            continue
        for item in chunk.records():
            assert item.body == expected(item.offset), item
        count += chunk.record_count
        if last_look and not chunk.record_count:
            assert reader.offset == log.next_offset
            return count


def pick(log: Log, ended: threading.Event) -> int:
    count = 0
    step = 1
    while not ended.is_set():
        step = step * 7919 % 1009
        offset = max(log.first_offset, log.next_offset - step)
        item = log.get(offset)
        if item is not None:
            assert item.body == expected(offset), item
            count += 1
    return count


def tail(log: Log, ended: threading.Event) -> int:
    count = 0
    while not ended.is_set():
        for item in log.tail(30):
            assert item.body == expected(item.offset), item
            count += 1
    return count


def seek(log: Log, ended: threading.Event) -> int:
    """By time and by key, and the health of it all."""
    count = 0
    while not ended.is_set():
        log.offset_at(1)
        assert log.index_health().log_bytes >= 0
        offsets = []
        for item in log.lookup(b"3"):
            assert item.body == expected(item.offset), item
            offsets.append(item.offset)
        assert offsets == sorted(set(offsets))
        count += len(offsets)
    return count


def write_and_cut(log: Log) -> None:
    for turn in range(ROUNDS // 3):
        first = log.next_offset
        log.append([Record(expected(first + n), key=b"%d" % (n % 7)) for n in range(20)])
        if turn % 5 == 0:
            log.sync()
        if turn % 7 == 0:
            log.truncate(max(log.first_offset, log.next_offset - 130))
        if turn % 11 == 0:
            log.trim(log.next_offset - 700)
            log.roll()
        if turn % 13 == 0:
            archive_some(log)


def archive_some(log: Log) -> None:
    sealed = [s.base_offset for s in log.segments() if s.sealed and s.state is State.FULL]
    if len(sealed) > 1:
        maintenance.archive_as_is(log, sealed[0])
        maintenance.adopt(log, maintenance.pending_archive(log, sealed[1], Codec.ZSTD)())


Work = Callable[[Log, threading.Event], int]


def run_together(
    folder: object, settings: LogSettings, write: Callable[[Log], None], *readers: Work
) -> None:
    log = open_log(f"{folder}/log", disk=RealDisk(), clock=RealClock(), settings=settings)
    ended = threading.Event()
    results: list[int | BaseException] = []

    def run(work: Work) -> None:
        try:
            results.append(work(log, ended))
        except BaseException as error:
            results.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in readers]
    for thread in threads:
        thread.start()
    try:
        write(log)
    finally:
        ended.set()
        for thread in threads:
            thread.join(30)
    assert [one for one in results if isinstance(one, BaseException)] == []
    assert len(results) == len(readers)
    assert log.damages() == []
    log.close()


def test_readers_see_whole_records_whatever_the_writer_does(tmp_path: object) -> None:
    settings = LogSettings(index_interval_bytes=256, limits=LIMITS)
    run_together(tmp_path, settings, write, follow, follow, pick)


@pytest.mark.parametrize("kind", [IndexKind.DENSE, IndexKind.NONE])
def test_readers_of_every_kind_stand_cuts_and_archiving(tmp_path: object, kind: IndexKind) -> None:
    settings = LogSettings(index=kind, codec=Codec.LZ4, term=KeyTerm(), limits=LIMITS)
    run_together(tmp_path, settings, write_and_cut, follow, pick, tail, seek)


def test_rolls_trims_and_cuts_leave_no_file_and_no_map_behind(tmp_path: object) -> None:
    log = open_log(
        f"{tmp_path}/log",
        disk=RealDisk(),
        clock=RealClock(),
        settings=LogSettings(term=KeyTerm(), limits=LIMITS),
    )

    def held() -> int:
        files = [os.readlink(f"/proc/self/fd/{fd}") for fd in open_files()]
        return sum(str(tmp_path) in path for path in files)

    def open_files() -> list[str]:
        names = os.listdir("/proc/self/fd")
        return [name for name in names if os.path.exists(f"/proc/self/fd/{name}")]

    most = 0
    for _ in range(30):
        log.append([Record(bytes(100), key=b"3") for _ in range(100)])
        for offset in range(log.first_offset, log.next_offset, 10):
            log.get(offset)
        assert len(list(log.lookup(b"3"))) == log.next_offset - log.first_offset
        log.roll()
        log.sync()
        log.truncate(log.next_offset - 5)
        log.trim(log.next_offset - 300)
        most = max(most, held())
    assert most < 40, most
    log.close()
    assert held() == 0
