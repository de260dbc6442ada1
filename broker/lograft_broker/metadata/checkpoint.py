"""The whole state as the payload of a checkpoint.

    version u8 | zero u8 x 3 | table count u32 | state version u64 | shard count u32
    then each table in the order of `State.tables`: row count u32, the rows as `packing` writes them

Little-endian. The rows stand in the order in which they came, which is the same on every replica,
and so the bytes are. The indexes and the queues per shard are not written: they follow.
"""

import struct
from typing import Any

from lograft_broker.metadata.limits import MetadataLimits
from lograft_broker.metadata.state import Rows, State
from lograft_wire.errors import DamagedError

VERSION = 1
_HEADER = struct.Struct("<B3xIQI")
assert _HEADER.size == 20
_COUNT = struct.Struct("<I")
assert _COUNT.size == 4


def encode(state: State) -> bytes:
    tables = state.tables()
    shard_count = len(state.shard_queue_counts)
    parts = [_HEADER.pack(VERSION, len(tables), state.version, shard_count)]
    for table in tables:
        parts.append(_COUNT.pack(len(table)))
        parts.extend(table.packed())
    return b"".join(parts)


def decode(payload: bytes, limits: MetadataLimits) -> State:
    """No payload at all: the state before the first command."""
    state = State()
    if not payload:
        return state
    try:
        version, table_count, state.version, shard_count = _HEADER.unpack_from(payload)
        tables = state.tables()
        if version != VERSION or table_count != len(tables):
            raise DamagedError(
                f"metadata of version {version} with {table_count} tables; "
                f"this one reads {VERSION} with {len(tables)}"
            )
        if shard_count > limits.shard_count_max:
            raise DamagedError(f"metadata with {shard_count} shards")
        state.shard_queue_counts = [0] * shard_count
        position = _HEADER.size
        for table in tables:
            position = _load(state, table, payload, position)
    except struct.error as error:
        raise DamagedError(f"metadata of {len(payload)} bytes cannot be read: {error}") from error
    if position != len(payload):
        raise DamagedError(f"metadata ends at {position}, not at {len(payload)}")
    state.take_events()
    return state


def _load(state: State, table: Rows[Any, Any], payload: bytes, position: int) -> int:
    """One table that begins at `position`; returns where it ends."""
    (count,) = _COUNT.unpack_from(payload, position)
    position += _COUNT.size
    for _ in range(count):
        row, end = table.packer.read(payload, position)
        if not state.fits(table, row):
            raise DamagedError(f"metadata at {position}: {row!r} has no place")
        state.put(row, packed=payload[position:end])
        position = end
    return position
