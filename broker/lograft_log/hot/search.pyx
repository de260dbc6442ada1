# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: auto_pickle=False
"""Search in mapped index entries, and the short way from an offset to its record.

    offset entry   offset u64 | position u64 | length u32 | crc32c u32 (over the 20 bytes before)
    time entry     timestamp_ms u64 | offset u64 | position u64 | crc32c u32 (over the 24 before)
    hash entry     hash u64 | position u64

Entries rise; `length` is the payload length of the frame at `position`. Every entry carries its own
check, so that an index can be judged without reading the log. A `Finder` answers only what it can
prove from an intact record; everything else is left to `segment`, which looks again with care.
"""
cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport uint32_t
from libc.string cimport memcpy

from lograft_log.hot cimport crc, record


cdef inline uint32_t get32(const uint8_t* data) noexcept nogil:
    cdef uint32_t value
    memcpy(&value, data, 4)
    return value


cdef inline uint64_t get64(const uint8_t* data) noexcept nogil:
    cdef uint64_t value
    memcpy(&value, data, 8)
    return value


cdef Py_ssize_t floor_u64(
    const uint8_t* entries, size_t count, size_t stride, size_t field, uint64_t value
) noexcept nogil:
    """The last entry whose field is at most `value`, or -1.

    Logs are even, so the place is guessed first: a miss in the cache costs more than everything
    else here, and halving the whole index would cost twenty of them. The bracket around the guess
    doubles until it holds the place, then it is halved.
    """
    cdef const uint8_t* base = entries + field
    cdef uint64_t first, last
    cdef size_t low, high, width, half
    if count == 0:
        return -1
    first = get64(base)
    last = get64(base + (count - 1) * stride)
    if first > value:
        return -1
    if last <= value:
        return count - 1
    low = <size_t> (<double> (value - first) / <double> (last - first) * <double> (count - 1))
    high = min(low + 1, count - 1)
    width = 1
    while low and get64(base + low * stride) > value:
        high = low
        low = low - width if low > width else 0
        width *= 2
    while high < count - 1 and get64(base + high * stride) <= value:
        low = high
        high = high + width if count - 1 - high > width else count - 1
        width *= 2
    # Here entry `low` is at most the value and entry `high` above it.
    while high - low > 1:
        half = low + (high - low) // 2
        if get64(base + half * stride) <= value:
            low = half
        else:
            high = half
    return low


def floor(const uint8_t[::1] entries, uint64_t offset):
    """Number of the last offset entry at or below `offset`; -1 when there is none."""
    cdef size_t count = entries.shape[0] // ENTRY_BYTES
    return floor_u64(&entries[0], count, ENTRY_BYTES, 0, offset) if count else -1


def floor_position(const uint8_t[::1] entries, uint64_t position):
    """Number of the last offset entry at or below a file position; -1 when there is none."""
    cdef size_t count = entries.shape[0] // ENTRY_BYTES
    return floor_u64(&entries[0], count, ENTRY_BYTES, 8, position) if count else -1


def time_before(const uint8_t[::1] entries, uint64_t timestamp_ms):
    """Number of the last time entry below `timestamp_ms`; -1 when there is none."""
    cdef size_t count = entries.shape[0] // TIME_ENTRY_BYTES
    if count == 0 or timestamp_ms == 0:
        return -1
    return floor_u64(&entries[0], count, TIME_ENTRY_BYTES, 0, timestamp_ms - 1)


def time_floor(const uint8_t[::1] entries, uint64_t offset):
    """Number of the last time entry at or below `offset`; -1 when there is none."""
    cdef size_t count = entries.shape[0] // TIME_ENTRY_BYTES
    return floor_u64(&entries[0], count, TIME_ENTRY_BYTES, 8, offset) if count else -1


def hash_range(const uint8_t[::1] entries, uint64_t value):
    """First and one-behind-last number of the hash entries that equal `value`."""
    cdef size_t count = entries.shape[0] // HASH_ENTRY_BYTES
    if count == 0:
        return 0, 0
    cdef Py_ssize_t last = floor_u64(&entries[0], count, HASH_ENTRY_BYTES, 0, value)
    cdef Py_ssize_t before = -1
    if value:
        before = floor_u64(&entries[0], count, HASH_ENTRY_BYTES, 0, value - 1)
    return before + 1, last + 1


def hash_term(const uint8_t[::1] term):
    """FNV-1a of 64 bits: small, stable, and every hit is compared with the record anyway."""
    cdef uint64_t value = 0xCBF29CE484222325ULL
    cdef Py_ssize_t i
    for i in range(term.shape[0]):
        value = (value ^ term[i]) * <uint64_t> 0x100000001B3ULL
    return value


