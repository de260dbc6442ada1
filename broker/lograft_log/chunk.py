"""Chunk: verified frames as they stand in a file, and the way from them to records.

Made by `segment` in one compiled pass over the bytes. Whoever needs records asks for them; whoever
only passes bytes on (a fetch, a replica) never makes one.
"""

from dataclasses import dataclass, field

from lograft_log import compression
from lograft_log.hot import record
from lograft_log.settings import LogLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Whole frames in order. Empty at the end of the log: `offset_next` is then where it was asked.

    The first frame may be a compressed batch that begins below the offset asked for.
    """

    data: memoryview = field(repr=False)
    offset_first: int
    offset_next: int  # where the next read goes on
    record_count: int
    batch_count: int  # compressed frames among them
    timestamp_ms_max: int
    path: str
    position: int  # of `data` in that file

    def __len__(self) -> int:
        return len(self.data)

    def plain(self, limits: LogLimits | None = None) -> memoryview:
        """The same records as plain frames; `data` itself when nothing is compressed."""
        if not self.batch_count:
            return self.data
        limits = limits or LogLimits()
        frames = compression.unfold(self.data, limits, path=self.path, position=self.position)
        return memoryview(frames)

    def records(self, offset_from: int = 0, limits: LogLimits | None = None) -> list[record.Record]:
        return record.decode(self.plain(limits), offset_from)


def empty(offset: int) -> Chunk:
    return Chunk(
        data=memoryview(b""),
        offset_first=offset,
        offset_next=offset,
        record_count=0,
        batch_count=0,
        timestamp_ms_max=0,
        path="",
        position=0,
    )
