"""The entries a group holds above its base: where each one is, and its bytes while they fit.

Numbers live in arrays (40 bytes an entry, whatever its size); an evicted command is None and is
read back by the journal from its place. Pure bookkeeping: writes nothing. GroupJournal changes it
together with the journal's records, recovery with the records it finds.
"""

import heapq
from array import array
from bisect import bisect_right
from collections.abc import Iterable

PLACE_BITS = 32  # a place is file number << 32 | position in the file
EVICT_RUN_BYTES = 1 << 20  # evicted from one group before the next older one is looked for
ABSENT = 0  # place of an entry that lies before the oldest file


class MemoryUse:
    """Bytes of the commands in memory, counted over all groups that share it."""

    __slots__ = ("used_bytes",)

    def __init__(self) -> None:
        self.used_bytes = 0


class GroupEntries:
    def __init__(self, memory: MemoryUse) -> None:
        self.base_index = 0
        self.base_term = 0
        self._memory = memory
        self._base_end = 0  # command bytes before the first entry; _ends count on from it
        self._commands: list[bytes | None] = []
        self._terms = array("Q")
        self._ends = array("Q")
        self._sequences = array("Q")  # rising: entries are journalled in the order of their index
        self._places = array("Q")
        self._evicted_count = 0  # entries in front of the first that may be in memory

    def __len__(self) -> int:
        return len(self._terms)

    @property
    def last_index(self) -> int:
        return self.base_index + len(self._terms)

    @property
    def last_term(self) -> int:
        return self._terms[-1] if self._terms else self.base_term

    def push(self, command: bytes, *, term: int, sequence: int, place: int) -> None:
        self._commands.append(command)
        self._terms.append(term)
        self._ends.append((self._ends[-1] if self._ends else self._base_end) + len(command))
        self._sequences.append(sequence)
        self._places.append(place)
        self._memory.used_bytes += len(command)

    def push_absent(self, count: int, *, last_term: int) -> None:
        """Recovery: entries a table names that lie before the oldest file. They must be trimmed,
        truncated or reset before the journal ends."""
        assert not self._terms, len(self._terms)
        zeros = array("Q", bytes(8 * count))
        self._commands = [None] * count
        self._ends, self._sequences, self._places = zeros[:], zeros[:], zeros[:]
        self._terms = zeros
        self._terms[-1] = last_term

    @property
    def first_place(self) -> int | None:
        return self._places[0] if self._places else None

    @property
    def last_is_absent(self) -> bool:
        return bool(self._places) and self._places[-1] == ABSENT

    def cut(self, from_index: int) -> None:
        """Forget entries from `from_index` on."""
        keep = from_index - self.base_index - 1
        assert 0 <= keep <= len(self._terms), (from_index, self.base_index, self.last_index)
        self._forget_memory(keep, len(self._terms))
        for column in (self._commands, self._terms, self._ends, self._sequences, self._places):
            del column[keep:]
        self._evicted_count = min(self._evicted_count, keep)

    def trim(self, to_index: int, *, base_term: int) -> None:
        """Forget entries up to `to_index`, which becomes the base."""
        gone = to_index - self.base_index
        assert 0 <= gone <= len(self._terms), (to_index, self.base_index, self.last_index)
        if gone == 0:
            return
        self._forget_memory(0, gone)
        self._base_end = self._ends[gone - 1]
        for column in (self._commands, self._terms, self._ends, self._sequences, self._places):
            del column[:gone]
        self._evicted_count = max(self._evicted_count - gone, 0)
        self.base_index = to_index
        self.base_term = base_term

    def reset(self, *, base_index: int, base_term: int) -> None:
        self.cut(self.base_index + 1)
        self.base_index = base_index
        self.base_term = base_term

    def term_at(self, index: int) -> int:
        if index == self.base_index:
            return self.base_term
        return self._terms[self._slot(index)]

    def command_at(self, index: int) -> bytes | None:
        return self._commands[self._slot(index)]

    def place_at(self, index: int) -> tuple[int, int, int]:
        """(file number, position, sequence) of the entry's record."""
        slot = self._slot(index)
        place = self._places[slot]
        return place >> PLACE_BITS, place & ((1 << PLACE_BITS) - 1), self._sequences[slot]

    def size_at(self, index: int) -> int:
        return self.bytes_between(index, index)

    def bytes_between(self, low: int, high: int) -> int:
        if high < low:
            return 0
        first = self._slot(low)
        before = self._ends[first - 1] if first else self._base_end
        return self._ends[self._slot(high)] - before

    def durable_count(self, durable_sequence: int) -> int:
        """How many of the entries, from the first, were journalled up to `durable_sequence`."""
        return bisect_right(self._sequences, durable_sequence)

    def oldest_in_memory(self) -> int | None:
        """Sequence of the first entry that has not been evicted."""
        if self._evicted_count == len(self._terms):
            return None
        return self._sequences[self._evicted_count]

    def evict(self, bytes_max: int, *, durable_sequence: int) -> int:
        """Forget the bytes of the oldest durable entries, about `bytes_max`; how many it were."""
        freed = 0
        end = self.durable_count(durable_sequence)
        while self._evicted_count < end and freed < bytes_max:
            command = self._commands[self._evicted_count]
            if command is not None:
                freed += len(command)
                self._commands[self._evicted_count] = None
            self._evicted_count += 1
        self._memory.used_bytes -= freed
        return freed

    def _slot(self, index: int) -> int:
        slot = index - self.base_index - 1
        assert 0 <= slot < len(self._terms), (index, self.base_index, self.last_index)
        return slot

    def _forget_memory(self, start: int, end: int) -> None:
        for command in self._commands[max(start, self._evicted_count) : end]:
            if command is not None:
                self._memory.used_bytes -= len(command)


def evict_oldest(
    groups: Iterable[GroupEntries], memory: MemoryUse, *, bytes_max: int, durable_sequence: int
) -> None:
    """Bring `memory` under `bytes_max`, about oldest first, as far as entries are on disk.

    Goes a little below it, so that not every entry asks for the next eviction.
    """
    if memory.used_bytes <= bytes_max:
        return
    target = bytes_max - bytes_max // 16
    waiting = [
        (sequence, position, held)
        for position, held in enumerate(groups)
        if (sequence := held.oldest_in_memory()) is not None
    ]
    heapq.heapify(waiting)
    while memory.used_bytes > target and waiting:
        _, position, held = waiting[0]
        held.evict(
            min(EVICT_RUN_BYTES, memory.used_bytes - target), durable_sequence=durable_sequence
        )
        sequence = held.oldest_in_memory()
        if sequence is None or sequence > durable_sequence:
            heapq.heappop(waiting)
        else:
            heapq.heapreplace(waiting, (sequence, position, held))
