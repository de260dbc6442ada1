"""A whole cluster in one thread: nodes, network, clients, faults and checkers under one seed.

World(seed).run() boots the nodes, makes the groups, lets clients and faults loose, then heals
everything and demands that the cluster becomes whole, live and equal again. The same seed repeats
the same run, event by event. The Report says what was broken, with the tail of a trace.
"""

import random
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from lograft_replication.membership import Config
from lograft_replication.proposals import Committed, Outcome, Refused, Unknown
from sim import profile as profiles
from sim.checkers import Checker
from sim.faults import Faults
from sim.keeper import Keeper
from sim.load import Load
from sim.loop import SimLoop
from sim.network import Fabric, Weather
from sim.node import SimNode
from sim.profile import Profile

TRACE_LINES = 60
RESTART_S = (0.05, 1.5)
HEALING_LOAD_S = 1.0  # clients go on for so long after the last fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    seed: int
    broken: str | None
    event_count: int
    frame_count: int
    fault_count: int
    confirmed_count: int
    unknown_count: int
    term_count: int  # leaderships there were
    install_count: int
    virtual_s: float
    trace: tuple[str, ...]

    def __str__(self) -> str:
        state = "ok" if self.broken is None else f"BROKEN: {self.broken}"
        return (
            f"seed {self.seed}: {state} ({self.virtual_s:.1f} s, {self.event_count} events, "
            f"{self.fault_count} faults, {self.term_count} leaderships, "
            f"{self.confirmed_count} confirmed, {self.unknown_count} unknown, "
            f"{self.install_count} installs)"
        )


