"""A node's disk in memory: SimVolume is the medium with its page cache, SimDisk one boot's view.

What a power cut may do, `Survival` choosing among it by the seed:
- Bytes: at 512-byte sectors, each unsynced sector is old or new, independently of the others. An
  unsynced size is the old one, the new one, or (growing) one between; where the size survived
  without its bytes, they read zero. After File.sync all of a file's bytes and its size are safe.
- Names: every create, rename, remove, new folder and removed folder since the last sync_folder of
  a folder it touches is lost or not, independently, with two limits of a journaling file system: a
  rename is one step, never half done, and of several changes to the same name a later one never
  survives an earlier one. So changes to different names may be reordered freely, which is more
  than ext4 or xfs would do. A lost remove brings the name back with its bytes. Syncing a file does
  not make its name durable, nor does syncing a folder make the folder's own name durable.
A process killed while the machine runs on (`process_died`) loses nothing, for the cache is the
kernel's, except that pages of a failed sync may be read from the medium again and turn old.

Faults: bit flips, a capacity limit (ENOSPC, after a partial write), failing syncs (EIO), crash
points. A SimDisk whose process died raises SimCrash at every call, so that no `finally` of a dead
process changes anything.
"""

import errno
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from typing_extensions import Buffer

from sim.inode import SECTOR_BYTES, Inode, Survival, chooser, draw
from sim.loop import SimCrash

CAPACITY_BYTES = 1 << 40  # as good as no limit


class Folder:
    """A folder's names as seen now, and as they are on the medium."""

    def __init__(self) -> None:
        self.entries: dict[str, Inode | Folder] = {}
        self.durable: dict[str, Inode | Folder] = {}


@dataclass(frozen=True, slots=True)
class Change:
    """One step of names: (folder, name, what the name means afterwards)."""

    sets: tuple[tuple[Folder, str, Inode | Folder | None], ...]

    def touches(self, folder: Folder) -> bool:
        return any(one is folder for one, _, _ in self.sets)

    def keys(self) -> set[tuple[int, str]]:
        return {(id(folder), name) for folder, name, _ in self.sets}

    def settle(self) -> None:
        for folder, name, target in self.sets:
            _assign(folder.durable, name, target)


class SimVolume:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.root = Folder()
        self.pending: list[Change] = []  # changes of names not yet durable, in order
        self.unsettled: dict[int, Inode] = {}  # files with unsynced bytes, by id, in order
        self.capacity_bytes = CAPACITY_BYTES
        self.used_bytes = 0
        self.sync_errors = 0  # how many of the next syncs fail
        self.crash_in = 0  # 1: the next change crashes; 0: none does
        self.operation_count = 0  # changes so far; what crash points are counted in

    @property
    def is_troubled(self) -> bool:
        """A fault is set that makes calls fail."""
        return self.sync_errors > 0 or self.capacity_bytes < CAPACITY_BYTES

    def crash_at(self, operations: int) -> None:
        """Let the process die at its `operations`-th change from now; 0 takes that back."""
        self.crash_in = operations

    def power_cut(self, survival: Survival = Survival.MIXED) -> None:
        """The machine lost power: settle what survives. Nothing is open or unsynced afterwards."""
        rng = self.rng
        survives = chooser(draw(survival, rng), len(self.pending), rng)
        blocked: set[tuple[int, str]] = set()
        for change in self.pending:
            if survives() and not blocked & change.keys():
                change.settle()
            else:
                blocked |= change.keys()
        self.pending.clear()
        for inode in self.unsettled.values():
            inode.power_cut(survival, rng)
        self.unsettled.clear()
        _restore(self.root)
        self._recount()
        self.crash_in = 0

    def process_died(self, *, forget_cache: bool) -> None:
        """The machine runs on; under memory pressure clean pages are read from the medium anew."""
        if forget_cache:
            for inode in self.unsettled.values():
                inode.forget_cache()
        self._recount()
        self.crash_in = 0

    def flip_bit(self, path: str, position: int, *, bit: int = 0) -> None:
        target = self.find(path)
        assert isinstance(target, Inode), path
        target.flip_bit(position, bit)

    def flip_random(self, damageable: Callable[[str, Inode], int]) -> tuple[str, int] | None:
        """Damage one durable bit within the first `damageable(path, inode)` bytes of some file;
        says where, None if nowhere."""
        files = [(path, inode, damageable(path, inode)) for path, inode in self.files()]
        files = [(path, inode, size) for path, inode, size in files if size > 0]
        if not files:
            return None
        path, inode, size = self.rng.choice(files)
        position = self.rng.randrange(size)
        inode.flip_bit(position, self.rng.randrange(8))
        return path, position

    def files(self) -> Iterator[tuple[str, Inode]]:
        yield from _walk("", self.root)

    def find(self, path: str) -> Inode | Folder | None:
        target: Inode | Folder | None = self.root
        for name in _names(path):
            if not isinstance(target, Folder):
                return None
            target = target.entries.get(name)
        return target

    def change(self, *sets: tuple[Folder, str, Inode | Folder | None]) -> None:
        for folder, name, target in sets:
            _assign(folder.entries, name, target)
        self.pending.append(Change(sets))

    def sync_names(self, folder: Folder) -> None:
        """Changes that touch the folder become durable, and what they build on by name."""
        wanted: set[tuple[int, str]] = set()
        chosen: set[int] = set()
        for change in reversed(self.pending):
            keys = change.keys()
            if change.touches(folder) or keys & wanted:
                wanted |= keys
                chosen.add(id(change))
        for change in self.pending:
            if id(change) in chosen:
                change.settle()
        self.pending = [change for change in self.pending if id(change) not in chosen]

    def note(self, inode: Inode) -> None:
        """A file changed: remember to settle it in a power cut."""
        if inode.is_clean:
            self.unsettled.pop(id(inode), None)
        else:
            self.unsettled[id(inode)] = inode

    def _recount(self) -> None:
        self.used_bytes = sum(inode.allocated for _, inode in self.files())


