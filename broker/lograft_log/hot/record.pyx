# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: auto_pickle=False
"""Frames of the log: encode, verify, walk and decode them.

    frame    length u32 | timestamp_ms u64 | crc32c u32 | payload (length bytes)
    record   format u8 | attributes u8 | key_bytes u16 | headers_bytes u32 | offset u64
             | key | headers | body
    batch    format u8 | attributes u8 | zero u16 | record_count u32 | offset_first u64
             | offset_last u64 | plain_bytes u32 | compressed frames

All numbers are little-endian. The CRC covers length, timestamp and payload. A batch's timestamp is
the largest of its records'. Compression itself, files and policy are left to the callers: `writer`,
`segment` and `recovery` of this package, and compiled modules that build batches of their own.
"""
import sys

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memcpy, memset

from lograft_log.hot cimport crc

if sys.byteorder != "little":
    raise ImportError("the compiled record module needs a little-endian machine")

PAYLOAD_BYTES_LIMIT = (1 << 32) - 1 - FRAME_BYTES
FRAME_HEADER_BYTES = FRAME_BYTES
UNKNOWN_FORMAT = <int> FAULT_VERSION  # of a Span's faults the one that is no damage
FAULTS = (
    "no fault", "frame ends beyond the data", "impossible length", "checksum mismatch",
    "unknown record format", "inner lengths disagree", "offset does not rise",
)


cdef inline uint16_t get16(const uint8_t* data) noexcept nogil:
    cdef uint16_t value
    memcpy(&value, data, 2)
    return value


cdef inline uint32_t get32(const uint8_t* data) noexcept nogil:
    cdef uint32_t value
    memcpy(&value, data, 4)
    return value


cdef inline uint64_t get64(const uint8_t* data) noexcept nogil:
    cdef uint64_t value
    memcpy(&value, data, 8)
    return value


cdef Fault measure(
    const uint8_t* data, size_t available, size_t payload_max, size_t* size
) noexcept nogil:
    """The size of the frame that begins here, if it can be one."""
    if available < FRAME_BYTES:
        return FAULT_SHORT
    cdef size_t length = get32(data)
    if length < PLAIN_BYTES or length > payload_max:
        return FAULT_LENGTH
    if length > available - FRAME_BYTES:
        return FAULT_SHORT
    size[0] = FRAME_BYTES + length
    return FAULT_NONE


cdef inline uint32_t frame_crc(const uint8_t* data, size_t size) noexcept nogil:
    return crc.crc32c(crc.crc32c(0, data, 12), data + FRAME_BYTES, size - FRAME_BYTES)


cdef bint intact(const uint8_t* data, size_t size) noexcept nogil:
    return frame_crc(data, size) == get32(data + 12)


cdef Fault parse(const uint8_t* data, size_t size, Frame* frame) noexcept nogil:
    """Read a frame of known size; every inner length is checked against it."""
    cdef const uint8_t* payload = data + FRAME_BYTES
    cdef size_t length = size - FRAME_BYTES
    if payload[0] != FORMAT:
        return FAULT_VERSION
    frame.size = size
    frame.timestamp_ms = get64(data + 4)
    frame.crc = get32(data + 12)
    frame.attributes = payload[1]
    frame.offset = get64(payload + 8)
    if not frame.attributes & IS_BATCH:
        frame.offset_last = frame.offset
        frame.record_count = 1
        if <uint64_t> get16(payload + 2) + get32(payload + 4) > length - PLAIN_BYTES:
            return FAULT_LAYOUT
        return FAULT_NONE
    if length < BATCH_BYTES:
        return FAULT_LAYOUT
    frame.record_count = get32(payload + 4)
    frame.offset_last = get64(payload + 16)
    if frame.record_count == 0 or frame.offset_last < frame.offset:
        return FAULT_LAYOUT
    if frame.offset_last - frame.offset < frame.record_count - 1:
        return FAULT_LAYOUT
    return FAULT_NONE


cdef Fault peek(
    const uint8_t* data, size_t available, size_t payload_max, Frame* frame
) noexcept nogil:
    """As `measure` and `parse`, without the CRC: for bytes that were verified before."""
    cdef size_t size = 0
    cdef Fault fault = measure(data, available, payload_max, &size)
    if fault != FAULT_NONE:
        return fault
    return parse(data, size, frame)


