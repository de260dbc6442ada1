"""StreamMachine: the record logs of one shard, driven by a Raft group.

Each stream (a topic's partition, say) is a Log in a folder of its own. Records are appended without
a sync: the journal has them until a checkpoint has synced the logs. After a restart a log may be
ahead of the applied index, because it keeps every whole record it still finds; entries that come
again then find their records there and write nothing. What counts for every decision is therefore
the stream's own next offset, which follows the entries alone and is the same on every replica.

Leaves to the owner: numbering and encoding records, when to trim (see `stream_commands`). Readers
use `Stream.log` below `Stream.next_offset`.
"""

import logging
from dataclasses import dataclass, field
from typing import assert_never

from lograft_log import layout
from lograft_log.damage import Damage
from lograft_log.env import Clock, Disk
from lograft_log.hot import record
from lograft_log.log import Log, open_log
from lograft_log.positions import Positions
from lograft_log.settings import LogSettings
from lograft_log.sync import SyncWork
from lograft_replication import durable, stream_commands, stream_state
from lograft_replication.machine import Capture, StateFile
from lograft_replication.stream_commands import Batch, Close, Open, Records, Trim
from lograft_replication.stream_state import StreamState
from lograft_wire.errors import DamagedError, RefusedError, StorageError

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Stream:
    id: int
    opened: int  # index of the entry that opened it
    log: Log = field(repr=False)
    first_offset: int  # both as the applied entries say; the log's own may be further
    next_offset: int
    positions: Positions | None = None  # as of the last capture; None: changed since

    @property
    def folder(self) -> str:
        return stream_state.folder_of(self.id, self.opened)


@dataclass(slots=True)
class _Sync:
    """The blocking half of a capture. Its outcome is looked at when the next one begins."""

    disk: Disk
    folder: str
    works: list[tuple[Log, SyncWork]]
    names_changed: bool  # streams were opened: their folders' names must become durable
    closed: list[str]  # folders of streams that the checkpoint no longer has
    first_offsets: dict[str, int]  # as the checkpoint has them, by folder: ids may come again
    ended: bool = False
    placed: bool = False  # the checkpoint is durable
    error: BaseException | None = None

    def __call__(self) -> None:
        try:
            with durable.disk_errors("syncing", self.folder):
                for _, work in self.works:
                    work()
                if self.names_changed:
                    self.disk.sync_folder(self.folder)
        except BaseException as error:
            self.error = error
            raise
        finally:
            self.ended = True

    def after(self) -> None:
        """The checkpoint is durable. What is not in it may go: closed streams now, trimmed records
        with the next sync."""
        self.placed = True
        for folder in self.closed:
            self.disk.remove_folder(folder)


