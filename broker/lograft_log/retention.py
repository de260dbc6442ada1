"""Which segments may go because they are old, or because there are too many bytes.

Pure: facts in, base offsets out. Whole segments only, the oldest first, never the active one.
`maintenance` acts on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFacts:
    base_offset: int
    next_offset: int
    log_bytes: int
    timestamp_ms_max: int | None  # of its youngest record; None when that cannot be known
    active: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionLimits:
    """None means without limit."""

    age_ms_max: int | None = 7 * 24 * 3600 * 1000
    bytes_max: int | None = None


def expired(
    segments: Sequence[SegmentFacts],
    limits: RetentionLimits,
    *,
    now_ms: int,
    hold_offset: int | None = None,
) -> list[int]:
    """Base offsets of the segments to remove. Nothing at or above `hold_offset` goes: somebody
    still reads there."""
    total_bytes = sum(segment.log_bytes for segment in segments)
    result: list[int] = []
    for number, segment in enumerate(segments):
        if segment.active or (hold_offset is not None and segment.next_offset > hold_offset):
            break
        too_old = _age_ms(segments[number:], now_ms) > (limits.age_ms_max or 0)
        too_many = limits.bytes_max is not None and total_bytes > limits.bytes_max
        if not (too_many or (limits.age_ms_max is not None and too_old)):
            break
        total_bytes -= segment.log_bytes
        result.append(segment.base_offset)
    return result


def _age_ms(segments: Sequence[SegmentFacts], now_ms: int) -> int:
    """Of the first segment. What cannot be known is taken to be as young as what follows."""
    for segment in segments:
        if segment.timestamp_ms_max is not None:
            return now_ms - segment.timestamp_ms_max
    return 0