cdef size_t put(
    uint8_t* out, uint64_t offset, uint64_t timestamp_ms, uint8_t attributes,
    const uint8_t* key, uint16_t key_bytes, const uint8_t* headers, uint32_t headers_bytes,
    const uint8_t* body, uint32_t body_bytes
) noexcept nogil:
    """Write one record's frame; the caller has made room and checked the limits."""
    cdef uint32_t length = PLAIN_BYTES + key_bytes + headers_bytes + body_bytes
    cdef uint8_t* payload = out + FRAME_BYTES
    cdef uint8_t* rest = payload + PLAIN_BYTES
    cdef uint32_t check
    memcpy(out, &length, 4)
    memcpy(out + 4, &timestamp_ms, 8)
    payload[0] = FORMAT
    payload[1] = attributes
    memcpy(payload + 2, &key_bytes, 2)
    memcpy(payload + 4, &headers_bytes, 4)
    memcpy(payload + 8, &offset, 8)
    if key_bytes:
        memcpy(rest, key, key_bytes)
    if headers_bytes:
        memcpy(rest + key_bytes, headers, headers_bytes)
    if body_bytes:
        memcpy(rest + key_bytes + headers_bytes, body, body_bytes)
    check = frame_crc(out, FRAME_BYTES + length)
    memcpy(out + 12, &check, 4)
    return FRAME_BYTES + length


@cython.final
cdef class Record:
    """One stored message. `key` is None where there is none; a tombstone deletes its key."""

    def __init__(
        self, body=b"", *, key=None, headers=b"", timestamp_ms=0, offset=0, tombstone=False
    ):
        if headers is None or body is None:
            raise TypeError("headers and body are bytes")
        if key is not None and len(key) > 0xFFFF:
            raise ValueError(f"key of {len(key)} bytes; at most 65535 are allowed")
        self.offset = offset
        self.timestamp_ms = timestamp_ms
        self.key = key
        self.headers = headers
        self.body = body
        self.tombstone = tombstone

    def __repr__(self):
        mark = ", tombstone=True" if self.tombstone else ""
        return (
            f"Record({self.body!r}, key={self.key!r}, headers={self.headers!r}, "
            f"timestamp_ms={self.timestamp_ms}, offset={self.offset}{mark})"
        )

    def _values(self):
        return (
            self.offset, self.timestamp_ms, self.key, self.headers, self.body, self.tombstone
        )

    def __eq__(self, other):
        if not isinstance(other, Record):
            return NotImplemented
        return self._values() == (<Record> other)._values()

    def __hash__(self):
        return hash(self._values())


@cython.final
cdef class Span:
    """What `scan` found: frames from `start` up to `end`, and why it stopped there (`fault`)."""

    def __repr__(self):
        return (
            f"Span({self.start}..{self.end}, records={self.record_count}, "
            f"offsets={self.offset_first}..{self.offset_last}, fault={self.fault})"
        )


def scan(
    const uint8_t[::1] data, size_t start, size_t end, *, uint64_t offset_min,
    size_t payload_max, uint64_t offset_from=0, size_t bytes_max=<size_t> -1, bint verify=True
):
    """Verify frames one behind the other in data[start:end] until the end, a fault or the limit.

    Offsets must rise, beginning at `offset_min` or above. Frames wholly below `offset_from` are
    verified but left out of the span. `bytes_max` bounds the span, but it holds one frame at least.
    `end` of the span is the first byte not accepted. Without `verify` the CRC is not looked at:
    for frames that this process has just encoded.
    """
    if end > <size_t> data.shape[0] or start > end:
        raise ValueError(f"range {start}..{end} outside of {data.shape[0]} bytes")
    cdef Span span = Span.__new__(Span)
    cdef Frame frame
    cdef size_t position = start
    cdef size_t size = 0
    cdef uint64_t expected = offset_min
    cdef Fault fault = FAULT_NONE
    cdef const uint8_t* base = NULL
    cdef const uint8_t* at
    span.start = start
    if start < end:
        base = &data[0]
    with nogil:
        while position < end:
            at = base + position
            fault = measure(at, end - position, payload_max, &size)
            if fault != FAULT_NONE:
                break
            if span.frame_count and position + size - span.start > bytes_max:
                break
            if verify and not intact(at, size):
                fault = FAULT_CRC
                break
            fault = parse(at, size, &frame)
            if fault != FAULT_NONE:
                break
            if frame.offset < expected or frame.offset_last == <uint64_t> -1:
                fault = FAULT_ORDER
                break
            expected = frame.offset_last + 1
            position += size
            if frame.offset_last < offset_from:
                span.start = position
                continue
            if span.frame_count == 0:
                span.offset_first = frame.offset
            span.offset_last = frame.offset_last
            if frame.timestamp_ms > span.timestamp_ms_max:
                span.timestamp_ms_max = frame.timestamp_ms
            span.frame_count += 1
            span.record_count += frame.record_count
            if frame.attributes & IS_BATCH:
                span.batch_count += 1
    span.end = position
    span.fault = fault
    return span


