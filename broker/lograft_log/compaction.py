"""Compaction by key: of several records with one key only the newest stays.

Pure decisions over records and facts; `maintenance` reads and rewrites. Records without a key stay.
A tombstone says that its key is deleted; it stays for a while, so that slow readers see it, and
goes when no older record of the key can be left.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lograft_log.hot.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionLimits:
    keys_max: int = 1_000_000  # keys remembered in one pass; records of further keys stay
    tombstone_age_ms: int = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A sealed segment, oldest first; `fixed` ones are archived or quarantined and stay."""

    base_offset: int
    next_offset: int
    fixed: bool


class LatestKeys:
    """The newest offset of each key that was noted."""

    def __init__(self, limits: CompactionLimits) -> None:
        self._limits = limits
        self.offsets: dict[bytes, int] = {}

    def note(self, item: Record) -> None:
        """Records come in the order of the log."""
        if item.key is None:
            return
        if item.key in self.offsets or len(self.offsets) < self._limits.keys_max:
            self.offsets[item.key] = item.offset


def survives(item: Record, latest: Mapping[bytes, int], *, tombstones_before_ms: int) -> bool:
    """Whether a record stays. Tombstones older than `tombstones_before_ms` go too."""
    if item.key is None or item.key not in latest:
        return True
    if item.offset < latest[item.key]:
        return False
    return not (item.tombstone and item.timestamp_ms < tombstones_before_ms)


def targets(candidates: Sequence[Candidate], *, hold_offset: int | None = None) -> list[int]:
    """Base offsets of the segments to rewrite, oldest first: in that order a tombstone never goes
    before what it deletes."""
    return [
        candidate.base_offset
        for candidate in candidates
        if not candidate.fixed and (hold_offset is None or candidate.next_offset <= hold_offset)
    ]


def tombstones_before_ms(
    candidates: Sequence[Candidate], limits: CompactionLimits, *, now_ms: int
) -> int:
    """Tombstones older than this may go; 0 for none. A segment that cannot be rewritten may hold
    what they delete."""
    if any(candidate.fixed for candidate in candidates):
        return 0
    return max(0, now_ms - limits.tombstone_age_ms)
