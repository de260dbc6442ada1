"""One journal for all groups of a node, or one per group? And what a journal costs beside the disk.

Many groups append one entry at a time, each when its last one is durable. Once they share a
journal, once each has its own. Then one group with several entries in flight, beside a bare loop of
write + fdatasync of the same sizes into a file that was written before.
"""

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import record
import uvloop

from lograft_log.background import ThreadBackground
from lograft_log.env import RealDisk, RealRng
from lograft_replication.group_journal import GroupJournal
from lograft_replication.journal import Journal
from lograft_replication.journal_limits import JournalLimits

GROUPS = 60


@contextlib.contextmanager
def folder() -> Iterator[str]:
    made = tempfile.mkdtemp(prefix="lograft-bench-")
    try:
        yield made
    finally:
        shutil.rmtree(made)


class Appender:
    """Keeps `window` entries of one group in flight."""

    def __init__(self, journal: Journal, group: int, command: bytes, window: int) -> None:
        self.journal = journal
        self.view: GroupJournal = journal.group(group)
        self.command = command
        self.window = window
        self.running = True
        self.start_index = 0
        journal.add_listener(self.fill)

    def fill(self) -> None:
        view = self.view
        if view.last_index - view.base_index > 64:
            view.trim(max(view.base_index, view.durable_index))
        while self.running and view.last_index - view.durable_index < self.window:
            view.append(self.command, index=view.last_index + 1, term=1)

    @property
    def done(self) -> int:
        return self.view.durable_index


async def measure(
    data: str, *, size: int, groups: int, window: int, shared: bool, run_s: float
) -> dict[str, Any]:
    loop = asyncio.get_running_loop()
    journals = []
    for number in range(1 if shared else groups):
        os.makedirs(f"{data}/{number}")
        journals.append(
            Journal.open(
                disk=RealDisk(),
                folder=f"{data}/{number}/journal",
                limits=JournalLimits(
                    file_bytes=(64 if shared else 8) << 20,
                    entry_bytes_max=2 << 20,
                    group_count_max=256,
                ),
                rng=RealRng(),
                incarnation=bytes(16),
                scheduler=loop,
                writer=ThreadBackground("writer", loop),
                helper=ThreadBackground("helper", loop),
            )
        )
    command = os.urandom(size)
    appenders = [
        Appender(journals[number % len(journals)], number, command, window)
        for number in range(groups)
    ]
    for appender in appenders:
        appender.fill()
    await asyncio.sleep(1.5)  # until recycled files are in use
    before = [appender.done for appender in appenders]
    syncs = sum(journal.stats.sync_count for journal in journals)
    cpu, at = time.process_time(), time.monotonic()
    await asyncio.sleep(run_s)
    elapsed = time.monotonic() - at
    cpu = time.process_time() - cpu
    done = sum(appender.done for appender in appenders) - sum(before)
    syncs = sum(journal.stats.sync_count for journal in journals) - syncs
    for appender in appenders:
        appender.running = False
    mb = done * size / 1e6
    return {
        "journals": "shared" if shared else "one per group",
        "groups": groups,
        "size": size,
        "window": window,
        "mb_s": round(mb / elapsed, 1),
        "syncs_s": round(syncs / elapsed),
        "cpu_s_per_gb": round(cpu / (mb / 1000), 2),
    }


def bare(data: str, *, size: int, run_s: float) -> dict[str, Any]:
    file = os.open(f"{data}/bare", os.O_RDWR | os.O_CREAT)
    for number in range(64):
        os.pwrite(file, bytes(1 << 20), number << 20)
    os.fsync(file)
    block = os.urandom(size)
    count = position = 0
    cpu, at = time.process_time(), time.monotonic()
    while (elapsed := time.monotonic() - at) < run_s:
        os.pwrite(file, block, position)
        os.fdatasync(file)
        position = (position + size) % (60 << 20)
        count += 1
    os.close(file)
    mb = count * size / 1e6
    return {
        "journals": "bare write + fdatasync",
        "size": size,
        "mb_s": round(mb / elapsed, 1),
        "syncs_s": round(count / elapsed),
        "cpu_s_per_gb": round((time.process_time() - cpu) / (mb / 1000), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="append to results/journal.jsonl")
    parser.add_argument("--run-s", type=float, default=3.0)
    options = parser.parse_args()
    rows = []
    for size, groups, window, shared in (
        *((4096, GROUPS, 1, True), (4096, GROUPS, 1, False)),
        *((16384, GROUPS, 1, True), (16384, GROUPS, 1, False)),
        *((262144, 1, 1, True), (262144, 1, 4, True), (1024, 1, 1000, True)),
    ):
        with folder() as data:
            work = measure(
                data, size=size, groups=groups, window=window, shared=shared, run_s=options.run_s
            )
            rows.append(uvloop.run(work))
        print(json.dumps(rows[-1]), flush=True)
    for size in (262144, 1 << 20):
        with folder() as data:
            rows.append(bare(data, size=size, run_s=options.run_s))
        print(json.dumps(rows[-1]), flush=True)
    if options.record:
        record.append("journal", {"rows": rows}, settings={"run_s": options.run_s})


if __name__ == "__main__":
    main()