class World:
    def __init__(self, seed: int, profile: Profile | None = None) -> None:
        self.seed = seed
        self.profile = profile or profiles.draw(seed)
        self.loop = SimLoop()
        self.checker = Checker()
        self.fabric = Fabric(self.loop, rng=self._rng("network"), weather=Weather())
        self.fabric.tap = self.checker.sent
        self.install_count = 0
        self._started_at = self.loop.now
        self._trace: deque[str] = deque(maxlen=TRACE_LINES)
        self._restarts = self._rng("restarts")
        self.nodes = [
            SimNode(
                f"n{number}",
                loop=self.loop,
                fabric=self.fabric,
                rng=self._rng(f"node {number}"),
                profile=self.profile,
                events=self,
            )
            for number in range(self.profile.node_count)
        ]
        self.keeper = Keeper(
            loop=self.loop,
            rng=self._rng("keeper"),
            profile=self.profile,
            nodes=self.nodes,
            note=self.note,
        )
        self.load = Load(
            loop=self.loop,
            rng=self._rng("load"),
            profile=self.profile,
            nodes=self.nodes,
            checker=self.checker,
        )
        self.faults = Faults(
            loop=self.loop,
            rng=self._rng("faults"),
            profile=self.profile,
            nodes=self.nodes,
            fabric=self.fabric,
            keeper=self.keeper,
            note=self.note,
        )

    def run(self) -> Report:
        try:
            self._run()
        except Exception as error:
            where = "".join(traceback.format_exception(error)[-6:])
            self.checker.found(f"{type(error).__name__}: {error}\n{where}")
        return Report(
            seed=self.seed,
            broken=self.checker.broken,
            event_count=self.loop.event_count,
            frame_count=self.fabric.frame_count,
            fault_count=self.faults.count,
            confirmed_count=self.checker.confirmed_count,
            unknown_count=self.checker.unknown_count,
            term_count=len(self.checker.leaders),
            install_count=self.install_count,
            virtual_s=self.loop.now - self._started_at,
            trace=tuple(self._trace),
        )

    # What nodes tell

    def ran(self, node: SimNode) -> None:
        process = node.process
        if process is None or process.host is None:
            return
        others = [other.groups for other in self.nodes if other is not node]
        self.checker.look(process.id, process.boot, process.host.groups, others)
        if not (node.is_excused or node.is_damaged or process.is_stopping):
            for group in process.host.groups.values():
                if group.halted is not None:
                    self.surprised(node, f"group {group.group_id} halts: {group.halted}")

    def died(self, node: SimNode) -> None:
        self.loop.call_later(self._restarts.uniform(*RESTART_S), node.start)

    def applied(self, node: SimNode, group: int, index: int, digest: bytes) -> None:
        self.checker.applied(node.id, group, index, digest)

    def installed(self, node: SimNode, group: int, index: int) -> None:
        self.install_count += 1
        self.note(f"{node.name} group {group} installs {index}")

    def surprised(self, node: SimNode, what: str) -> None:
        self.checker.found(f"{node.name} {what}")

    def note(self, text: str) -> None:
        self._trace.append(f"{self.loop.now - self._started_at:8.4f} {text}")

    # The run

    def _run(self) -> None:
        for node in self.nodes:
            node.start()
        self.keeper.start()
        self._make_groups()
        self.load.start()
        self.faults.start()
        self._run_until(lambda: False, limit_s=self.profile.run_s)
        self.note("healing")
        self.faults.heal()
        self._run_until(lambda: False, limit_s=HEALING_LOAD_S)
        self.load.stop()
        self._must(self._is_whole, "whole again")
        for group_id in self.keeper.wanted:
            self._must_commit(group_id)
        self._must(self._is_equal, "equal everywhere")
        if self.checker.broken is None:
            self.checker.finish()

    def _make_groups(self) -> None:
        for group_id, names in self.keeper.wanted.items():
            voters = [node for node in self.nodes if node.name in names]
            config = Config(tuple(node.id for node in voters))
            for node in voters:
                process, host = node.process, node.host
                assert process is not None, node
                assert host is not None, node
                process.scheduler.run(host.create_group, group_id, config)

    def _run_until(self, condition: Callable[[], bool], *, limit_s: float) -> bool:
        checker = self.checker
        return self.loop.run_until_true(
            lambda: checker.broken is not None or condition(), limit_s=limit_s
        )

    def _must(self, condition: Callable[[], bool], what: str) -> None:
        if self.checker.broken is None:
            self.note(f"must become {what}")
            if not self._run_until(condition, limit_s=self.profile.settle_s):
                self.checker.found(f"not {what} within {self.profile.settle_s} s: {self._state()}")

    def _must_commit(self, group_id: int) -> None:
        """A proposal commits, if need be at the second try."""
        last: list[Outcome | None] = []  # empty: not asked; None: asked, no answer yet

        def answered(outcome: Outcome) -> None:
            last[0] = outcome

        def is_committed() -> bool:
            found = self.keeper.leader(group_id)
            failed = bool(last) and isinstance(last[0], Refused | Unknown)
            if found is not None and (not last or failed):
                last[:] = [None]
                self.load.propose(*found, answered)
            return bool(last) and isinstance(last[0], Committed)

        self._must(is_committed, f"live in group {group_id}")

    def _is_whole(self) -> bool:
        return all(map(self.keeper.is_whole, self.keeper.wanted))

    def _is_equal(self) -> bool:
        """Every voter of every group has applied all there is, with the same result."""
        for group_id, names in self.keeper.wanted.items():
            digests = set()
            for node in self.nodes:
                if node.name in names:
                    group, process = node.groups.get(group_id), node.process
                    if group is None or process is None:
                        return False
                    if group.applied_index != group.log.last_index:
                        return False
                    machine = process.machines[group_id]
                    digests.add((group.applied_index, machine.index, machine.digest))
            if len(digests) != 1:
                return False
        return True

    def _state(self) -> str:
        lines = []
        for node in self.nodes:
            lines.append(f"\n  {node!r} damaged={node.is_damaged} excused={node.is_excused}")
            for group in node.groups.values():
                lines.append(f"\n    {group!r} {group.config} halted={group.halted}")
        return "".join(lines)

    def _rng(self, name: str) -> random.Random:
        """A stream of its own for every part, so that one does not disturb another."""
        return random.Random(f"{self.seed}/{name}")