def check(const uint8_t[::1] entries, *, uint64_t log_start, uint64_t log_end, bint dense):
    """How many offset entries from the first on are intact, in order and within the log."""
    cdef size_t count = entries.shape[0] // ENTRY_BYTES
    cdef const uint8_t* at
    cdef uint64_t offset = 0
    cdef uint64_t position = 0
    cdef uint64_t position_min = log_start
    cdef uint64_t size
    cdef size_t i
    for i in range(count):
        at = &entries[i * ENTRY_BYTES]
        if crc.crc32c(0, at, 20) != get32(at + 20):
            return i
        if i and get64(at) <= offset:
            return i
        offset = get64(at)
        position = get64(at + 8)
        if position < position_min or (dense and position != position_min):
            return i
        size = <uint64_t> record.FRAME_BYTES + get32(at + 16)
        if position >= log_end or log_end - position < size:
            return i
        position_min = position + size
    return count


def check_time(const uint8_t[::1] entries, *, uint64_t log_start, uint64_t log_end):
    """How many time entries from the first on are intact, in order and within the log."""
    cdef size_t count = entries.shape[0] // TIME_ENTRY_BYTES
    cdef const uint8_t* at
    cdef uint64_t timestamp_ms = 0
    cdef uint64_t offset = 0
    cdef uint64_t position_min = log_start
    cdef size_t i
    for i in range(count):
        at = &entries[i * TIME_ENTRY_BYTES]
        if crc.crc32c(0, at, 24) != get32(at + 24):
            return i
        if i and (get64(at) < timestamp_ms or get64(at + 8) <= offset):
            return i
        if get64(at + 16) < position_min or get64(at + 16) >= log_end:
            return i
        timestamp_ms = get64(at)
        offset = get64(at + 8)
        position_min = get64(at + 16) + record.FRAME_BYTES
    return count


cdef struct Part:
    uint64_t base_offset
    uint64_t next_offset
    Py_buffer log
    Py_buffer entries


@cython.final
cdef class Finder:
    """Mapped segments in order: (base_offset, next_offset, log view, entries view).

    `log_start` is where frames begin in a log file. The views are held as long as the Finder is.
    """

    cdef Part* _parts
    cdef Py_ssize_t _count
    cdef uint64_t _log_start
    cdef size_t _payload_max

    def __cinit__(self, parts, *, log_start, payload_max):
        cdef Part* part
        parts = list(parts)  # as many as are counted, whatever it was
        self._log_start = log_start
        self._payload_max = payload_max
        self._parts = <Part*> PyMem_Calloc(max(1, len(parts)), sizeof(Part))
        if self._parts == NULL:
            raise MemoryError()
        for base_offset, next_offset, log, entries in parts:
            part = &self._parts[self._count]
            part.base_offset = base_offset
            part.next_offset = next_offset
            PyObject_GetBuffer(log, &part.log, PyBUF_SIMPLE)
            try:
                PyObject_GetBuffer(entries, &part.entries, PyBUF_SIMPLE)
            except BaseException:
                PyBuffer_Release(&part.log)
                raise
            self._count += 1

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self._count):
            PyBuffer_Release(&self._parts[i].log)
            PyBuffer_Release(&self._parts[i].entries)
        PyMem_Free(self._parts)

    def frame(self, uint64_t offset):
        """The stored frame (bytes) of exactly this offset, or None: look another way."""
        cdef record.Frame frame
        cdef const uint8_t* at = self._find(offset, &frame)
        if at == NULL:
            return None
        return PyBytes_FromStringAndSize(<const char*> at, frame.size)

    def get(self, uint64_t offset):
        """The decoded record of exactly this offset, or None: look another way."""
        cdef record.Frame frame
        cdef const uint8_t* at = self._find(offset, &frame)
        if at == NULL:
            return None
        return record.decode_one(at)

    cdef const uint8_t* _find(self, uint64_t offset, record.Frame* frame) noexcept nogil:
        cdef Py_ssize_t i = self._count - 1
        while i >= 0 and self._parts[i].base_offset > offset:
            i -= 1
        if i < 0 or offset >= self._parts[i].next_offset:
            return NULL
        cdef Part* part = &self._parts[i]
        cdef const uint8_t* log = <const uint8_t*> part.log.buf
        cdef const uint8_t* entries = <const uint8_t*> part.entries.buf
        cdef size_t log_bytes = part.log.len
        cdef size_t position = self._log_start
        cdef Py_ssize_t entry = floor_u64(
            entries, part.entries.len // ENTRY_BYTES, ENTRY_BYTES, 0, offset
        )
        if entry >= 0:
            position = get64(entries + entry * ENTRY_BYTES + 8)
        while position < log_bytes:
            if record.peek(
                log + position, log_bytes - position, self._payload_max, frame
            ) != record.FAULT_NONE:
                return NULL
            if frame.offset_last >= offset:
                break
            position += frame.size
        else:
            return NULL
        if frame.offset != offset or frame.attributes & record.IS_BATCH:
            return NULL
        if not record.intact(log + position, frame.size):
            return NULL
        return log + position
