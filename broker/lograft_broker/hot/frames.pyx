# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: auto_pickle=False
"""AMQP frames as bytes: find them, take a publish apart, put a delivery together.

    frame    type u8 | channel u16 | size u32 | payload (size bytes) | 0xCE
    header   class u16 | weight u16 | body size u64 | flags u16 | property values
    deliver  class 60 | method 60 | consumer tag | tag u64 | redelivered u8 | exchange | key

All numbers are big-endian; tags, exchange and key are short strings (length u8, bytes). This is the
one place where bytes from an AMQP client are bounds-checked: what comes out points into what came
in, and nothing outside it. What frames mean, and in which order they may come, is left to the
compiled connection; rare methods are decoded by `lograft_wire.amqp`.
"""
from libc.string cimport memcpy

# How each of the fourteen properties is stored, by its bit from 15 down.
cdef enum:
    SHORT_STRING = 0
    TABLE = 1
    OCTET = 2
    LONG_LONG = 3
    PROPERTY_COUNT = 14
    FLAGS_UNKNOWN = 3        # bit 1 has no property; bit 0 would say that more flags follow

cdef uint8_t[PROPERTY_COUNT] KINDS
KINDS[:] = [
    SHORT_STRING,            # content-type
    SHORT_STRING,            # content-encoding
    TABLE,                   # headers
    OCTET,                   # delivery-mode
    OCTET,                   # priority
    SHORT_STRING,            # correlation-id
    SHORT_STRING,            # reply-to
    SHORT_STRING,            # expiration
    SHORT_STRING,            # message-id
    LONG_LONG,               # timestamp
    SHORT_STRING,            # type
    SHORT_STRING,            # user-id
    SHORT_STRING,            # app-id
    SHORT_STRING,            # cluster-id
]
cdef enum:
    HEADERS = 2
    DELIVERY_MODE = 3
    PRIORITY = 4
    EXPIRATION = 7
    USER_ID = 11

FRAME_BYTES_EXTRA = <int> FRAME_EXTRA
FAULTS = ("", "", "unknown frame type", "frame too large", "missing frame end octet")


cdef Scan next_frame(
    const uint8_t* data, size_t available, uint32_t payload_max, Span* span
) noexcept nogil:
    """The frame that begins here. A wrong one is known as soon as its first seven bytes are."""
    if available == 0:
        return SCAN_SHORT
    if data[0] not in (FRAME_METHOD, FRAME_HEADER, FRAME_BODY, FRAME_HEARTBEAT):
        return SCAN_TYPE
    if available < 7:
        return SCAN_SHORT
    span.type = data[0]
    span.channel = get16(data + 1)
    span.size = get32(data + 3)
    span.payload = data + 7
    if span.size > payload_max:
        return SCAN_SIZE
    if available - 7 <= span.size:
        return SCAN_SHORT
    return SCAN_FRAME if data[7 + span.size] == FRAME_END else SCAN_END


cdef bint parse_publish(const uint8_t* arguments, size_t size, Publish* publish) noexcept nogil:
    """Arguments of basic.publish: reserved u16 | exchange | key | flags u8, and nothing else."""
    cdef size_t key_at, flags_at
    if size < 5:
        return False
    key_at = 3 + <size_t> arguments[2]
    if key_at + 2 > size:
        return False
    flags_at = key_at + 1 + arguments[key_at]
    if flags_at + 1 != size:
        return False
    publish.exchange.data = arguments + 3
    publish.exchange.size = arguments[2]
    publish.key.data = arguments + key_at + 1
    publish.key.size = arguments[key_at]
    publish.names = arguments + 2
    publish.names_bytes = <uint32_t> (flags_at - 2)
    publish.mandatory = arguments[flags_at] & 1
    publish.immediate = (arguments[flags_at] >> 1) & 1
    return True


cdef bint parse_properties(const uint8_t* data, size_t size, Properties* found) noexcept nogil:
    """Flags and values of a content header, which must fill `size` bytes exactly."""
    cdef size_t position = 2
    cdef size_t value_bytes
    cdef int number
    if size < 2:
        return False
    found.size = <uint32_t> size
    found.flags = get16(data)
    found.headers.data = found.expiration.data = found.user_id.data = NULL
    found.headers.size = found.expiration.size = found.user_id.size = 0
    found.delivery_mode = 1
    found.priority = 0
    if found.flags & FLAGS_UNKNOWN:
        return False
    for number in range(PROPERTY_COUNT):
        if not found.flags & (1 << (15 - number)):
            continue
        if position >= size:
            return False
        if KINDS[number] == SHORT_STRING:
            value_bytes = 1 + <size_t> data[position]
        elif KINDS[number] == OCTET:
            value_bytes = 1
        elif KINDS[number] == LONG_LONG:
            value_bytes = 8
        elif size - position < 4:
            return False
        else:
            value_bytes = 4 + <size_t> get32(data + position)
        if value_bytes > size - position:
            return False
        if number == HEADERS:
            found.headers.data = data + position + 4
            found.headers.size = <uint32_t> (value_bytes - 4)
        elif number == DELIVERY_MODE:
            found.delivery_mode = data[position]
        elif number == PRIORITY:
            found.priority = data[position]
        elif number == EXPIRATION:
            found.expiration.data = data + position + 1
            found.expiration.size = <uint32_t> (value_bytes - 1)
        elif number == USER_ID:
            found.user_id.data = data + position + 1
            found.user_id.size = <uint32_t> (value_bytes - 1)
        position += value_bytes
    return position == size


