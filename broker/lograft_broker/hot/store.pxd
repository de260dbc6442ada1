cimport cython
from cpython.object cimport PyObject
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from lograft_broker.hot.settled cimport Settled

cdef struct Chunk:
    PyObject* entry          # holds the frames; NULL when they are on disk alone, or settled
    uint64_t offset          # of the first record
    uint32_t start           # of the frames in the entry
    uint32_t end
    uint32_t count           # of records, settled ones included
    uint32_t live            # of those not settled
    bint shared              # the frame may carry another queue's offset
    bint spilled             # what was live is in the log

cdef struct Place:
    const uint8_t* frame
    size_t size

cdef struct Note:
    uint64_t offset
    uint64_t due_ms
    uint64_t priority


@cython.final
cdef class Store:
    cdef readonly uint64_t stream
    cdef readonly Settled settled
    cdef readonly object log             # a lograft_log Log, once something was spilled
    cdef readonly uint64_t memory_bytes  # of frames held in memory
    cdef readonly uint64_t unspilled_bytes
    cdef readonly uint64_t mark          # records below may have been delivered
    cdef public object queue             # the owner's view, while this node owns it
    cdef readonly dict counts            # deliveries of records that came back, by offset
    cdef uint32_t window_bytes
    # The chunks, oldest first, in a ring; each has a number that never changes.
    cdef Chunk* ring
    cdef size_t ring_mask
    cdef uint64_t chunk_first
    cdef uint64_t chunk_end
    cdef uint64_t unspilled_from         # chunks below are spilled or settled
    # Where the last record was found: the next one usually follows it.
    cdef uint64_t near_chunk
    cdef uint64_t near_offset
    cdef size_t near_position
    # Frames read from the log.
    cdef const uint8_t[::1] window
    cdef uint64_t window_offset          # records from here to window_end are in it, if anywhere
    cdef uint64_t window_end
    cdef uint64_t window_near
    cdef size_t window_position
    # Due times and priorities of those records that have any, by offset.
    cdef Note* notes
    cdef size_t note_start
    cdef size_t note_end
    cdef size_t note_capacity

    cdef int add(
        self, bytes entry, size_t start, size_t end, uint64_t offset, uint32_t count, bint shared
    ) except -1
    cdef int note(self, uint64_t offset, uint64_t due_ms, uint64_t priority) except -1
    cdef const Note* noted(self, uint64_t offset) noexcept
    cdef int64_t settle(self, uint64_t first, uint64_t count) except -1
    cdef int find(self, uint64_t offset, Place* place) except -1
    cdef void raise_mark(self, uint64_t offset) noexcept
    cdef Chunk* chunk(self, uint64_t number) noexcept
    cdef int grow(self) except -1
    cdef uint64_t number_of(self, uint64_t offset) noexcept
    cdef void let_go(self, Chunk* chunk) noexcept
    cdef void drop_settled(self) noexcept
    cdef int find_in_memory(self, uint64_t number, uint64_t offset, Place* place) except -1
    cdef int find_on_disk(self, uint64_t offset, Place* place) except -1
    cdef object stretches(self, Chunk* chunk)
    cdef void clear(self) noexcept
