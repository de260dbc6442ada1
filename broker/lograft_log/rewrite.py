"""New files for old segments: cut at an offset, or filtered and compressed again.

The bytes of a .log never change under a reader, so every change here writes `.log.new` with the
next generation, syncs it and renames it over the old one. The rename is the moment of truth: an
index or a seal of another generation is not believed, and is made again. `log` cuts, `maintenance`
compacts and archives.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lograft_log import compression, files, layout, secondary, writer
from lograft_log.env import Clock, File
from lograft_log.hot import record
from lograft_log.hot.record import Record
from lograft_log.segment import START, Segment, State, make_indexer
from lograft_log.settings import Codec
from lograft_log.sync import seal_of

COPY_BYTES = 256 << 10  # frames handled, and compressed, together


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """Files of `new`, all synced, wait as `.new` beside those of `old`."""

    old: Segment
    new: Segment
    endings: tuple[str, ...]
    drops_tombstones: bool = False


def cut(
    segment: Segment, *, dropped: tuple[Segment, ...], offset: int, clock: Clock
) -> writer.SegmentWriter:
    """Remove every record at and above `offset`, which lies in `segment`; `dropped` follow it. The
    result is the new active segment, durable once the caller has synced the folder."""
    disk, folder = segment.disk, segment.folder
    for other in reversed(dropped):
        files.remove(disk, folder, other.base_offset)
        disk.sync_folder(folder)  # one by one from the end: no crash may leave a hole
    files.remove_ending(disk, folder, segment.base_offset, layout.SEAL_NAME)
    disk.sync_folder(folder)
    if segment.damage is not None:
        return _begin_behind(segment, offset, clock)
    file, fresh = _write_log(segment, _frames_below(segment, offset))
    try:
        entries = make_indexer(segment.settings)
        entries.feed(file.map(fresh.length), START, fresh.length, START)
        fresh.timestamp_ms_max = entries.timestamp_ms_max
        fresh.state = State.ACTIVE
        for ending in (layout.INDEX, layout.TIMEINDEX):  # mapped by readers: never made shorter
            files.remove_ending(disk, folder, segment.base_offset, ending)
        disk.rename(fresh.path + layout.NEW, fresh.path)
        offsets, times = writer.open_indexes(disk, folder, fresh.header, segment.settings)
    except BaseException:
        file.close()
        raise
    return writer.SegmentWriter(
        segment=fresh,
        file=file,
        entries=entries,
        offsets=offsets,
        times=times,
        synced_bytes=fresh.length,
        synced_next_offset=fresh.next_offset,
    )


def prepare(
    segment: Segment, *, keep: Callable[[Record], bool], codec: Codec, archived: bool
) -> Rewritten:
    """Write a sealed segment anew with the records to keep. Touches nothing that is in use."""
    assert segment.sealed, segment
    try:
        return _prepare(segment, keep=keep, codec=codec, archived=archived)
    except BaseException:
        with contextlib.suppress(OSError):  # what is left goes at the next opening
            for ending in files.ENDINGS:
                files.remove_ending(
                    segment.disk, segment.folder, segment.base_offset, ending + layout.NEW
                )
        raise


def _prepare(
    segment: Segment, *, keep: Callable[[Record], bool], codec: Codec, archived: bool
) -> Rewritten:
    dropped_tombstones: list[int] = []
    file, fresh = _write_log(segment, _filtered(segment, keep, codec, dropped_tombstones))
    try:
        fresh.next_offset = segment.next_offset  # the offsets that were dropped stay used
        fresh.adopt_view(file.map(fresh.length))
    finally:
        file.close()
    fresh.rebuild()
    fresh.rebuild_count = segment.rebuild_count
    fresh.sealed = True
    fresh.state = State.ARCHIVED if archived else State.FULL
    endings = [layout.LOG, *fresh.save_indexes(rename=False)]
    term = segment.settings.term
    if term is not None:
        secondary.write_new(fresh, term, secondary.make(fresh, term))
        endings.append(layout.HASHINDEX)
    flags = layout.SEALED | (layout.ARCHIVED if archived else 0)
    files.write_seal(segment.disk, segment.folder, seal_of(fresh, flags=flags), ending=layout.NEW)
    return Rewritten(
        old=segment,
        new=fresh,
        endings=(*endings, layout.SEAL_NAME),
        drops_tombstones=bool(dropped_tombstones),
    )


def put_in_place(rewritten: Rewritten) -> None:
    """Rename the new files over the old ones; the folder is synced with the next sync. Whatever
    part of it a crash undoes, the .log decides which of the others are believed."""
    segment = rewritten.new
    for ending in rewritten.endings:
        path = f"{segment.folder}/{layout.name(segment.base_offset, ending)}"
        segment.disk.rename(path + layout.NEW, path)


def discard(rewritten: Rewritten) -> None:
    """The old segment has gone meanwhile, and so goes what was to replace it."""
    segment = rewritten.new
    for ending in rewritten.endings:
        files.remove_ending(segment.disk, segment.folder, segment.base_offset, ending + layout.NEW)


def _begin_behind(segment: Segment, offset: int, clock: Clock) -> writer.SegmentWriter:
    """A quarantined segment cannot be cut; the log goes on behind it, or in its place."""
    if offset == segment.base_offset:
        files.remove(segment.disk, segment.folder, segment.base_offset)
    return writer.create(
        disk=segment.disk,
        folder=segment.folder,
        settings=segment.settings,
        base_offset=offset,
        previous_next_offset=segment.next_offset,
        created_ms=clock.wall_ms(),
    )


def _write_log(segment: Segment, parts: Iterator[memoryview]) -> tuple[File, Segment]:
    """A synced `.log.new` of the next generation, open, and the Segment it will be."""
    old = segment.header
    header = layout.FileHeader(
        magic=layout.MAGIC_LOG,
        base_offset=old.base_offset,
        created_ms=old.created_ms,
        generation=old.generation + 1,
        extra=old.extra,
    )
    name = layout.name(old.base_offset, layout.LOG)
    file = segment.disk.open(f"{segment.folder}/{name}{layout.NEW}", create=True)
    try:
        file.truncate(0)
        length = file.write_at(0, [header.encode()])
        next_offset = old.base_offset
        for frames in parts:
            length += file.write_at(length, [frames])
            next_offset = record.frames(frames)[-1][5] + 1
        file.sync()
    except BaseException:
        file.close()
        raise
    fresh = Segment(
        disk=segment.disk,
        folder=segment.folder,
        settings=segment.settings,
        header=header,
        length=length,
        next_offset=next_offset,
        timestamp_ms_max=0,
        state=State.FULL,
    )
    return file, fresh


def _frames_below(segment: Segment, offset: int) -> Iterator[memoryview]:
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


def _filtered(
    segment: Segment,
    keep: Callable[[Record], bool],
    codec: Codec,
    dropped_tombstones: list[int],
) -> Iterator[memoryview]:
    """Frames of the records to keep; notes the offsets of tombstones that go."""
    position = START
    limits = segment.settings.limits
    while True:
        chunk, position = segment.take(position, offset_from=0, bytes_max=COPY_BYTES)
        if chunk is None:
            return
        items = []
        for item in chunk.records(0, limits):
            if keep(item):
                items.append(item)
            elif item.tombstone:
                dropped_tombstones.append(item.offset)
        if items:
            frames = record.encode(items, 0, [item.offset for item in items])
            yield memoryview(compression.fold(frames, codec, limits))
