"""Going on with the indexes of a segment that is opened again for writing.

How much of each index file can be believed, and how the rest is made. `recovery` calls it, before
the log has readers.
"""

from dataclasses import dataclass

from lograft_log import index, layout
from lograft_log.hot import indexer, record, search
from lograft_log.segment import START, make_indexer
from lograft_log.settings import IndexKind, LogSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """So many entries of each file hold; frames from `position` on must be fed again."""

    position: int
    entry_count: int
    time_count: int


NOTHING = Resume(position=START, entry_count=0, time_count=0)


def believe(
    view: memoryview,
    offsets: index.IndexFile | None,
    times: index.IndexFile,
    *,
    log_end: int,
    settings: LogSettings,
) -> Resume:
    """What of the indexes speaks of the log below `log_end`, is intact, and fits the log."""
    if log_end <= START:
        return NOTHING
    time_entries = times.entries()
    time_count = search.check_time(time_entries, log_start=START, log_end=log_end)
    if not time_count:
        return NOTHING
    at = (time_count - 1) * layout.TIME_ENTRY.size
    time_position: int = layout.TIME_ENTRY.unpack_from(time_entries, at)[2]
    if offsets is None:
        return Resume(position=time_position, entry_count=0, time_count=time_count)
    entries = offsets.entries()
    dense = settings.index is IndexKind.DENSE
    count = search.check(entries, log_start=START, log_end=log_end, dense=dense)
    if not count:
        return NOTHING
    at = (count - 1) * layout.OFFSET_ENTRY.size
    offset, position, _, _ = layout.OFFSET_ENTRY.unpack_from(entries, at)
    place = position + record.FRAME_HEADER_BYTES + 8
    if int.from_bytes(view[place : place + 8], "little") != offset:
        return NOTHING
    # Both indexes go on from the earlier of the two places.
    return Resume(position=min(time_position, position), entry_count=count, time_count=time_count)


def feed(
    view: memoryview,
    resume: Resume,
    offsets: index.IndexFile | None,
    times: index.IndexFile,
    *,
    log_end: int,
    settings: LogSettings,
) -> indexer.Indexer:
    """Cut both index files to what is believed and make the entries behind it."""
    position_last = time_position_last = -1
    timestamp_ms_max = 0
    if resume.entry_count:
        assert offsets is not None
        at = (resume.entry_count - 1) * layout.OFFSET_ENTRY.size
        position_last = layout.OFFSET_ENTRY.unpack_from(offsets.entries(), at)[1]
    if resume.time_count:
        at = (resume.time_count - 1) * layout.TIME_ENTRY.size
        last = layout.TIME_ENTRY.unpack_from(times.entries(), at)
        timestamp_ms_max, time_position_last = last[0], last[2]
    entries = make_indexer(settings)
    entries.resume(
        position_last=position_last,
        time_position_last=time_position_last,
        timestamp_ms_max=timestamp_ms_max,
    )
    if offsets is not None:
        offsets.cut(resume.entry_count)
    times.cut(resume.time_count)
    entries.feed(view, resume.position, log_end, resume.position)
    return entries
