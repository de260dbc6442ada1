# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: auto_pickle=False
"""The entries of a shard's Raft log: what happened to many queues, as one block of bytes.

    entry    type u8 | version u8 | zero u16 | item_count u32 | timestamp_ms u64 | items
    item     kind u8 | flags u8 | zero u16 | bytes u32 | what the kind says (bytes)
    RUN      stream u64 | offset u64 | count u32 | zero u32 | frames
    SPREAD   due_ms u64 | priority u32 | count u32 | (stream u64 | offset u64) * count | frame
    SETTLE   stream u64 | count u32 | zero u32 | (offset u64 | count u64) * count
    MARK     stream u64 | offset u64
    RETURN   stream u64 | count u32 | zero u32 | (offset u64 | delivery_count u64) * count
    0x40...  bytes that Python understands

Little-endian. Frames are those of the log. RUN: records of one queue with rising offsets, each one
more than the last; what a publisher fills a batch with. SPREAD: one record for several queues, or
one with a priority or a due time; the frame carries the first target's offset. SETTLE: these
records are done with. MARK: whatever is below may have been delivered. RETURN: these came back.

The owner of the shard builds entries here, batch by batch; every replica walks them in `apply`.
"""
cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from lograft_log.hot cimport record

cdef size_t CAPACITY_FIRST = 64 << 10
CONTROL = <int> KIND_CONTROL


cdef inline uint32_t get32(const uint8_t* data) noexcept nogil:
    cdef uint32_t value
    memcpy(&value, data, 4)
    return value


cdef inline uint64_t get64(const uint8_t* data) noexcept nogil:
    cdef uint64_t value
    memcpy(&value, data, 8)
    return value


cdef bint next_item(
    const uint8_t* data, size_t size, size_t position, Item* item
) noexcept nogil:
    """Read the item that begins at `position`; False when its lengths disagree. Frames inside are
    not looked at."""
    cdef const uint8_t* at = data + position + ITEM_BYTES
    cdef size_t length, fixed, row_bytes
    if size - position < ITEM_BYTES:
        return False
    length = get32(data + position + 4)
    if length > size - position - ITEM_BYTES:
        return False
    item.kind = data[position]
    item.flags = data[position + 1]
    item.start = position + ITEM_BYTES
    item.end = item.start + length
    item.stream = item.offset = item.due_ms = 0
    item.count = item.priority = 0
    row_bytes = 16
    if item.kind == KIND_RUN:
        fixed = RUN_BYTES
        row_bytes = 0
    elif item.kind in (KIND_SPREAD, KIND_SETTLE, KIND_RETURN):
        fixed = 16
    elif item.kind == KIND_MARK:
        fixed = MARK_BYTES
        row_bytes = 0
    else:
        return item.kind >= KIND_CONTROL
    if length < fixed:
        return False
    item.rows = item.start + fixed
    if item.kind == KIND_SPREAD:
        item.due_ms = get64(at)
        item.priority = get32(at + 8)
        item.count = get32(at + 12)
    else:
        item.stream = get64(at)
        if item.kind == KIND_RUN or item.kind == KIND_MARK:
            item.offset = get64(at + 8)
        if item.kind == KIND_RUN:
            item.count = get32(at + 16)
        elif item.kind != KIND_MARK:
            item.count = get32(at + 8)
    if row_bytes * <size_t> item.count > length - fixed:
        return False
    item.frames = item.rows + row_bytes * item.count
    if item.kind == KIND_RUN or item.kind == KIND_SPREAD:
        return item.count > 0 and item.frames < item.end
    return item.frames == item.end


