"""The operator of a simulated cluster: restarts what stopped, moves members where they should be.

For every group it holds the names of the nodes that should be voters. In small steps, each through
the group's present leader, it brings new members in as learners, promotes them, and removes whom
it no longer wants: old incarnations of a node, or nodes that moved away. It never helps a group
that has no leader, and knows nothing that a real operator could not know.
"""

import random
from collections.abc import Callable

from lograft_replication.group import RaftGroup
from lograft_replication.host import Host
from lograft_replication.membership import Config
from lograft_replication.proposals import Outcome
from lograft_wire.errors import RefusedError, StorageError
from sim.loop import SimLoop
from sim.node import SimNode
from sim.profile import Profile

TURN_S = (0.1, 0.4)


class Keeper:
    def __init__(
        self,
        *,
        loop: SimLoop,
        rng: random.Random,
        profile: Profile,
        nodes: list[SimNode],
        note: Callable[[str], None],
    ) -> None:
        self.wanted: dict[int, list[str]] = {}  # group -> names of its voters
        self._loop = loop
        self._rng = rng
        self._profile = profile
        self._nodes = {node.name: node for node in nodes}
        self._note = note

    def start(self) -> None:
        names = sorted(self._nodes)
        for group_id in range(self._profile.group_count):
            first = self._rng.randrange(len(names))
            turned = names[first:] + names[:first]
            self.wanted[group_id] = sorted(turned[: self._profile.voter_count])
        self._loop.call_later(self._rng.uniform(*TURN_S), self._turn)

    def leader(self, group_id: int) -> tuple[SimNode, RaftGroup] | None:
        """The leader that serves, as anybody may ask."""
        for node in self._nodes.values():
            group = node.groups.get(group_id)
            if group is not None and node.is_running and group.is_leader and group.serving:
                return node, group
        return None

    def is_whole(self, group_id: int) -> bool:
        """Exactly the wanted voters, all running, and the change that made them committed."""
        found = self.leader(group_id)
        if found is None:
            return False
        _, group = found
        nodes = [self._nodes[name] for name in self.wanted[group_id]]
        return (
            group.config_at(group.commit_index) == group.config
            and set(group.config.voters) == {node.id for node in nodes}
            and not group.config.learners
            and all(node.is_running and group_id in node.groups for node in nodes)
        )

    def move(self, group_id: int) -> None:
        """Want one other node as a voter, if there is one."""
        wanted = self.wanted[group_id]
        others = sorted(set(self._nodes) - set(wanted))
        if others:
            gone = self._rng.choice(wanted)
            came = self._rng.choice(others)
            self.wanted[group_id] = sorted({*wanted, came} - {gone})
            self._note(f"group {group_id} moves from {gone} to {came}")

    def resize(self, group_id: int) -> None:
        """Want another number of voters, down to one; never while some data may be damaged, or a
        member is lost: a voter fewer might then be one too few."""
        if any(node.is_damaged for node in self._nodes.values()) or not self.is_whole(group_id):
            return
        names = sorted(self._nodes)
        count = self._rng.randint(1, len(names))
        self.wanted[group_id] = sorted(self._rng.sample(names, count))
        self._note(f"group {group_id} shall live on {self.wanted[group_id]}")

    def _turn(self) -> None:
        for node in self._nodes.values():
            self._mind(node)
        for group_id in self.wanted:
            self._step(group_id)
        self._loop.call_later(self._rng.uniform(*TURN_S), self._turn)

    def _mind(self, node: SimNode) -> None:
        """A process that can do nothing any more is ended; someone starts it again."""
        host = node.host
        if host is None or not node.is_running:
            return
        halted = [group for group in node.groups.values() if group.halted is not None]
        if host.failed is not None or halted:
            self._note(f"{node.name} is stopped: {host.failed or halted[0].halted}")
            node.kill()

    def _step(self, group_id: int) -> None:
        found = self.leader(group_id)
        if found is None:
            return
        node, group = found
        ids = [self._nodes[name].id for name in self.wanted[group_id]]
        config = group.config
        for name in self.wanted[group_id]:
            if self._nodes[name].id not in config.members and not self._open(name, group_id):
                return
        if missing := [one for one in ids if one not in config.members]:
            self._ask(node, group, "add_learner", missing[0])
        elif learners := [one for one in ids if one in config.learners]:
            self._ask(node, group, "promote", learners[0])
        elif extra := [one for one in config.members if one not in ids]:
            if extra == [node.id]:
                self._ask(node, group, "transfer", self._rng.choice(ids))
            else:
                self._ask(node, group, "remove", next(one for one in extra if one != node.id))
        elif self.is_whole(group_id):
            self._drop_elsewhere(group_id)

    def _drop_elsewhere(self, group_id: int) -> None:
        """Nodes the group has left forget it."""
        for name, node in self._nodes.items():
            process, host = node.process, node.host
            if name in self.wanted[group_id] or process is None or host is None:
                continue
            if node.is_running and host.failed is None and group_id in host.groups:
                self._note(f"{name} drops group {group_id}")
                process.scheduler.run(host.drop_group, group_id)

    def _open(self, name: str, group_id: int) -> bool:
        """A node must know the group before it can learn it."""
        node = self._nodes[name]
        process, host = node.process, node.host
        if process is None or host is None or host.failed is not None or not node.is_running:
            return False
        if group_id not in host.groups:
            process.scheduler.run(self._create, node, host, group_id)
        return node.host is host and group_id in host.groups

    def _create(self, node: SimNode, host: Host, group_id: int) -> None:
        try:
            host.create_group(group_id, Config())
        except RefusedError:
            return  # it is still being dropped
        except StorageError as error:  # its caller must end the process, as at a start
            node.cannot(f"create group {group_id}: {error}")

    def _ask(self, node: SimNode, group: RaftGroup, what: str, member: str) -> None:
        def done(outcome: Outcome | str | None) -> None:
            self._note(f"group {group.group_id} {what} {member}: {outcome}")

        process = node.process
        assert process is not None
        process.scheduler.run(getattr(group, what), member, done)