cdef size_t content_bytes(
    size_t property_bytes, uint64_t body_bytes, uint32_t payload_max
) noexcept nogil:
    """What `put_content` writes."""
    cdef uint64_t frames = (body_bytes + payload_max - 1) // payload_max
    return FRAME_EXTRA + HEADER_FIXED + property_bytes + body_bytes + frames * FRAME_EXTRA


cdef uint8_t* put_content(
    uint8_t* out, uint16_t channel, const uint8_t* properties, uint32_t property_bytes,
    const uint8_t* body, uint64_t body_bytes, uint32_t payload_max
) noexcept nogil:
    """A content header and its body in frames of at most `payload_max`; where they end."""
    cdef uint32_t part
    out[0] = FRAME_HEADER
    put16(out + 1, channel)
    put32(out + 3, HEADER_FIXED + property_bytes)
    put32(out + 7, 60 << 16)
    put64(out + 11, body_bytes)
    memcpy(out + 19, properties, property_bytes)
    out += 19 + property_bytes
    out[0] = FRAME_END
    out += 1
    while body_bytes:
        part = payload_max if body_bytes > payload_max else <uint32_t> body_bytes
        out[0] = FRAME_BODY
        put16(out + 1, channel)
        put32(out + 3, part)
        memcpy(out + 7, body, part)
        out[7 + part] = FRAME_END
        out += FRAME_EXTRA + part
        body += part
        body_bytes -= part
    return out


cdef uint8_t* put_deliver(
    uint8_t* out, uint16_t channel, const uint8_t* tag, uint8_t tag_bytes, uint64_t delivery_tag,
    bint redelivered, const uint8_t* names, uint32_t names_bytes
) noexcept nogil:
    """A basic.deliver method frame; `names` are exchange and key as two short strings."""
    out[0] = FRAME_METHOD
    put16(out + 1, channel)
    put32(out + 3, 14 + <uint32_t> tag_bytes + names_bytes)
    put32(out + 7, (60 << 16) | 60)
    out[11] = tag_bytes
    memcpy(out + 12, tag, tag_bytes)
    out += 12 + tag_bytes
    put64(out, delivery_tag)
    out[8] = redelivered
    memcpy(out + 9, names, names_bytes)
    out += 9 + names_bytes
    out[0] = FRAME_END
    return out + 1


# What Python sees, for tests and rare callers.

def scan(const uint8_t[::1] data, size_t start, uint32_t payload_max):
    """All whole frames from `start` on as (type, channel, payload start, payload size); where they
    end; and the fault that begins there, if any."""
    cdef size_t end = data.shape[0]
    cdef const uint8_t* base = &data[0] if end else NULL
    cdef Span span
    cdef Scan outcome = SCAN_SHORT
    found = []
    while start < end:
        outcome = next_frame(base + start, end - start, payload_max, &span)
        if outcome != SCAN_FRAME:
            break
        found.append((span.type, span.channel, <size_t> (span.payload - base), span.size))
        start += FRAME_EXTRA + span.size
        outcome = SCAN_SHORT
    return found, start, FAULTS[<int> outcome]


def publish(const uint8_t[::1] arguments):
    """(exchange, key, mandatory, immediate) of a basic.publish, or None."""
    cdef Publish found
    if arguments.shape[0] == 0:
        return None
    if not parse_publish(&arguments[0], arguments.shape[0], &found):
        return None
    return _bytes(found.exchange), _bytes(found.key), bool(found.mandatory), bool(found.immediate)


def properties(const uint8_t[::1] data):
    """(flags, headers, delivery mode, priority, expiration, user id) of a property list, or None.
    A table or string that is not there is None."""
    cdef Properties found
    if data.shape[0] == 0:
        return None
    if not parse_properties(&data[0], data.shape[0], &found):
        return None
    return (
        found.flags, _bytes(found.headers), found.delivery_mode, found.priority,
        _bytes(found.expiration), _bytes(found.user_id),
    )


cdef object _bytes(Slice found):
    return None if found.data == NULL else (<const char*> found.data)[:found.size]


def delivery(
    *, uint16_t channel, const uint8_t[::1] tag, uint64_t delivery_tag, bint redelivered,
    const uint8_t[::1] names, const uint8_t[::1] properties, const uint8_t[::1] body,
    uint32_t payload_max
):
    """The frames of one delivered message."""
    cdef size_t tag_bytes = tag.shape[0]
    cdef size_t names_bytes = names.shape[0]
    cdef size_t property_bytes = properties.shape[0]
    cdef size_t body_bytes = body.shape[0]
    cdef size_t size = 22 + tag_bytes + names_bytes
    size += content_bytes(property_bytes, body_bytes, payload_max)
    out = bytearray(size)
    cdef uint8_t[::1] room = out
    cdef uint8_t* end = put_deliver(
        &room[0], channel, &tag[0] if tag_bytes else NULL, <uint8_t> tag_bytes, delivery_tag,
        redelivered, &names[0], <uint32_t> names_bytes,
    )
    end = put_content(
        end, channel, &properties[0], <uint32_t> property_bytes,
        &body[0] if body_bytes else NULL, body_bytes, payload_max,
    )
    assert end == &room[0] + size
    return bytes(out)
