"""Readers in other threads while the log is appended to, rolled, synced, trimmed and compacted."""

import threading
from collections.abc import Callable

from lograft_log import compaction, maintenance
from lograft_log.env import RealClock, RealDisk
from lograft_log.hot.record import Record
from lograft_log.log import Log, open_log
from lograft_log.settings import LogLimits, LogSettings
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


def test_readers_see_whole_records_whatever_the_writer_does(tmp_path: object) -> None:
    log = open_log(
        f"{tmp_path}/log",
        disk=RealDisk(),
        clock=RealClock(),
        settings=LogSettings(index_interval_bytes=256, limits=LIMITS),
    )
    ended = threading.Event()
    results: list[int | BaseException] = []

    def run(work: Callable[[Log, threading.Event], int]) -> None:
        try:
            results.append(work(log, ended))
        except BaseException as error:
            results.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in (follow, follow, pick)]
    for thread in threads:
        thread.start()
    try:
        write(log)
    finally:
        ended.set()
        for thread in threads:
            thread.join(30)
    assert [one for one in results if isinstance(one, BaseException)] == []
    assert len(results) == 3
    assert log.damages() == []
    log.close()
