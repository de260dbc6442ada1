"""SegmentWriter: the one writer of the active segment and of its indexes.

Frames arrive verified and whole; they are written with one call per batch. Index entries are made
at once, kept in memory, and written in batches of their own: they may be lost, never wrong. What is
synced, and when, is `log`'s business; sealing happens off the loop in `sync`.
"""

from contextlib import ExitStack

from lograft_log import index, layout
from lograft_log.env import Disk, File
from lograft_log.hot import indexer, record, search
from lograft_log.segment import START, Segment, State, floor_by_time, index_header, make_indexer
from lograft_log.settings import IndexKind, LogSettings


class SegmentWriter:
    """`segment` is what its readers see; `synced_bytes` of it survive a power cut."""

    def __init__(
        self,
        *,
        segment: Segment,
        file: File,
        entries: indexer.Indexer,
        offsets: index.IndexFile | None,
        times: index.IndexFile,
        synced_bytes: int,
        synced_next_offset: int,
    ) -> None:
        self.segment = segment
        self.file = file
        self.synced_bytes = synced_bytes
        self.synced_next_offset = synced_next_offset
        self._entries = entries
        self._offsets = offsets
        self._times = times
        self._pending_max = segment.settings.limits.index_pending_bytes_max
        segment.file = file
        segment.live = self

    def append(self, frames: bytes | memoryview, span: record.Span) -> None:
        """Write frames that `span` describes whole."""
        segment = self.segment
        assert span.offset_first >= segment.next_offset, (span, segment)
        position = segment.length
        self.file.write_at(position, [frames])
        self._entries.feed(frames, 0, len(frames), position)
        # Readers go by `length`: it moves last.
        segment.next_offset = span.offset_last + 1
        if span.timestamp_ms_max > segment.timestamp_ms_max:
            segment.timestamp_ms_max = span.timestamp_ms_max
        segment.length = position + len(frames)
        if self._entries.pending_bytes >= self._pending_max:
            self.flush_indexes()

    def flush_indexes(self) -> None:
        """Write the entries that wait. Readers find them in one place or the other at any time."""
        entries, times = self._entries.offsets(), self._entries.times()
        if self._offsets is not None:
            self._offsets.append(entries)
        self._times.append(times)
        self._entries.drop(offsets_bytes=len(entries), times_bytes=len(times))

    def sync_indexes(self) -> None:
        if self._offsets is not None:
            self._offsets.sync()
        self._times.sync()

    def retire(self) -> None:
        """The segment takes no more records; readers map it from now on."""
        self.flush_indexes()
        self.segment.state = State.FULL
        self.segment.live = None
        self.segment.file = None

    def close(self) -> None:
        if self.segment.file is self.file:
            self.segment.file = None
            self.segment.live = None
        self.file.close()
        if self._offsets is not None:
            self._offsets.close()
        self._times.close()

    def floor(self, offset: int) -> tuple[int, int]:
        if self._offsets is None:
            pending = memoryview(self._entries.times())
            found = floor_by_time(pending, offset)
            return found if found[1] != START else floor_by_time(self._times.entries(), offset)
        position = self._entries.floor(offset)
        if position >= 0:
            return self._named(offset, memoryview(self._entries.offsets()))
        return self._named(offset, self._offsets.entries())

    def time_before(self, timestamp_ms: int) -> int:
        for times in (memoryview(self._entries.times()), self._times.entries()):
            entry = search.time_before(times, timestamp_ms)
            if entry >= 0:
                position: int = layout.TIME_ENTRY.unpack_from(times, entry * 28)[2]
                return position
        return START

    def entries(self) -> memoryview:
        if self._offsets is None:
            return memoryview(b"")
        return self._offsets.entries()

    def entry_count(self) -> int:
        if self._offsets is None:
            return 0
        return self._offsets.count + len(self._entries.offsets()) // layout.OFFSET_ENTRY.size

    def _named(self, offset: int, entries: memoryview) -> tuple[int, int]:
        entry = search.floor(entries, offset)
        if entry < 0:
            return 0, START
        found, position, _, _ = layout.OFFSET_ENTRY.unpack_from(entries, entry * 24)
        return found, position


def create(
    *,
    disk: Disk,
    folder: str,
    settings: LogSettings,
    base_offset: int,
    previous_next_offset: int,
    created_ms: int,
) -> SegmentWriter:
    """A new, empty segment. Its name is durable after the next sync of the folder."""
    header = layout.FileHeader(
        magic=layout.MAGIC_LOG,
        base_offset=base_offset,
        created_ms=created_ms,
        extra=previous_next_offset,
    )
    segment = Segment(
        disk=disk,
        folder=folder,
        settings=settings,
        header=header,
        length=START,
        next_offset=base_offset,
        timestamp_ms_max=0,
        state=State.ACTIVE,
    )
    with ExitStack() as undo:
        file = disk.open(segment.path, create=True)
        undo.callback(file.close)
        file.truncate(0)
        file.write_at(0, [header.encode()])
        offsets, times = open_indexes(disk, folder, header, settings)
        for leftover in (offsets, times):
            if leftover is not None:
                undo.callback(leftover.close)
                leftover.cut(0)
        undo.pop_all()
    return SegmentWriter(
        segment=segment,
        file=file,
        entries=make_indexer(settings),
        offsets=offsets,
        times=times,
        synced_bytes=0,
        synced_next_offset=base_offset,
    )


def open_indexes(
    disk: Disk, folder: str, header: layout.FileHeader, settings: LogSettings
) -> tuple[index.IndexFile | None, index.IndexFile]:
    offsets = None
    form = index.TIMES
    times = index.IndexFile(disk, folder, index_header(header, settings, form), form)
    if settings.index is not IndexKind.NONE:
        form = index.OFFSETS
        try:
            offsets = index.IndexFile(disk, folder, index_header(header, settings, form), form)
        except BaseException:
            times.close()
            raise
    return offsets, times
