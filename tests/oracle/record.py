"""Frames of the log, slowly and obviously: the specification of hot/record.pyx."""

import struct
from dataclasses import dataclass

from oracle import crc

HEADER = struct.Struct("<IQI")  # length | timestamp_ms | crc32c
PLAIN = struct.Struct("<BBHIQ")  # format | attributes | key_bytes | headers_bytes | offset
BATCH = struct.Struct("<BBHIQQI")  # ... | zero | record_count | first | last | plain_bytes
assert (HEADER.size, PLAIN.size, BATCH.size) == (16, 16, 28)

FORMAT = 1
IS_BATCH, HAS_KEY, IS_TOMBSTONE = 4, 8, 16
NONE, SHORT, LENGTH, CRC, VERSION, LAYOUT, ORDER = range(7)

Row = tuple[int, int, bytes | None, bytes, bytes, bool]  # offset, timestamp, key, headers, body


@dataclass
class Span:
    start: int
    end: int
    record_count: int = 0
    frame_count: int = 0
    batch_count: int = 0
    offset_first: int = 0
    offset_last: int = 0
    timestamp_ms_max: int = 0
    fault: int = NONE


@dataclass
class Frame:
    size: int
    timestamp_ms: int
    attributes: int
    first: int
    last: int
    record_count: int


def frame(timestamp_ms: int, payload: bytes) -> bytes:
    head = struct.pack("<IQ", len(payload), timestamp_ms)
    return head + struct.pack("<I", crc.checksum(head + payload)) + payload


def encode(rows: list[Row]) -> bytes:
    parts = []
    for offset, timestamp_ms, key, headers, body, tombstone in rows:
        attributes = (HAS_KEY if key is not None else 0) | (IS_TOMBSTONE if tombstone else 0)
        fixed = PLAIN.pack(FORMAT, attributes, len(key or b""), len(headers), offset)
        parts.append(frame(timestamp_ms, fixed + (key or b"") + headers + body))
    return b"".join(parts)


def wrap(packed: bytes, *, codec: int, count: int, first: int, last: int, plain: int) -> bytes:
    return frame(7, BATCH.pack(FORMAT, IS_BATCH | codec, 0, count, first, last, plain) + packed)


def decode(data: bytes) -> list[Row]:
    rows: list[Row] = []
    while data:
        length, timestamp_ms, _ = HEADER.unpack_from(data)
        payload, data = data[16 : 16 + length], data[16 + length :]
        _, attributes, key_bytes, headers_bytes, offset = PLAIN.unpack_from(payload)
        rest = payload[16:]
        key = rest[:key_bytes] if attributes & HAS_KEY else None
        headers = rest[key_bytes : key_bytes + headers_bytes]
        body = rest[key_bytes + headers_bytes :]
        rows.append((offset, timestamp_ms, key, headers, body, bool(attributes & IS_TOMBSTONE)))
    return rows


def look(data: bytes, payload_max: int, *, verify: bool = True) -> Frame | int:
    """The frame at the start of `data`, or its fault."""
    if len(data) < HEADER.size:
        return SHORT
    length, timestamp_ms, check = HEADER.unpack_from(data)
    if not PLAIN.size <= length <= payload_max:
        return LENGTH
    if 16 + length > len(data):
        return SHORT
    payload = data[16 : 16 + length]
    if verify and crc.checksum(data[:12] + payload) != check:
        return CRC
    version, attributes, key_bytes, middle, first = PLAIN.unpack_from(payload)
    if version != FORMAT:
        return VERSION
    if not attributes & IS_BATCH:
        if PLAIN.size + key_bytes + middle > length:
            return LAYOUT
        return Frame(16 + length, timestamp_ms, attributes, first, first, 1)
    if length < BATCH.size:
        return LAYOUT
    last = BATCH.unpack_from(payload)[5]
    if middle == 0 or last < first or last - first < middle - 1:
        return LAYOUT
    return Frame(16 + length, timestamp_ms, attributes, first, last, middle)


def scan(
    data: bytes,
    start: int,
    end: int,
    *,
    offset_min: int,
    payload_max: int,
    offset_from: int = 0,
    bytes_max: int = 1 << 64,
    verify: bool = True,
) -> Span:
    span = Span(start, start)
    expected = offset_min
    while span.end < end:
        at = data[span.end : end]
        measured = look(at, payload_max, verify=verify)
        size = 16 + HEADER.unpack_from(at)[0] if len(at) >= 16 else 0
        whole = not isinstance(measured, int) or measured not in (SHORT, LENGTH)
        if whole and span.frame_count and span.end + size - span.start > bytes_max:
            return span
        if isinstance(measured, int):
            span.fault = measured
            return span
        if measured.first < expected or measured.last == (1 << 64) - 1:
            span.fault = ORDER
            return span
        expected = measured.last + 1
        span.end += measured.size
        if measured.last < offset_from:
            span.start = span.end
            continue
        if not span.frame_count:
            span.offset_first = measured.first
        span.offset_last = measured.last
        span.timestamp_ms_max = max(span.timestamp_ms_max, measured.timestamp_ms)
        span.frame_count += 1
        span.record_count += measured.record_count
        span.batch_count += bool(measured.attributes & IS_BATCH)
    return span
