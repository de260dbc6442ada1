"""What `lograft_broker.hot.frames` must do, the slow and obvious way."""

import struct

KINDS = "sstoosssslssss"  # short string, table, octet, long long: the fourteen properties in order
NAMES = {2: "headers", 3: "mode", 4: "priority", 7: "expiration", 11: "user"}
Found = list[tuple[int, int, int, int]]


def scan(data: bytes, start: int, payload_max: int) -> tuple[Found, int, str]:
    found: Found = []
    while start < len(data):
        if data[start] not in (1, 2, 3, 8):
            return found, start, "unknown frame type"
        if len(data) - start < 7:
            break
        kind, channel, size = struct.unpack_from(">BHI", data, start)
        if size > payload_max:
            return found, start, "frame too large"
        end = start + 7 + size
        if end >= len(data):
            break
        if data[end] != 0xCE:
            return found, start, "missing frame end octet"
        found.append((kind, channel, start + 7, size))
        start = end + 1
    return found, start, ""


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"


def short(text: bytes) -> bytes:
    return bytes([len(text)]) + text


def publish(arguments: bytes) -> tuple[bytes, bytes, bool, bool] | None:
    try:
        exchange_end = 3 + arguments[2]
        key_end = exchange_end + 1 + arguments[exchange_end]
        flags = arguments[key_end]
    except IndexError:
        return None
    if key_end + 1 != len(arguments):
        return None
    exchange = arguments[3:exchange_end]
    key = arguments[exchange_end + 1 : key_end]
    return exchange, key, bool(flags & 1), bool(flags & 2)


def properties(
    data: bytes,
) -> tuple[int, bytes | None, int, int, bytes | None, bytes | None] | None:
    if len(data) < 2:
        return None
    (flags,) = struct.unpack_from(">H", data)
    if flags & 3:
        return None
    rest = data[2:]
    values: dict[str, bytes] = {}
    for number, kind in enumerate(KINDS):
        if not flags & 1 << (15 - number):
            continue
        prefix = {"s": 1, "t": 4}.get(kind, 0)
        if len(rest) < prefix:
            return None
        fixed = {"o": 1, "l": 8}.get(kind, 0)
        size = fixed or int.from_bytes(rest[:prefix], "big")
        if len(rest) < prefix + size:
            return None
        values[NAMES.get(number, "")] = rest[prefix : prefix + size]
        rest = rest[prefix + size :]
    if rest:
        return None
    mode = values.get("mode", b"\x01")[0]
    priority = values.get("priority", b"\x00")[0]
    return (
        flags,
        values.get("headers"),
        mode,
        priority,
        values.get("expiration"),
        values.get("user"),
    )


def delivery(
    *,
    channel: int,
    tag: bytes,
    delivery_tag: int,
    redelivered: bool,
    names: bytes,
    properties: bytes,
    body: bytes,
    payload_max: int,
) -> bytes:
    method = struct.pack(">HH", 60, 60) + short(tag)
    method += struct.pack(">QB", delivery_tag, redelivered) + names
    result = frame(1, channel, method)
    result += frame(2, channel, struct.pack(">HHQ", 60, 0, len(body)) + properties)
    for start in range(0, len(body), payload_max):
        result += frame(3, channel, body[start : start + payload_max])
    return result
