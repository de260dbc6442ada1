# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: auto_pickle=False
"""Which records of a queue are done with: a bit per offset, where bits are needed at all.

Offsets run from 0. Those below `low` are all settled; from there to `next_offset` they stand in
blocks of 4096 offsets, and a block in which none or all are settled takes a pointer and no bits. So
a backlog costs two bytes per thousand records, and acknowledgements may come in any order. The
queue's store asks per batch; checkpoints keep the live offsets as intervals.
"""
cimport cython
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memmove

cdef extern from *:
    int popcount "__builtin_popcountll"(unsigned long long) noexcept nogil
    int trailing_zeros "__builtin_ctzll"(unsigned long long) noexcept nogil

cdef Block* FULL = <Block*> <size_t> 1
cdef uint64_t ALL_SET = ~(<uint64_t> 0)


@cython.final
cdef class Settled:
    def __cinit__(self, uint64_t next_offset=0):
        self.low = self.next_offset = next_offset
        self.block_first = next_offset >> BLOCK_SHIFT

    def __dealloc__(self):
        self.clear()
        free(self.blocks)

    def __repr__(self):
        return f"Settled(low={self.low}, next={self.next_offset}, live={self.live_count})"

    cdef void clear(self) noexcept:
        cdef size_t index
        for index in range(self.block_start, self.block_end):
            if self.blocks[index] != FULL:
                free(self.blocks[index])
        self.block_start = self.block_end = 0

    cdef int extend(self, uint64_t next_offset) except -1:
        """Offsets up to here exist now, and are live."""
        assert next_offset >= self.next_offset
        self.live_count += next_offset - self.next_offset
        self.next_offset = next_offset
        return 0

    cdef int skip(self, uint64_t next_offset) except -1:
        """Offsets up to here were never given to a record: as good as settled."""
        cdef uint64_t first = self.next_offset
        self.extend(next_offset)
        self.settle(first, next_offset - first)
        return 0

    cdef int64_t settle(self, uint64_t first, uint64_t count) except -1:
        """How many of these were live; they are settled now."""
        cdef uint64_t end = first + count
        cdef uint64_t block, stop
        cdef int64_t found = 0
        if end > self.next_offset:
            end = self.next_offset
        if first < self.low:
            first = self.low
        if first >= end:
            return 0
        if first == self.low and self.block_start == self.block_end:
            self.low = end               # in order, with nothing settled ahead: no bits at all
            self.live_count -= end - first
            return <int64_t> (end - first)
        self.cover(end - 1)
        while first < end:
            block = first >> BLOCK_SHIFT
            stop = (block + 1) << BLOCK_SHIFT
            if stop > end:
                stop = end
            found += self.settle_in_block(
                self.block_start + <size_t> (block - self.block_first),
                <uint32_t> (first & (BLOCK_OFFSETS - 1)),
                <uint32_t> ((stop - 1) & (BLOCK_OFFSETS - 1)),
            )
            first = stop
        self.live_count -= <uint64_t> found
        self.advance()
        return found

    cdef int cover(self, uint64_t offset) except -1:
        """Have a pointer for every block from `low` up to this offset's."""
        cdef uint64_t last = offset >> BLOCK_SHIFT
        cdef uint64_t low = self.low >> BLOCK_SHIFT
        cdef size_t count, capacity
        cdef Block** grown
        if self.block_start == self.block_end:
            self.block_start = self.block_end = 0
            self.block_first = low
        count = <size_t> (last - self.block_first + 1)
        if self.block_start and self.block_start + count > self.block_capacity:
            memmove(
                self.blocks, self.blocks + self.block_start,
                (self.block_end - self.block_start) * sizeof(Block*),
            )
            self.block_end -= self.block_start
            self.block_start = 0
        if self.block_start + count > self.block_capacity:
            capacity = max(<size_t> 8, 2 * (self.block_start + count))
            grown = <Block**> realloc(self.blocks, capacity * sizeof(Block*))
            if grown == NULL:
                raise MemoryError
            self.blocks = grown
            self.block_capacity = capacity
        while self.block_end < self.block_start + count:
            self.blocks[self.block_end] = NULL
            self.block_end += 1
        return 0

    cdef int64_t settle_in_block(self, size_t index, uint32_t first, uint32_t last) except -1:
        """Settle the offsets `first` to `last` of one block; how many were live."""
        cdef Block* block = self.blocks[index]
        cdef uint32_t word, word_last
        cdef uint64_t mask
        cdef int found = 0
        if block == FULL:
            return 0
        if block == NULL:
            if first == 0 and last == BLOCK_OFFSETS - 1:
                self.blocks[index] = FULL
                return BLOCK_OFFSETS
            block = <Block*> calloc(1, sizeof(Block))
            if block == NULL:
                raise MemoryError
            self.blocks[index] = block
        word_last = last >> 6
        for word in range(first >> 6, word_last + 1):
            mask = ALL_SET
            if word == first >> 6:
                mask &= ALL_SET << (first & 63)
            if word == word_last:
                mask &= ALL_SET >> (63 - (last & 63))
            found += popcount(mask & ~block.words[word])
            block.words[word] |= mask
        block.count += found
        if block.count == BLOCK_OFFSETS:
            free(block)
            self.blocks[index] = FULL
        return found

    cdef void advance(self) noexcept:
        """Raise `low` and let go of blocks that lie below it."""
        cdef uint64_t low = self.live_from(self.low)
        self.low = low
        while self.block_start < self.block_end and (
            self.block_first < low >> BLOCK_SHIFT or low == self.next_offset
        ):
            if self.blocks[self.block_start] != FULL:
                free(self.blocks[self.block_start])
            self.block_start += 1
            self.block_first += 1

    cdef bint is_settled(self, uint64_t offset) noexcept nogil:
        cdef uint64_t number = offset >> BLOCK_SHIFT
        cdef Block* block
        if offset < self.low:
            return True
        if number < self.block_first or (
            number - self.block_first >= self.block_end - self.block_start
        ):
            return False
        block = self.blocks[self.block_start + <size_t> (number - self.block_first)]
        if block == NULL:
            return False
        if block == FULL:
            return True
        return (block.words[(offset >> 6) & (BLOCK_WORDS - 1)] >> (offset & 63)) & 1

    cdef uint64_t live_from(self, uint64_t offset) noexcept nogil:
        """The first live offset that is not below this one, or `next_offset`."""
        return self._from(offset, 0)

    cdef uint64_t settled_from(self, uint64_t offset) noexcept nogil:
        """The first settled offset that is not below this one, or `next_offset`."""
        if offset < self.low:
            return offset
        return self._from(offset, ALL_SET)

    cdef uint64_t _from(self, uint64_t offset, uint64_t flip) noexcept nogil:
        """The first offset from here on whose bit, flipped, is not set: 0 finds live ones."""
        cdef uint64_t number, word, bits
        cdef Block* block
        if offset < self.low:
            offset = self.low
        while offset < self.next_offset:
            number = offset >> BLOCK_SHIFT
            block = NULL
            if number >= self.block_first and (
                number - self.block_first < self.block_end - self.block_start
            ):
                block = self.blocks[self.block_start + <size_t> (number - self.block_first)]
            elif flip:
                return self.next_offset      # behind the last block nothing is settled
            if block == NULL or block == FULL:
                if (block == NULL) == (flip == 0):
                    return offset
                offset = (number + 1) << BLOCK_SHIFT
                continue
            word = (offset >> 6) & (BLOCK_WORDS - 1)
            bits = ~(block.words[word] ^ flip) & (ALL_SET << (offset & 63))
            if bits:
                offset = (offset & ~(<uint64_t> 63)) + trailing_zeros(bits)
                break
            offset = (offset | 63) + 1
        return offset if offset < self.next_offset else self.next_offset

    # What Python calls: at checkpoints and in tests

    def add(self, uint64_t count):
        """The next `count` offsets exist now, live."""
        self.extend(self.next_offset + count)

    def add_gap(self, uint64_t count):
        self.skip(self.next_offset + count)

    def done(self, uint64_t first, uint64_t count):
        return self.settle(first, count)

    def __contains__(self, uint64_t offset):
        return self.is_settled(offset)

    def first_live(self, uint64_t offset):
        return self.live_from(offset)

    def live(self):
        """The live offsets as pairs (first, count), in order."""
        cdef uint64_t first = self.live_from(self.low)
        cdef uint64_t end
        found = []
        while first < self.next_offset:
            end = self.settled_from(first)
            found.append((first, end - first))
            first = self.live_from(end)
        return found

    @property
    def memory_bytes(self):
        """Of blocks and pointers."""
        cdef size_t index
        cdef size_t total = self.block_capacity * sizeof(Block*)
        for index in range(self.block_start, self.block_end):
            if self.blocks[index] != NULL and self.blocks[index] != FULL:
                total += sizeof(Block)
        return total


def from_live(uint64_t next_offset, live):
    """What `live` told of another."""
    cdef Settled made = Settled()
    cdef uint64_t first, count
    for first, count in live:
        made.skip(first)
        made.extend(first + count)
    made.skip(next_offset)
    return made
