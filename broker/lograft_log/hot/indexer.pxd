cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint64_t

from lograft_log.hot cimport record

cdef struct Pending:
    uint8_t* data
    size_t size
    size_t room


@cython.final
cdef class Indexer:
    cdef readonly int64_t interval_bytes
    cdef readonly int64_t time_interval_bytes
    cdef readonly uint64_t timestamp_ms_max
    cdef int64_t _position_last
    cdef int64_t _time_position_last
    cdef Pending _offsets
    cdef Pending _times

    cdef int _feed(
        self, const uint8_t* data, size_t start, size_t end, uint64_t position
    ) except -1
    cdef int _note(self, record.Frame* frame, int64_t position) except -1
    cdef int _note_time(self, record.Frame* frame, int64_t position) except -1
