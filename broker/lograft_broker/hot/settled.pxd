cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef enum:
    BLOCK_SHIFT = 12
    BLOCK_OFFSETS = 4096
    BLOCK_WORDS = 64

cdef struct Block:
    uint32_t count                     # settled in it
    uint64_t[BLOCK_WORDS] words        # a bit per offset, set when settled


@cython.final
cdef class Settled:
    cdef readonly uint64_t low         # every offset below is settled
    cdef readonly uint64_t next_offset  # offsets from here on do not exist yet
    cdef readonly uint64_t live_count  # below next_offset and not settled
    cdef Block** blocks                # NULL: none settled; FULL: all; for the offsets from
    cdef uint64_t block_first          # block_first * BLOCK_OFFSETS on
    cdef size_t block_start            # blocks[block_start] is that of block_first
    cdef size_t block_end
    cdef size_t block_capacity

    cdef int extend(self, uint64_t next_offset) except -1
    cdef int skip(self, uint64_t next_offset) except -1
    cdef int64_t settle(self, uint64_t first, uint64_t count) except -1
    cdef bint is_settled(self, uint64_t offset) noexcept nogil
    cdef uint64_t live_from(self, uint64_t offset) noexcept nogil
    cdef uint64_t settled_from(self, uint64_t offset) noexcept nogil
    cdef uint64_t _from(self, uint64_t offset, uint64_t flip) noexcept nogil
    cdef int cover(self, uint64_t offset) except -1
    cdef int64_t settle_in_block(self, size_t index, uint32_t first, uint32_t last) except -1
    cdef void advance(self) noexcept
    cdef void clear(self) noexcept