@cython.final
cdef class EntryBuilder:
    """One entry after the other; the buffer is used again."""

    def __cinit__(self):
        self.buffer = <uint8_t*> realloc(NULL, CAPACITY_FIRST)
        if self.buffer == NULL:
            raise MemoryError
        self.capacity = CAPACITY_FIRST
        self.reset()

    def __dealloc__(self):
        free(self.buffer)

    cdef void reset(self) noexcept:
        self.size = ENTRY_BYTES
        self.item_count = 0
        self.record_count = 0
        self.run = 0

    cdef uint8_t* room(self, size_t size) except NULL:
        """Make room; what was written may move."""
        cdef size_t capacity = self.capacity
        cdef uint8_t* grown
        if self.size + size > capacity:
            while capacity < self.size + size:
                capacity *= 2
            grown = <uint8_t*> realloc(self.buffer, capacity)
            if grown == NULL:
                raise MemoryError
            self.buffer = grown
            self.capacity = capacity
        return self.buffer + self.size

    cdef uint8_t* begin_item(self, uint8_t kind, uint8_t flags, size_t size) except NULL:
        """Lay an item of `size` bytes; the caller fills in all of them, from where this points."""
        cdef uint8_t* at = self.room(ITEM_BYTES + size)
        cdef uint32_t length = <uint32_t> size
        memset(at, 0, ITEM_BYTES)
        at[0] = kind
        at[1] = flags
        memcpy(at + 4, &length, 4)
        self.size += ITEM_BYTES + size
        self.item_count += 1
        self.run = 0
        return at + ITEM_BYTES

    cdef uint8_t* add_frame(self, uint64_t stream, uint64_t offset, size_t frame_bytes) except NULL:
        """Room for one record's frame, which the caller writes at once. It joins the open run when
        it follows it."""
        cdef uint8_t* at
        cdef uint32_t length, count
        self.record_count += 1
        if self.run and stream == self.run_stream and offset == self.run_next:
            self.run_next += 1
            at = self.room(frame_bytes)
            self.size += frame_bytes
            length = get32(self.buffer + self.run + 4) + <uint32_t> frame_bytes
            memcpy(self.buffer + self.run + 4, &length, 4)
            count = get32(self.buffer + self.run + ITEM_BYTES + 16) + 1
            memcpy(self.buffer + self.run + ITEM_BYTES + 16, &count, 4)
            return at
        cdef size_t position = self.size
        at = self.begin_item(KIND_RUN, 0, RUN_BYTES + frame_bytes)
        count = 1
        memcpy(at, &stream, 8)
        memcpy(at + 8, &offset, 8)
        memcpy(at + 16, &count, 4)
        memset(at + 20, 0, 4)
        self.run = position
        self.run_stream = stream
        self.run_next = offset + 1
        return at + RUN_BYTES

    cdef uint8_t* spread(
        self, const uint64_t* targets, uint32_t count, uint64_t due_ms, uint32_t priority,
        size_t frame_bytes
    ) except NULL:
        """Room for the frame of one record for several queues; `targets` are (stream, offset)."""
        cdef size_t size = SPREAD_BYTES + <size_t> count * TARGET_BYTES
        cdef uint8_t* at = self.begin_item(KIND_SPREAD, 0, size + frame_bytes)
        self.record_count += 1
        memcpy(at, &due_ms, 8)
        memcpy(at + 8, &priority, 4)
        memcpy(at + 12, &count, 4)
        memcpy(at + SPREAD_BYTES, targets, <size_t> count * TARGET_BYTES)
        return at + size

    cdef int settle_ranges(
        self, uint64_t stream, const uint64_t* ranges, uint32_t count
    ) except -1:
        cdef size_t rows = <size_t> count * RANGE_BYTES
        cdef uint8_t* at = self.begin_item(KIND_SETTLE, 0, SETTLE_BYTES + rows)
        memcpy(at, &stream, 8)
        memcpy(at + 8, &count, 4)
        memset(at + 12, 0, 4)
        memcpy(at + SETTLE_BYTES, ranges, rows)
        return 0

    cdef bytes take(self, uint64_t timestamp_ms):
        cdef uint8_t* at = self.buffer
        memset(at, 0, ENTRY_BYTES)
        at[0] = ENTRY_TYPE
        at[1] = ENTRY_VERSION
        memcpy(at + 4, &self.item_count, 4)
        memcpy(at + 8, &timestamp_ms, 8)
        entry = PyBytes_FromStringAndSize(<char*> at, self.size)
        self.reset()
        return entry

    # What Python calls: rarely, or in tests

    def add(
        self, uint64_t stream, uint64_t offset, *, const uint8_t[::1] envelope,
        const uint8_t[::1] body, uint64_t timestamp_ms
    ):
        """A record for one queue. `envelope`: exchange, key, property flags and values."""
        cdef size_t size = envelope.shape[0] + <size_t> body.shape[0]
        size += record.FRAME_BYTES + record.PLAIN_BYTES
        record.put(
            self.add_frame(stream, offset, size), offset, timestamp_ms, 0, NULL, 0,
            &envelope[0], <uint32_t> envelope.shape[0],
            &body[0] if body.shape[0] else NULL, <uint32_t> body.shape[0],
        )

    def add_spread(
        self, targets, *, uint64_t due_ms, uint32_t priority, const uint8_t[::1] envelope,
        const uint8_t[::1] body, uint64_t timestamp_ms
    ):
        """One record for `targets`, pairs of stream and offset."""
        rows = packed(targets)
        cdef size_t size = envelope.shape[0] + <size_t> body.shape[0]
        size += record.FRAME_BYTES + record.PLAIN_BYTES
        cdef uint8_t* at = self.spread(
            <const uint64_t*> <const char*> rows, <uint32_t> len(targets), due_ms, priority, size
        )
        record.put(
            at, targets[0][1], timestamp_ms, 0, NULL, 0,
            &envelope[0], <uint32_t> envelope.shape[0],
            &body[0] if body.shape[0] else NULL, <uint32_t> body.shape[0],
        )

    def settle(self, uint64_t stream, ranges):
        """`ranges`: pairs of first offset and count."""
        rows = packed(ranges)
        self.settle_ranges(stream, <const uint64_t*> <const char*> rows, <uint32_t> len(ranges))

    def mark(self, uint64_t stream, uint64_t offset):
        cdef uint8_t* at = self.begin_item(KIND_MARK, 0, MARK_BYTES)
        memcpy(at, &stream, 8)
        memcpy(at + 8, &offset, 8)

    def returned(self, uint64_t stream, rows):
        """`rows`: pairs of offset and how often that record has been delivered."""
        cdef uint8_t* at = self.begin_item(KIND_RETURN, 0, RETURN_BYTES + 16 * len(rows))
        cdef uint32_t count = <uint32_t> len(rows)
        data = packed(rows)
        memcpy(at, &stream, 8)
        memcpy(at + 8, &count, 4)
        memset(at + 12, 0, 4)
        memcpy(at + RETURN_BYTES, <const char*> data, 16 * <size_t> count)

    def control(self, uint8_t kind, bytes payload not None):
        assert kind >= KIND_CONTROL, kind
        cdef uint8_t* at = self.begin_item(kind, 0, len(payload))
        memcpy(at, <const char*> payload, len(payload))

    def finish(self, uint64_t timestamp_ms):
        return self.take(timestamp_ms)


