"""Everything that can go wrong in a simulated cluster, and how it ends.

Each fault is a method named in `profile.FAULTS`; at random moments one of the run's kinds is drawn
and done. Most end by themselves after a while; `heal` ends them all. Faults that destroy durable
data (a lost volume, a flipped bit) strike only a cluster that is whole, so that a majority of every
group keeps what it promised: no replication could survive more.
"""

import random
from collections.abc import Callable

from sim.disk import CAPACITY_BYTES
from sim.inode import Inode
from sim.keeper import Keeper
from sim.loop import SimLoop
from sim.network import Fabric, Weather
from sim.node import FOLDER, SimNode
from sim.profile import Profile

JOURNAL = f"{FOLDER}/journal/"
VOTERS_TO_LOSE_ONE = 3
CRASH_POINT_MAX = 80  # changes of the disk until a crash point strikes


class Faults:
    def __init__(
        self,
        *,
        loop: SimLoop,
        rng: random.Random,
        profile: Profile,
        nodes: list[SimNode],
        fabric: Fabric,
        keeper: Keeper,
        note: Callable[[str], None],
    ) -> None:
        self.count = 0
        self._loop = loop
        self._rng = rng
        self._profile = profile
        self._nodes = nodes
        self._fabric = fabric
        self._keeper = keeper
        self._note = note
        self._calm = fabric.weather
        self._running = False

    def start(self) -> None:
        self._running = True
        self._later(self._rng.uniform(0.5, 2.0), self._turn)

    def heal(self) -> None:
        """No more faults, and an end to all there are; dead processes are started elsewhere."""
        self._running = False
        self._fabric.weather = self._calm
        self._fabric.open_all()
        for node in self._nodes:
            node.resume()
            node.pace.slow_s = 0.0
            node.volume.capacity_bytes = CAPACITY_BYTES
            node.volume.sync_errors = 0
            node.volume.crash_at(0)
            if node.process is not None:  # else a group that is to live there alone waits for ever
                for machine in node.process.machines.values():
                    machine.holes = ""

    def _turn(self) -> None:
        if not self._running:
            return
        if self._profile.faults:
            self.do(self._rng.choice(self._profile.faults))
        self._later(self._rng.uniform(*self._profile.fault_gap_s), self._turn)

    def do(self, name: str) -> None:
        self.count += 1
        getattr(self, f"_{name}")()

    # Processes and machines

    def _stop(self) -> None:
        node = self._any()
        if node.is_running:
            self._note(f"stop {node.name}")
            node.stop()

    def _kill(self) -> None:
        self._kill_one(self._any())

    def _kill_leader(self) -> None:
        found = self._keeper.leader(self._rng.randrange(self._profile.group_count))
        if found is not None:
            self._kill_one(found[0])

    def _kill_one(self, node: SimNode) -> None:
        self._note(f"kill {node.name}")
        node.kill()

    def _power_cut(self) -> None:
        node = self._any()
        self._note(f"power cut at {node.name}")
        node.cut_power()

    def _power_cut_all(self) -> None:
        if self._rng.random() < 0.5:  # it stops everything, so less often than the others
            self._note("power cut everywhere")
            for node in self._nodes:
                node.cut_power()

    def _crash_point(self) -> None:
        node = self._any()
        changes = self._rng.randint(1, CRASH_POINT_MAX)
        self._note(f"{node.name} will die in {changes} changes of its disk")
        node.volume.crash_at(changes)

    def _pause(self) -> None:
        node = self._any()
        seconds = self._rng.choice((0.05, 0.5, 2.0)) * self._rng.uniform(0.5, 1.5)
        self._note(f"pause {node.name} for {seconds:.2f} s")
        node.pause()
        self._later(seconds, node.resume)

    def _clock_jump(self) -> None:
        node = self._any()
        by_ms = self._rng.choice((-86_400_000, -5_000, 5_000, 86_400_000))
        self._note(f"the clock of {node.name} jumps by {by_ms} ms")
        node.clock.jump(by_ms)

    # The network

    def _cut_link(self) -> None:
        one, two = self._pair()
        self._cut([(one, two), (two, one)])

    def _cut_one_way(self) -> None:
        self._cut([self._pair()])

    def _isolate(self) -> None:
        node = self._any()
        others = [other for other in self._nodes if other is not node]
        ways = [(node.id, other.id) for other in others]
        back = [(other.id, node.id) for other in others]
        self._cut(self._rng.choice((ways + back, ways, back)))

    def _cut(self, ways: list[tuple[str, str]]) -> None:
        seconds = self._rng.choice((0.1, 1.0, 3.0)) * self._rng.uniform(0.5, 1.5)
        self._note(f"no way {', '.join(f'{a[:2]}-{b[:2]}' for a, b in ways)} for {seconds:.2f} s")
        told = self._rng.random() < 0.4  # by whatever cut it; else each side finds out by silence
        for sender, receiver in ways:
            if told:
                self._fabric.reset(sender, receiver)
            self._fabric.block(sender, receiver)
            self._later(seconds, self._fabric.open, sender, receiver)

    def _reset_link(self) -> None:
        one, two = self._pair()
        self._note(f"reset {one[:2]}-{two[:2]}")
        self._fabric.reset(one, two)

    def _storm_weather(self) -> None:
        rng = self._rng
        weather = Weather(
            delays_s=rng.choice((self._calm.delays_s, (0.001, 0.05, 0.3))),
            loss=rng.choice((0.0, 0.02, 0.2)),
            loss_resets=rng.choice((0.0, 0.5, 1.0)),
            repeat=rng.choice((0.0, 0.05, 0.3)),
            reorder=rng.choice((0.0, 0.05, 0.3)),
        )
        self._note(f"weather {weather}")
        self._fabric.weather = weather
        self._later(rng.uniform(0.2, 2.0), self._calm_down)

    def _calm_down(self) -> None:
        self._fabric.weather = self._calm

    # Disks

    def _slow_disk(self) -> None:
        node = self._any()
        node.pace.slow_s = self._rng.choice((0.02, 0.3, 1.5))
        self._note(f"the disk of {node.name} is slow, {node.pace.slow_s} s")

        def fast() -> None:
            node.pace.slow_s = 0.0

        self._later(self._rng.uniform(0.2, 3.0), fast)

    def _full_disk(self) -> None:
        node = self._any()
        volume = node.volume
        volume.capacity_bytes = volume.used_bytes + self._rng.randint(0, 20_000)
        node.is_excused = True
        self._note(f"the disk of {node.name} is nearly full")

        def free() -> None:
            volume.capacity_bytes = CAPACITY_BYTES

        self._later(self._rng.uniform(0.2, 3.0), free)

    def _sync_error(self) -> None:
        node = self._any()
        node.volume.sync_errors = 1
        node.is_excused = True
        self._note(f"a sync of {node.name} will fail")

    def _flip_bit(self) -> None:
        node = self._victim()
        if node is None:
            return
        where = node.volume.flip_random(_damageable)
        if where is not None:
            node.is_damaged = True
            self._note(f"a bit of {node.name} flips: {where[0]} at {where[1]}")
            node.kill()  # what a running process holds in memory would hide it

    def _lose_volume(self) -> None:
        node = self._victim()
        if node is not None:
            self._note(f"{node.name} loses its volume")
            node.cut_power()
            node.lose_volume()

    # What operators do

    def _move_member(self) -> None:
        self._keeper.move(self._rng.randrange(self._profile.group_count))

    def _resize(self) -> None:
        self._keeper.resize(self._rng.randrange(self._profile.group_count))

    def _holes(self) -> None:
        """A copy of the state turns out to have holes, for as long as its process lives."""
        node = self._any()
        if node.process is not None and node.process.machines:
            group_id = self._rng.choice(sorted(node.process.machines))
            self._note(f"{node.name} has holes in group {group_id}")
            node.process.machines[group_id].holes = "as asked"

    def _transfer(self) -> None:
        found = self._keeper.leader(self._rng.randrange(self._profile.group_count))
        if found is None:
            return
        node, group = found
        target = self._rng.choice((None, *group.config.voters))
        process = node.process
        assert process is not None
        self._note(f"transfer group {group.group_id} from {node.name} to {target}")
        process.scheduler.run(group.transfer, target, lambda _reason: None)

    def _checkpoint(self) -> None:
        node = self._any()
        process, host = node.process, node.host
        if process is not None and host is not None and host.groups:
            group_id = self._rng.choice(sorted(host.groups))
            process.scheduler.run(host.checkpoint, group_id)

    # Choosing

    def _any(self) -> SimNode:
        return self._rng.choice(self._nodes)

    def _pair(self) -> tuple[str, str]:
        one, two = self._rng.sample(self._nodes, 2)
        return one.id, two.id

    def _victim(self) -> SimNode | None:
        """A node whose data may go: everything else is whole, nothing is lost already, and no
        group lives on so few nodes that it could not do without one."""
        wanted = self._keeper.wanted
        whole = all(map(self._keeper.is_whole, wanted))
        if (
            not whole
            or min(map(len, wanted.values())) < VOTERS_TO_LOSE_ONE
            or any(node.is_damaged for node in self._nodes)
        ):
            return None
        return self._any()

    def _later(self, seconds: float, callback: Callable[..., None], *args: str) -> None:
        self._loop.call_later(seconds, callback, *args)


def _damageable(path: str, inode: Inode) -> int:
    """How much of a file is known for certain to have been durable. The newest batch of a journal
    is not: after a crash nothing can tell it from one that never was."""
    if path.startswith(JOURNAL):
        return min(inode.settled_end, inode.allocated)
    return min(inode.durable_size, inode.allocated)
