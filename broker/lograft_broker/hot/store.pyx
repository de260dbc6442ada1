# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: auto_pickle=False
"""The records of one queue: where each of them is, and which are done with.

A record arrives in an entry of the shard and stays in its bytes: a chunk says where in the entry
the frames of a run begin and end, and records inside it are found by walking from frame to frame.
A waiting record so costs nothing of its own. When memory asks, or a checkpoint, what is not settled
is spilled to the queue's log; afterwards the bytes may be let go and are read back, a window at a
time, when somebody wants them. Records with a priority or a due time have a note of 24 bytes.

Every replica keeps this state and changes it only by entries. Who gets which record is decided
elsewhere (`queue`); files are written by the machine that owns the store.
"""
cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memmove

from lograft_broker.hot.settled cimport Settled
from lograft_log.hot cimport record

from lograft_broker.hot import settled as settled_module
from lograft_log.hot import record as record_module
from lograft_wire.errors import DamagedError

cdef size_t RING_FIRST = 8
cdef uint32_t WINDOW_BYTES = 256 << 10
cdef uint64_t NOWHERE = ~(<uint64_t> 0)


cdef inline size_t frame_bytes(const uint8_t* frame) noexcept:
    cdef uint32_t length
    memcpy(&length, frame, 4)
    return record.FRAME_BYTES + <size_t> length


cdef inline uint64_t frame_offset(const uint8_t* frame) noexcept:
    cdef uint64_t offset
    memcpy(&offset, frame + record.FRAME_BYTES + 8, 8)
    return offset


