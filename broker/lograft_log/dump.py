"""What stands in the files of a segment, as text for people.

Reads any file of a log without opening the log, so it works on a damaged one, on a copy, and beside
a running broker. The `dump` command prints these lines.
"""

from collections.abc import Iterator

from lograft_log import compression, layout
from lograft_log.env import Disk
from lograft_log.hot import record
from lograft_log.settings import Codec, LogLimits
from lograft_wire.errors import DamagedError, StorageError

BODY_BYTES_MAX = 60  # of a body that are shown


def lines(disk: Disk, path: str, *, limits: LogLimits | None = None) -> Iterator[str]:
    """Lines for one file. Damage is a line, not an error; a foreign file is an error."""
    try:
        yield from _lines(disk, path, limits or LogLimits())
    except DamagedError as error:
        yield f"file {path} BAD {error}"


def _lines(disk: Disk, path: str, limits: LogLimits) -> Iterator[str]:
    parsed = layout.parse_name(path.rpartition("/")[2])
    if parsed is None:
        raise StorageError(f"{path}: not the name of a segment's file", path=path)
    file = disk.open(path, writable=False)
    try:
        data = file.map(file.size())
    finally:
        file.close()
    match parsed[1]:
        case layout.SEAL_NAME:
            yield from _seal(bytes(data), path)
        case layout.INDEX:
            yield from _offsets(data, path)
        case layout.TIMEINDEX:
            yield from _times(data, path)
        case layout.HASHINDEX:
            yield from _hashes(data, path)
        case _:
            yield from _log(data, path, limits)


def _header(data: memoryview, magic: bytes, path: str) -> Iterator[str]:
    header = layout.decode_header(bytes(data[: layout.FILE_HEADER_BYTES]), magic=magic, path=path)
    previous = "none" if header.extra == layout.NO_PREVIOUS else str(header.extra)
    yield (
        f"file {path} base_offset={header.base_offset} generation={header.generation} "
        f"created_ms={header.created_ms} extra={previous} parameter={header.parameter}"
    )


def _log(data: memoryview, path: str, limits: LogLimits) -> Iterator[str]:
    yield from _header(data, layout.MAGIC_LOG, path)
    position, offset_min = layout.FILE_HEADER_BYTES, 0
    while position < len(data):
        span = record.scan(
            data,
            position,
            len(data),
            offset_min=offset_min,
            payload_max=record.PAYLOAD_BYTES_LIMIT,
            bytes_max=1,
        )
        if not span.frame_count:
            yield f"{position} BAD {record.FAULTS[span.fault]}"
            return
        yield from _frame(data[position : span.end], position, limits)
        position, offset_min = span.end, span.offset_last + 1
    yield f"{position} end"


def _frame(frame: memoryview, position: int, limits: LogLimits) -> Iterator[str]:
    _, size, attributes, count, first, last, plain_bytes = record.frames(frame)[0]
    indent = ""
    if attributes & compression.BATCH:
        codec = Codec(attributes & compression.CODEC_MASK).name.lower()
        yield (
            f"{position} batch codec={codec} offsets={first}..{last} records={count} "
            f"bytes={size} plain_bytes={plain_bytes}"
        )
        indent = "  "
    try:
        items = record.decode(compression.unfold(frame, limits, position=position))
    except StorageError as error:
        yield f"{position} BAD {error}"
        return
    for item in items:
        yield f"{indent}{position} {_record(item)}"


def _record(item: record.Record) -> str:
    body = repr(item.body[:BODY_BYTES_MAX])
    more = "..." if len(item.body) > BODY_BYTES_MAX else ""
    mark = " tombstone" if item.tombstone else ""
    return (
        f"record offset={item.offset} timestamp_ms={item.timestamp_ms} key={item.key!r} "
        f"headers_bytes={len(item.headers)} body_bytes={len(item.body)}{mark} body={body}{more}"
    )


def _offsets(data: memoryview, path: str) -> Iterator[str]:
    yield from _header(data, layout.MAGIC_INDEX, path)
    for row in _rows(data, layout.OFFSET_ENTRY.size):
        offset, position, length, _ = layout.OFFSET_ENTRY.unpack(row)
        yield f"entry offset={offset} position={position} length={length}{_judge(row)}"


def _times(data: memoryview, path: str) -> Iterator[str]:
    yield from _header(data, layout.MAGIC_TIME, path)
    for row in _rows(data, layout.TIME_ENTRY.size):
        timestamp_ms, offset, position, _ = layout.TIME_ENTRY.unpack(row)
        yield f"entry timestamp_ms={timestamp_ms} offset={offset} position={position}{_judge(row)}"


def _hashes(data: memoryview, path: str) -> Iterator[str]:
    yield from _header(data, layout.MAGIC_HASH, path)
    for row in _rows(data, layout.HASH_ENTRY.size):
        value, position = layout.HASH_ENTRY.unpack(row)
        yield f"entry hash={value:016x} position={position}"


def _rows(data: memoryview, size: int) -> Iterator[bytes]:
    for at in range(layout.FILE_HEADER_BYTES, len(data) - size + 1, size):
        yield bytes(data[at : at + size])


def _judge(row: bytes) -> str:
    return "" if layout.intact(row) else " BAD checksum mismatch"


def _seal(data: bytes, path: str) -> Iterator[str]:
    seal = layout.decode_seal(data, path=path)
    if seal is None:
        yield f"file {path} BAD not a whole seal"
        return
    state = "sealed" if seal.sealed else "open"
    if seal.flags & layout.ARCHIVED:
        state = "archived"
    yield (
        f"file {path} base_offset={seal.base_offset} generation={seal.generation} state={state} "
        f"log_bytes={seal.log_bytes} next_offset={seal.next_offset} "
        f"timestamp_ms_max={seal.timestamp_ms_max}"
    )
