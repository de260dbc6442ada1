from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

cdef enum:
    FRAME_METHOD = 1
    FRAME_HEADER = 2
    FRAME_BODY = 3
    FRAME_HEARTBEAT = 8
    FRAME_END = 0xCE
    FRAME_EXTRA = 8          # type, channel and size before the payload, the end octet behind it
    HEADER_FIXED = 12        # class u16, weight u16, body size u64, before the property flags

cdef enum Scan:
    SCAN_SHORT = 0           # the frame is not whole yet
    SCAN_FRAME = 1
    SCAN_TYPE = 2            # no such type of frame
    SCAN_SIZE = 3            # larger than was agreed
    SCAN_END = 4             # the octet behind the payload is not 0xCE

cdef struct Span:
    uint8_t type
    uint16_t channel
    uint32_t size            # of the payload
    const uint8_t* payload

cdef struct Slice:
    const uint8_t* data
    uint32_t size

cdef struct Publish:
    Slice exchange
    Slice key
    const uint8_t* names     # exchange and key as they stand, two short strings
    uint32_t names_bytes
    bint mandatory
    bint immediate

cdef struct Properties:
    uint32_t size            # flags and values together
    uint16_t flags
    Slice headers            # the table without its length
    Slice expiration
    Slice user_id
    uint8_t delivery_mode
    uint8_t priority


cdef inline uint16_t get16(const uint8_t* data) noexcept nogil:
    return (<uint16_t> data[0] << 8) | data[1]


cdef inline uint32_t get32(const uint8_t* data) noexcept nogil:
    return (
        (<uint32_t> data[0] << 24) | (<uint32_t> data[1] << 16)
        | (<uint32_t> data[2] << 8) | data[3]
    )


cdef inline uint64_t get64(const uint8_t* data) noexcept nogil:
    return (<uint64_t> get32(data) << 32) | get32(data + 4)


cdef inline void put16(uint8_t* out, uint16_t value) noexcept nogil:
    out[0] = value >> 8
    out[1] = value & 0xFF


cdef inline void put32(uint8_t* out, uint32_t value) noexcept nogil:
    out[0] = value >> 24
    out[1] = (value >> 16) & 0xFF
    out[2] = (value >> 8) & 0xFF
    out[3] = value & 0xFF


cdef inline void put64(uint8_t* out, uint64_t value) noexcept nogil:
    put32(out, <uint32_t> (value >> 32))
    put32(out + 4, <uint32_t> value)


cdef Scan next_frame(
    const uint8_t* data, size_t available, uint32_t payload_max, Span* span
) noexcept nogil
cdef bint parse_publish(const uint8_t* arguments, size_t size, Publish* publish) noexcept nogil
cdef bint parse_properties(const uint8_t* data, size_t size, Properties* found) noexcept nogil
cdef size_t content_bytes(
    size_t property_bytes, uint64_t body_bytes, uint32_t payload_max
) noexcept nogil
cdef uint8_t* put_content(
    uint8_t* out, uint16_t channel, const uint8_t* properties, uint32_t property_bytes,
    const uint8_t* body, uint64_t body_bytes, uint32_t payload_max
) noexcept nogil
cdef uint8_t* put_deliver(
    uint8_t* out, uint16_t channel, const uint8_t* tag, uint8_t tag_bytes, uint64_t delivery_tag,
    bint redelivered, const uint8_t* names, uint32_t names_bytes
) noexcept nogil
