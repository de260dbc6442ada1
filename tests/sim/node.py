"""One simulated machine and the processes that run on it, one after the other.

The machine (SimNode) keeps what outlives a process: the volume, the clock while it has power, the
pace of its disk. A Process is one boot: identity, host, and views of disk, network and loop that
die with it. Starting does what the real composition root does: find out who it is, open the host;
data found damaged is set aside, and the node goes on as a new member.
"""

import random
from dataclasses import dataclass, field
from typing import Protocol

from lograft_replication import identity
from lograft_replication.group import RaftGroup
from lograft_replication.host import Host
from lograft_wire.errors import DamagedError, LograftError, StorageError
from sim.background import Pace, SimBackground
from sim.disk import SimDisk, SimVolume
from sim.inode import Survival
from sim.loop import NodeScheduler, SimClock, SimLoop, SimRng
from sim.network import Fabric, SimNetwork
from sim.profile import Profile
from sim.recording import RecordingMachine

FOLDER = "data"
CLUSTER = "sim"
BOOT_BYTES = 8
GRACE_S = 3.0  # between SIGTERM and SIGKILL


class NodeEvents(Protocol):
    """What a node tells the world."""

    def ran(self, node: "SimNode") -> None:
        """The process has just run a callback."""

    def died(self, node: "SimNode") -> None:
        """The process is gone, by whatever cause."""

    def applied(self, node: "SimNode", group: int, index: int, digest: bytes) -> None: ...

    def installed(self, node: "SimNode", group: int, index: int) -> None: ...

    def surprised(self, node: "SimNode", what: str) -> None:
        """Something that no fault explains."""

    def note(self, text: str) -> None: ...


class _Listener:
    """Notes what the host tells; the checkers look for themselves."""

    def __init__(self, node: "SimNode", events: NodeEvents) -> None:
        self._node = node
        self._events = events

    def on_role(self, group: RaftGroup) -> None:
        role = group.role.name.lower()
        self._events.note(f"{self._node.name} group {group.group_id} {role} term {group.term}")

    def on_leads(self, group: RaftGroup) -> None:
        self._events.note(f"{self._node.name} group {group.group_id} takes over")

    def on_halted(self, group: RaftGroup, error: LograftError) -> None:
        self._events.note(f"{self._node.name} group {group.group_id} halts: {error}")

    def on_failed(self, error: LograftError) -> None:
        self._events.note(f"{self._node.name} fails: {error}")


@dataclass(frozen=True, slots=True)
class _Watch:
    """Sees what one machine does."""

    node: "SimNode"
    process: "Process"
    group: int
    events: NodeEvents

    def applied(self, index: int, digest: bytes) -> None:
        self.events.applied(self.node, self.group, index, digest)

    def restored(self, index: int, digest: bytes) -> None:
        self.events.applied(self.node, self.group, index, digest)
        if self.process.host is not None:  # not at the start, so it was pulled from the leader
            self.events.installed(self.node, self.group, index)


@dataclass(slots=True)
class Process:
    scheduler: NodeScheduler
    disk: SimDisk
    boot: bytes
    id: str = ""
    network: SimNetwork | None = None
    host: Host | None = None
    is_stopping: bool = False  # SIGTERM came: its groups halt
    machines: dict[int, RecordingMachine] = field(default_factory=dict)