def encode(records, uint64_t base_offset, offsets=None, *, uint64_t timestamp_ms=0):
    """Frames of `records`, numbered from `base_offset` on, or as `offsets` says (rising).
    `timestamp_ms` stands in for records that carry none (0)."""
    cdef list batch = records if isinstance(records, list) else list(records)
    cdef Py_ssize_t count = len(batch)
    cdef list numbers = None
    cdef Record record
    cdef size_t total = 0
    cdef Py_ssize_t i
    for i in range(count):
        record = <Record?> batch[i]
        total += FRAME_BYTES + record_bytes(record)
    if offsets is not None:
        numbers = list(offsets)
        if len(numbers) != count:
            raise ValueError(f"{len(numbers)} offsets for {count} records")
    result = PyBytes_FromStringAndSize(NULL, total)
    cdef uint8_t* out = <uint8_t*> PyBytes_AS_STRING(result)
    cdef uint64_t offset = base_offset
    for i in range(count):
        if numbers is not None:
            offset = numbers[i]
        out += put_record(out, <Record> batch[i], offset, timestamp_ms)
        offset += 1
    return result


cdef size_t record_bytes(Record record) except 0:
    if record.headers is None or record.body is None:  # made without __init__
        raise TypeError("headers and body are bytes")
    cdef size_t total = PLAIN_BYTES + PyBytes_GET_SIZE(record.headers)
    total += PyBytes_GET_SIZE(record.body)
    if record.key is not None:
        total += PyBytes_GET_SIZE(record.key)
    if total > PAYLOAD_BYTES_LIMIT:
        raise ValueError(f"a record of {total} bytes cannot be stored")
    return total


cdef size_t put_record(
    uint8_t* out, Record record, uint64_t offset, uint64_t timestamp_ms
) noexcept:
    cdef uint8_t attributes = IS_TOMBSTONE if record.tombstone else 0
    cdef const uint8_t* key = NULL
    cdef uint16_t key_bytes = 0
    if record.key is not None:
        attributes |= HAS_KEY
        key = <const uint8_t*> PyBytes_AS_STRING(record.key)
        key_bytes = <uint16_t> PyBytes_GET_SIZE(record.key)
    return put(
        out, offset, record.timestamp_ms or timestamp_ms, attributes, key, key_bytes,
        <const uint8_t*> PyBytes_AS_STRING(record.headers),
        <uint32_t> PyBytes_GET_SIZE(record.headers),
        <const uint8_t*> PyBytes_AS_STRING(record.body),
        <uint32_t> PyBytes_GET_SIZE(record.body),
    )


