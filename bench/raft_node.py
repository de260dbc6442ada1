"""One node of the replication benchmarks, as its own process; `bench_raft.py` starts three.

Runs the real host on real files and links. What it does is told by one JSON line on standard input
per command, and every command is answered by one JSON line on standard output.
"""

import asyncio
import json
import os
import resource
import sys
import time
from functools import partial
from typing import Any

import uvloop

from lograft_broker import memory
from lograft_log.background import ThreadBackground
from lograft_log.env import RealClock, RealDisk, RealRng
from lograft_replication import bulk, link_protocol
from lograft_replication.group import RaftGroup
from lograft_replication.handshake import Identity
from lograft_replication.host import Host
from lograft_replication.journal_limits import JournalLimits
from lograft_replication.link import LinkNetwork
from lograft_replication.machine import Capture
from lograft_replication.membership import Config
from lograft_replication.proposals import Committed, Outcome
from lograft_replication.timing import GroupLimits, Timing
from lograft_wire.errors import LograftError

SECRET = b"a secret for benchmarks only"


class CountingMachine:
    """Counts bytes: what is measured is replication, not what a machine does with it."""

    def __init__(self) -> None:
        self.bytes = 0

    def apply(self, _index: int, _term: int, command: bytes) -> object:
        self.bytes += len(command)
        return None

    def capture(self) -> Capture:
        return Capture(b"", lambda: None)

    def restore(self, payload: bytes, folder: str) -> None:
        self.bytes = 0

    def damaged(self) -> str:
        return ""

    def close(self) -> None:
        pass


class Listener:
    def on_role(self, group: RaftGroup) -> None:
        pass

    def on_leads(self, group: RaftGroup) -> None:
        pass

    def on_halted(self, group: RaftGroup, error: LograftError) -> None:
        print(json.dumps({"halted": str(error)}), flush=True)

    def on_failed(self, error: LograftError) -> None:
        print(json.dumps({"failed": str(error)}), flush=True)


