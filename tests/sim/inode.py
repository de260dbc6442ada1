"""The bytes of one simulated file: what the page cache shows and what the medium holds.

`data` is what every read sees. The medium is described by difference: a sector that was written
since the last sync keeps its old content in `dirty`; all other sectors below `durable_size` are on
the medium as they stand in `data`; sectors beyond it were never synced.

    medium(sector) = lost[sector] | dirty[sector] | data[sector]     for sectors below durable_size

A failed sync marks pages clean though they never reached the medium (fsyncgate): their old content
moves from `dirty` to `lost`. Later syncs skip them; only a new write makes them dirty again.
"""

import random
from collections.abc import Callable
from enum import Enum

from typing_extensions import Buffer

SECTOR_BYTES = 512  # what a disk writes whole or not at all


class Survival(Enum):
    """What becomes of unsynced changes in a power cut."""

    KEEP = "keep"  # everything had reached the medium after all
    LOSE = "lose"  # nothing had
    PREFIX = "prefix"  # the changes made first had
    RANDOM = "random"  # each sector and each name had or had not
    MIXED = "mixed"  # drawn anew for each file and for the names


SURVIVALS = (Survival.KEEP, Survival.LOSE, Survival.PREFIX, Survival.RANDOM)


def chooser(survival: Survival, count: int, rng: random.Random) -> Callable[[], bool]:
    """Says for each of `count` changes, asked in their order, whether it survives."""
    assert survival is not Survival.MIXED, "draw one first"
    if survival is Survival.KEEP:
        return lambda: True
    if survival is Survival.LOSE:
        return lambda: False
    if survival is Survival.PREFIX:
        kept = iter([True] * rng.randint(0, count))
        return lambda: next(kept, False)
    chance = rng.choice((0.1, 0.5, 0.9))
    return lambda: rng.random() < chance


def draw(survival: Survival, rng: random.Random) -> Survival:
    return rng.choice(SURVIVALS) if survival is Survival.MIXED else survival


class Inode:
    """One file's bytes, whatever its names."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.durable_size = 0
        self.dirty: dict[int, bytes] = {}  # sector -> content on the medium; in order of writing
        self.lost: dict[int, bytes] = {}  # the same for pages a failed sync marked clean
        self.settled_end = 0  # bytes before it were durable already before the last sync
        self.allocated = 0  # bytes up to the last written one; what is behind is a hole
        self.linked = True  # has a name; its bytes count against the volume
        self._map: bytes | None = None  # what `view` gave last, until the next change

    @property
    def is_clean(self) -> bool:
        return not self.dirty and not self.lost and len(self.data) == self.durable_size

    def write(self, position: int, content: Buffer) -> int:
        view = memoryview(content).cast("B")
        size = view.nbytes
        if size == 0:
            return 0
        end = position + size
        self._map = None
        self._remember(position, end)
        if position > len(self.data):
            self.data.extend(bytes(position - len(self.data)))
        self.data[position:end] = view
        self.allocated = max(self.allocated, end)
        return size

    def truncate(self, size: int) -> None:
        self._map = None
        if size < len(self.data):
            self._remember(size, len(self.data))
            del self.data[size:]
            self.allocated = min(self.allocated, size)
        else:
            self.data.extend(bytes(size - len(self.data)))

    def read(self, position: int, size: int) -> bytes:
        return bytes(memoryview(self.data)[position : position + size])

    def view(self, size: int) -> memoryview:
        """The first bytes as they are now, apart from later writes."""
        if self._map is None:
            self._map = bytes(self.data)
        return memoryview(self._map)[:size]

    def sync(self) -> None:
        first_dirty = min(self.dirty, default=_sectors(self.durable_size)) * SECTOR_BYTES
        self.settled_end = min(first_dirty, self.durable_size, len(self.data))
        self.dirty.clear()
        self.durable_size = len(self.data)
        for sector in [at for at in self.lost if at * SECTOR_BYTES >= self.durable_size]:
            del self.lost[sector]

    def sync_failed(self) -> None:
        """Nothing reached the medium, and the kernel will not try these pages again."""
        self.lost.update(self.dirty)
        self.dirty.clear()
        for sector in range(_sectors(self.durable_size), _sectors(len(self.data))):
            self.lost.setdefault(sector, b"")

    def forget_cache(self) -> None:
        """Clean pages are read from the medium again, so pages of a failed sync turn old."""
        self._map = None
        for sector, old in self.lost.items():
            self._put(sector, old)
        self.lost.clear()

    def power_cut(self, survival: Survival, rng: random.Random) -> None:
        """Settle what the medium holds; afterwards the file is clean."""
        survival = draw(survival, rng)
        size_new, size_old = len(self.data), self.durable_size
        fresh = range(_sectors(size_old), _sectors(size_new))
        survives = chooser(survival, len(self.dirty) + len(fresh) + 1, rng)
        back = [(sector, old) for sector, old in self.dirty.items() if not survives()]
        back += [(sector, b"") for sector in fresh if not survives()]
        back += self.lost.items()
        size = size_new
        if size_new != size_old and not survives():
            size = size_old
            if size_new > size_old and survival is not Survival.LOSE and rng.random() < 0.5:
                size = rng.randint(size_old, size_new)  # caught on its way
        if size > size_new:
            # The cut itself was lost, so nothing behind it was ever freed: all of it is old.
            self.data.extend(bytes(size - size_new))
            back += [(at, old) for at, old in self.dirty.items() if at >= size_new // SECTOR_BYTES]
        del self.data[size:]
        for sector, old in back:
            self._put(sector, old)
        self.dirty.clear()
        self.lost.clear()
        self.durable_size = size
        self.settled_end = min(self.settled_end, size)
        self.allocated = min(self.allocated, size) if size <= size_new else size
        self._map = None

    def flip_bit(self, position: int, bit: int) -> None:
        """Damage the medium, and with it every page that is read from it."""
        assert position < self.durable_size, (position, self.durable_size)
        sector, within = divmod(position, SECTOR_BYTES)
        for held in (self.dirty, self.lost):
            if sector in held:
                content = bytearray(held[sector].ljust(SECTOR_BYTES, b"\0"))
                content[within] ^= 1 << bit
                held[sector] = bytes(content)
                return
        self._map = None
        self.data[position] ^= 1 << bit

    def _remember(self, start: int, end: int) -> None:
        """Keep what the medium holds of the sectors about to change."""
        first = start // SECTOR_BYTES
        last = min(_sectors(end), _sectors(self.durable_size))
        for sector in range(first, last):
            if sector not in self.dirty:
                at = sector * SECTOR_BYTES
                limit = min(at + SECTOR_BYTES, self.durable_size)
                kept = self.lost.pop(sector, None)
                self.dirty[sector] = bytes(self.data[at:limit]) if kept is None else kept
        for sector in range(max(first, last), _sectors(end)) if self.lost else ():
            self.lost.pop(sector, None)

    def _put(self, sector: int, content: bytes) -> None:
        """Lay old content over a sector, within the present size; short content is followed by
        zeros."""
        at = sector * SECTOR_BYTES
        length = min(SECTOR_BYTES, len(self.data) - at)
        if length > 0:
            self.data[at : at + length] = content[:length].ljust(length, b"\0")


def _sectors(size: int) -> int:
    return -(-size // SECTOR_BYTES)
