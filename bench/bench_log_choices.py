"""What the log engine was chosen over: SQLite as the store, a hash table or a tree as the index.

Appends the same records in the same batches to a table in SQLite (write-ahead log, no sync, its
fastest durable-shaped setting) and reads them back; compares a mapped, sorted sparse index with a
dict and with SQLite's B-tree in bytes per million records and CPU per lookup. The decision records
0001 and 0002 cite it. With --record it appends one JSON line to results/log_choices.jsonl.
"""

import argparse
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

import record as bench_record

from lograft_log.env import RealClock, RealDisk
from lograft_log.hot import search
from lograft_log.hot.record import Record
from lograft_log.log import open_log

BATCH_RECORDS = 256
BODY_BYTES = 1024 - 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--lookups", type=int, default=200_000)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="lograft-bench-"))
    try:
        figures = engine(folder, options) | sqlite(folder, options)
    finally:
        shutil.rmtree(folder)
    for name, value in figures.items():
        print(f"{name:40} {value:,.3f}")
    if options.record:
        settings = {"megabytes": options.megabytes, "lookups": options.lookups}
        bench_record.append("log_choices", figures, settings=settings)


def bodies() -> list[bytes]:
    rng = random.Random(1)
    return [rng.randbytes(BODY_BYTES) for _ in range(BATCH_RECORDS)]


def engine(folder: Path, options: argparse.Namespace) -> dict[str, float]:
    log = open_log(str(folder / "log"), disk=RealDisk(), clock=RealClock())
    records = [Record(body, timestamp_ms=1) for body in bodies()]
    cpu_s = time.process_time()
    for _ in range(options.megabytes * 4):
        log.append(records)
    append_s = time.process_time() - cpu_s
    log.roll()
    log.sync()
    cpu_s = time.process_time()
    reader = log.reader_at(0)
    while len(reader.next(256 << 10)):
        pass
    read_s = time.process_time() - cpu_s
    count = log.next_offset
    entries = log.segments()[0].entries()
    rng = random.Random(2)
    wanted = [rng.randrange(count) for _ in range(options.lookups)]
    figures = {
        "engine_append_mb_per_cpu_s": options.megabytes * 1.048576 / append_s,
        "engine_read_records_per_cpu_s": count / read_s,
        "sorted_index_bytes_per_record": len(entries) / count,
        "sorted_index_lookup_us": lookup_us(lambda n: search.floor(entries, n), wanted),
    }
    table = {offset: offset * 1024 for offset in range(count)}
    size = sys.getsizeof(table) + 2 * 32 * count  # two int objects per entry
    figures["dict_bytes_per_record"] = size / count
    figures["dict_lookup_us"] = lookup_us(table.__getitem__, wanted)
    log.close()
    return figures


def lookup_us(look: object, wanted: list[int]) -> float:
    assert callable(look)
    cpu_s = time.process_time()
    for offset in wanted:
        look(offset)
    return (time.process_time() - cpu_s) / len(wanted) * 1e6


def sqlite(folder: Path, options: argparse.Namespace) -> dict[str, float]:
    path = folder / "store.db"
    base = sqlite3.connect(path, isolation_level=None)
    base.execute("pragma journal_mode=wal")
    base.execute("pragma synchronous=off")
    base.execute("create table record (offset integer primary key, at_ms integer, body blob)")
    batch, offset = bodies(), 0
    cpu_s = time.process_time()
    for _ in range(options.megabytes * 4):
        base.execute("begin")
        rows = [(offset + number, 1, body) for number, body in enumerate(batch)]
        base.executemany("insert into record values (?, ?, ?)", rows)
        base.execute("commit")
        offset += len(rows)
    append_s = time.process_time() - cpu_s
    cpu_s = time.process_time()
    count = sum(1 for _ in base.execute("select offset, at_ms, body from record order by offset"))
    read_s = time.process_time() - cpu_s
    assert count == offset
    rng = random.Random(2)
    wanted = [rng.randrange(count) for _ in range(options.lookups // 10)]
    query = "select offset from record where offset <= ? order by offset desc limit 1"
    tree_us = lookup_us(lambda n: base.execute(query, (n,)).fetchone(), wanted)
    base.close()
    return {
        "sqlite_append_mb_per_cpu_s": options.megabytes * 1.048576 / append_s,
        "sqlite_read_records_per_cpu_s": count / read_s,
        "sqlite_tree_lookup_us": tree_us,
        "sqlite_bytes_per_record": path.stat().st_size / count,
    }


if __name__ == "__main__":
    main()
