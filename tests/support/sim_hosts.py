"""A few real hosts on the simulated loop, disks and links, without faults of its own.

For directed tests of what many groups on one node do together; `tests/sim/world.py` is the same
with faults, checkers and a seed. A LoneHost is one such host whose peers are played by the test.
"""

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from typing_extensions import Buffer

from lograft_replication import bulk, codec
from lograft_replication.group import RaftGroup
from lograft_replication.host import NODE_GROUP, Host
from lograft_replication.journal_limits import JournalLimits
from lograft_replication.membership import Config
from lograft_replication.messages import GroupMessage, Heartbeat, HeartbeatOk, NodeMessage
from lograft_replication.network import NetworkEvents, PeerNetwork
from lograft_replication.proposals import Outcome
from lograft_replication.timing import GroupLimits, Timing
from lograft_wire.errors import LograftError
from sim.background import Pace, SimBackground
from sim.disk import SimDisk, SimVolume
from sim.loop import NodeScheduler, SimClock, SimLoop, SimRng
from sim.network import Fabric, Weather
from support.group_desk import ListMachine

DATA = "/data"
Kind = TypeVar("Kind")
JOURNAL = JournalLimits(
    file_bytes=128 << 10, entry_bytes_max=8 << 10, group_count_max=16, vote_bytes_max=64
)
LIMITS = GroupLimits(command_bytes_max=4 << 10, append_bytes_max=16 << 10)


class Node:
    """One host with its medium; `failures` and `halts` are what it told."""

    def __init__(
        self,
        hosts: "SimHosts",
        number: int,
        network: PeerNetwork | None = None,
        volume: SimVolume | None = None,
    ) -> None:
        self.number = number
        self.id = node_id(number)
        self.volume = volume or SimVolume(hosts.rng)
        self.disk = SimDisk(self.volume, on_crash=lambda: None)
        self.disk.make_folder(DATA)
        self.disk.sync_folder("")
        self.failures: list[LograftError] = []
        self.halts: list[tuple[int, LograftError]] = []
        self.roles: list[tuple[int, str, int]] = []
        self.led: list[tuple[int, int]] = []
        scheduler = NodeScheduler(hosts.loop, on_crash=self.die, after=_ignore)
        self.scheduler = scheduler
        make = partial(SimBackground, scheduler, rng=hosts.rng, pace=Pace())
        self.host = Host(
            node=self.id,
            incarnation=bytes([number]) * 16,
            disk=self.disk,
            folder=DATA,
            clock=SimClock(hosts.loop, start_s=0.0, rate=1.0, wall_offset_ms=0),
            rng=SimRng(hosts.rng),
            scheduler=scheduler,
            network=network
            or hosts.fabric.join(self.id, boot=bytes([number]) * 16, scheduler=scheduler),
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

    def die(self) -> None:
        self.scheduler.kill()

    def on_role(self, group: RaftGroup) -> None:
        self.roles.append((group.group_id, group.role.name, group.term))

    def on_leads(self, group: RaftGroup) -> None:
        self.led.append((group.group_id, group.term))

    def on_halted(self, group: RaftGroup, error: LograftError) -> None:
        self.halts.append((group.group_id, error))

    def on_failed(self, error: LograftError) -> None:
        self.failures.append(error)


class SimHosts:
    def __init__(self, count: int, *, seed: int = 1, network: PeerNetwork | None = None) -> None:
        self.rng = random.Random(seed)
        self.loop = SimLoop()
        self.fabric = Fabric(self.loop, rng=self.rng, weather=Weather())
        self.nodes = [Node(self, number, network) for number in range(count)]
        for node in self.nodes:
            node.host.start()

    def create(self, group: int) -> None:
        config = Config(tuple(node.id for node in self.nodes))
        for node in self.nodes:
            node.host.create_group(group, config)

    def restart(self, node: Node, network: PeerNetwork | None = None) -> Node:
        """Another process on the medium of one that is dead."""
        self.fabric.leave(node.id, refuses=True)
        again = Node(self, node.number, network, node.volume)
        again.host.start()
        self.nodes[self.nodes.index(node)] = again
        return again

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


def node_id(number: int) -> str:
    return f"n{number}@{number:032x}"


class PlayedPeers:
    """A network whose other ends a test plays; only heartbeats they confirm by themselves."""

    def __init__(self) -> None:
        self.events: NetworkEvents | None = None
        self.later: Callable[[Callable[[], None]], object]
        self.sent: list[tuple[str, GroupMessage | NodeMessage]] = []

    def attach(self, events: NetworkEvents) -> None:
        self.events = events

    def send(self, peer: str, frame: Sequence[Buffer]) -> bool:
        _, message = codec.decode(memoryview(b"".join(frame)))
        if isinstance(message, Heartbeat):
            assert self.events is not None
            ok = HeartbeatOk(message.version, message.sent_at_us, unknown=False, refused=())
            answer = memoryview(b"".join(codec.encode(NODE_GROUP, ok)))
            self.later(partial(self.events.on_frame, peer, answer))
        else:
            self.sent.append((peer, message))
        return True

    def backlog_bytes(self, _peer: str) -> int:
        return 0


class LoneHost:
    """Node 0 of group 1; nodes 1 and 2 are whatever the test says they say."""

    def __init__(self) -> None:
        self._peers = PlayedPeers()
        self.hosts = SimHosts(1, network=self._peers)
        self._peers.later = self.hosts.loop.call_soon
        self.node = self.hosts.nodes[0]
        self.host = self.node.host
        self.one, self.two = node_id(1), node_id(2)
        self.group = self.host.create_group(1, Config((self.node.id, self.one, self.two)))
        self._link()

    def restart(self) -> None:
        self.node.die()
        self.node = self.hosts.restart(self.node, network=self._peers)
        self.host = self.node.host
        self._link()

    def _link(self) -> None:
        for peer in (self.one, self.two):
            self.host.on_up(peer, b"boot")
        self.run(0.1)

    def run(self, seconds: float) -> None:
        self.hosts.run(seconds)

    def hear(self, peer: str, message: GroupMessage | NodeMessage) -> None:
        group = NODE_GROUP if isinstance(message, NodeMessage) else 1
        frame = b"".join(codec.encode(group, message))
        self.host.on_frame(peer, memoryview(frame))
        self.run(0.1)

    def take(self, kind: type[Kind], peer: str | None = None) -> list[Kind]:
        """What was said of this kind since the last look, to one peer or to all."""
        found: list[Kind] = []
        for to, message in self._peers.sent:
            if isinstance(message, kind) and peer in (None, to):
                found.append(message)
        self._peers.sent.clear()
        return found


def _ignore(*_arguments: object) -> None:
    pass
