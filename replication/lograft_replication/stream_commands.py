"""The commands of a StreamMachine as bytes: records for several streams, and opening, closing and
trimming streams.

Pure. The owner of the streams encodes and proposes them, `streams` applies them on every replica.
A stream's id is given by whoever made it; offsets are given by the owner and stand in the records.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from typing_extensions import Buffer

from lograft_wire.errors import DamagedError

# type u8 | version u8 | zero u16 | row count u32 | timestamp_ms u64 (the leader's, at proposing)
# then the rows, then for RECORDS the frames of each row one behind the other
_HEADER = struct.Struct("<BBHIQ")
assert _HEADER.size == 16
# RECORDS: stream u64 | base_offset u64 | record count u32 | bytes u32
_BATCH = struct.Struct("<QQII")
assert _BATCH.size == 24
# OPEN, TRIM: stream u64 | start_offset u64
_START = struct.Struct("<QQ")
assert _START.size == 16
# CLOSE: stream u64
_STREAM = struct.Struct("<Q")
assert _STREAM.size == 8

# Types below 0x20 belong to the group.
RECORDS = 0x20
OPEN = 0x21
CLOSE = 0x22
TRIM = 0x23
VERSION = 1


@dataclass(frozen=True, slots=True)
class Batch:
    """Frames of one stream as its log stores them, with the offsets from `base_offset` on. The
    next batch may leave a gap; inside one there is none."""

    stream: int
    base_offset: int
    count: int
    frames: Buffer = field(repr=False)


@dataclass(frozen=True, slots=True)
class Records:
    timestamp_ms: int
    batches: tuple[Batch, ...]


@dataclass(frozen=True, slots=True)
class Open:
    timestamp_ms: int
    streams: tuple[tuple[int, int], ...]  # (stream, offset its first record may have)


@dataclass(frozen=True, slots=True)
class Close:
    timestamp_ms: int
    streams: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Trim:
    timestamp_ms: int
    streams: tuple[tuple[int, int], ...]  # (stream, first offset to keep)


StreamCommand = Records | Open | Close | Trim


def encode(command: StreamCommand) -> bytes:
    match command:
        case Records():
            return b"".join(encode_records(command.timestamp_ms, command.batches))
        case Open():
            rows = [_START.pack(*row) for row in command.streams]
            return _with_header(OPEN, command.timestamp_ms, rows)
        case Trim():
            rows = [_START.pack(*row) for row in command.streams]
            return _with_header(TRIM, command.timestamp_ms, rows)
        case Close():
            rows = [_STREAM.pack(stream) for stream in command.streams]
            return _with_header(CLOSE, command.timestamp_ms, rows)


def encode_records(timestamp_ms: int, batches: Sequence[Batch]) -> list[Buffer]:
    """As parts, so that a caller with large frames joins them once, where they are needed."""
    head = bytearray(_HEADER.size + _BATCH.size * len(batches))
    _HEADER.pack_into(head, 0, RECORDS, VERSION, 0, len(batches), timestamp_ms)
    position = _HEADER.size
    for batch in batches:
        size = memoryview(batch.frames).nbytes
        _BATCH.pack_into(head, position, batch.stream, batch.base_offset, batch.count, size)
        position += _BATCH.size
    return [head, *(batch.frames for batch in batches)]


def decode(command: bytes) -> StreamCommand:
    """The frames of a batch are views of `command`, not yet verified."""
    try:
        kind, version, zero, count, timestamp_ms = _HEADER.unpack_from(command)
        if version != VERSION or zero:
            raise DamagedError(f"stream command {kind:#x} of version {version}, not {VERSION}")
        if kind == RECORDS:
            return Records(timestamp_ms, _batches(command, count))
        if kind == OPEN:
            return Open(timestamp_ms, _starts(command, count))
        if kind == TRIM:
            return Trim(timestamp_ms, _starts(command, count))
        if kind == CLOSE:
            streams = tuple(stream for (stream,) in _rows(command, count, _STREAM))
            return Close(timestamp_ms, streams)
    except struct.error as error:
        raise DamagedError(f"stream command of {len(command)} bytes: {error}") from error
    raise DamagedError(f"stream command of the unknown type {kind:#x}")


def _with_header(kind: int, timestamp_ms: int, rows: list[bytes]) -> bytes:
    return b"".join((_HEADER.pack(kind, VERSION, 0, len(rows), timestamp_ms), *rows))


def _batches(command: bytes, count: int) -> tuple[Batch, ...]:
    view = memoryview(command)
    position = _HEADER.size + _BATCH.size * count
    batches: list[Batch] = []
    for at in range(_HEADER.size, position, _BATCH.size):
        stream, base_offset, record_count, size = _BATCH.unpack_from(command, at)
        batches.append(Batch(stream, base_offset, record_count, view[position : position + size]))
        position += size
    _check_end(command, position)
    return tuple(batches)


def _starts(command: bytes, count: int) -> tuple[tuple[int, int], ...]:
    return tuple((stream, start) for stream, start in _rows(command, count, _START))


def _rows(command: bytes, count: int, row: struct.Struct) -> list[tuple[int, ...]]:
    end = _HEADER.size + row.size * count
    _check_end(command, end)
    return [row.unpack_from(command, at) for at in range(_HEADER.size, end, row.size)]


def _check_end(command: bytes, end: int) -> None:
    if end != len(command):
        raise DamagedError(f"stream command should have {end} bytes, not {len(command)}")
