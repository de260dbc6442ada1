"""What the owner of a log may choose, and the limits that everything obeys.

Values only; `log` hands them down to every part of a log.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from lograft_log.hot.record import Record


class IndexKind(Enum):
    SPARSE = "sparse"  # one entry per interval of bytes
    DENSE = "dense"  # one entry per frame
    NONE = "none"  # no offset index; the time index still narrows a search


class Codec(Enum):
    """How a batch is compressed; the value stands in the attributes of its frame."""

    NONE = 0
    LZ4 = 1
    ZSTD = 2


class Term(Protocol):
    """What a secondary index looks up. `name` is written to the index: another name, another
    index, rebuilt from the log."""

    @property
    def name(self) -> str: ...

    def of(self, item: Record, /) -> bytes | None:
        """The value of this record, or None when it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLimits:
    segment_bytes_max: int = 1 << 30
    segment_age_ms_max: int = 7 * 24 * 3600 * 1000
    payload_bytes_max: int = (128 << 20) + (64 << 10)  # a 128 MiB body with key and headers
    plain_bytes_max: int = 256 << 20  # what one compressed batch may unfold to
    read_bytes_max: int = 1 << 20  # of one read, unless its first frame alone is larger
    index_pending_bytes_max: int = 64 << 10  # entries held in memory before they are written
    map_step_bytes: int = 4 << 20  # the tail of the active segment is read, not mapped, below this
    views_max: int = 64  # segments kept mapped


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    index: IndexKind = IndexKind.SPARSE
    index_interval_bytes: int = 1024
    time_interval_bytes: int = 4096
    codec: Codec = Codec.NONE
    term: Term | None = None
    limits: LogLimits = field(default_factory=LogLimits)

    def __post_init__(self) -> None:
        assert 0 < self.index_interval_bytes < 1 << 31, self.index_interval_bytes
        assert 0 < self.time_interval_bytes < 1 << 31, self.time_interval_bytes

    @property
    def interval_bytes(self) -> int:
        """As hot/indexer understands it: 0 for every frame, -1 for none."""
        match self.index:
            case IndexKind.SPARSE:
                return self.index_interval_bytes
            case IndexKind.DENSE:
                return 0
            case IndexKind.NONE:
                return -1
