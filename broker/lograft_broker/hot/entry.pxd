cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t

cdef enum:
    ENTRY_TYPE = 0x30
    ENTRY_VERSION = 1
    ENTRY_BYTES = 16         # type, version, item count, timestamp
    ITEM_BYTES = 8           # kind, flags, size of what follows
    RUN_BYTES = 24
    SPREAD_BYTES = 16
    TARGET_BYTES = 16
    SETTLE_BYTES = 16
    RANGE_BYTES = 16
    MARK_BYTES = 16
    RETURN_BYTES = 16

cdef enum Kind:
    KIND_RUN = 1
    KIND_SPREAD = 2
    KIND_SETTLE = 3
    KIND_MARK = 4
    KIND_RETURN = 5
    KIND_CONTROL = 0x40      # from here on: for Python, as bytes

cdef struct Item:
    uint8_t kind
    uint8_t flags
    size_t start             # of what is behind the item's header, in the entry
    size_t end
    uint64_t stream          # RUN, SETTLE, MARK, RETURN
    uint64_t offset          # RUN: of the first record; MARK
    uint64_t due_ms          # SPREAD
    uint32_t count           # records, targets, ranges or rows
    uint32_t priority        # SPREAD
    size_t rows              # where targets, ranges or rows begin
    size_t frames            # where frames begin; they fill the rest of the item


cdef bint next_item(
    const uint8_t* data, size_t size, size_t position, Item* item
) noexcept nogil


@cython.final
cdef class EntryBuilder:
    cdef uint8_t* buffer
    cdef size_t capacity
    cdef readonly size_t size            # bytes so far, the entry's header included
    cdef readonly uint32_t item_count
    cdef readonly uint32_t record_count
    cdef size_t run                      # where the open RUN item begins, 0 when none is open
    cdef uint64_t run_stream
    cdef uint64_t run_next               # the offset that would extend it

    cdef void reset(self) noexcept
    cdef uint8_t* room(self, size_t size) except NULL
    cdef uint8_t* begin_item(self, uint8_t kind, uint8_t flags, size_t size) except NULL
    cdef uint8_t* add_frame(self, uint64_t stream, uint64_t offset, size_t frame_bytes) except NULL
    cdef uint8_t* spread(
        self, const uint64_t* targets, uint32_t count, uint64_t due_ms, uint32_t priority,
        size_t frame_bytes
    ) except NULL
    cdef int settle_ranges(
        self, uint64_t stream, const uint64_t* ranges, uint32_t count
    ) except -1
    cdef bytes take(self, uint64_t timestamp_ms)
