# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: auto_pickle=False
"""Makes the index entries of a growing segment while its frames are written.

An entry is made for the first frame, then for the first frame that begins at least
`interval_bytes` behind the last one that got an entry; 0 means every frame (dense), -1 none. Time
entries follow the same rule with their own interval and hold the running maximum. Entries wait
here, in memory, until `writer` has put them into their files as one batch; layouts are `search`'s.
"""
cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport uint32_t
from libc.string cimport memcpy, memmove

from lograft_log.hot cimport crc, record, search


cdef uint8_t* grow(Pending* pending, size_t size) except NULL:
    """Room for `size` more bytes at the end, counted as used."""
    cdef size_t room
    cdef void* data
    if pending.size + size > pending.room:
        room = max(2 * pending.room, pending.size + size, <size_t> 4096)
        data = PyMem_Realloc(pending.data, room)
        if data == NULL:
            raise MemoryError()
        pending.data = <uint8_t*> data
        pending.room = room
    pending.size += size
    return pending.data + pending.size - size


cdef void shrink(Pending* pending, size_t size) noexcept:
    if size == 0:
        return
    pending.size -= size
    memmove(pending.data, pending.data + size, pending.size)


@cython.final
cdef class Indexer:
    def __cinit__(self, *, interval_bytes, time_interval_bytes):
        self.interval_bytes = interval_bytes
        self.time_interval_bytes = time_interval_bytes
        self._position_last = -1
        self._time_position_last = -1

    def __dealloc__(self):
        PyMem_Free(self._offsets.data)
        PyMem_Free(self._times.data)

    def resume(self, *, position_last, time_position_last, timestamp_ms_max):
        """Go on behind entries that are already in the files; -1 where there are none."""
        self._position_last = position_last
        self._time_position_last = time_position_last
        self.timestamp_ms_max = timestamp_ms_max

    def feed(self, const uint8_t[::1] data, size_t start, size_t end, uint64_t position):
        """Note the frames data[start:end], which stand at `position` in the file. They must be
        verified; others raise ValueError."""
        if end > <size_t> data.shape[0] or start > end:
            raise ValueError(f"range {start}..{end} outside of {data.shape[0]} bytes")
        if start < end:
            self._feed(&data[0], start, end, position)

    cdef int _feed(
        self, const uint8_t* data, size_t start, size_t end, uint64_t position
    ) except -1:
        cdef record.Frame frame
        cdef int64_t at = <int64_t> position
        while start < end:
            if record.peek(data + start, end - start, <size_t> -1, &frame) != record.FAULT_NONE:
                raise ValueError(f"no frame at {start}")
            if frame.timestamp_ms > self.timestamp_ms_max:
                self.timestamp_ms_max = frame.timestamp_ms
            if self.interval_bytes >= 0 and at > self._position_last and (
                self._position_last < 0 or at - self._position_last >= self.interval_bytes
            ):
                self._note(&frame, at)
            if at > self._time_position_last and (
                self._time_position_last < 0
                or at - self._time_position_last >= self.time_interval_bytes
            ):
                self._note_time(&frame, at)
            start += frame.size
            at += frame.size
        return 0

    cdef int _note(self, record.Frame* frame, int64_t position) except -1:
        cdef uint8_t* out = grow(&self._offsets, search.ENTRY_BYTES)
        cdef uint32_t length = <uint32_t> (frame.size - record.FRAME_BYTES)
        cdef uint32_t check
        memcpy(out, &frame.offset, 8)
        memcpy(out + 8, &position, 8)
        memcpy(out + 16, &length, 4)
        check = crc.crc32c(0, out, 20)
        memcpy(out + 20, &check, 4)
        self._position_last = position
        return 0

    cdef int _note_time(self, record.Frame* frame, int64_t position) except -1:
        cdef uint8_t* out = grow(&self._times, search.TIME_ENTRY_BYTES)
        cdef uint32_t check
        memcpy(out, &self.timestamp_ms_max, 8)
        memcpy(out + 8, &frame.offset_last, 8)
        memcpy(out + 16, &position, 8)
        check = crc.crc32c(0, out, 24)
        memcpy(out + 24, &check, 4)
        self._time_position_last = position
        return 0

    @property
    def pending_bytes(self):
        return self._offsets.size + self._times.size

    def offsets(self):
        """The offset entries that wait, as bytes."""
        return PyBytes_FromStringAndSize(<char*> self._offsets.data, self._offsets.size)

    def times(self):
        """The time entries that wait, as bytes."""
        return PyBytes_FromStringAndSize(<char*> self._times.data, self._times.size)

    def drop(self, *, size_t offsets_bytes, size_t times_bytes):
        """The first so many bytes of each have been written."""
        if offsets_bytes > self._offsets.size or times_bytes > self._times.size:
            raise ValueError("more dropped than there is")
        shrink(&self._offsets, offsets_bytes)
        shrink(&self._times, times_bytes)

    def floor(self, uint64_t offset):
        """Position of the last waiting entry at or below `offset`; -1 when there is none."""
        cdef Py_ssize_t entry = search.floor_u64(
            self._offsets.data, self._offsets.size // search.ENTRY_BYTES, search.ENTRY_BYTES, 0,
            offset,
        )
        cdef int64_t position
        if entry < 0:
            return -1
        memcpy(&position, self._offsets.data + entry * search.ENTRY_BYTES + 8, 8)
        return position
