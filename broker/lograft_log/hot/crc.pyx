# cython: language_level=3, boundscheck=False, wraparound=False
"""CRC-32C over bytes, for other compiled modules (`cimport crc`) and for Python.

Leaves layouts to their owners: it knows bytes only. Large buffers are summed without the GIL, so
that a writer thread does not stop the event loop.
"""
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t

cdef extern from "crc32c.h" nogil:
    void lg_crc32c_init()
    uint32_t lg_crc32c(uint32_t crc, const uint8_t* data, size_t size)
    uint32_t lg_crc32c_plain(uint32_t crc, const uint8_t* data, size_t size)

lg_crc32c_init()


cdef uint32_t crc32c(uint32_t crc, const uint8_t* data, size_t size) noexcept nogil:
    return lg_crc32c(crc, data, size)


def checksum(const uint8_t[::1] data, uint32_t crc=0):
    """CRC-32C of `data`, continued from `crc`."""
    cdef size_t size = data.shape[0]
    if size == 0:
        return crc
    if size < 4096:
        return lg_crc32c(crc, &data[0], size)
    with nogil:
        crc = lg_crc32c(crc, &data[0], size)
    return crc


def checksum_plain(const uint8_t[::1] data, uint32_t crc=0):
    """The same by tables alone, as machines without the instruction do it."""
    if data.shape[0] == 0:
        return crc
    return lg_crc32c_plain(crc, &data[0], data.shape[0])
