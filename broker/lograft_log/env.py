"""The outside world as values: Disk, Clock and Rng, and their real versions.

The only file of the storage layers that touches os, time or random. Tests put a simulated disk
(which loses what was not synced), a virtual clock and a seeded Rng in the same places.

Disk calls may block and may raise OSError; callers translate it. All paths are strings, joined
with "/". A file's bytes survive a power cut only after `File.sync`, a new, renamed or removed name
only after `Disk.sync_folder` of its folder.
"""

import mmap
import os
import random
import shutil
import time
from collections.abc import Sequence
from typing import Protocol

from typing_extensions import Buffer

WRITE_PARTS_MAX = 512  # parts per system call; the kernel's own limit is 1024


class File(Protocol):
    """An open file. Reads and writes name their position; there is no cursor."""

    path: str

    def write_at(self, position: int, parts: Sequence[Buffer]) -> int:
        """Write all parts one behind the other and return the number of bytes."""

    def read_at(self, position: int, size: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file."""

    def map(self, size: int) -> memoryview:
        """The first `size` bytes, read-only, valid as long as the view is held, even after the
        file is closed or removed. `size` may not exceed the file's size."""

    def size(self) -> int: ...

    def truncate(self, size: int) -> None:
        """Make the file exactly `size` bytes long; new bytes are zero."""

    def sync(self) -> None:
        """fdatasync: bytes (and the size) written so far survive a power cut."""

    def close(self) -> None: ...


class Disk(Protocol):
    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File: ...

    def exists(self, path: str) -> bool: ...

    def names(self, folder: str) -> list[str]:
        """Sorted names in a folder; empty when it does not exist."""

    def make_folder(self, path: str) -> None:
        """With its parents; no error when it exists. Durable after `sync_folder` of the parents."""

    def remove_folder(self, path: str) -> None:
        """With all it holds; no error when it does not exist."""

    def remove(self, path: str) -> None: ...

    def rename(self, old: str, new: str) -> None:
        """Replaces `new` if it exists."""

    def sync_folder(self, path: str) -> None: ...

    def free_bytes(self, path: str) -> int: ...


class Clock(Protocol):
    def now_s(self) -> float:
        """Seconds that never go back and go on while the machine sleeps (CLOCK_BOOTTIME)."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970; may jump."""


class Rng(Protocol):
    def uniform(self, low: float, high: float) -> float: ...

    def token(self, size: int) -> bytes:
        """Random bytes for identities and nonces."""


class RealFile:
    def __init__(self, path: str, *, create: bool, writable: bool) -> None:
        self.path = path
        flags = os.O_RDWR if writable else os.O_RDONLY
        self._fd = os.open(path, flags | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o640)

    def __repr__(self) -> str:
        return f"RealFile({self.path!r})"

    def write_at(self, position: int, parts: Sequence[Buffer]) -> int:
        total = 0
        for start in range(0, len(parts), WRITE_PARTS_MAX):
            some = parts[start : start + WRITE_PARTS_MAX]
            expected = sum(memoryview(part).nbytes for part in some)
            written = os.pwritev(self._fd, some, position + total)
            if written != expected:
                written = self._write_rest(position + total, some, written)
            total += written
        return total

    def _write_rest(self, position: int, parts: Sequence[Buffer], written: int) -> int:
        """A short write (a signal, a nearly full disk): go on until all is written or it raises."""
        rest = memoryview(b"".join(parts))
        while written < len(rest):
            written += os.pwrite(self._fd, rest[written:], position + written)
        return written

    def read_at(self, position: int, size: int) -> bytes:
        data = os.pread(self._fd, size, position)
        if len(data) == size or not data:
            return data
        parts = [data]
        got = len(data)
        while got < size:
            data = os.pread(self._fd, size - got, position + got)
            if not data:
                break
            parts.append(data)
            got += len(data)
        return b"".join(parts)

    def map(self, size: int) -> memoryview:
        assert self._fd >= 0, self  # mmap takes -1 for "no file at all" and would give zeros
        if size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(self._fd, size, prot=mmap.PROT_READ))

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def sync(self) -> None:
        os.fdatasync(self._fd)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class RealDisk:
    def open(self, path: str, *, create: bool = False, writable: bool = True) -> RealFile:
        return RealFile(path, create=create, writable=writable)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(os.listdir(folder))
        except FileNotFoundError:
            return []

    def make_folder(self, path: str) -> None:
        os.makedirs(path, mode=0o750, exist_ok=True)

    def remove_folder(self, path: str) -> None:
        if os.path.exists(path):
            shutil.rmtree(path)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def rename(self, old: str, new: str) -> None:
        os.rename(old, new)

    def sync_folder(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def free_bytes(self, path: str) -> int:
        stat = os.statvfs(path)
        return stat.f_bavail * stat.f_frsize


class RealClock:
    def now_s(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000


class RealRng:
    def uniform(self, low: float, high: float) -> float:
        return random.uniform(low, high)

    def token(self, size: int) -> bytes:
        return os.urandom(size)