class StreamMachine:
    """Results of `apply`: for Records the offset behind each batch, or why that batch was refused;
    for Open and Close whether each stream was opened or closed by it; for Trim nothing."""

    def __init__(self, disk: Disk, clock: Clock, settings: LogSettings | None = None) -> None:
        self._disk = disk
        self._clock = clock
        self._settings = settings or LogSettings()
        self._folder = ""
        self._streams: dict[int, Stream] = {}
        self._closing: list[Stream] = []  # closed by an entry; held until the next capture
        self._names_changed = False
        self._sync: _Sync | None = None

    def __repr__(self) -> str:
        return f"StreamMachine({self._folder!r}, streams={len(self._streams)})"

    # Reading

    def stream(self, stream: int) -> Stream | None:
        return self._streams.get(stream)

    @property
    def streams(self) -> tuple[int, ...]:
        return tuple(self._streams)

    def damages(self) -> list[Damage]:
        """Segments that cannot be served. A checkpoint of this machine would lack them."""
        return [damage for stream in self._streams.values() for damage in stream.log.damages()]

    # The Machine

    def damaged(self) -> str:
        return "; ".join(str(damage) for damage in self.damages())

    def apply(self, index: int, term: int, command: bytes) -> object:  # noqa: ARG002
        decoded = stream_commands.decode(command)
        match decoded:
            case Records():
                return tuple(self._append(batch) for batch in decoded.batches)
            case Open():
                return tuple(self._open(index, *row) for row in decoded.streams)
            case Close():
                return tuple(self._close(stream) for stream in decoded.streams)
            case Trim():
                self._trim(decoded)
                return None
            case _:
                assert_never(decoded)

    def capture(self) -> Capture:
        self._settle_sync()
        closed = self._let_go_closed()
        streams = list(self._streams.values())
        works = [(s.log, s.log.pending_sync()) for s in streams if s.positions is None]
        known = {log.folder: work.positions for log, work in works}
        states: list[StreamState] = []
        files: list[StateFile] = []
        for stream in streams:
            stream.positions = known.get(stream.log.folder, stream.positions)
            assert stream.positions is not None
            states.append(_state(stream, stream.positions))
            files += _files(stream, stream.positions)
        first_offsets = {stream.folder: stream.first_offset for stream in streams}
        sync = _Sync(self._disk, self._folder, works, self._names_changed, closed, first_offsets)
        self._sync = sync
        self._names_changed = False
        return Capture(stream_state.encode(states), sync, tuple(files), after=sync.after)

    def restore(self, payload: bytes, folder: str) -> None:
        self.close()
        states = stream_state.decode(payload)
        self._folder = folder
        with durable.disk_errors("restoring streams in", folder):
            kept = {state.folder for state in states}
            for name in self._disk.names(folder):
                if name not in kept:  # of streams that later entries opened; they come again
                    self._disk.remove_folder(f"{folder}/{name}")
            for state in states:
                self._reopen(state)

    def close(self) -> None:
        """Let everything go without a sync: what a checkpoint does not cover, the journal has."""
        busy: set[str] = set()
        if self._sync is not None and not self._sync.ended:
            busy = {log.folder for log, _ in self._sync.works}  # a thread uses their files
        for stream in (*self._streams.values(), *self._closing):
            if stream.log.folder not in busy:
                _abandon(stream.log)
        self._streams = {}
        self._closing = []
        self._sync = None
        self._names_changed = False

    # Entries

    def _append(self, batch: Batch) -> int | RefusedError:
        stream = self._streams.get(batch.stream)
        if stream is None:
            return RefusedError(f"stream {batch.stream} is not open")
        if batch.base_offset < stream.next_offset:
            return RefusedError(
                f"stream {batch.stream} is at {stream.next_offset}, offset {batch.base_offset} is"
                " taken"
            )
        behind = batch.base_offset + batch.count
        try:
            _check_row(batch)
            first, end = stream.log.append_frames(batch.frames, skip_existing=True)
        except RefusedError as error:  # bad frames: every replica finds the same
            return error
        # Nothing is written when the log was ahead.
        assert first == end or batch.base_offset <= first < end == behind, (batch, first, end)
        stream.next_offset = behind
        stream.positions = None
        return behind

    def _open(self, index: int, stream: int, start_offset: int) -> bool:
        if stream in self._streams:
            return False
        path = f"{self._folder}/{stream_state.folder_of(stream, index)}"
        with durable.disk_errors("opening a stream in", path):
            self._disk.make_folder(path)  # its name becomes durable with the next capture
        opened = open_log(
            path,
            disk=self._disk,
            clock=self._clock,
            settings=self._settings,
            base_offset=start_offset,
        )
        self._streams[stream] = Stream(stream, index, opened, start_offset, start_offset)
        self._names_changed = True
        return True

    def _close(self, stream: int) -> bool:
        """The files stay until a checkpoint without the stream is durable: until then a restart
        begins with the stream still open."""
        closed = self._streams.pop(stream, None)
        if closed is not None:
            self._closing.append(closed)
        return closed is not None

    def _trim(self, command: Trim) -> None:
        """The log itself is trimmed once a checkpoint says so: until then a restart begins with
        records that must still be there."""
        for number, offset in command.streams:
            stream = self._streams.get(number)
            if stream is not None:
                first_offset = min(offset, stream.next_offset)
                stream.first_offset = max(stream.first_offset, first_offset)

    # Checkpoints

    def _settle_sync(self) -> None:
        """Tell the logs how the last capture's sync went; it ran elsewhere. After a failed one
        there is never another: nobody knows what is on disk."""
        sync = self._sync
        if sync is None:
            return
        assert sync.ended, "the sync of the last capture has not been run"
        if sync.error is not None:
            failed = StorageError(f"{self._folder}: an earlier sync failed")
            for log, _ in sync.works:
                log.sync_failed(failed)
            raise failed from sync.error
        for log, work in sync.works:
            log.sync_done(work)
        self._sync = None
        if sync.placed:
            self._trim_logs(sync.first_offsets)

    def _trim_logs(self, first_offsets: dict[str, int]) -> None:
        for stream in self._streams.values():
            first_offset = first_offsets.get(stream.folder, 0)
            if first_offset > stream.log.first_offset:
                stream.log.trim(first_offset)
                stream.positions = None

    def _let_go_closed(self) -> list[str]:
        closing, self._closing = self._closing, []
        for stream in closing:
            _abandon(stream.log)
        return [stream.log.folder for stream in closing]

    def _reopen(self, state: StreamState) -> None:
        path = f"{self._folder}/{state.folder}"
        listed = any(row.log_bytes for row in state.durable.segments)
        logs = [name for name in self._disk.names(path) if name.endswith(_LOG_ENDINGS)]
        if not self._disk.exists(path) or (listed and not logs):
            raise DamagedError(f"{path} has lost all its segments", path=path)
        log = open_log(
            path,
            disk=self._disk,
            clock=self._clock,
            settings=self._settings,
            durable=state.durable,
        )
        for damage in log.recovery.damages:
            logger.error("event=stream_damaged stream=%d damage=%s", state.stream, damage)
        self._streams[state.stream] = Stream(
            state.stream, state.opened, log, state.first_offset, state.next_offset
        )


