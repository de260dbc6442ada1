"""Replication: three nodes in three processes on loopback, fdatasync on every one.

Prints committed megabytes per second and latency at several sizes beside pysyncobj as shipped under
the same load, the cost of idle groups, and how long a failover and a planned transfer take. With
--record it appends one JSON line to results/raft.jsonl.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import record

HERE = Path(__file__).parent


class Process:
    """A bench node, driven by lines of JSON."""

    def __init__(self, number: int, folder: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "raft_node.py"), str(number), folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, **request: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"bench node ended with {self.process.wait()}")
        found = json.loads(line)
        if "halted" in found or "failed" in found:
            raise RuntimeError(line)
        return dict(found)

    def call(self, **request: Any) -> dict[str, Any]:
        self.ask(**request)
        return self.answer()


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@contextlib.contextmanager
def cluster(*, groups: int, timing: dict[str, float] | None = None) -> Iterator[list[Process]]:
    folder = tempfile.mkdtemp(prefix="lograft-bench-")
    nodes = [Process(number, f"{folder}/n{number}") for number in range(3)]
    try:
        ports = free_ports(3)
        for node in nodes:
            node.ask(do="start", ports=ports, groups=groups, timing=timing or {})
        for node in nodes:
            node.answer()
        wait_for_leaders(nodes, groups)
        yield nodes
    finally:
        for node in nodes:
            node.process.send_signal(signal.SIGCONT)
            node.process.kill()
            node.process.wait()
        shutil.rmtree(folder)


def wait_for_leaders(nodes: list[Process], groups: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if sum(node.call(do="led")["serving"] for node in nodes) == groups:
            return
        time.sleep(0.1)
    raise RuntimeError("no leaders after 30 s")


def throughput(size: int, window: int, run_s: float, *, groups: int = 1) -> dict[str, Any]:
    with cluster(groups=groups) as nodes:
        for node in nodes:
            node.ask(do="measure", size=size, window=window, warm_s=1.0, run_s=run_s)
        parts = [node.answer() for node in nodes]
    count = sum(part["count"] for part in parts)
    elapsed = max(part["elapsed_s"] for part in parts)
    leader = max(parts, key=lambda part: part["count"])
    mb = count * size / 1e6
    return {
        "engine": "lograft",
        "size": size,
        "window": window,
        "groups": groups,
        "mb_s": round(mb / elapsed, 1),
        "p50_ms": leader["p50_ms"] and round(leader["p50_ms"], 2),
        "p99_ms": leader["p99_ms"] and round(leader["p99_ms"], 2),
        "syncs_s": [round(part["syncs"] / part["elapsed_s"]) for part in parts],
        "cpu_s_per_gb": [round(part["cpu_s"] / (mb / 1000), 2) for part in parts] if mb else None,
    }


def as_shipped(size: int, window: int, run_s: float) -> dict[str, Any]:
    """pysyncobj's own node, journal in memory, same batch size and window."""
    folder = tempfile.mkdtemp(prefix="lograft-bench-")
    ports = free_ports(3)
    processes = [
        subprocess.Popen(
            [
                *(sys.executable, str(HERE / "shipped_node.py"), str(number), folder),
                *(str(size), str(window), str(run_s), *map(str, ports)),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    try:
        assert processes[0].stdout is not None
        result = dict(json.loads(processes[0].stdout.readline()))
    finally:
        for process in processes:
            process.kill()
            process.wait()
        shutil.rmtree(folder)
    return {"engine": "pysyncobj 0.3.17 as shipped, journal in memory", **result}


def idle(groups: int) -> dict[str, Any]:
    with cluster(groups=groups) as nodes:
        time.sleep(3)
        for node in nodes:
            node.ask(do="cpu", run_s=8)
        parts = [node.answer() for node in nodes]
    return {
        "groups": groups,
        "core_percent": [round(100 * part["share"], 2) for part in parts],
        "rss_mb": [part["rss_mb"] for part in parts],
    }


def failover(rounds: int) -> dict[str, Any]:
    gaps = []
    for _ in range(rounds):
        with cluster(groups=1) as nodes:
            for node in nodes:
                node.call(do="tick")
            time.sleep(0.5)
            leader = next(node for node in nodes if node.call(do="led")["led"])
            others = [node for node in nodes if node is not leader]
            at = time.monotonic()
            leader.process.kill()
            gaps.append(first_commit(others, at) - at)
            print(f"  failover {len(gaps)}/{rounds}: {gaps[-1] * 1000:.0f} ms", file=sys.stderr)
    return summary_ms(gaps)


def transfers(rounds: int) -> dict[str, Any]:
    gaps = []
    with cluster(groups=1) as nodes:
        for node in nodes:
            node.call(do="tick")
        time.sleep(0.5)
        for _ in range(rounds):
            leader = next(node for node in nodes if node.call(do="led")["led"])
            others = [node for node in nodes if node is not leader]
            at = leader.call(do="transfer", groups=[0], target=None)["at"]
            first = first_commit(others, at)
            last = leader.call(do="last_commit", before=first)["at"]
            gaps.append(first - last)
            time.sleep(0.3)
    return summary_ms(gaps)


def first_commit(nodes: list[Process], after: float) -> float:
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        found = [at for node in nodes for at in node.call(do="commits", after=after)["commits"]]
        if found:
            return float(min(found))
        time.sleep(0.01)
    raise RuntimeError("no commit within 15 s")


def summary_ms(gaps: list[float]) -> dict[str, Any]:
    return {
        "rounds": len(gaps),
        "min_ms": round(min(gaps) * 1000, 1),
        "median_ms": round(statistics.median(gaps) * 1000, 1),
        "max_ms": round(max(gaps) * 1000, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="append to results/raft.jsonl")
    parser.add_argument("--run-s", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", choices=["throughput", "shipped", "idle", "failover", "transfer"])
    options = parser.parse_args()

    def wanted(part: str) -> bool:
        return options.only in (None, part)

    found: dict[str, Any] = {}
    if wanted("throughput"):
        found["throughput"] = []
        for size, window, groups in (
            *((262144, 1, 1), (262144, 4, 1), (262144, 16, 1), (65536, 16, 1)),
            *((1024, 1, 1), (1024, 1000, 1), (262144, 4, 3), (16384, 1, 60)),
        ):
            found["throughput"].append(throughput(size, window, options.run_s, groups=groups))
            print(json.dumps(found["throughput"][-1]), flush=True)
    if wanted("shipped"):
        found["shipped"] = as_shipped(262144, 16, options.run_s)
        print(json.dumps(found["shipped"]), flush=True)
    if wanted("idle"):
        found["idle"] = idle(64)
        print(json.dumps(found["idle"]), flush=True)
    if wanted("failover"):
        found["failover"] = failover(options.rounds)
        print("failover", json.dumps(found["failover"]), flush=True)
    if wanted("transfer"):
        found["transfer"] = transfers(options.rounds)
        print("transfer", json.dumps(found["transfer"]), flush=True)
    if options.record:
        record.append("raft", found, settings={"run_s": options.run_s, "fdatasync": True})


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    main()
