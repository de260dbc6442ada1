"""What a StreamMachine writes into a checkpoint about its streams, as bytes.

Pure. A few numbers per stream and per segment, never anything per record.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from lograft_log.positions import Positions, SegmentPosition
from lograft_wire.errors import DamagedError

# version u8 | zero u8 x 3 | stream count u32, then each stream
_HEADER = struct.Struct("<B3xI")
assert _HEADER.size == 8
# stream u64 | opened u64 | first_offset u64 | next_offset u64 | log_first u64 | log_next u64
# | segment count u32, then each segment
_STREAM = struct.Struct("<QQQQQQI")
assert _STREAM.size == 52
# base_offset u64 | log_bytes u64 | next_offset u64
_SEGMENT = struct.Struct("<QQQ")
assert _SEGMENT.size == 24
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamState:
    stream: int
    opened: int  # index of the entry that opened it
    first_offset: int  # as the entries up to the checkpoint say; the log may be further
    next_offset: int
    durable: Positions

    @property
    def folder(self) -> str:
        """Never used twice, even if a stream is closed and opened again under the same id."""
        return folder_of(self.stream, self.opened)


def folder_of(stream: int, opened: int) -> str:
    return f"{stream:020d}-{opened:020d}"


def encode(states: Sequence[StreamState]) -> bytes:
    parts = [_HEADER.pack(VERSION, len(states))]
    for state in states:
        durable = state.durable
        parts.append(
            _STREAM.pack(
                *(state.stream, state.opened, state.first_offset, state.next_offset),
                *(durable.first_offset, durable.next_offset, len(durable.segments)),
            )
        )
        for row in durable.segments:
            parts.append(_SEGMENT.pack(row.base_offset, row.log_bytes, row.next_offset))
    return b"".join(parts)


def decode(payload: bytes) -> list[StreamState]:
    """No payload at all: no streams."""
    if not payload:
        return []
    try:
        version, count = _HEADER.unpack_from(payload)
        if version != VERSION:
            raise DamagedError(f"streams of version {version}; this one reads {VERSION}")
        states: list[StreamState] = []
        position = _HEADER.size
        for _ in range(count):
            state, position = _decode_one(payload, position)
            states.append(state)
    except struct.error as error:
        raise DamagedError(f"streams of {len(payload)} bytes cannot be read: {error}") from error
    if position != len(payload):
        raise DamagedError(f"streams end at {position}, not at {len(payload)}")
    return states


def _decode_one(payload: bytes, position: int) -> tuple[StreamState, int]:
    stream, opened, first, behind, log_first, log_next, count = _STREAM.unpack_from(
        payload, position
    )
    position += _STREAM.size
    rows: list[SegmentPosition] = []
    for _ in range(count):
        base_offset, log_bytes, next_offset = _SEGMENT.unpack_from(payload, position)
        position += _SEGMENT.size
        rows.append(
            SegmentPosition(base_offset=base_offset, log_bytes=log_bytes, next_offset=next_offset)
        )
    durable = Positions(first_offset=log_first, next_offset=log_next, segments=tuple(rows))
    state = StreamState(
        stream=stream, opened=opened, first_offset=first, next_offset=behind, durable=durable
    )
    return state, position
