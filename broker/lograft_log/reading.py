"""Reading: the half of a Log that its readers use.

Holds the present Snapshot, the list of segments kept mapped, and the Finder, the compiled short way
to single records. Changes nothing on disk. `log.Log` is the other half and replaces the snapshot.
"""

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TypeVar

from lograft_log import damage, index, reader, secondary
from lograft_log.chunk import Chunk
from lograft_log.hot import search
from lograft_log.hot.record import Record
from lograft_log.segment import PAYLOAD_MAX, START, Segment, State
from lograft_log.settings import LogSettings
from lograft_wire.errors import RefusedError, StorageError

_Result = TypeVar("_Result")


class Reading:
    def __init__(self, folder: str, settings: LogSettings) -> None:
        self.folder = folder
        self.settings = settings
        self._limits = settings.limits
        self._snapshot = reader.make_snapshot((), 0, 0)  # replaced, never changed
        self._views: OrderedDict[Segment, None] = OrderedDict()  # mapped, least used first
        self._finder: tuple[reader.Snapshot, search.Finder] | None = None  # good for that alone
        self._live_terms: secondary.LiveTerms | None = None

    @property
    def first_offset(self) -> int:
        return self._snapshot.first_offset

    @property
    def next_offset(self) -> int:
        return self._snapshot.next_offset

    @property
    def log_bytes(self) -> int:
        return sum(segment.length for segment in self._snapshot.segments)

    def segments(self) -> tuple[Segment, ...]:
        return self._snapshot.segments

    def snapshot(self) -> reader.Snapshot:
        return self._snapshot

    def damages(self) -> list[damage.Damage]:
        return [s.damage for s in self._snapshot.segments if s.damage is not None]

    def index_health(self) -> index.IndexHealth:
        """Of all readable segments together."""
        parts = self._look(None, _healths)
        return index.IndexHealth(
            entry_count=sum(part.entry_count for part in parts),
            index_bytes=sum(part.index_bytes for part in parts),
            log_bytes=sum(part.log_bytes for part in parts),
            rebuild_count=sum(part.rebuild_count for part in parts),
        )

    def read(self, offset: int, *, bytes_max: int | None = None) -> Chunk:
        """Verified frames from `offset` on, within one segment; empty at the end of the log."""
        limit = self._limits.read_bytes_max if bytes_max is None else bytes_max
        return self._look(offset, lambda snapshot: reader.read(snapshot, offset, limit))

    def reader_at(self, offset: int) -> reader.Reader:
        """For reading on and on: remembers its position."""
        reader.check_offset(self._snapshot, offset)
        return reader.Reader(self, offset)

    def get(self, offset: int) -> Record | None:
        """The record of exactly this offset; None when there is none (a gap, or outside)."""
        finder = self._finder
        snapshot = self._snapshot
        if finder is not None and finder[0] is snapshot:
            if not snapshot.first_offset <= offset < snapshot.next_offset:
                return None
            found = finder[1].get(offset)
            if found is not None:
                return found
        return self._get_carefully(offset)

    def read_backward(
        self, offset_end: int | None = None, *, bytes_max: int = reader.TAIL_BYTES
    ) -> Chunk:
        """The frames before `offset_end` (the tail by default), about so many bytes of them, in
        log order. Go on with the chunk's `offset_first`; it is empty at the log's start."""
        return self._look(
            offset_end, lambda snapshot: reader.read_backward(snapshot, offset_end, bytes_max)
        )

    def tail(self, count: int) -> list[Record]:
        """The newest records, newest first."""
        return self._look(None, lambda snapshot: reader.tail(snapshot, count, self._limits))

    def offset_at(self, timestamp_ms: int) -> int:
        """The first offset whose record is not older; `next_offset` if there is none."""
        return self._look(None, lambda snapshot: reader.offset_at(snapshot, max(timestamp_ms, 0)))

    def lookup(self, value: bytes) -> Iterator[Record]:
        """Records whose term (`settings.term`) equals `value`, oldest first. Quarantined segments
        are passed over; what is trimmed meanwhile may be missing."""
        offset = -1  # no record below is yielded again
        for _ in range(reader.ATTEMPTS_MAX):
            snapshot = self._snapshot
            try:
                with damage.guard(self.folder):
                    for item in self._lookup(snapshot, value, max(offset, snapshot.first_offset)):
                        offset = item.offset + 1
                        yield item
                return
            except damage.ChangedError:
                continue
        raise StorageError(f"{self.folder}: a segment's file is gone", path=self.folder)

    def _lookup(
        self, snapshot: reader.Snapshot, value: bytes, offset_from: int
    ) -> Iterator[Record]:
        term = self.settings.term
        assert term is not None, "the log has no secondary index"
        for segment in snapshot.segments:
            if segment.damage is not None or segment.next_offset <= offset_from:
                continue
            if segment.state is State.ACTIVE:
                live = self._live_terms
                if live is None or live.segment is not segment:
                    live = self._live_terms = secondary.LiveTerms(segment, term)
                positions = live.positions(value)
            else:
                positions = secondary.positions(secondary.entries_of(segment, term), value)
            yield from reader.matches(segment, positions, term, value, offset_from)

    def _look(self, offset: int | None, look: Callable[[reader.Snapshot], _Result]) -> _Result:
        """Look in the present snapshot; again when a file was replaced under it. `offset`, if
        there is one, says which segment is used most."""
        for _ in range(reader.ATTEMPTS_MAX):
            snapshot = self._snapshot
            try:
                result = look(snapshot)
            except damage.ChangedError:
                continue
            except OSError as error:
                raise StorageError(f"{self.folder}: {error}", path=self.folder) from error
            if offset is None:
                return result
            used = snapshot.segments[snapshot.number_of(offset)]
            if used.state is State.ARCHIVED:
                used.drop_views()  # rarely read, and meant to cost nothing
            elif used.mapped:
                self._keep_view(used)
            return result
        raise StorageError(f"{self.folder}: a segment's file is gone", path=self.folder)

    def _keep_view(self, segment: Segment) -> None:
        """Note its use; the one not used for longest is unmapped."""
        self._views[segment] = None
        with contextlib.suppress(KeyError):  # another thread may have let go of it
            self._views.move_to_end(segment)
        while len(self._views) > self._limits.views_max:
            self._views.popitem(last=False)[0].drop_views()
            self._finder = None

    def _get_carefully(self, offset: int) -> Record | None:
        if not self.first_offset <= offset < self.next_offset:
            return None
        try:
            chunk = self.read(offset, bytes_max=1)
        except RefusedError:  # trimmed or cut in this moment
            return None
        with contextlib.suppress(damage.ChangedError, StorageError, OSError):
            self._cover(offset)  # only to be quicker the next time
        for item in chunk.records(offset, self._limits):
            return item if item.offset == offset else None
        return None

    def _cover(self, offset: int) -> None:
        """A miss: give the Finder the segment it lacked, if that is mapped by now."""
        snapshot = self._snapshot
        part = snapshot.segments[snapshot.number_of(offset)].part()
        if part is None or offset >= part[1]:
            return
        parts = [s.part() for s in snapshot.segments if s.state is not State.ARCHIVED]
        finder = search.Finder(
            [part for part in parts if part is not None],
            log_start=START,
            payload_max=PAYLOAD_MAX,
        )
        self._finder = snapshot, finder

    def _replace_segments(
        self, segments: tuple[Segment, ...], *, first_offset: int, cut_count: int
    ) -> None:
        self._snapshot = reader.make_snapshot(segments, first_offset, cut_count)
        self._finder = None
        for segment in segments:
            segment.on_map = self._keep_view
        kept = set(segments)
        for segment in list(self._views):
            if segment not in kept:
                self._views.pop(segment, None)  # its views live as long as somebody reads them


def _healths(snapshot: reader.Snapshot) -> list[index.IndexHealth]:
    """Of each segment that is sound; looking may show that one is not."""
    parts = []
    for segment in snapshot.segments:
        if segment.damage is None:
            with contextlib.suppress(damage.QuarantinedError):
                parts.append(segment.health())
    return parts
