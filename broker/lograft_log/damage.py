"""What is told when stored bytes are wrong: the report, the error, and the guard for disk errors.

Every damage found is logged once, with file and position, and kept with its segment.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lograft_wire.errors import DamagedError, LograftError, StorageError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Bytes that should be good and are not."""

    path: str
    position: int
    reason: str
    base_offset: int


class QuarantinedError(DamagedError):
    """The offset asked for lies in a quarantined segment; what is behind it begins at
    `offset_next`."""

    def __init__(self, damage: Damage, *, offset_next: int) -> None:
        super().__init__(
            f"{damage.path}: {damage.reason} at {damage.position}; quarantined up to offset "
            f"{offset_next}",
            path=damage.path,
            position=damage.position,
        )
        self.damage = damage
        self.offset_next = offset_next


class ChangedError(LograftError):
    """A segment's file was replaced under a reader; it looks again. Never leaves the package."""


def report(damage: Damage) -> Damage:
    logger.error(
        "log_damaged path=%s position=%d reason=%r", damage.path, damage.position, damage.reason
    )
    return damage


@contextmanager
def guard(path: str) -> Iterator[None]:
    """Translate what the disk says; FileNotFoundError included."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{path}: {error}", path=path) from error
