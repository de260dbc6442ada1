"""Serving a checkpoint to another node: whole files, pulled in chunks by the one who needs them.

`PullServer` answers for one group at the source; `puller` is the other side. Both are machines
without I/O of their own: messages come in by a call and leave through a callback, blocking disk
work goes to a Background. The host routes messages to them and calls their timers.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from lograft_log.background import Background
from lograft_log.env import Clock, Disk, File
from lograft_replication import manifest
from lograft_replication.checkpoint import CheckpointStore
from lograft_replication.manifest import Manifest
from lograft_replication.messages import Chunk, Pull
from lograft_wire.errors import PeerError, StorageError, UnavailableError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    chunk_bytes_max: int = 1024 * 1024
    chunks_in_flight_max: int = 4  # asked for or being written
    bytes_per_s: float = 100e6
    burst_bytes: int = 32 * 1024 * 1024  # what may be asked for between two timers
    chunk_s_max: float = 10.0  # then it is asked for again
    silence_s_max: float = 60.0  # then the pull fails
    retry_s: float = 1.0  # told to whoever must wait for another offer
    free_bytes_min: int = 64 * 1024 * 1024  # stays free beside the pulled files
    pin_s_max: float = 300.0  # without a pull, then the files are let go
    pin_count_max: int = 4
    pin_busy_s: float = 2.0  # a pin used within this time is not given up for another one
    pinned_file_count_max: int = 2048  # held open from the start; the rest when first asked for
    reads_waiting_max: int = 64


@dataclass(slots=True)
class _Pin:
    """One checkpoint held open. Its files belong to the Background, the rest to the loop."""

    manifest: Manifest
    data: bytes = field(repr=False)  # the manifest's own bytes: file 0
    folder: str
    used_s: float
    files: dict[int, File] = field(default_factory=dict)
    failed: str = ""  # why it could not be held open; then every read says so


class PullServer:
    def __init__(
        self,
        disk: Disk,
        store: CheckpointStore,
        limits: Limits,
        *,
        clock: Clock,
        background: Background,
    ) -> None:
        self._disk = disk
        self._store = store
        self._limits = limits
        self._clock = clock
        self._background = background
        self._pins: dict[int, _Pin] = {}  # by checkpoint index
        self._reads_waiting = 0

    @property
    def pinned(self) -> tuple[int, ...]:
        """The checkpoints whose files are held open."""
        return tuple(self._pins)

    def held(self, checkpoint: int) -> tuple[Manifest, bytes] | None:
        """A checkpoint that is being pulled, with its manifest's own bytes."""
        pin = self._pins.get(checkpoint)
        return None if pin is None or pin.failed else (pin.manifest, pin.data)

    def on_pull(self, pull: Pull, reply: Callable[[Chunk], None]) -> None:
        pin = self._pins.get(pull.checkpoint) or self._pin(pull.checkpoint)
        if isinstance(pin, str):
            reply(Chunk(pull.request, pin, b""))
        elif self._reads_waiting >= self._limits.reads_waiting_max:
            reply(Chunk(pull.request, f"{self._reads_waiting} reads wait already", b""))
        else:
            pin.used_s = self._clock.now_s()
            self._read(pin, pull, reply)

    def on_timer(self) -> None:
        horizon_s = self._clock.now_s() - self._limits.pin_s_max
        for checkpoint, pin in list(self._pins.items()):
            if pin.used_s < horizon_s:
                self.release(checkpoint)

    def release(self, checkpoint: int) -> None:
        pin = self._pins.pop(checkpoint, None)
        if pin is not None:
            self._background.run(lambda: close_all(pin.files), report)

    def close(self) -> None:
        for checkpoint in self.pinned:
            self.release(checkpoint)

    def _pin(self, checkpoint: int) -> _Pin | str:
        placed = self._store.placed
        current = placed.manifest
        if current is None or current.index != checkpoint:
            return f"checkpoint {checkpoint} is unknown, current is {current and current.index}"
        if len(self._pins) >= self._limits.pin_count_max and not self._give_one_up():
            return f"{len(self._pins)} checkpoints are being pulled already"
        folder = self._store.state_folder_of(placed.state)
        pin = _Pin(current, manifest.encode(current), folder, self._clock.now_s())
        self._pins[checkpoint] = pin
        count = min(len(current.files), self._limits.pinned_file_count_max)

        def opened(_: object, error: BaseException | None) -> None:
            # Retention took a file since the checkpoint: a newer checkpoint must be offered.
            if error is not None and self._pins.get(checkpoint) is pin:
                self.release(checkpoint)

        self._background.run(lambda: self._open_all(pin, count), opened)
        return pin

    def _give_one_up(self) -> bool:
        """Most pins outlive their pull, which never says that it ended: the idlest may go."""
        idlest = min(self._pins, key=lambda checkpoint: self._pins[checkpoint].used_s)
        if self._clock.now_s() - self._pins[idlest].used_s < self._limits.pin_busy_s:
            return False
        self.release(idlest)
        return True

    def _read(self, pin: _Pin, pull: Pull, reply: Callable[[Chunk], None]) -> None:
        def done(data: object, error: BaseException | None) -> None:
            self._reads_waiting -= 1
            if error is None:
                assert isinstance(data, bytes)
                reply(Chunk(pull.request, "", data))
            else:
                log.warning("pull refused group=%d error=%s", pull.group, error)
                reply(Chunk(pull.request, str(error) or repr(error), b""))

        self._reads_waiting += 1
        self._background.run(lambda: self._bytes(pin, pull), done)

    def _open_all(self, pin: _Pin, count: int) -> None:
        try:
            for number in range(1, count + 1):
                self._file(pin, number)
        except OSError as error:
            pin.failed = f"checkpoint {pin.manifest.index} is no longer whole: {error}"
            raise

    def _bytes(self, pin: _Pin, pull: Pull) -> bytes:
        if pin.failed:
            raise UnavailableError(pin.failed, delay_s=self._limits.retry_s)
        size = min(pull.size, self._limits.chunk_bytes_max)
        if not 0 <= pull.file <= len(pin.manifest.files):
            raise PeerError(f"checkpoint {pull.checkpoint} has no file {pull.file}")
        if pull.file == 0:
            data = pin.data[pull.position : pull.position + size]
            length = len(pin.data)
        else:
            length = pin.manifest.files[pull.file - 1].length
            size = min(size, length - pull.position)  # never what grew behind the checkpoint
            data = self._file(pin, pull.file).read_at(pull.position, size) if size > 0 else b""
        if not data or (pull.file and len(data) != size):
            raise StorageError(
                f"file {pull.file} of checkpoint {pull.checkpoint} has {length} bytes but not"
                f" {pull.size} at {pull.position}"
            )
        return data

    def _file(self, pin: _Pin, number: int) -> File:
        file = pin.files.get(number)
        if file is None:
            path = f"{pin.folder}/{pin.manifest.files[number - 1].path}"
            file = pin.files[number] = self._disk.open(path, writable=False)
        return file


def close_all(files: dict[int, File]) -> None:
    while files:
        _, file = files.popitem()
        file.close()


def report(_: object, error: BaseException | None) -> None:
    """For clean-up: what it could not remove, the next start does."""
    if error is not None:
        log.warning("pull clean-up failed error=%s", error)
