"""What `lograft_broker.hot.entry` must do, the slow and obvious way."""

import struct
from dataclasses import dataclass

from oracle import record

Pairs = list[tuple[int, int]]
KINDS = {"run": 1, "spread": 2, "settle": 3, "mark": 4, "return": 5}


@dataclass(frozen=True)
class Add:
    stream: int
    offset: int
    envelope: bytes
    body: bytes


@dataclass(frozen=True)
class Spread:
    targets: Pairs
    due_ms: int
    priority: int
    envelope: bytes
    body: bytes


def frame(offset: int, timestamp_ms: int, envelope: bytes, body: bytes) -> bytes:
    return record.encode([(offset, timestamp_ms, None, envelope, body, False)])


def runs(adds: list[Add], timestamp_ms: int) -> list[tuple[object, ...]]:
    """Neighbouring records of one queue with neighbouring offsets become one item."""
    items: list[tuple[int, int, int, bytes]] = []
    for add in adds:
        data = frame(add.offset, timestamp_ms, add.envelope, add.body)
        if items:
            stream, first, count, frames = items[-1]
            if stream == add.stream and first + count == add.offset:
                items[-1] = (stream, first, count + 1, frames + data)
                continue
        items.append((add.stream, add.offset, 1, data))
    return [("run", *item) for item in items]


def encode(timestamp_ms: int, items: list[tuple[object, ...]]) -> bytes:
    data = struct.pack("<BBHIQ", 0x30, 1, 0, len(items), timestamp_ms)
    for item in items:
        kind, payload = _payload(item)
        data += struct.pack("<BBHI", kind, 0, 0, len(payload)) + payload
    return data


def _payload(item: tuple[object, ...]) -> tuple[int, bytes]:
    match item:
        case ("run", stream, offset, count, bytes(frames)):
            return 1, struct.pack("<QQII", stream, offset, count, 0) + frames
        case ("spread", due_ms, priority, list(targets), bytes(frames)):
            return 2, struct.pack("<QII", due_ms, priority, len(targets)) + rows(targets) + frames
        case ("settle" | "return" as name, stream, list(pairs)):
            return KINDS[str(name)], struct.pack("<QII", stream, len(pairs), 0) + rows(pairs)
        case ("mark", stream, offset):
            return 4, struct.pack("<QQ", stream, offset)
        case ("control", int(kind), bytes(payload)):
            return kind, payload
    raise AssertionError(item)


def rows(pairs: Pairs) -> bytes:
    return b"".join(struct.pack("<QQ", *pair) for pair in pairs)