@cython.final
cdef class Store:
    def __cinit__(self, uint64_t stream, *, object log=None, uint32_t window_bytes=WINDOW_BYTES):
        self.stream = stream
        self.log = log
        self.window_bytes = window_bytes
        self.settled = Settled()
        self.counts = {}
        self.near_chunk = NOWHERE
        self.ring = <Chunk*> calloc(RING_FIRST, sizeof(Chunk))
        if self.ring == NULL:
            raise MemoryError
        self.ring_mask = RING_FIRST - 1

    def __dealloc__(self):
        self.clear()
        free(self.ring)
        free(self.notes)

    def __repr__(self):
        return (
            f"Store({self.stream}, {self.settled!r}, chunks={self.chunk_end - self.chunk_first}, "
            f"memory_bytes={self.memory_bytes})"
        )

    cdef void clear(self) noexcept:
        cdef uint64_t number
        for number in range(self.chunk_first, self.chunk_end):
            self.let_go(self.chunk(number))

    cdef Chunk* chunk(self, uint64_t number) noexcept:
        return self.ring + (<size_t> number & self.ring_mask)

    # Entries

    cdef int add(
        self, bytes entry, size_t start, size_t end, uint64_t offset, uint32_t count, bint shared
    ) except -1:
        """Records of an entry, with rising offsets. Offsets that were left out never come."""
        cdef Chunk* made
        assert offset >= self.settled.next_offset, (offset, self)
        if offset > self.settled.next_offset:
            self.settled.skip(offset)
        if self.chunk_end - self.chunk_first > self.ring_mask:
            self.grow()
        made = self.chunk(self.chunk_end)
        self.chunk_end += 1
        Py_INCREF(entry)
        made.entry = <PyObject*> entry
        made.offset = offset
        made.start = <uint32_t> start
        made.end = <uint32_t> end
        made.count = made.live = count
        made.shared = shared
        made.spilled = False
        self.memory_bytes += end - start
        self.unspilled_bytes += end - start
        self.settled.extend(offset + count)
        return 0

    cdef int grow(self) except -1:
        cdef size_t size = self.ring_mask + 1
        cdef Chunk* grown = <Chunk*> calloc(2 * size, sizeof(Chunk))
        cdef uint64_t number
        if grown == NULL:
            raise MemoryError
        for number in range(self.chunk_first, self.chunk_end):
            grown[<size_t> number & (2 * size - 1)] = self.chunk(number)[0]
        free(self.ring)
        self.ring = grown
        self.ring_mask = 2 * size - 1
        return 0

    cdef int note(self, uint64_t offset, uint64_t due_ms, uint64_t priority) except -1:
        """What is said of the record that was added last."""
        cdef size_t capacity
        cdef Note* grown
        while self.note_start < self.note_end and (
            self.notes[self.note_start].offset < self.settled.low
        ):
            self.note_start += 1
        if self.note_end == self.note_capacity:
            if self.note_start > self.note_capacity // 2:
                memmove(
                    self.notes, self.notes + self.note_start,
                    (self.note_end - self.note_start) * sizeof(Note),
                )
                self.note_end -= self.note_start
                self.note_start = 0
            else:
                capacity = max(<size_t> 16, 2 * self.note_capacity)
                grown = <Note*> realloc(self.notes, capacity * sizeof(Note))
                if grown == NULL:
                    raise MemoryError
                self.notes = grown
                self.note_capacity = capacity
        self.notes[self.note_end] = Note(offset, due_ms, priority)
        self.note_end += 1
        return 0

    cdef const Note* noted(self, uint64_t offset) noexcept:
        """What was said of a record; NULL when nothing was."""
        cdef size_t low = self.note_start
        cdef size_t high = self.note_end
        cdef size_t middle
        while low < high:
            middle = (low + high) // 2
            if self.notes[middle].offset < offset:
                low = middle + 1
            else:
                high = middle
        if low < self.note_end and self.notes[low].offset == offset:
            return self.notes + low
        return NULL

    cdef int64_t settle(self, uint64_t first, uint64_t count) except -1:
        """How many of these were live; they are done with now."""
        cdef uint64_t end = first + count
        cdef uint64_t number, stop
        cdef int64_t total, found
        cdef Chunk* chunk
        if end > self.settled.next_offset:
            end = self.settled.next_offset
        if first < self.settled.low:
            first = self.settled.low
        if first >= end:
            return 0
        if self.chunk_first == self.chunk_end:
            return self.settled.settle(first, end - first)
        number = self.number_of(first)
        if first < self.chunk(number).offset:       # older than all chunks, or between two of them
            stop = min(end, self.chunk(number).offset)
            total = self.settled.settle(first, stop - first)
            first = stop
        else:
            total = 0
        while first < end:
            chunk = self.chunk(number)
            stop = end
            if number + 1 < self.chunk_end and self.chunk(number + 1).offset < end:
                stop = self.chunk(number + 1).offset
            found = self.settled.settle(first, stop - first)
            chunk.live -= <uint32_t> found
            if chunk.live == 0:
                self.let_go(chunk)
            total += found
            first = stop
            number += 1
        self.drop_settled()
        return total

    cdef void let_go(self, Chunk* chunk) noexcept:
        """Its bytes are no longer needed in memory."""
        if chunk.entry == NULL:
            return
        self.memory_bytes -= chunk.end - chunk.start
        if not chunk.spilled:
            self.unspilled_bytes -= chunk.end - chunk.start
        Py_XDECREF(chunk.entry)
        chunk.entry = NULL

    cdef void drop_settled(self) noexcept:
        while self.chunk_first < self.chunk_end and self.chunk(self.chunk_first).live == 0:
            self.chunk_first += 1
        self.unspilled_from = max(self.unspilled_from, self.chunk_first)

    cdef uint64_t number_of(self, uint64_t offset) noexcept:
        """Number of the chunk this offset belongs to: the last that does not begin behind it, the
        first if all do."""
        cdef uint64_t low = self.chunk_first
        cdef uint64_t high = self.chunk_end
        cdef uint64_t middle
        if high - low > 1 and self.chunk(low + 1).offset > offset:
            return low
        while high - low > 1:
            middle = (low + high) // 2
            if self.chunk(middle).offset <= offset:
                low = middle
            else:
                high = middle
        return low

    cdef void raise_mark(self, uint64_t offset) noexcept:
        self.mark = max(self.mark, offset)

    # Finding records

    cdef int find(self, uint64_t offset, Place* place) except -1:
        """Where the frame of a live record stands, until the store is called again."""
        cdef uint64_t number
        cdef Chunk* chunk
        if self.chunk_first < self.chunk_end:
            number = self.near_chunk
            if number < self.chunk_first or number >= self.chunk_end:
                number = self.number_of(offset)
            else:
                chunk = self.chunk(number)
                if offset < chunk.offset or offset - chunk.offset >= chunk.count:
                    number = self.number_of(offset)
            chunk = self.chunk(number)
            if offset >= chunk.offset and chunk.entry != NULL:
                return self.find_in_memory(number, offset, place)
        return self.find_on_disk(offset, place)

    cdef int find_in_memory(self, uint64_t number, uint64_t offset, Place* place) except -1:
        cdef Chunk* chunk = self.chunk(number)
        cdef const uint8_t* data = <const uint8_t*> PyBytes_AS_STRING(<bytes> chunk.entry)
        cdef size_t position = chunk.start
        cdef uint64_t at = chunk.offset
        assert offset - chunk.offset < chunk.count, (offset, self)
        if self.near_chunk == number and self.near_offset <= offset:
            position = self.near_position
            at = self.near_offset
        while at < offset:
            position += frame_bytes(data + position)
            at += 1
        assert position < chunk.end, (offset, self)
        self.near_chunk = number
        self.near_offset = offset
        self.near_position = position
        place.frame = data + position
        place.size = frame_bytes(data + position)
        return 0

    cdef int find_on_disk(self, uint64_t offset, Place* place) except -1:
        cdef size_t position, size
        cdef const uint8_t* data
        if self.window is None or not self.window_offset <= offset < self.window_end:
            self.load(offset)
        position = self.window_position if self.window_near <= offset else 0
        data = &self.window[0]
        size = self.window.shape[0]
        while position < size and frame_offset(data + position) < offset:
            position += frame_bytes(data + position)
        if position >= size or frame_offset(data + position) != offset:
            raise DamagedError(f"stream {self.stream}: the log has lost record {offset}")
        self.window_near = offset
        self.window_position = position
        place.frame = data + position
        place.size = frame_bytes(data + position)
        return 0

    def load(self, uint64_t offset):
        """Read frames from `offset` on. The log gives whole frames that passed their check."""
        if self.log is None:
            raise DamagedError(f"stream {self.stream}: record {offset} is nowhere")
        found = self.log.read(offset, bytes_max=self.window_bytes)
        if not found.record_count:
            raise DamagedError(f"stream {self.stream}: the log ends before record {offset}")
        self.window = found.data
        self.window_offset = offset
        self.window_end = found.offset_next
        self.window_near = offset
        self.window_position = 0

    # Spilling, for the machine that owns the files

    def open_log(self, log):
        """From now on records may be on disk."""
        self.log = log

    def take_unspilled(self, uint64_t bytes_max):
        """Frames of live records the log does not have yet, oldest first, about `bytes_max` of
        them, as a list of buffers; the caller writes them to the log before anything else is done
        here. Empty when there are none."""
        cdef Chunk* chunk
        cdef uint64_t taken = 0
        found = []
        while self.unspilled_from < self.chunk_end and taken < bytes_max:
            chunk = self.chunk(self.unspilled_from)
            if chunk.entry != NULL and not chunk.spilled:
                found += self.stretches(chunk)
                taken += chunk.end - chunk.start
                self.unspilled_bytes -= chunk.end - chunk.start
            chunk.spilled = True
            self.unspilled_from += 1
        return found

    cdef object stretches(self, Chunk* chunk):
        """The live frames of a chunk as buffers, under this queue's own offsets."""
        cdef const uint8_t* data = <const uint8_t*> PyBytes_AS_STRING(<bytes> chunk.entry)
        cdef uint64_t offset = chunk.offset
        cdef uint64_t end = offset + chunk.count
        cdef size_t position = chunk.start
        cdef size_t begin
        entry = <object> chunk.entry
        if chunk.shared:
            copy = bytearray(entry[chunk.start:chunk.end])
            record_module.assign(copy, offset)
            return [copy]
        if chunk.live == chunk.count:
            return [memoryview(entry)[chunk.start:chunk.end]]
        found = []
        while offset < end:
            if self.settled.is_settled(offset):
                position += frame_bytes(data + position)
                offset += 1
                continue
            begin = position
            while offset < end and not self.settled.is_settled(offset):
                position += frame_bytes(data + position)
                offset += 1
            found.append(memoryview(entry)[begin:position])
        return found

    def let_go_spilled(self, uint64_t memory_bytes_max, uint64_t keep_to=0):
        """Let go of bytes the log has, newest first, down to a size; records below `keep_to` stay.
        How many bytes went."""
        cdef uint64_t before = self.memory_bytes
        cdef uint64_t number = self.unspilled_from
        cdef Chunk* chunk
        while number > self.chunk_first and self.memory_bytes > memory_bytes_max:
            number -= 1
            chunk = self.chunk(number)
            if chunk.offset < keep_to:
                break
            if chunk.spilled:
                self.let_go(chunk)
        self.near_chunk = NOWHERE
        return before - self.memory_bytes

    # What Python asks for, at checkpoints and in tests

    def append(self, bytes entry, size_t start, size_t end, uint64_t offset, uint32_t count):
        self.add(entry, start, end, offset, count, False)

    def append_shared(self, bytes entry, size_t start, size_t end, uint64_t offset):
        self.add(entry, start, end, offset, 1, True)

    def set_note(self, uint64_t offset, uint64_t due_ms, uint64_t priority):
        self.note(offset, due_ms, priority)

    def get_note(self, uint64_t offset):
        """(due_ms, priority) of a record."""
        cdef const Note* found = self.noted(offset)
        if found == NULL:
            return 0, 0
        return found.due_ms, found.priority

    def live_notes(self):
        """(offset, due_ms, priority) of the live records that have a note, in order."""
        cdef size_t row
        cdef Note* one
        found = []
        for row in range(self.note_start, self.note_end):
            one = self.notes + row
            if not self.settled.is_settled(one.offset):
                found.append((one.offset, one.due_ms, one.priority))
        return found

    def done(self, uint64_t first, uint64_t count):
        return self.settle(first, count)

    def frame(self, uint64_t offset):
        """The frame of a live record, as it stands."""
        cdef Place place
        self.find(offset, &place)
        return PyBytes_FromStringAndSize(<const char*> place.frame, place.size)

    def restore(self, uint64_t next_offset, live, uint64_t mark):
        """Become what a checkpoint said; every live record is in the log."""
        assert self.settled.next_offset == 0 and self.chunk_end == 0, self
        self.settled = settled_module.from_live(next_offset, live)
        self.mark = mark

    @property
    def chunk_count(self):
        return self.chunk_end - self.chunk_first