class SimDisk:
    """env.Disk for one boot of a process."""

    def __init__(self, volume: SimVolume, *, on_crash: Callable[[], None]) -> None:
        self.volume = volume
        self.alive = True
        self._on_crash = on_crash  # called at the crash point, before SimCrash is raised

    def __repr__(self) -> str:
        return f"SimDisk(used={self.volume.used_bytes}, alive={self.alive})"

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> "SimFile":
        self.check()
        target = self.volume.find(path)
        if isinstance(target, Folder):
            raise _error(errno.EISDIR, path)
        if target is None:
            if not create:
                raise _error(errno.ENOENT, path)
            folder, name = self._place(path)
            self.strike()
            if self.free_bytes(path) <= 0:
                raise _error(errno.ENOSPC, path)
            target = Inode()
            self.volume.change((folder, name, target))
        return SimFile(self, path, target, writable=writable)

    def exists(self, path: str) -> bool:
        self.check()
        return self.volume.find(path) is not None

    def names(self, folder: str) -> list[str]:
        self.check()
        target = self.volume.find(folder)
        return sorted(target.entries) if isinstance(target, Folder) else []

    def make_folder(self, path: str) -> None:
        self.check()
        folder = self.volume.root
        for name in _names(path):
            target = folder.entries.get(name)
            if target is None:
                self.strike()
                target = Folder()
                self.volume.change((folder, name, target))
            if not isinstance(target, Folder):
                raise _error(errno.ENOTDIR, path)
            folder = target

    def remove_folder(self, path: str) -> None:
        self.check()
        target = self.volume.find(path)
        if target is None:
            return
        if not isinstance(target, Folder):
            raise _error(errno.ENOTDIR, path)
        for name in sorted(target.entries):
            if isinstance(target.entries[name], Folder):
                self.remove_folder(f"{path}/{name}")
            else:
                self.remove(f"{path}/{name}")
        folder, name = self._place(path)
        self.strike()
        self.volume.change((folder, name, None))

    def remove(self, path: str) -> None:
        self.check()
        target = self._file(path)
        folder, name = self._place(path)
        self.strike()
        self.volume.change((folder, name, None))
        self._unlink(target)

    def rename(self, old: str, new: str) -> None:
        self.check()
        source = self.volume.find(old)
        if source is None:
            raise _error(errno.ENOENT, old)
        replaced = self.volume.find(new)
        if isinstance(replaced, Folder) and (replaced.entries or not isinstance(source, Folder)):
            raise _error(errno.ENOTEMPTY if replaced.entries else errno.EISDIR, new)
        if isinstance(replaced, Inode) and isinstance(source, Folder):
            raise _error(errno.ENOTDIR, new)
        if replaced is source:
            return
        old_folder, old_name = self._place(old)
        new_folder, new_name = self._place(new)
        self.strike()
        self.volume.change((old_folder, old_name, None), (new_folder, new_name, source))
        if isinstance(replaced, Inode):
            self._unlink(replaced)

    def sync_folder(self, path: str) -> None:
        self.check()
        target = self.volume.find(path)
        if not isinstance(target, Folder):
            raise _error(errno.ENOENT, path)
        self.strike()
        self.fail_sync(path)
        self.volume.sync_names(target)

    def free_bytes(self, path: str) -> int:
        self.check()
        return max(0, self.volume.capacity_bytes - self.volume.used_bytes)

    def check(self) -> None:
        if not self.alive:
            raise SimCrash

    def strike(self, torn: Callable[[], None] | None = None) -> None:
        """Before every change: here the process may die, a write perhaps half done."""
        volume = self.volume
        volume.operation_count += 1
        if volume.crash_in:
            volume.crash_in -= 1
            if not volume.crash_in:
                if torn is not None:
                    torn()
                self.alive = False
                self._on_crash()
                raise SimCrash

    def fail_sync(self, path: str) -> None:
        if self.volume.sync_errors:
            self.volume.sync_errors -= 1
            raise _error(errno.EIO, path)

    def _file(self, path: str) -> Inode:
        target = self.volume.find(path)
        if target is None:
            raise _error(errno.ENOENT, path)
        if isinstance(target, Folder):
            raise _error(errno.EISDIR, path)
        return target

    def _place(self, path: str) -> tuple[Folder, str]:
        parent, _, name = path.rpartition("/")
        folder = self.volume.find(parent)
        if folder is None or not name:
            raise _error(errno.ENOENT, path)
        if not isinstance(folder, Folder):
            raise _error(errno.ENOTDIR, path)
        return folder, name

    def _unlink(self, inode: Inode) -> None:
        inode.linked = False
        self.volume.used_bytes -= inode.allocated


