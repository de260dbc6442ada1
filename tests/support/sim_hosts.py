"""A few real hosts on the simulated loop, disks and links, without faults of its own.

For directed tests of what many groups on one node do together; `tests/sim/world.py` is the same
with faults, checkers and a seed.
"""

import random
from collections.abc import Callable
from functools import partial

from lograft_replication import bulk
from lograft_replication.group import RaftGroup
from lograft_replication.host import Host
from lograft_replication.journal_limits import JournalLimits
from lograft_replication.membership import Config
from lograft_replication.proposals import Outcome
from lograft_replication.timing import GroupLimits, Timing
from lograft_wire.errors import LograftError
from sim.background import Pace, SimBackground
from sim.disk import SimDisk, SimVolume
from sim.loop import NodeScheduler, SimClock, SimLoop, SimRng
from sim.network import Fabric, Weather
from support.group_desk import ListMachine

DATA = "/data"
JOURNAL = JournalLimits(
    file_bytes=128 << 10, entry_bytes_max=8 << 10, group_count_max=16, vote_bytes_max=64
)
LIMITS = GroupLimits(command_bytes_max=4 << 10, append_bytes_max=16 << 10)


class Node:
    """One host with its medium; `failures` and `halts` are what it told."""

    def __init__(self, hosts: "SimHosts", number: int) -> None:
        self.id = f"n{number}@{number:032x}"
        self.volume = SimVolume(hosts.rng)
        self.disk = SimDisk(self.volume, on_crash=lambda: None)
        self.disk.make_folder(DATA)
        self.disk.sync_folder("")
        self.failures: list[LograftError] = []
        self.halts: list[tuple[int, LograftError]] = []
        self.roles: list[tuple[int, str, int]] = []
        self.led: list[tuple[int, int]] = []
        scheduler = NodeScheduler(hosts.loop, on_crash=_ignore, after=_ignore)
        make = partial(SimBackground, scheduler, rng=hosts.rng, pace=Pace())
        self.host = Host(
            node=self.id,
            incarnation=bytes([number]) * 16,
            disk=self.disk,
            folder=DATA,
            clock=SimClock(hosts.loop, start_s=0.0, rate=1.0, wall_offset_ms=0),
            rng=SimRng(hosts.rng),
            scheduler=scheduler,
            network=hosts.fabric.join(self.id, boot=bytes([number]) * 16, scheduler=scheduler),
            writer=make(),
            helper=make(),
            worker=make(),
            machine_for=lambda _group: ListMachine(),
            listener=self,
            timing=Timing(),
            limits=LIMITS,
            journal_limits=JOURNAL,
            bulk_limits=bulk.Limits(free_bytes_min=0),
        )

    def on_role(self, group: RaftGroup) -> None:
        self.roles.append((group.group_id, group.role.name, group.term))

    def on_leads(self, group: RaftGroup) -> None:
        self.led.append((group.group_id, group.term))

    def on_halted(self, group: RaftGroup, error: LograftError) -> None:
        self.halts.append((group.group_id, error))

    def on_failed(self, error: LograftError) -> None:
        self.failures.append(error)


class SimHosts:
    def __init__(self, count: int, *, seed: int = 1) -> None:
        self.rng = random.Random(seed)
        self.loop = SimLoop()
        self.fabric = Fabric(self.loop, rng=self.rng, weather=Weather())
        self.nodes = [Node(self, number) for number in range(count)]
        for node in self.nodes:
            node.host.start()

    def create(self, group: int) -> None:
        config = Config(tuple(node.id for node in self.nodes))
        for node in self.nodes:
            node.host.create_group(group, config)

    def run(self, seconds: float) -> None:
        self.loop.run_until(self.loop.now + seconds)

    def until(self, condition: Callable[[], bool], *, limit_s: float = 20.0) -> None:
        assert self.loop.run_until_true(condition, limit_s=limit_s), "not within the time limit"

    def leader(self, group: int) -> Node:
        def found() -> list[Node]:
            return [node for node in self.nodes if node.host.groups[group].serving]

        self.until(lambda: len(found()) == 1)
        return found()[0]

    def propose(self, node: Node, group: int, text: bytes) -> list[Outcome]:
        outcomes: list[Outcome] = []
        node.host.groups[group].propose(b"\x20" + text, outcomes.append)
        return outcomes


def _ignore(*_arguments: object) -> None:
    pass
