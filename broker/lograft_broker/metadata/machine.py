"""MetadataMachine: the state of the `meta` Raft group.

Implements `lograft_replication.machine.Machine`. `apply` is total: whatever a command asks, it is
done or refused, alike on every replica; only bytes that are no command raise. The whole state goes
into the payload of a checkpoint; there are no files.

Whoever wants a change builds a command, asks `settled` (most requests are answered by what is
already there, without any proposal) and proposes its bytes. Readers read `state` and are told of
changes by `listen`, after each apply and before the proposer hears of it.
"""

from collections.abc import Callable

from lograft_broker.metadata import (
    admin,
    checkpoint,
    cluster,
    commands,
    export,
    limits,
    rules,
    topology,
)
from lograft_broker.metadata.changes import Applied, Change, Restored
from lograft_broker.metadata.commands import (
    AdminCommand,
    ClusterCommand,
    Command,
    RuleCommand,
)
from lograft_broker.metadata.limits import MetadataLimits
from lograft_broker.metadata.results import Result, Settled
from lograft_broker.metadata.state import State
from lograft_broker.metadata.values import JsonValue
from lograft_replication.machine import Capture

OnChange = Callable[[Change], None]


class MetadataMachine:
    def __init__(self, metadata_limits: MetadataLimits = limits.DEFAULT) -> None:
        self.state = State()  # replaced by a restore: hold the machine, not the state
        self._limits = metadata_limits
        self._listeners: list[OnChange] = []

    def __repr__(self) -> str:
        return f"MetadataMachine({self.state!r})"

    @property
    def version(self) -> int:
        """Index of the last command that changed anything."""
        return self.state.version

    def listen(self, on_change: OnChange) -> None:
        """`on_change` may read but not propose; one that raises halts the group."""
        self._listeners.append(on_change)

    def settled(self, command: Command) -> Settled | None:
        """The answer to `command` if the state here already has it; None if it must be proposed.
        Also asks what only a proposer asks: whether regular expressions are valid."""
        mistake = None
        if isinstance(command, AdminCommand):
            mistake = admin.edge_mistake(command)
        elif isinstance(command, RuleCommand):
            mistake = rules.edge_mistake(command)
        return mistake or self._settled(command)

    def export(self) -> dict[str, JsonValue]:
        """Everything, with its version, ready for JSON; in the shape of RabbitMQ's definitions."""
        return export.document(self.state)

    # The Machine

    def apply(self, index: int, term: int, command: bytes) -> Result:  # noqa: ARG002
        decoded = commands.decode(command)
        settled = self._settled(decoded)
        if settled is not None:
            return settled
        result = self._act(index, decoded)
        self.state.version = index
        events = self.state.take_events()
        assert events, decoded  # else it was settled
        self._tell(Applied(index, events))
        return result

    def capture(self) -> Capture:
        return Capture(checkpoint.encode(self.state), _nothing)

    def restore(self, payload: bytes, folder: str) -> None:  # noqa: ARG002
        self.state = checkpoint.decode(payload, self._limits)
        self._tell(Restored(self.state.version))

    def damaged(self) -> str:
        return ""

    def close(self) -> None:
        self._listeners.clear()

    def _settled(self, command: Command) -> Settled | None:
        if isinstance(command, ClusterCommand):
            return cluster.settled(self.state, command, self._limits)
        if isinstance(command, AdminCommand):
            return admin.settled(self.state, command, self._limits)
        if isinstance(command, RuleCommand):
            return rules.settled(self.state, command, self._limits)
        return topology.settled(self.state, command, self._limits)

    def _act(self, index: int, command: Command) -> Result:
        if isinstance(command, ClusterCommand):
            return cluster.act(self.state, command)
        if isinstance(command, AdminCommand):
            return admin.act(self.state, command)
        if isinstance(command, RuleCommand):
            return rules.act(self.state, command)
        return topology.act(self.state, index, command)

    def _tell(self, change: Change) -> None:
        for on_change in self._listeners:
            on_change(change)


def _nothing() -> None:
    """A checkpoint without files has nothing to sync."""
