from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint64_t

cdef enum:
    ENTRY_BYTES = 24       # offset u64, position u64, length u32, crc32c u32
    TIME_ENTRY_BYTES = 28  # timestamp_ms u64, offset u64, position u64, crc32c u32
    HASH_ENTRY_BYTES = 16  # hash u64, position u64

cdef Py_ssize_t floor_u64(
    const uint8_t* entries, size_t count, size_t stride, size_t field, uint64_t value
) noexcept nogil
