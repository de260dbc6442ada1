"""The lock on a data folder: two nodes never share one.

The lock is the kernel's (flock), so it ends with the process that holds it, however that ends. The
file holds the process id for the error message only. Taken by `server` before anything is read.
"""

import fcntl
import os

from lograft_wire.errors import ConfigError, StorageError

LOCK_NAME = "node.lock"


class FolderLock:
    """Held from construction until `close`."""

    def __init__(self, folder: str) -> None:
        path = f"{folder}/{LOCK_NAME}"
        try:
            os.makedirs(folder, mode=0o750, exist_ok=True)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        except OSError as error:
            raise StorageError(
                f"data folder {folder} cannot be used: {error}", path=path
            ) from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._fd, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._fd)
            raise ConfigError(
                f"data folder {folder} is in use by another node (process {holder}): "
                "stop that one, or give --data another folder"
            ) from error
        self._write_pid()

    def close(self) -> None:
        """The file stays: removing it could take the lock from under a node just starting."""
        os.close(self._fd)

    def _write_pid(self) -> None:
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode("ascii"), 0)
