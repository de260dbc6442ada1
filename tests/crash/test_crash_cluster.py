"""Three real processes on loopback, the leader killed again and again under load: whatever was
confirmed is on all three in the end, and each place holds one record only.
"""

import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from lograft_log.env import RealDisk, RealRng
from lograft_replication import identity

NODE = Path(__file__).parent / "cluster_node.py"
NAMES = ("a", "b", "c")
SEED = int(os.environ.get("CRASH_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)
WAIT_S = 60.0


class Node:
    """A process that is killed and started again; what it prints is sorted into place."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name
        self.confirmed: dict[tuple[str, str], str] = {}
        self.answers: list[str] = []
        self.changed = threading.Condition()
        self.process: subprocess.Popen[str]
        self._reader: threading.Thread

    def start(self, members: list[str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(NODE), str(self.folder), self.name, *members],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, args=(self.process,), daemon=True)
        self._reader.start()

    def _read(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        reading: dict[tuple[str, str], str] | None = None
        for line in process.stdout:
            if not line.endswith("\n"):
                break  # cut by the kill
            words = line.split()
            with self.changed:
                if words[0] == "at":
                    reading = {}
                    self.applied = int(words[1])
                elif words[0] == "end":
                    assert reading is not None
                    self.found, reading = reading, None
                    self.answers.append("end")
                elif words[0] == "leads":
                    self.answers.append(words[1])
                elif reading is not None:
                    reading[words[1], words[0]] = words[2]
                else:
                    self.confirmed[words[1], words[0]] = words[2]
                self.changed.notify_all()

    def ask(self, what: str) -> str:
        assert self.process.stdin is not None
        with self.changed:
            self.answers.clear()
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        with self.changed:
            assert self.changed.wait_for(lambda: bool(self.answers), WAIT_S), (self.name, what)
            return self.answers[0]

    def tell(self, what: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()


def test_few_kills_of_leaders_lose_nothing_confirmed(tmp_path: Path) -> None:
    run_rounds(tmp_path, rounds=3, seed=SEED)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_forty_kills_of_leaders_lose_nothing_confirmed(tmp_path: Path) -> None:
    run_rounds(tmp_path, rounds=40, seed=SEED)


def run_rounds(folder: Path, *, rounds: int, seed: int) -> None:
    rng = random.Random(seed)
    nodes = [Node(folder / name, name) for name in NAMES]
    free = ports()
    members = [f"{node.name}={make_identity(node)}={free.pop()}" for node in nodes]
    for node in nodes:
        node.start(members)
    try:
        for number in range(rounds):
            leader = wait_for(lambda: leading(nodes), f"a leader in round {number}, seed {seed}")
            wait_for(partial(has_grown, leader, len(leader.confirmed)), f"load, seed {seed}")
            time.sleep(rng.uniform(0.0, 0.5))
            victims = [leader] if rng.random() < 0.7 else [leader, rng.choice(nodes)]
            for victim in set(victims):
                victim.kill()
            for victim in set(victims):
                victim.start(members)
        check_all_equal(nodes, seed)
    finally:
        for node in nodes:
            node.kill()


def has_grown(node: Node, count: int) -> bool:
    return len(node.confirmed) > count + 20


def check_all_equal(nodes: list[Node], seed: int) -> None:
    wait_for(lambda: leading(nodes), f"a leader at the end, seed {seed}")
    for node in nodes:
        node.tell("stop")

    def converged() -> bool:
        for node in nodes:
            node.ask("read")
        return len({node.applied for node in nodes}) == 1

    wait_for(converged, f"all nodes at one index, seed {seed}")
    assert nodes[0].found == nodes[1].found == nodes[2].found, f"seed {seed}"
    for node in nodes:
        missing = [place for place in node.confirmed if place not in node.found]
        assert not missing, f"{len(missing)} missing, {missing[:3]}, seed {seed}"
        wrong = [p for p, checksum in node.confirmed.items() if node.found[p] != checksum]
        assert not wrong, f"{len(wrong)} wrong, {wrong[:3]}, seed {seed}"
    assert sum(len(node.confirmed) for node in nodes) > 0


def leading(nodes: list[Node]) -> Node | None:
    return next((node for node in nodes if node.ask("leads") == "yes"), None)


def wait_for(condition: Callable[[], Node | bool | None], what: str) -> Node:
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found  # type: ignore[return-value]
        time.sleep(0.02)
    raise AssertionError(f"not within {WAIT_S} s: {what}")


def make_identity(node: Node) -> str:
    node.folder.mkdir()
    me = identity.load_or_create(RealDisk(), str(node.folder), node.name, "crash-tests", RealRng())
    return me.id


def ports() -> list[int]:
    """Free ports; all are held until all are known."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in NAMES]
    found = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return found
