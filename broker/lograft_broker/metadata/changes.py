"""What listeners are told after a command was applied or a checkpoint restored."""

from dataclasses import dataclass

from lograft_broker.metadata.rows import Row


@dataclass(frozen=True, slots=True)
class Added:
    row: Row


@dataclass(frozen=True, slots=True)
class Replaced:
    """Under the same key; never a queue, an exchange or a binding."""

    before: Row
    row: Row


@dataclass(frozen=True, slots=True)
class Removed:
    row: Row


Event = Added | Replaced | Removed


@dataclass(frozen=True, slots=True)
class Applied:
    """One command, with all that went or came along with it, in order."""

    version: int
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Restored:
    """Everything may be different: read it anew."""

    version: int


Change = Applied | Restored
