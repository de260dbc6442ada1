cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

cdef enum Fault:
    FAULT_NONE = 0
    FAULT_SHORT = 1    # the frame says it is longer than the bytes there are
    FAULT_LENGTH = 2   # its length is below the smallest payload or above the limit
    FAULT_CRC = 3
    FAULT_VERSION = 4  # intact, but of a format this program does not know
    FAULT_LAYOUT = 5   # intact, but its inner lengths or offsets disagree
    FAULT_ORDER = 6    # intact, but its offset is not above the one before it

cdef enum:
    FRAME_BYTES = 16   # length u32, timestamp_ms u64, crc32c u32
    PLAIN_BYTES = 16   # fixed part of a record's payload
    BATCH_BYTES = 28   # fixed part of a compressed batch's payload
    FORMAT = 1
    CODEC_MASK = 3     # attribute bits 0 and 1: 0 none, 1 lz4, 2 zstd
    IS_BATCH = 4
    HAS_KEY = 8
    IS_TOMBSTONE = 16

cdef struct Frame:
    size_t size              # of the whole frame, header included
    uint64_t timestamp_ms
    uint64_t offset          # of its first record
    uint64_t offset_last     # of its last record; equal to `offset` for a plain record
    uint32_t record_count
    uint32_t crc
    uint8_t attributes

cdef Fault measure(
    const uint8_t* data, size_t available, size_t payload_max, size_t* size
) noexcept nogil
cdef bint intact(const uint8_t* data, size_t size) noexcept nogil
cdef Fault parse(const uint8_t* data, size_t size, Frame* frame) noexcept nogil
cdef Fault peek(
    const uint8_t* data, size_t available, size_t payload_max, Frame* frame
) noexcept nogil
cdef size_t put(
    uint8_t* out, uint64_t offset, uint64_t timestamp_ms, uint8_t attributes,
    const uint8_t* key, uint16_t key_bytes, const uint8_t* headers, uint32_t headers_bytes,
    const uint8_t* body, uint32_t body_bytes
) noexcept nogil
cdef object decode_one(const uint8_t* data)


@cython.final
cdef class Record:
    cdef readonly uint64_t offset
    cdef readonly uint64_t timestamp_ms
    cdef readonly bytes key
    cdef readonly bytes headers
    cdef readonly bytes body
    cdef readonly bint tombstone


@cython.final
cdef class Span:
    cdef readonly size_t start
    cdef readonly size_t end
    cdef readonly size_t record_count
    cdef readonly size_t frame_count
    cdef readonly size_t batch_count
    cdef readonly uint64_t offset_first
    cdef readonly uint64_t offset_last
    cdef readonly uint64_t timestamp_ms_max
    cdef readonly int fault
