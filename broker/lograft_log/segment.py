"""Segment: one .log file from a base offset, as its readers see it.

A file's bytes below `length` never change: cuts and rewrites make new files and new Segments. So
whoever holds a Segment may read it for as long as it likes, in any thread. The active segment grows
behind `length`, which its `writer` moves after the bytes are written. Sealed segments are mapped
when first read; the tail of the active one is read with plain reads until there is enough to map.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from lograft_log import damage, index, layout
from lograft_log.chunk import Chunk
from lograft_log.env import Disk, File
from lograft_log.hot import indexer, record, search
from lograft_log.settings import IndexKind, LogSettings
from lograft_wire.errors import StorageError

# Of what is stored already. The limit of a log's settings binds what is appended; were it asked
# here, a smaller one would turn good records into damage.
PAYLOAD_MAX = record.PAYLOAD_BYTES_LIMIT
START = layout.FILE_HEADER_BYTES  # position of the first frame
_OFFSET_IN_FRAME = record.FRAME_HEADER_BYTES + 8


class State(Enum):
    ACTIVE = "active"
    FULL = "full"
    ARCHIVED = "archived"
    QUARANTINED = "quarantined"


class LiveIndex(Protocol):
    """The indexes of a segment that is still written."""

    def floor(self, offset: int) -> tuple[int, int]:
        """(offset, position) of the last entry at or below `offset`; position START if none."""

    def time_before(self, timestamp_ms: int) -> int:
        """Position before which every record is older than `timestamp_ms`."""

    def entries(self) -> memoryview: ...

    def entry_count(self) -> int:
        """Number of offset entries."""


class Segment:
    def __init__(
        self,
        *,
        disk: Disk,
        folder: str,
        settings: LogSettings,
        header: layout.FileHeader,
        length: int,
        next_offset: int,
        timestamp_ms_max: int,
        state: State,
    ) -> None:
        self.disk = disk
        self.folder = folder
        self.settings = settings
        self.header = header
        self.length = length  # bytes that may be read; a frame ends there
        self.next_offset = next_offset  # behind the last record
        self.timestamp_ms_max = timestamp_ms_max
        self.state = state
        self.sealed = False  # its .seal is durable
        self.file: File | None = None  # while active: the writer's
        self.live: LiveIndex | None = None  # while active: the writer's
        self.damage: damage.Damage | None = None
        self.rebuild_count = 0
        self.terms: memoryview | None = None  # entries of the secondary index, once asked for
        self.terms_unsaved = False
        self.on_map: Callable[[Segment], None] = _ignore  # told whenever the log is mapped
        self._log = memoryview(b"")
        self._loaded: _Indexes | None = None  # of a sealed segment; replaced, never changed
        self._entry_count = -1  # of a sealed segment, once known

    def __repr__(self) -> str:
        return (
            f"Segment({self.base_offset}..{self.next_offset}, {self.length} bytes, "
            f"{self.state.value})"
        )

    @property
    def base_offset(self) -> int:
        return self.header.base_offset

    @property
    def path(self) -> str:
        ending = layout.DAMAGED if self.state is State.QUARANTINED else layout.LOG
        return f"{self.folder}/{layout.name(self.base_offset, ending)}"

    @property
    def mapped(self) -> bool:
        return len(self._log) > 0

    @property
    def unsaved(self) -> bool:
        """Indexes were made anew and stand in memory only."""
        loaded = self._loaded
        return loaded is not None and not loaded.saved

    def part(self) -> tuple[int, int, memoryview, memoryview] | None:
        """What a Finder may search: the mapped log as far as its entries in the file reach."""
        view = self._log
        if self.damage is not None or not len(view) or self.settings.index is IndexKind.NONE:
            return None
        entries = self.entries()
        next_offset = self.next_offset
        if self.live is not None:
            # Behind the last entry that is written it could be a long walk.
            count = len(entries) // 24
            last = layout.OFFSET_ENTRY.unpack_from(entries, (count - 1) * 24)[0] if count else 0
            next_offset = min(next_offset, last)
        return self.base_offset, next_offset, view, entries

    def drop_views(self) -> None:
        """Forget what is mapped; readers that hold it keep it."""
        self._log = memoryview(b"")
        if not self.terms_unsaved:
            self.terms = None
        if not self.unsaved:
            self._loaded = None

    def take(
        self,
        position: int,
        *,
        offset_from: int,
        bytes_max: int,
        position_end: int = sys.maxsize,
    ) -> tuple[Chunk | None, int]:
        """Verified frames from `position` on whose records reach `offset_from`, and the position
        behind them; None at the end, or at `position_end` where a frame must end."""
        wanted = max(bytes_max, record.FRAME_HEADER_BYTES)
        while position < (length := min(self.length, position_end)):
            view, shift = self._window(position, length, wanted)
            end = min(length - shift, len(view))
            span = record.scan(
                view,
                position - shift,
                end,
                offset_min=self.base_offset,
                payload_max=PAYLOAD_MAX,
                offset_from=offset_from,
                bytes_max=bytes_max,
            )
            if span.frame_count:
                return self._chunk(view, span, shift), span.end + shift
            if span.fault == 0:
                position = span.end + shift
                continue
            if shift == 0:  # the view is a map of the file from its start
                raise self.bad_frame(span.end, span.fault)
            # Read, not mapped: the window may have ended inside a frame. Else look once more
            # through a map before saying that the disk is wrong.
            moved = span.end + shift > position
            position = span.end + shift
            if end + shift < length:
                size = _frame_bytes(view, span.end)
                if moved or wanted < size <= length - position:
                    wanted = max(wanted, min(size, length - position))
                    continue
            self._map(length)
        return None, position

    def seek(self, offset: int) -> int:
        """A position at or before the frame that holds `offset`, close to it if indexed."""
        found, position = self._floor(offset)
        if position == START or self.settings.index is IndexKind.NONE:
            return position
        if self._offset_at(position) == found:
            return position
        if self.live is not None:
            return START
        self.rebuild()  # the index is intact in itself but speaks of another file
        return self._floor(offset)[1]

    def seek_time(self, timestamp_ms: int) -> int:
        """A position before which every record is older than `timestamp_ms`."""
        if (live := self.live) is not None:
            return live.time_before(timestamp_ms)
        times = self.times()
        entry = search.time_before(times, timestamp_ms)
        return layout.TIME_ENTRY.unpack_from(times, entry * 28)[2] if entry >= 0 else START

    def entries(self) -> memoryview:
        """The offset entries, from the file or made anew."""
        if (live := self.live) is not None:
            return live.entries()
        return self._indexes().entries

    def times(self) -> memoryview:
        return self._indexes().times

    def view(self) -> memoryview:
        """The whole readable file, mapped."""
        view = self._log
        return view if len(view) >= self.length else self._map(self.length)

    def bad_frame(self, position: int, fault: int) -> StorageError:
        """What is wrong with a frame: damage, unless a newer program has written it."""
        if fault == record.UNKNOWN_FORMAT:
            return StorageError(
                f"{self.path}: {record.FAULTS[fault]} at {position}: written by a newer program",
                path=self.path,
                position=position,
            )
        return self.found(position, record.FAULTS[fault])

    def found(self, position: int, reason: str) -> damage.QuarantinedError:
        """Note damage; from now on nothing of this segment is served."""
        if self.damage is None:
            self.damage = damage.report(
                damage.Damage(
                    path=self.path, position=position, reason=reason, base_offset=self.base_offset
                )
            )
        return damage.QuarantinedError(self.damage, offset_next=self.next_offset)

    def rebuild(self) -> "_Indexes":
        """Make the indexes of a sealed segment anew from its .log."""
        view = self.view()
        length = self.length
        span = record.scan(
            view, START, length, offset_min=self.base_offset, payload_max=PAYLOAD_MAX
        )
        if span.fault:
            raise self.bad_frame(span.end, span.fault)
        made = make_indexer(self.settings)
        made.feed(view, START, length, START)
        loaded = _Indexes(memoryview(made.offsets()), memoryview(made.times()), saved=False)
        self.timestamp_ms_max = made.timestamp_ms_max
        self.rebuild_count += 1
        self._entry_count = -1
        self._loaded = loaded
        return loaded

    def adopt_view(self, view: memoryview) -> None:
        """A map of the whole file, made by whoever wrote it."""
        assert len(view) == self.length, (len(view), self.length)
        self._log = view

    def save_indexes(self, *, rename: bool = True) -> list[str]:
        """Write what `rebuild` made, in place or as `.new`; returns the endings of the files. The
        caller syncs the folder."""
        saved = []
        loaded = self._loaded
        assert loaded is not None, self
        for form, entries in ((index.OFFSETS, loaded.entries), (index.TIMES, loaded.times)):
            if form is index.OFFSETS and self.settings.index is IndexKind.NONE:
                continue
            header = index_header(self.header, self.settings, form)
            index.save(self.disk, self.folder, header, form, entries, rename=rename)
            saved.append(form.ending)
        self._loaded = replace(loaded, saved=True)
        return saved

    def health(self) -> index.IndexHealth:
        if (live := self.live) is not None:
            count = live.entry_count()
        else:
            if self._entry_count < 0:
                self._entry_count = len(self.entries()) // layout.OFFSET_ENTRY.size
            count = self._entry_count
        return index.IndexHealth(
            entry_count=count,
            index_bytes=count * layout.OFFSET_ENTRY.size,
            log_bytes=self.length - START,
            rebuild_count=self.rebuild_count,
        )

    def _window(self, position: int, length: int, wanted: int) -> tuple[memoryview, int]:
        """A view that covers `position`, and the file position of its first byte: 0 for a map."""
        view = self._log
        if position < len(view):
            return view, 0
        file = self.file
        if file is not None and length - len(view) < self.settings.limits.map_step_bytes:
            try:
                data = file.read_at(position, min(wanted, length - position))
            except OSError:
                if self.file is file:
                    raise
            # The writer lets go of `file` here before it closes it. If it still stands here, these
            # bytes are of this file and not of another one that was given its number.
            if self.file is file:
                return memoryview(data), position
        return self._map(length), 0

    def _map(self, length: int) -> memoryview:
        """Map at least so much; all there is, since the next reader will want it."""
        length = max(length, self.length)
        file = self.open_file()
        try:
            view = file.map(length)
        finally:
            file.close()
        self._log = view
        self.on_map(self)
        return view

    def open_file(self) -> File:
        """The .log for reading, if it still is the one this Segment was made for."""
        if self.damage is not None:
            raise damage.QuarantinedError(self.damage, offset_next=self.next_offset)
        length = self.length  # before the file's size, which may grow meanwhile
        try:
            file = self.disk.open(self.path, writable=False)
        except FileNotFoundError as error:
            raise damage.ChangedError(self.path) from error
        try:
            data = file.read_at(0, START)
            header = layout.decode_header(data, magic=layout.MAGIC_LOG, path=self.path)
            size = file.size()
        except StorageError as error:
            file.close()
            raise self.found(0, str(error)) from error
        except BaseException:
            file.close()
            raise
        if header != self.header:
            file.close()
            raise damage.ChangedError(self.path)
        if size < length:
            file.close()
            raise self.found(size, f"file is shorter than its {length} bytes")
        return file

    def _indexes(self) -> "_Indexes":
        """Of a sealed segment. Held by whoever asked: others may let go of them meanwhile."""
        loaded = self._loaded
        if loaded is None:
            loaded = self._load_indexes()
            self._loaded = loaded
        return loaded

    def _load_indexes(self) -> "_Indexes":
        times = index.load(
            self.disk,
            self.folder,
            index_header(self.header, self.settings, index.TIMES),
            index.TIMES,
        )
        entries: memoryview | None = memoryview(b"")
        if self.settings.index is not IndexKind.NONE:
            header = index_header(self.header, self.settings, index.OFFSETS)
            entries = index.load(self.disk, self.folder, header, index.OFFSETS)
            dense = self.settings.index is IndexKind.DENSE
            if entries is not None and not (
                index.usable(entries, log_bytes=self.length, dense=dense)
                and self._complete(entries)
            ):
                entries = None
        if times is None or entries is None or not self._times_usable(times):
            return self.rebuild()
        return _Indexes(entries, times, saved=True)

    def _times_usable(self, times: memoryview) -> bool:
        count = len(times) // layout.TIME_ENTRY.size
        return search.check_time(times, log_start=START, log_end=self.length) == count

    def _complete(self, entries: memoryview) -> bool:
        """Whether the last entry is near enough to the end, as the rule of `hot.indexer` asks."""
        if not len(entries):
            return self.length == START
        interval = self.settings.interval_bytes
        last = layout.OFFSET_ENTRY.unpack_from(entries, len(entries) - 24)[1]
        view = self.view()
        span = record.scan(
            view,
            last,
            self.length,
            offset_min=self.base_offset,
            payload_max=PAYLOAD_MAX,
            bytes_max=interval,
        )
        end = span.end
        if end < self.length and end - last < interval:
            end += _frame_bytes(view, end)
        return end >= self.length

    def _floor(self, offset: int) -> tuple[int, int]:
        if (live := self.live) is not None:
            return live.floor(offset)
        entries = self.entries()
        if self.settings.index is IndexKind.NONE:
            return floor_by_time(self.times(), offset)
        entry = search.floor(entries, offset)
        if entry < 0:
            return 0, START
        found, position, _, _ = layout.OFFSET_ENTRY.unpack_from(entries, entry * 24)
        return found, position

    def _offset_at(self, position: int) -> int:
        view, shift = self._window(position, self.length, _OFFSET_IN_FRAME + 8)
        at = position - shift + _OFFSET_IN_FRAME
        return int.from_bytes(view[at : at + 8], "little")

    def _chunk(self, view: memoryview, span: record.Span, shift: int) -> Chunk:
        return Chunk(
            data=view[span.start : span.end],
            offset_first=span.offset_first,
            offset_next=span.offset_last + 1,
            record_count=span.record_count,
            batch_count=span.batch_count,
            timestamp_ms_max=span.timestamp_ms_max,
            path=self.path,
            position=span.start + shift,
        )


@dataclass(frozen=True, slots=True)
class _Indexes:
    """The entries of a sealed segment, from its files or made anew."""

    entries: memoryview
    times: memoryview
    saved: bool  # false: they stand in memory only


def _ignore(_: Segment) -> None:
    """Nobody keeps count of the maps of a segment that is in no log."""


def floor_by_time(times: memoryview, offset: int) -> tuple[int, int]:
    """Without an offset index the time entries narrow the search. They name the last offset of a
    frame, so the frame's own first offset is not known here."""
    entry = search.time_floor(times, offset)
    if entry < 0:
        return 0, START
    _, found, position, _ = layout.TIME_ENTRY.unpack_from(times, entry * 28)
    return found, position


def make_indexer(settings: LogSettings) -> indexer.Indexer:
    return indexer.Indexer(
        interval_bytes=settings.interval_bytes,
        time_interval_bytes=settings.time_interval_bytes,
    )


def index_header(
    log_header: layout.FileHeader, settings: LogSettings, form: index.Form
) -> layout.FileHeader:
    interval = settings.interval_bytes if form is index.OFFSETS else settings.time_interval_bytes
    return layout.FileHeader(
        magic=form.magic,
        base_offset=log_header.base_offset,
        created_ms=log_header.created_ms,
        generation=log_header.generation,
        parameter=max(interval, 0),
    )


def _frame_bytes(view: memoryview, at: int) -> int:
    """What the frame header at `at` says, or a whole header's worth when it is cut."""
    return record.FRAME_HEADER_BYTES + int.from_bytes(view[at : at + 4], "little")
