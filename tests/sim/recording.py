"""RecordingMachine: the smallest machine that would show any mistake of the layers below it.

Its state is a chain of digests over everything applied, so two machines are equal exactly when
they applied the same commands at the same indexes. Like a real machine it writes a file of its own
without sync while it applies, and makes it durable only when it is captured; a restore reads the
file back and compares it with the payload, so a sync that is missing, or an install that carried
wrong bytes, is noticed.
"""

import hashlib
import struct
from typing import Protocol

from lograft_log.env import Disk, File
from lograft_log.hot import crc
from lograft_replication.machine import Capture, StateFile
from lograft_wire.errors import DamagedError, StorageError

FILE = "applied"
DIGEST_BYTES = 16
# index u64 | digest 16: one row per applied command
_ROW = struct.Struct("<Q16s")
assert _ROW.size == 24
# index u64 | count u64 | crc32c of the rows u32 | digest 16
_PAYLOAD = struct.Struct("<QQI16s")
assert _PAYLOAD.size == 36
_PLACE = struct.Struct("<QQ")


class Observer(Protocol):
    def applied(self, index: int, digest: bytes) -> None: ...

    def restored(self, index: int, digest: bytes) -> None:
        """The machine became a checkpoint that holds commands up to `index`; never 0."""


class RecordingMachine:
    def __init__(self, *, disk: Disk, observer: Observer) -> None:
        self.index = 0  # of the last command applied
        self.digest = bytes(DIGEST_BYTES)
        self.holes = ""  # what a fault says is wrong with this copy
        self._disk = disk
        self._observer = observer
        self._count = 0
        self._crc = 0
        self._folder = ""
        self._file: File | None = None

    def apply(self, index: int, term: int, command: bytes) -> object:
        assert index > self.index, (index, self.index)
        assert self._file is not None, "apply before restore"
        chain = hashlib.blake2b(self.digest, digest_size=DIGEST_BYTES)
        chain.update(_PLACE.pack(index, term))
        chain.update(command)
        self.index, self.digest = index, chain.digest()
        row = _ROW.pack(index, self.digest)
        try:
            self._file.write_at(self._count * _ROW.size, [row])
        except OSError as error:
            raise StorageError(f"{self._file.path}: {error}", path=self._file.path) from error
        self._count += 1
        self._crc = crc.checksum(row, self._crc)
        self._observer.applied(index, self.digest)
        return self.digest

    def capture(self) -> Capture:
        file = self._file
        assert file is not None, "capture before restore"
        folder = self._folder

        def sync() -> None:
            file.sync()
            self._disk.sync_folder(folder)

        length = self._count * _ROW.size
        return Capture(
            payload=_PAYLOAD.pack(self.index, self._count, self._crc, self.digest),
            sync=sync,
            files=(StateFile(FILE, length, self._crc),) if length else (),
        )

    def restore(self, payload: bytes, folder: str) -> None:
        self._folder = folder
        self._file = self._disk.open(f"{folder}/{FILE}", create=True)
        self.index, self._count, self._crc = 0, 0, 0
        self.digest = bytes(DIGEST_BYTES)
        if payload:
            self.index, self._count, self._crc, self.digest = _PAYLOAD.unpack(payload)
            self._check(self._file.read_at(0, self._count * _ROW.size))
        self._file.truncate(self._count * _ROW.size)
        if self.index:
            self._observer.restored(self.index, self.digest)

    def damaged(self) -> str:
        return self.holes  # other damage is found by `restore`, which refuses it

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _check(self, rows: bytes) -> None:
        path = f"{self._folder}/{FILE}"
        if len(rows) != self._count * _ROW.size or crc.checksum(rows) != self._crc:
            raise DamagedError(f"{path} is not what the checkpoint {self.index} says", path=path)