class SimFile:
    def __init__(self, disk: SimDisk, path: str, inode: Inode, *, writable: bool) -> None:
        self.path = path
        self._disk = disk
        self._volume = disk.volume
        self._inode = inode
        self._writable = writable
        self._open = True

    def __repr__(self) -> str:
        return f"SimFile({self.path!r})"

    def write_at(self, position: int, parts: Sequence[Buffer]) -> int:
        self._check(writable=True)
        content = parts[0] if len(parts) == 1 else b"".join(parts)
        size = memoryview(content).nbytes
        self._disk.strike(lambda: self._write_torn(position, content))
        inode = self._inode
        growth = max(0, position + size - inode.allocated)
        free = self._volume.capacity_bytes - self._volume.used_bytes
        if inode.linked and growth > free:
            fits = max(0, size - growth + max(0, free))
            self._write(position, memoryview(content).cast("B")[:fits])
            raise _error(errno.ENOSPC, self.path)
        return self._write(position, content)

    def read_at(self, position: int, size: int) -> bytes:
        self._check(writable=False)
        return self._inode.read(position, size)

    def map(self, size: int) -> memoryview:
        self._check(writable=False)
        if size > self.size():
            raise ValueError(f"{self.path} has {self.size()} bytes, not {size}")
        return self._inode.view(size)

    def size(self) -> int:
        self._check(writable=False)
        return len(self._inode.data)

    def truncate(self, size: int) -> None:
        self._check(writable=True)
        self._disk.strike()
        before = self._inode.allocated
        self._inode.truncate(size)
        self._account(before)

    def sync(self) -> None:
        self._check(writable=False)
        self._disk.strike()
        try:
            self._disk.fail_sync(self.path)
        except OSError:
            self._inode.sync_failed()
            raise
        self._inode.sync()
        self._volume.note(self._inode)

    def close(self) -> None:
        self._open = False

    def _write(self, position: int, content: Buffer) -> int:
        before = self._inode.allocated
        written = self._inode.write(position, content)
        self._account(before)
        return written

    def _write_torn(self, position: int, content: Buffer) -> None:
        """The kernel had taken only the first sectors when the process died."""
        view = memoryview(content).cast("B")
        sectors = self._volume.rng.randint(0, view.nbytes // SECTOR_BYTES)
        self._write(position, view[: sectors * SECTOR_BYTES])

    def _account(self, before: int) -> None:
        if self._inode.linked:
            self._volume.used_bytes += self._inode.allocated - before
        self._volume.note(self._inode)

    def _check(self, *, writable: bool) -> None:
        self._disk.check()
        if not self._open or (writable and not self._writable):
            raise _error(errno.EBADF, self.path)


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def _assign(entries: dict[str, Inode | Folder], name: str, target: Inode | Folder | None) -> None:
    if target is None:
        entries.pop(name, None)
    else:
        entries[name] = target


def _restore(folder: Folder) -> None:
    """After a power cut the medium is all there is."""
    folder.entries = dict(folder.durable)
    for target in folder.entries.values():
        if isinstance(target, Folder):
            _restore(target)
        else:
            target.linked = True


def _walk(path: str, folder: Folder) -> Iterator[tuple[str, Inode]]:
    for name, target in sorted(folder.entries.items()):
        if isinstance(target, Folder):
            yield from _walk(f"{path}{name}/", target)
        else:
            yield f"{path}{name}", target


def _error(number: int, path: str) -> OSError:
    return OSError(number, errno.errorcode[number], path)
