"""Reading a log: from an offset forward, backward from the tail, by time, by secondary index.

Everything works on a Snapshot, an immutable list of segments taken at one moment. A roll, a trim or
a deletion afterwards replaces the list, not what stands in it; where a file is gone before it was
ever opened, ChangedError asks `log` for a newer Snapshot.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from lograft_log import damage, layout
from lograft_log.chunk import Chunk, empty
from lograft_log.hot import record, search
from lograft_log.segment import START, Segment, State
from lograft_log.settings import LogLimits, Term
from lograft_wire.errors import RefusedError, StorageError

# How often a reader looks again when a file is being replaced under it; each look opens files, so
# the writer, which only has to store a new list, is done long before.
ATTEMPTS_MAX = 1000
TAIL_BYTES = 1 << 16  # read at a time when the newest records are asked for


@dataclass(frozen=True, slots=True)
class Snapshot:
    segments: tuple[Segment, ...]
    first_offset: int
    cut_count: int  # how often the log's end was cut: what was read before may be gone
    bases: tuple[int, ...] = field(repr=False)

    @property
    def next_offset(self) -> int:
        return self.segments[-1].next_offset

    def number_of(self, offset: int) -> int:
        """Number of the segment an offset belongs to; the first one if it is below all."""
        return max(0, bisect_right(self.bases, offset) - 1)


def make_snapshot(segments: tuple[Segment, ...], first_offset: int, cut_count: int) -> Snapshot:
    return Snapshot(segments, first_offset, cut_count, tuple(s.base_offset for s in segments))


def check_offset(snapshot: Snapshot, offset: int) -> None:
    if not snapshot.first_offset <= offset <= snapshot.next_offset:
        raise RefusedError(
            f"offset {offset} is outside of the log, which holds {snapshot.first_offset} to "
            f"{snapshot.next_offset}"
        )


def find(snapshot: Snapshot, offset: int) -> tuple[int, int]:
    """(number of the segment, position) to read `offset` from, or from the next one there is."""
    for number in range(snapshot.number_of(offset), len(snapshot.segments)):
        segment = snapshot.segments[number]
        if offset < segment.next_offset or number == len(snapshot.segments) - 1:
            check_sound(segment)
            return number, segment.seek(offset)
    raise AssertionError("a snapshot has segments")


def read(snapshot: Snapshot, offset: int, bytes_max: int) -> Chunk:
    check_offset(snapshot, offset)
    number, position = find(snapshot, offset)
    for segment in snapshot.segments[number:]:
        check_sound(segment)
        chunk, _ = segment.take(position, offset_from=offset, bytes_max=bytes_max)
        if chunk is not None:
            return chunk
        position = START
    return empty(offset)


def read_backward(snapshot: Snapshot, offset_end: int | None, bytes_max: int) -> Chunk:
    """The last frames that begin below `offset_end` (the tail by default), about `bytes_max` of
    them, in log order. A compressed batch among them may reach beyond it."""
    if offset_end is None:
        offset_end = snapshot.next_offset
    else:
        offset_end = max(offset_end, snapshot.first_offset)
        check_offset(snapshot, offset_end)
    for segment in reversed(snapshot.segments[: snapshot.number_of(offset_end) + 1]):
        check_sound(segment)
        if segment.base_offset >= offset_end or segment.length == START:
            continue
        chunk = _last_of(segment, offset_end, bytes_max, snapshot.first_offset)
        if chunk is not None:
            return chunk
        if segment.base_offset <= snapshot.first_offset:
            break
    return empty(snapshot.first_offset)


def tail(snapshot: Snapshot, count: int, limits: LogLimits) -> list[record.Record]:
    """The newest records, newest first."""
    result: list[record.Record] = []
    end = snapshot.next_offset
    while len(result) < count and end > snapshot.first_offset:
        chunk = read_backward(snapshot, end, TAIL_BYTES)
        if not chunk.record_count:
            break
        items = chunk.records(snapshot.first_offset, limits)
        result += [item for item in reversed(items) if item.offset < end]
        end = chunk.offset_first
    return result[:count]


def _last_of(segment: Segment, offset_end: int, bytes_max: int, first_offset: int) -> Chunk | None:
    end = _position_of(segment, offset_end)
    start = _entry_before(segment, max(START, end - max(bytes_max, 1)), end)
    if start == end:
        return None
    # The frames from an index entry up to `end`: one pass, bounded by construction.
    chunk, _ = segment.take(
        start, offset_from=first_offset, bytes_max=end - start, position_end=end
    )
    return chunk


def _position_of(segment: Segment, offset: int) -> int:
    """Position of the first frame that begins at or behind `offset`; the end if there is none."""
    if offset >= segment.next_offset:
        return segment.length
    position = segment.seek(offset)
    while True:
        chunk, behind = segment.take(position, offset_from=0, bytes_max=1 << 16)
        if chunk is None:
            return position
        for start, _, _, _, first, _, _ in record.frames(chunk.data):
            if first >= offset:
                return chunk.position + start
        position = behind


def _entry_before(segment: Segment, position: int, end: int) -> int:
    """A frame's position at or before `position`, by the index; without one, by walking."""
    entries = segment.entries()
    entry = search.floor_position(entries, position) if len(entries) else -1
    if entry >= 0:
        found: int = layout.OFFSET_ENTRY.unpack_from(entries, entry * 24)[1]
        if position - found <= max(end - position, segment.settings.index_interval_bytes):
            return found
        position_from = found  # the active segment's last entries are still in memory
    else:
        position_from = START
    while True:
        chunk, behind = segment.take(position_from, offset_from=0, bytes_max=1 << 16)
        if chunk is None:
            return position_from
        for start, size, *_ in record.frames(chunk.data):
            if chunk.position + start + size > position:
                return chunk.position + start
        position_from = behind