_LOG_ENDINGS = (layout.LOG, layout.DAMAGED)


def _check_row(batch: Batch) -> None:
    """The frames must be those the row speaks of, whether or not this log still needs them: what
    one replica refuses, all refuse."""
    size = memoryview(batch.frames).nbytes
    span = record.scan(
        batch.frames,
        0,
        size,
        offset_min=batch.base_offset,
        payload_max=record.PAYLOAD_BYTES_LIMIT,
        verify=False,
    )
    behind = span.offset_last + 1 if span.frame_count else batch.base_offset
    counted = (span.record_count, behind) == (batch.count, batch.base_offset + batch.count)
    if span.fault or not counted:
        raise RefusedError(
            f"stream {batch.stream}: {batch.count} records from {batch.base_offset} on announced, "
            f"the frames hold {span.record_count} up to {behind}"
        )


def _state(stream: Stream, positions: Positions) -> StreamState:
    return StreamState(
        stream=stream.id,
        opened=stream.opened,
        first_offset=stream.first_offset,
        next_offset=stream.next_offset,
        durable=positions,
    )


def _files(stream: Stream, positions: Positions) -> list[StateFile]:
    """The .log of each segment, and its seal, which spares the puller a scan. Indexes are made
    anew there."""
    sealed = {segment.base_offset for segment in stream.log.segments() if segment.sealed}
    files: list[StateFile] = []
    for row in positions.segments:
        if row.log_bytes:
            path = f"{stream.folder}/{layout.name(row.base_offset, layout.LOG)}"
            files.append(StateFile(path, row.log_bytes))
        if row.log_bytes and row.base_offset in sealed:
            path = f"{stream.folder}/{layout.name(row.base_offset, layout.SEAL_NAME)}"
            files.append(StateFile(path, layout.SEAL.size))
    return files


def _abandon(log: Log) -> None:
    log.sync_failed(StorageError(f"{log.folder}: let go", path=log.folder))
    log.close()
