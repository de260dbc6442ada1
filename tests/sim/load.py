"""Clients of a simulated cluster: they propose unique commands wherever somebody claims to lead."""

import random
from collections.abc import Callable

from lograft_replication.group import RaftGroup
from lograft_replication.proposals import Outcome
from sim.checkers import Checker
from sim.loop import SimLoop
from sim.node import SimNode
from sim.profile import Profile

COMMAND = b"\x20"  # first byte of every command of a machine


class Load:
    def __init__(
        self,
        *,
        loop: SimLoop,
        rng: random.Random,
        profile: Profile,
        nodes: list[SimNode],
        checker: Checker,
    ) -> None:
        self._loop = loop
        self._rng = rng
        self._profile = profile
        self._nodes = nodes
        self._checker = checker
        self._number = 0
        self._running = False

    def start(self) -> None:
        self._running = True
        self._loop.call_soon(self._turn)

    def stop(self) -> None:
        self._running = False

    def propose(
        self, node: SimNode, group: RaftGroup, then: Callable[[Outcome], None] | None = None
    ) -> None:
        """One unique command, given to a process the way its own code would."""
        self._number += 1
        size = self._rng.choice(self._profile.command_bytes)
        command = (COMMAND + b"%d." % self._number).ljust(size, b"x")

        def done(outcome: Outcome) -> None:
            self._checker.outcome(group.group_id, command, outcome)
            if then is not None:
                then(outcome)

        process = node.process
        assert process is not None
        process.scheduler.run(group.propose, command, done)

    def _turn(self) -> None:
        if not self._running:
            return
        rng = self._rng
        group_id = rng.randrange(self._profile.group_count)
        for node in self._nodes:
            group = node.groups.get(group_id)
            if group is not None and group.is_leader and node.is_running:
                for _ in range(rng.randint(1, 4)):
                    if node.is_running:
                        self.propose(node, group)
        self._loop.call_later(rng.uniform(*self._profile.client_gap_s), self._turn)
