"""What became of a command; the proposer finds it in `Committed.result`."""

from dataclasses import dataclass

from lograft_broker.metadata.refusal import Refusal
from lograft_broker.metadata.rows import Row


@dataclass(frozen=True, slots=True)
class Created:
    row: Row


@dataclass(frozen=True, slots=True)
class Changed:
    row: Row


@dataclass(frozen=True, slots=True)
class Existing:
    """It was there already, equal to what was asked for. Nothing changed."""

    row: Row


@dataclass(frozen=True, slots=True)
class Deleted:
    """`rows` are what the command named; what went along is in the change."""

    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Absent:
    """There was nothing to take away. Nothing changed."""


Settled = Existing | Absent | Refusal  # known without applying anything
Result = Created | Changed | Deleted | Settled
