"""The log engine's five figures, each beside what the machine can do at all.

- append of 1 KB records in 256 KB batches without sync: bytes per CPU-second;
- the same with fdatasync after every batch, as a share of a bare write + fdatasync loop;
- sequential, verified read of sealed, cached segments: records per CPU-second;
- random read by offset: CPU per record;
- recovery with indexes present, without seals, and with all indexes lost: seconds per million
  records.

With --record it appends one JSON line to results/log.jsonl. Sizes are megabytes of log.
"""

import argparse
import random
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import record as bench_record

from lograft_log.env import RealClock, RealDisk
from lograft_log.hot.record import Record
from lograft_log.log import Log, open_log

BODY_BYTES = 1024 - 32  # with frame header and fixed part a record is 1 KB
BATCH_RECORDS = 256
CHUNK_BYTES = 256 << 10
READ_ROUNDS = 5  # random reads wait for memory, and the caches are shared with neighbours
DISK = RealDisk()
CLOCK = RealClock()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", default=None, help="on the disk to measure")
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--sync-megabytes", type=int, default=128)
    parser.add_argument("--reads", type=int, default=300_000)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="lograft-bench-", dir=options.folder))
    try:
        figures = measure(folder, options)
    finally:
        shutil.rmtree(folder)
    settings = {"megabytes": options.megabytes, "sync_megabytes": options.sync_megabytes}
    for name, value in figures.items():
        print(f"{name:34} {value:,.3f}")
    if options.record:
        bench_record.append("log", figures, settings=settings)


def measure(folder: Path, options: argparse.Namespace) -> dict[str, float]:
    result: dict[str, float] = {}
    result |= append_synced(folder, options.sync_megabytes)
    result |= append_unsynced(folder, options.megabytes)
    path = str(folder / "plain")
    log = open_log(path, disk=DISK, clock=CLOCK)
    log.roll()
    log.sync()
    result |= read_in_order(log)
    result |= read_at_random(log, options.reads)
    log.close()
    shutil.rmtree(path)
    result |= recover(folder, options.megabytes)
    return result


def batch() -> list[Record]:
    rng = random.Random(1)
    return [Record(rng.randbytes(BODY_BYTES), timestamp_ms=1) for _ in range(BATCH_RECORDS)]


def bare_unsynced(folder: Path, megabytes: int) -> float:
    """Megabytes per CPU-second of writing alone. The first pass makes the machine find the memory
    for its page cache, which costs several times as much and is not the engine's doing."""
    data = random.Random(3).randbytes(CHUNK_BYTES)
    cpu_s = 0.0
    for _ in range(2):
        file = DISK.open(str(folder / "bare"), create=True)
        cpu_s = time.process_time()
        for turn in range(megabytes * 4):
            file.write_at(turn * CHUNK_BYTES, [data])
        cpu_s = time.process_time() - cpu_s
        file.close()
        (folder / "bare").unlink()
    return megabytes * 4 * CHUNK_BYTES / cpu_s / 1e6


def append_unsynced(folder: Path, megabytes: int) -> dict[str, float]:
    bare = bare_unsynced(folder, megabytes)
    log = open_log(str(folder / "plain"), disk=DISK, clock=CLOCK)
    records, turns = batch(), megabytes * 4
    cpu_s, wall_s = time.process_time(), time.perf_counter()
    for _ in range(turns):
        log.append(records)
    cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - wall_s
    size = turns * CHUNK_BYTES
    log.close()
    return {
        "append_mb_per_cpu_s": size / cpu_s / 1e6,
        "append_mb_per_s": size / wall_s / 1e6,
        "bare_mb_per_cpu_s": bare,
        "append_cpu_s": cpu_s,
    }


def append_synced(folder: Path, megabytes: int) -> dict[str, float]:
    """Bare loop and engine take turns, so that a noisy disk hits both."""
    records, turns = batch(), megabytes * 4
    data = random.Random(3).randbytes(CHUNK_BYTES)
    log = open_log(str(folder / "synced"), disk=DISK, clock=CLOCK)
    file = DISK.open(str(folder / "bare"), create=True)
    bare_s = engine_s = 0.0
    position = 0
    for turn in range(0, turns, 16):
        start_s = time.perf_counter()
        for _ in range(min(16, turns - turn)):
            position += file.write_at(position, [data])
            file.sync()
        middle_s = time.perf_counter()
        for _ in range(min(16, turns - turn)):
            log.append(records)
            log.sync()
        bare_s += middle_s - start_s
        engine_s += time.perf_counter() - middle_s
    file.close()
    log.close()
    size = turns * CHUNK_BYTES
    shutil.rmtree(folder / "synced")
    (folder / "bare").unlink()
    return {
        "append_synced_mb_per_s": size / engine_s / 1e6,
        "bare_synced_mb_per_s": size / bare_s / 1e6,
        "append_synced_share_of_bare": bare_s / engine_s,
    }


def read_in_order(log: Log) -> dict[str, float]:
    count = 0
    for turn in range(2):  # the first warms the cache
        reader = log.reader_at(0)
        count = 0
        cpu_s = time.process_time()
        while len(chunk := reader.next(CHUNK_BYTES)):
            count += chunk.record_count
        cpu_s = time.process_time() - cpu_s
        assert count == log.next_offset, (turn, count)
    return {"read_records_per_cpu_s": count / cpu_s, "read_cpu_s": cpu_s}


def read_at_random(log: Log, reads: int) -> dict[str, float]:
    rng = random.Random(2)
    offsets = [rng.randrange(log.next_offset) for _ in range(reads)]
    get = log.get
    for offset in range(0, log.next_offset, 4):  # touch every page once
        get(offset)
    rounds = []
    for _ in range(READ_ROUNDS):
        cpu_s = time.process_time()
        for offset in offsets:
            get(offset)
        rounds.append(time.process_time() - cpu_s)
    found = get(offsets[0])
    assert found is not None
    assert found.offset == offsets[0]
    return {"random_read_cpu_us": statistics.median(rounds) / reads * 1e6}


def recover(folder: Path, megabytes: int) -> dict[str, float]:
    """After a kill: nothing was closed. Then again as if nothing had been sealed, so that every
    byte is scanned, then with every index lost too."""
    path = str(folder / "killed")
    log = open_log(path, disk=DISK, clock=CLOCK)
    records = batch()
    for _ in range(megabytes * 4):
        log.append(records)
    log.sync()
    millions = log.next_offset / 1e6
    result: dict[str, float] = {"recovered_million_records": millions}
    lost = {"recovery": "nothing", "recovery_unsealed": "*.seal", "rebuild": "*index"}
    for step, pattern in lost.items():
        name = f"{step}_s_per_million"
        for file in Path(path).glob(pattern):
            file.unlink()
        start_s = time.perf_counter()
        again = open_log(path, disk=DISK, clock=CLOCK)
        again.index_health()  # opens the indexes of sealed segments too
        result[name] = (time.perf_counter() - start_s) / millions
        assert again.next_offset == log.next_offset
    shutil.rmtree(path)
    return result


if __name__ == "__main__":
    main()