class Load:
    """Keeps `window` commands of `size` bytes in flight in one group, as long as it leads."""

    def __init__(self, group: RaftGroup, size: int, window: int) -> None:
        self.group = group
        self.window = window
        self.count = 0
        self.latencies: list[float] = []
        self.measuring = True
        self.running = True
        self.in_flight = 0
        self._pool = [
            b"\x20" + os.urandom(size - 1) for _ in range(max(2, min(64, (8 << 20) // size)))
        ]
        self._next = 0

    def fill(self) -> None:
        while self.running and self.in_flight < self.window:
            started = time.monotonic()
            self._next += 1
            # A copy stands for building the batch.
            command = bytes(bytearray(self._pool[self._next % len(self._pool)]))
            self.in_flight += 1
            self.group.propose(command, partial(self.done, started))

    def done(self, started: float, outcome: Outcome) -> None:
        self.in_flight -= 1
        if not isinstance(outcome, Committed):
            self.running = False
            return
        if self.measuring:
            self.count += 1
            self.latencies.append(time.monotonic() - started)
        asyncio.get_running_loop().call_soon(self.fill)


class BenchNode:
    def __init__(self, number: int, folder: str) -> None:
        self.number = number
        self.folder = folder
        self.incarnation = bytes([number]) * 16
        self.loads: list[Load] = []
        self.host: Host
        self.commits: list[float] = []
        self.ticking = False

    async def start(self, ports: list[int], groups: int, timing: dict[str, float]) -> None:
        loop = asyncio.get_running_loop()
        rng, clock, disk = RealRng(), RealClock(), RealDisk()
        me = Identity(
            name=f"n{self.number}",
            incarnation=self.incarnation,
            boot=rng.token(16),
            cluster="bench",
        )
        self.network = LinkNetwork(
            me,
            secret=SECRET,
            listen=("127.0.0.1", ports[self.number]),
            addresses={f"n{i}": ("127.0.0.1", port) for i, port in enumerate(ports)},
            rng=rng,
            clock=clock,
            limits=link_protocol.Limits(),
        )
        disk.make_folder(self.folder)
        self.host = Host(
            node=me.node_id,
            incarnation=self.incarnation,
            disk=disk,
            folder=self.folder,
            clock=clock,
            rng=rng,
            scheduler=loop,
            network=self.network,
            writer=ThreadBackground("journal", loop),
            helper=ThreadBackground("files", loop),
            worker=ThreadBackground("worker", loop),
            machine_for=lambda _: CountingMachine(),
            listener=Listener(),
            timing=Timing(**timing),
            limits=GroupLimits(),
            journal_limits=JournalLimits(),
            bulk_limits=bulk.Limits(),
        )
        self.host.start()
        voters = tuple(f"n{i}@{(bytes([i]) * 16).hex()}" for i in range(len(ports)))
        for group in range(groups):
            self.host.create_group(group, Config(voters))
        await self.network.start()

    def led(self) -> list[RaftGroup]:
        return [group for group in self.host.groups.values() if group.is_leader]

    async def measure(self, size: int, window: int, warm_s: float, run_s: float) -> dict[str, Any]:
        self.loads = [Load(group, size, window) for group in self.led()]
        for load in self.loads:
            load.measuring = False
            load.fill()
        await asyncio.sleep(warm_s)
        syncs = self.host.journal.stats.sync_count
        cpu = time.process_time()
        started = time.monotonic()
        for load in self.loads:
            load.measuring = True
        await asyncio.sleep(run_s)
        for load in self.loads:
            load.running = load.measuring = False
        elapsed = time.monotonic() - started
        latencies = sorted(value for load in self.loads for value in load.latencies)
        return {
            "elapsed_s": elapsed,
            "count": sum(load.count for load in self.loads),
            "cpu_s": time.process_time() - cpu,
            "syncs": self.host.journal.stats.sync_count - syncs,
            "p50_ms": 1000 * latencies[len(latencies) // 2] if latencies else None,
            "p99_ms": 1000 * latencies[int(len(latencies) * 0.99)] if latencies else None,
        }

    def tick_commits(self) -> None:
        """A small command every 2 ms wherever we lead: the gap in commits is the failover."""
        for group in self.led():
            group.propose(b"\x20" + bytes(100), self._committed)
        asyncio.get_running_loop().call_later(0.002, self.tick_commits)

    def _committed(self, outcome: Outcome) -> None:
        if isinstance(outcome, Committed):
            self.commits.append(time.monotonic())

    async def command(self, request: dict[str, Any]) -> dict[str, Any]:
        match request["do"]:
            case "start":
                await self.start(request["ports"], request["groups"], request["timing"])
                return {}
            case "led":
                return {
                    "led": len(self.led()),
                    "groups": sorted(group.group_id for group in self.led()),
                    "serving": sum(group.serving for group in self.led()),
                }
            case "measure":
                return await self.measure(
                    request["size"], request["window"], request["warm_s"], request["run_s"]
                )
            case "cpu":
                before, at = time.process_time(), time.monotonic()
                await asyncio.sleep(request["run_s"])
                used = time.process_time() - before
                rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
                return {"share": used / (time.monotonic() - at), "rss_mb": rss}
            case "tick":
                self.tick_commits()
                return {}
            case "commits":
                after = request["after"]
                return {"commits": [at for at in self.commits if at > after][:1]}
            case "last_commit":
                before_at = request["before"]
                return {"at": max((at for at in self.commits if at < before_at), default=None)}
            case "transfer":
                asked = time.monotonic()
                for group in self.led():
                    if group.group_id in request["groups"]:
                        group.transfer(request["target"], lambda _error: None)
                return {"at": asked}
            case other:
                raise AssertionError(other)


async def main() -> None:
    node = BenchNode(int(sys.argv[1]), sys.argv[2])
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        answer = await node.command(json.loads(line))
        print(json.dumps(answer), flush=True)
    os._exit(0)


if __name__ == "__main__":
    memory.keep_freed_batches()
    uvloop.run(main())