cdef bytes packed(pairs):
    """Pairs of numbers as rows of an item."""
    cdef uint64_t[2] pair
    cdef uint8_t* out
    cdef size_t position = 0
    rows = PyBytes_FromStringAndSize(NULL, 16 * len(pairs))
    out = <uint8_t*> PyBytes_AS_STRING(rows)
    for first, second in pairs:
        pair[0] = first
        pair[1] = second
        memcpy(out + position, pair, 16)
        position += 16
    return rows


def decode(const uint8_t[::1] entry):
    """(timestamp, items) of an entry, for people and tests; ValueError when it is none. An item is
    a tuple that begins with its kind's name."""
    cdef size_t size = entry.shape[0]
    cdef size_t position = ENTRY_BYTES
    cdef Item item
    if size < ENTRY_BYTES or entry[0] != ENTRY_TYPE or entry[1] != ENTRY_VERSION:
        raise ValueError("not an entry of a shard")
    cdef const uint8_t* data = &entry[0]
    items = []
    for _ in range(get32(data + 4)):
        if not next_item(data, size, position, &item):
            raise ValueError(f"no item at {position}")
        items.append(_item(data, &item))
        position = item.end
    if position != size:
        raise ValueError(f"{size - position} bytes too many")
    return get64(data + 8), items


cdef tuple _item(const uint8_t* data, Item* item):
    frames = (<const char*> data)[item.frames:item.end]
    if item.kind == KIND_RUN:
        return "run", item.stream, item.offset, item.count, frames
    if item.kind == KIND_SPREAD:
        return "spread", item.due_ms, item.priority, _pairs(data, item), frames
    if item.kind == KIND_SETTLE:
        return "settle", item.stream, _pairs(data, item)
    if item.kind == KIND_RETURN:
        return "return", item.stream, _pairs(data, item)
    if item.kind == KIND_MARK:
        return "mark", item.stream, item.offset
    return "control", item.kind, (<const char*> data)[item.start:item.end]


cdef list _pairs(const uint8_t* data, Item* item):
    cdef const uint8_t* at = data + item.rows
    return [(get64(at + 16 * row), get64(at + 16 * row + 8)) for row in range(item.count)]
