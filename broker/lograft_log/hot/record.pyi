from collections.abc import Iterable
from typing import final

from typing_extensions import Buffer

PAYLOAD_BYTES_LIMIT: int
FRAME_HEADER_BYTES: int
UNKNOWN_FORMAT: int
FAULTS: tuple[str, ...]

@final
class Record:
    @property
    def offset(self) -> int: ...
    @property
    def timestamp_ms(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def headers(self) -> bytes: ...
    @property
    def body(self) -> bytes: ...
    @property
    def tombstone(self) -> bool: ...
    def __init__(
        self,
        body: bytes = b"",
        *,
        key: bytes | None = None,
        headers: bytes = b"",
        timestamp_ms: int = 0,
        offset: int = 0,
        tombstone: bool = False,
    ) -> None: ...

@final
class Span:
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def record_count(self) -> int: ...
    @property
    def frame_count(self) -> int: ...
    @property
    def batch_count(self) -> int: ...
    @property
    def offset_first(self) -> int: ...
    @property
    def offset_last(self) -> int: ...
    @property
    def timestamp_ms_max(self) -> int: ...
    @property
    def fault(self) -> int: ...

def scan(
    data: Buffer,
    start: int,
    end: int,
    *,
    offset_min: int,
    payload_max: int,
    offset_from: int = 0,
    bytes_max: int = ...,
    verify: bool = True,
) -> Span: ...
def encode(
    records: Iterable[Record],
    base_offset: int,
    offsets: Iterable[int] | None = None,
    *,
    timestamp_ms: int = 0,
) -> bytes: ...
def wrap(
    compressed: Buffer,
    *,
    codec: int,
    record_count: int,
    offset_first: int,
    offset_last: int,
    timestamp_ms: int,
    plain_bytes: int,
) -> bytes: ...
def frames(data: Buffer) -> list[tuple[int, int, int, int, int, int, int]]: ...
def decode(data: Buffer, offset_from: int = 0) -> list[Record]: ...
def assign(data: Buffer, base_offset: int) -> int: ...
