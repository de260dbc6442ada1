"""Positions: how far a log is durable, as a checkpoint writes it down and gives it back.

Plain values. `log` makes them from what it has synced; `recovery` believes them: what is below is
damage when it is bad, what is above is scanned and cut at the first bad frame.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentPosition:
    base_offset: int
    log_bytes: int  # durable bytes of the .log, file header included
    next_offset: int  # behind the last record of those bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions:
    first_offset: int  # records below are trimmed, whether or not their bytes are still there
    next_offset: int
    segments: tuple[SegmentPosition, ...]

    def below(self, offset: int) -> "Positions":
        """What stays true while the log is cut at `offset`."""
        return Positions(
            first_offset=min(self.first_offset, offset),
            next_offset=min(self.next_offset, offset),
            segments=tuple(s for s in self.segments if s.next_offset <= offset),
        )

    def encode(self) -> list[list[int]]:
        """A form every manifest can hold."""
        rows = [[s.base_offset, s.log_bytes, s.next_offset] for s in self.segments]
        return [[self.first_offset, self.next_offset], *rows]


def decode(rows: list[list[int]]) -> Positions:
    (first_offset, next_offset), *segments = rows
    return Positions(
        first_offset=first_offset,
        next_offset=next_offset,
        segments=tuple(
            SegmentPosition(base_offset=base, log_bytes=size, next_offset=behind)
            for base, size, behind in segments
        ),
    )