def wrap(
    const uint8_t[::1] compressed, *, uint8_t codec, uint32_t record_count, uint64_t offset_first,
    uint64_t offset_last, uint64_t timestamp_ms, uint32_t plain_bytes
):
    """The frame of one compressed batch."""
    cdef size_t body = compressed.shape[0]
    cdef uint32_t length = <uint32_t> (BATCH_BYTES + body)
    cdef uint32_t check
    if body + BATCH_BYTES > PAYLOAD_BYTES_LIMIT:
        raise ValueError(f"a batch of {body} bytes cannot be stored")
    result = PyBytes_FromStringAndSize(NULL, FRAME_BYTES + length)
    cdef uint8_t* out = <uint8_t*> PyBytes_AS_STRING(result)
    cdef uint8_t* payload = out + FRAME_BYTES
    memcpy(out, &length, 4)
    memcpy(out + 4, &timestamp_ms, 8)
    payload[0] = FORMAT
    payload[1] = IS_BATCH | (codec & CODEC_MASK)
    memset(payload + 2, 0, 2)
    memcpy(payload + 4, &record_count, 4)
    memcpy(payload + 8, &offset_first, 8)
    memcpy(payload + 16, &offset_last, 8)
    memcpy(payload + 24, &plain_bytes, 4)
    if body:
        memcpy(payload + BATCH_BYTES, &compressed[0], body)
    check = frame_crc(out, FRAME_BYTES + length)
    memcpy(out + 12, &check, 4)
    return result


def frames(const uint8_t[::1] data):
    """(position, size, attributes, record_count, offset_first, offset_last, plain_bytes) of each
    frame; `plain_bytes` is 0 for a plain record. For verified bytes; others raise ValueError."""
    cdef size_t position = 0
    cdef size_t end = data.shape[0]
    cdef Frame frame
    cdef const uint8_t* at
    cdef list result = []
    while position < end:
        at = &data[position]
        if peek(at, end - position, <size_t> -1, &frame) != FAULT_NONE:
            raise ValueError(f"no frame at {position}")
        plain = get32(at + FRAME_BYTES + 24) if frame.attributes & IS_BATCH else 0
        result.append((
            position, frame.size, frame.attributes, frame.record_count, frame.offset,
            frame.offset_last, plain,
        ))
        position += frame.size
    return result


cdef object decode_one(const uint8_t* data):
    """The record of a plain frame that `parse` accepted."""
    cdef const uint8_t* payload = data + FRAME_BYTES
    cdef size_t length = get32(data)
    cdef size_t key_bytes = get16(payload + 2)
    cdef size_t headers_bytes = get32(payload + 4)
    cdef const char* rest = <const char*> payload + PLAIN_BYTES
    cdef Record record = Record.__new__(Record)
    record.timestamp_ms = get64(data + 4)
    record.offset = get64(payload + 8)
    record.tombstone = payload[1] & IS_TOMBSTONE != 0
    if payload[1] & HAS_KEY:
        record.key = PyBytes_FromStringAndSize(rest, key_bytes)
    record.headers = PyBytes_FromStringAndSize(rest + key_bytes, headers_bytes)
    record.body = PyBytes_FromStringAndSize(
        rest + key_bytes + headers_bytes, length - PLAIN_BYTES - key_bytes - headers_bytes
    )
    return record


def decode(const uint8_t[::1] data, uint64_t offset_from=0):
    """The records of plain frames, from an offset on. For verified bytes; others, and compressed
    batches, raise ValueError."""
    cdef size_t position = 0
    cdef size_t end = data.shape[0]
    cdef Frame frame
    cdef const uint8_t* at
    cdef list result = []
    while position < end:
        at = &data[position]
        if peek(at, end - position, <size_t> -1, &frame) != FAULT_NONE:
            raise ValueError(f"no frame at {position}")
        if frame.attributes & IS_BATCH:
            raise ValueError(f"compressed batch at {position}")
        if frame.offset >= offset_from:
            result.append(decode_one(at))
        position += frame.size
    return result


def assign(uint8_t[::1] data, uint64_t base_offset):
    """Number plain frames anew, in place, from `base_offset` on; returns the offset behind them."""
    cdef size_t position = 0
    cdef size_t end = data.shape[0]
    cdef uint64_t offset = base_offset
    cdef uint32_t check
    cdef Frame frame
    cdef uint8_t* at
    while position < end:
        at = &data[position]
        if peek(at, end - position, <size_t> -1, &frame) != FAULT_NONE:
            raise ValueError(f"no frame at {position}")
        if frame.attributes & IS_BATCH:
            raise ValueError(f"compressed batch at {position}")
        memcpy(at + FRAME_BYTES + 8, &offset, 8)
        check = frame_crc(at, frame.size)
        memcpy(at + 12, &check, 4)
        offset += 1
        position += frame.size
    return offset