class SimNode:
    def __init__(
        self,
        name: str,
        *,
        loop: SimLoop,
        fabric: Fabric,
        rng: random.Random,
        profile: Profile,
        events: NodeEvents,
    ) -> None:
        self.name = name
        self.rng = rng
        self.pace = Pace(profile.disk_choices_s)
        self.volume = SimVolume(random.Random(rng.random()))
        self.process: Process | None = None
        self.id = ""  # of the present or last process
        self.ids: list[str] = []  # every identity it ever had
        self.is_damaged = False  # a fault may have changed durable bytes of this incarnation
        self.is_excused = False  # a disk fault struck this process: it may stop its groups
        self._loop = loop
        self._fabric = fabric
        self._profile = profile
        self._events = events
        self._rate = 1.0 + rng.uniform(-profile.clock_drift, profile.clock_drift)
        self.clock = self._power_on()

    def __repr__(self) -> str:
        return f"SimNode({self.id or self.name}, {'up' if self.process else 'down'})"

    @property
    def is_up(self) -> bool:
        return self.process is not None

    @property
    def is_paused(self) -> bool:
        return self.process is not None and self.process.scheduler.paused

    @property
    def is_running(self) -> bool:
        process = self.process
        return (
            process is not None
            and process.host is not None
            and not process.is_stopping
            and not process.scheduler.paused
        )

    @property
    def host(self) -> Host | None:
        return None if self.process is None else self.process.host

    @property
    def groups(self) -> dict[int, RaftGroup]:
        return {} if self.host is None else self.host.groups

    def start(self) -> None:
        if self.process is not None:
            return
        self.is_excused = self.volume.is_troubled
        scheduler = NodeScheduler(
            self._loop, on_crash=self._struck, after=lambda: self._events.ran(self)
        )
        disk = SimDisk(self.volume, on_crash=self._struck)
        process = Process(scheduler, disk, self.rng.randbytes(BOOT_BYTES))
        self.process = process
        scheduler.run(self._main, process)

    def stop(self) -> None:
        """SIGTERM: the host writes out what it knows; after the grace period it is killed."""
        process = self.process
        if process is None or process.host is None:
            return

        def end() -> None:
            if self.process is process:
                self.kill()

        process.is_stopping = True
        self._loop.call_later(GRACE_S, end)
        # Its `done` comes from within the host, which ends before the process does.
        process.scheduler.run(process.host.stop, lambda: self._loop.call_soon(end))

    def kill(self) -> None:
        """SIGKILL, or the process ended by itself: the machine runs on."""
        if self.process is not None:
            self._end(refuses=True)
            self.volume.process_died(forget_cache=self.rng.random() < 0.5)
            self._events.died(self)

    def cut_power(self, survival: Survival = Survival.MIXED) -> None:
        if self.process is not None:
            self._end(refuses=False)
            self.volume.power_cut(survival)
            self.clock = self._power_on()
            self._events.died(self)

    def cannot(self, what: str) -> None:
        """The disk refused something the process cannot do without: it ends."""
        self._events.note(f"{self.name} cannot {what}")
        if not self.is_excused:
            self._events.surprised(self, f"cannot {what}")
        self.kill()

    def lose_volume(self) -> None:
        """The machine burns down; another one with an empty disk takes its name."""
        assert self.process is None, self
        self.volume = SimVolume(random.Random(self.rng.random()))
        self.clock = self._power_on()

    def pause(self) -> None:
        if self.process is not None:
            self.process.scheduler.pause()

    def resume(self) -> None:
        if self.process is not None and self.process.scheduler.paused:
            self.process.scheduler.resume()

    def _struck(self) -> None:
        """A crash point was reached inside the process."""
        if self.process is not None:
            self._events.note(f"{self.name} dies at a crash point")
            if self.rng.random() < 0.5:
                self.kill()
            else:
                self.cut_power()

    def _end(self, *, refuses: bool) -> None:
        process = self.process
        assert process is not None
        self.process = None
        process.scheduler.kill()
        process.disk.alive = False
        self._fabric.leave(process.id, refuses=refuses)

    def _power_on(self) -> SimClock:
        return SimClock(
            self._loop,
            start_s=self.rng.uniform(10.0, 10_000.0),
            rate=self._rate,
            wall_offset_ms=self.rng.randint(-5_000, 5_000),
        )

    def _main(self, process: Process) -> None:
        """What a failed start has begun must not go on: the data is set aside for the process
        after it."""
        try:
            self._open(process)
        except DamagedError as error:
            try:
                self._set_aside(process, error)
            except StorageError as failed:
                self.cannot(f"set its data aside: {failed}")
                return
            self._end(refuses=True)
            self.start()
        except StorageError as error:
            self.cannot(f"start: {error}")

    def _open(self, process: Process) -> None:
        found = identity.load_or_create(process.disk, FOLDER, self.name, CLUSTER, SimRng(self.rng))
        process.id = self.id = found.id
        if found.id not in self.ids:
            for old in self.ids:
                self._fabric.answers_for(old)
            self.ids.append(found.id)
        process.network = self._fabric.join(
            found.id, boot=process.boot, scheduler=process.scheduler
        )
        host = Host(
            node=found.id,
            incarnation=found.incarnation,
            disk=process.disk,
            folder=FOLDER,
            clock=self.clock,
            rng=SimRng(self.rng),
            scheduler=process.scheduler,
            network=process.network,
            writer=SimBackground(process.scheduler, rng=self.rng, pace=self.pace),
            helper=SimBackground(process.scheduler, rng=self.rng, pace=self.pace),
            worker=SimBackground(process.scheduler, rng=self.rng, pace=self.pace),
            machine_for=lambda group: self._machine(process, group),
            listener=_Listener(self, self._events),
            timing=self._profile.timing,
            limits=self._profile.limits,
            journal_limits=self._profile.journal,
            bulk_limits=self._profile.bulk,
        )
        host.start()
        process.host = host

    def _set_aside(self, process: Process, error: DamagedError) -> None:
        self._events.note(f"{self.name} sets its data aside: {error}")
        if not self.is_damaged:
            self._events.surprised(self, f"finds undamaged data damaged: {error}")
        identity.quarantine(process.disk, FOLDER, str(error), at_ms=self.clock.wall_ms())
        self.is_damaged = False

    def _machine(self, process: Process, group: int) -> RecordingMachine:
        watch = _Watch(self, process, group, self._events)
        machine = process.machines[group] = RecordingMachine(disk=process.disk, observer=watch)
        return machine
