"""New files for old segments: cut at an offset, or filtered and compressed again.

The bytes of a .log never change under a reader, so every change here writes `.log.new` with the
next generation, syncs it and renames it over the old one. The rename is the moment of truth: an
index or a seal of another generation is not believed, and is made again.
"""

from collections.abc import Iterable

from lograft_log import files, layout, writer
from lograft_log.env import Clock, File
from lograft_log.hot import record
from lograft_log.segment import START, Segment, State, make_indexer

COPY_BYTES = 1 << 20


def cut(
    segment: Segment, *, dropped: Iterable[Segment], offset: int, clock: Clock
) -> writer.SegmentWriter:
    """Remove every record at and above `offset`, which lies in `segment`; `dropped` follow it. The
    result is the new active segment."""
    disk, folder = segment.disk, segment.folder
    for other in reversed(tuple(dropped)):
        files.remove(disk, folder, other.base_offset)
    files.remove_ending(disk, folder, segment.base_offset, layout.SEAL_NAME)
    disk.sync_folder(folder)
    if segment.damage is not None:
        return _begin_behind(segment, offset, clock)
    file, header, length, next_offset = _copy_below(segment, offset)
    disk.sync_folder(folder)
    fresh = Segment(
        disk=disk,
        folder=folder,
        settings=segment.settings,
        header=header,
        length=length,
        next_offset=next_offset,
        timestamp_ms_max=0,
        state=State.ACTIVE,
    )
    entries = make_indexer(segment.settings)
    entries.feed(file.map(length), START, length, START)
    fresh.timestamp_ms_max = entries.timestamp_ms_max
    offsets, times = writer.open_indexes(disk, folder, header, segment.settings)
    return writer.SegmentWriter(
        segment=fresh,
        file=file,
        entries=entries,
        offsets=offsets,
        times=times,
        synced_bytes=length,
        synced_next_offset=next_offset,
    )


def _begin_behind(segment: Segment, offset: int, clock: Clock) -> writer.SegmentWriter:
    """A quarantined segment cannot be cut; the log goes on behind it, or in its place."""
    if offset == segment.base_offset:
        files.remove(segment.disk, segment.folder, segment.base_offset)
    return writer.create(
        disk=segment.disk,
        folder=segment.folder,
        settings=segment.settings,
        base_offset=offset,
        previous_bytes=0,
        created_ms=clock.wall_ms(),
    )


def _copy_below(segment: Segment, offset: int) -> tuple[File, layout.FileHeader, int, int]:
    """The frames below `offset` in a file of the next generation, synced and in place."""
    header = _next_generation(segment)
    path = f"{segment.folder}/{layout.name(segment.base_offset, layout.LOG)}"
    file = segment.disk.open(path + layout.NEW, create=True)
    try:
        file.truncate(0)
        length = file.write_at(0, [header.encode()])
        next_offset = segment.base_offset
        for frames in _frames_below(segment, offset):
            length += file.write_at(length, [frames])
            next_offset = max(next_offset, record.frames(frames)[-1][5] + 1)
        file.sync()
        segment.disk.rename(path + layout.NEW, path)
    except BaseException:
        file.close()
        raise
    file.path = path
    return file, header, length, next_offset


def _frames_below(segment: Segment, offset: int) -> Iterable[memoryview]:
    position = START
    while True:
        chunk, position = segment.take(position, offset_from=0, bytes_max=COPY_BYTES)
        if chunk is None:
            return
        if chunk.offset_next <= offset:
            yield chunk.data
            continue
        items = [item for item in chunk.records(0, segment.settings.limits) if item.offset < offset]
        if items:
            yield memoryview(record.encode(items, 0, [item.offset for item in items]))
        return


def _next_generation(segment: Segment) -> layout.FileHeader:
    old = segment.header
    return layout.FileHeader(
        magic=layout.MAGIC_LOG,
        base_offset=old.base_offset,
        created_ms=old.created_ms,
        generation=old.generation + 1,
        extra=old.extra,
    )