def offset_at(snapshot: Snapshot, timestamp_ms: int) -> int:
    """The first offset whose record is at least so young; the end of the log if there is none."""
    for segment in snapshot.segments:
        if segment.damage is not None or segment.timestamp_ms_max < timestamp_ms:
            continue
        position = segment.seek_time(timestamp_ms)
        while True:
            chunk, position = segment.take(position, offset_from=0, bytes_max=1 << 16)
            if chunk is None:
                break
            if chunk.timestamp_ms_max < timestamp_ms:
                continue
            for item in chunk.records(snapshot.first_offset, segment.settings.limits):
                if item.timestamp_ms >= timestamp_ms:
                    return item.offset
    return snapshot.next_offset


def check_sound(segment: Segment) -> None:
    if segment.damage is not None:
        raise damage.QuarantinedError(segment.damage, offset_next=segment.next_offset)


def matches(
    segment: Segment, positions: list[int], term: Term, value: bytes, offset_from: int
) -> Iterator[record.Record]:
    """Of the frames that an index proposes, the records that carry the value."""
    limits = segment.settings.limits
    for position in positions:
        chunk, _ = segment.take(position, offset_from=0, bytes_max=1)
        if chunk is None:
            continue
        for item in chunk.records(offset_from, limits):
            if term.of(item) == value:
                yield item


class SnapshotSource(Protocol):
    """What a Reader needs of a log."""

    def snapshot(self) -> Snapshot: ...


class Reader:
    """Reads on from where it was. It holds its segment, so nothing that happens to the log disturbs
    it; only a cut of the log's end makes it look again where it stands."""

    def __init__(self, log: SnapshotSource, offset: int) -> None:
        self._log = log
        self.offset = offset  # where the next chunk begins
        self._cut_count = log.snapshot().cut_count
        self._segment: Segment | None = None
        self._position = START

    def __repr__(self) -> str:
        return f"Reader(offset={self.offset})"

    def next(self, bytes_max: int) -> Chunk:
        """The next verified frames; empty at the end of the log, for now. After a QuarantinedError
        one may set `offset` to its `offset_next` and go on."""
        for _ in range(ATTEMPTS_MAX):
            snapshot = self._log.snapshot()
            if snapshot.cut_count != self._cut_count:
                self._cut_count = snapshot.cut_count
                self._segment = None
            try:
                return self._next(snapshot, bytes_max)
            except damage.ChangedError:
                self._segment = None
            except damage.QuarantinedError:
                self._segment = None
                raise
        raise StorageError(f"offset {self.offset}: a segment's file is gone")

    def _next(self, snapshot: Snapshot, bytes_max: int) -> Chunk:
        while True:
            if self._segment is None:
                check_offset(snapshot, self.offset)
                number, self._position = find(snapshot, self.offset)
                self._segment = snapshot.segments[number]
            segment = self._segment
            check_sound(segment)
            chunk, self._position = segment.take(
                self._position, offset_from=self.offset, bytes_max=bytes_max
            )
            if chunk is not None:
                self.offset = chunk.offset_next
                return chunk
            if segment is snapshot.segments[-1] or self.offset >= snapshot.next_offset:
                return empty(self.offset)
            if segment.state is State.ARCHIVED:
                segment.drop_views()
            self.offset = max(self.offset, segment.next_offset)
            self._segment = None
