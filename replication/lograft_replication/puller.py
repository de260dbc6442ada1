"""Pulling one offered checkpoint from another node into a state folder nothing points to yet.

A machine without I/O of its own, the other side of `bulk.PullServer`. A frame already carries a
checksum; a file whose checksum the manifest knows is read back and compared as a whole.

Leaves to the group: when to begin and give up, and making a pulled checkpoint the current one
(`CheckpointStore.finish_install`). Leaves to the host: which link, and routing of answers.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from lograft_log.background import Background
from lograft_log.env import Clock, Disk, File
from lograft_log.hot import crc
from lograft_replication import bulk, durable, manifest
from lograft_replication.bulk import Limits
from lograft_replication.checkpoint import CheckpointStore, IncomingState
from lograft_replication.machine import StateFile
from lograft_replication.manifest import Manifest
from lograft_replication.messages import Chunk, Offer, Pull
from lograft_replication.throttle import Throttle
from lograft_wire.errors import (
    DamagedError,
    LograftError,
    PeerError,
    StorageError,
    UnavailableError,
)


class Phase(Enum):
    MANIFEST = "pulling the manifest"
    PREPARING = "making the state folder"
    FILES = "pulling the files"
    READY = "all files are there"
    ENDED = "failed or cancelled"


@dataclass(frozen=True, slots=True)
class _Piece:
    file: int  # as in Pull: 0 is the manifest
    position: int
    size: int


class Puller:
    """Makes its first request in `on_timer`, which wants to be called every 100 ms or so.

    `done` is called once, unless `cancel` comes first: with the manifest when every file is in the
    incoming state folder, or with the reason why not. Then the group waits for another offer.
    """

    def __init__(
        self,
        disk: Disk,
        store: CheckpointStore,
        offer: Offer,
        clock: Clock,
        limits: Limits,
        send: Callable[[Pull], None],
        done: Callable[[Manifest | None, Exception | None], None],
        *,
        background: Background,  # the one the store's other work runs in
        requests: Iterator[int],  # numbers no other pull of this node uses
        throttle: Throttle | None = None,  # shared by the pulls of a node
    ) -> None:
        self._disk = disk
        self._store = store
        self._offer = offer
        self._clock = clock
        self._limits = limits
        self._send = send
        self._done = done
        self._background = background
        self._requests = requests
        self._throttle = throttle or Throttle(
            bytes_per_s=limits.bytes_per_s, burst_bytes=limits.burst_bytes, now_s=clock.now_s()
        )
        self.phase = Phase.MANIFEST
        self._link_up = True  # the offer came over it
        self._silent_s: float | None = None  # since when a question is open without any answer
        self._pieces = _pieces([offer.manifest_bytes], 0, limits.chunk_bytes_max)
        self._again: deque[_Piece] = deque()  # before the next of _pieces
        self._asked: dict[int, tuple[_Piece, float]] = {}  # by request: what, and when
        self._writing = 0  # pieces given to the Background
        self._data = bytearray(0)  # the manifest as it arrives
        self._incoming: IncomingState | None = None
        self._left: list[int] = []  # bytes of each file not yet written
        self._unsealed = 0  # files not yet whole, checked and synced
        self._files: dict[int, File] = {}  # open for writing; belongs to the Background
        self.bytes_done = 0  # of the manifest and the files
        self.bytes_total = offer.manifest_bytes  # grows when the manifest is known
        if offer.manifest_bytes > manifest.Limits().manifest_bytes_max:
            self._fail(PeerError(f"{self._name} has a manifest of {offer.manifest_bytes} bytes"))

    def __repr__(self) -> str:
        return f"Puller({self._name}, {self.phase.value}, {self.bytes_done}/{self.bytes_total})"

    @property
    def _name(self) -> str:
        return f"checkpoint {self._offer.index} of group {self._store.group_id}"

    def on_chunk(self, chunk: Chunk) -> None:
        piece, _ = self._asked.pop(chunk.request, (None, 0.0))
        if piece is None:
            return  # asked before a link loss or given up on; asked again since
        self._silent_s = self._clock.now_s() if self._asked else None
        data = bytes(chunk.data)
        if chunk.error:
            self._fail(
                UnavailableError(
                    f"the source of {self._name} says: {chunk.error}", delay_s=self._limits.retry_s
                )
            )
        elif not 0 < len(data) <= piece.size:
            self._fail(PeerError(f"{self._name}: {len(data)} bytes came for {piece}"))
        else:
            if len(data) < piece.size:
                rest = _Piece(piece.file, piece.position + len(data), piece.size - len(data))
                self._again.appendleft(rest)
            self._take(piece, data)
            self._pump()

    def on_link(self, up: bool) -> None:
        self._link_up = up
        self._silent_s = None
        if up:
            self._pump()
        else:
            self._again.extend(piece for piece, _ in self._asked.values())
            self._asked.clear()

    def on_timer(self) -> None:
        now_s = self._clock.now_s()
        if self._silent_s is not None and now_s - self._silent_s > self._limits.silence_s_max:
            self._fail(
                UnavailableError(
                    f"the source of {self._name} was silent for {self._limits.silence_s_max} s",
                    delay_s=self._limits.retry_s,
                )
            )
            return
        for request, (piece, asked_s) in list(self._asked.items()):
            if now_s - asked_s > self._limits.chunk_s_max:
                del self._asked[request]
                self._again.append(piece)
        self._pump()

    def cancel(self) -> None:
        """End without `done` and remove what came, unless the install is already finished."""
        self._end(lambda: None)

    # Below: asking, taking, ending.

    def _pump(self) -> None:
        while self._link_up and self.phase in (Phase.MANIFEST, Phase.FILES):
            if len(self._asked) + self._writing >= self._limits.chunks_in_flight_max:
                return
            piece = self._again.popleft() if self._again else next(self._pieces, None)
            if piece is None:
                return
            now_s = self._clock.now_s()
            if not self._throttle.take(now_s, piece.size):
                self._again.appendleft(piece)
                return
            if self._silent_s is None:
                self._silent_s = now_s
            request = next(self._requests)
            self._asked[request] = (piece, now_s)
            group, checkpoint = self._store.group_id, self._offer.index
            self._send(Pull(request, group, checkpoint, piece.file, piece.position, piece.size))

    def _take(self, piece: _Piece, data: bytes) -> None:
        if piece.file > 0:
            self._work(lambda: self._write(piece, data), lambda: self._written(piece, len(data)))
            self._writing += 1
            return
        self.bytes_done += len(data)
        end = piece.position + len(data)
        self._data.extend(bytes(max(0, end - len(self._data))))
        self._data[piece.position : end] = data
        if self.bytes_done == self._offer.manifest_bytes:
            self._take_manifest(bytes(self._data))

    def _take_manifest(self, data: bytes) -> None:
        offer, where = self._offer, f"the manifest of {self._name}"
        try:
            found = manifest.decode(data, path=where)
        except DamagedError as error:
            self._fail(error)
            return
        wanted = (self._store.group_id, offer.index, offer.index_term, offer.manifest_crc)
        if (found.group, found.index, found.term, manifest.seal(data)) != wanted:
            self._fail(PeerError(f"{where} is not the one that was offered"))
            return
        self._data.clear()
        self.phase = Phase.PREPARING
        self.bytes_total += found.file_bytes
        self._work(lambda: self._prepare(found), self._prepared)

    def _prepare(self, found: Manifest) -> None:
        with durable.disk_errors("asking for space in", self._store.folder):
            free_bytes = self._disk.free_bytes(self._store.folder)
        if free_bytes < found.file_bytes + self._limits.free_bytes_min:
            raise StorageError(
                f"{self._name} needs {found.file_bytes} bytes and {self._limits.free_bytes_min} to"
                f" spare, {free_bytes} are free",
                path=self._store.folder,
            )
        self._incoming = self._store.begin_install(found)

    def _prepared(self) -> None:
        assert self._incoming is not None
        self.phase = Phase.FILES
        self._left = [file.length for file in self._incoming.manifest.files]
        self._unsealed = sum(1 for length in self._left if length)  # finish_install makes the empty
        self._pieces = _pieces(self._left, 1, self._limits.chunk_bytes_max)
        self._finish_if_whole()
        self._pump()

    def _write(self, piece: _Piece, data: bytes) -> None:
        assert self._incoming is not None
        with durable.disk_errors("writing pulled bytes in", self._incoming.folder):
            file = self._files.get(piece.file)
            if file is None:
                file = self._files[piece.file] = self._incoming.open_file(piece.file - 1)
            file.write_at(piece.position, [data])

    def _written(self, piece: _Piece, size: int) -> None:
        self._writing -= 1
        self.bytes_done += size
        self._left[piece.file - 1] -= size
        if self._left[piece.file - 1] == 0:
            self._work(lambda: self._seal(piece.file), self._sealed)
        self._pump()

    def _seal(self, number: int) -> None:
        assert self._incoming is not None
        wanted = self._incoming.manifest.files[number - 1]
        file = self._files.pop(number)
        try:
            with durable.disk_errors("checking the pulled", file.path):
                if wanted.crc:
                    self._check(file, wanted)
                file.sync()
        finally:
            file.close()

    def _check(self, file: File, wanted: StateFile) -> None:
        found = 0
        for position in range(0, wanted.length, self._limits.chunk_bytes_max):
            size = min(self._limits.chunk_bytes_max, wanted.length - position)
            found = crc.checksum(file.read_at(position, size), found)
        if found != wanted.crc:
            raise DamagedError(
                f"{wanted.path} of {self._name} came with checksum {found:08x}, the manifest says"
                f" {wanted.crc:08x}",
                path=file.path,
            )

    def _sealed(self) -> None:
        self._unsealed -= 1
        self._finish_if_whole()

    def _finish_if_whole(self) -> None:
        if self._unsealed == 0:
            assert self._incoming is not None
            assert not self._asked, self._asked
            assert self._writing == 0, self._writing
            self.phase = Phase.READY
            self._done(self._incoming.manifest, None)

    def _work(self, work: Callable[[], None], then: Callable[[], None]) -> None:
        """Blocking work, then the next step, unless the pull ended meanwhile."""

        def done(_: object, error: BaseException | None) -> None:
            if self.phase is Phase.ENDED:
                return
            if error is None:
                then()
            else:
                self._fail(error)

        self._background.run(work, done)

    def _fail(self, error: BaseException) -> None:
        reason = error if isinstance(error, LograftError) else StorageError(f"pull: {error!r}")
        self._end(lambda: self._done(None, reason))

    def _end(self, then: Callable[[], None]) -> None:
        if self.phase is Phase.ENDED:
            return
        self.phase = Phase.ENDED
        self._asked.clear()
        self._again.clear()

        def done(_: object, error: BaseException | None) -> None:
            bulk.report(None, error)
            then()

        self._background.run(self._abandon, done)

    def _abandon(self) -> None:
        bulk.close_all(self._files)
        if self._incoming is not None:
            self._store.abandon_install(self._incoming)


def _pieces(lengths: list[int], first: int, chunk_bytes: int) -> Iterator[_Piece]:
    for number, length in enumerate(list(lengths), first):
        for position in range(0, length, chunk_bytes):
            yield _Piece(number, position, min(chunk_bytes, length - position))
