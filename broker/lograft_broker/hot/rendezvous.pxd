cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint64_t


cdef struct Seat:
    uint64_t seed
    uint64_t weight


cdef uint64_t hash_bytes(const uint8_t* data, size_t size) noexcept nogil


@cython.final
cdef class Rendezvous:
    cdef Seat* _seats
    cdef Py_ssize_t _count

    cdef Py_ssize_t find(self, const uint8_t* value, size_t size) noexcept nogil
