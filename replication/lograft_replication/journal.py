"""The node's journal: the Raft log and the hard state of all its groups, in one sequence of files.

Groups hand in records; everything that waits is written with one write and one fdatasync in the
writer, and then `durable_sequence` moves and listeners are told. A record has its place from the
moment it is handed in: when the file is full, the journal rolls by laying the next file's table
and going on behind it. A flush never spans two files, so a file's table is only ever written when
all before it is durable. The next file is made ready ahead of time in the helper.

Everything here runs on the event loop and only reads of evicted entries touch the disk there
(`open` blocks too). It knows nothing of Raft messages or checkpoints: the host says through
`GroupJournal.trim` what is no longer needed, and files nobody needs are recycled.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from lograft_log import background, env
from lograft_replication import group_entries, journal_file, journal_recovery
from lograft_replication import journal_format as fmt
from lograft_replication.group_entries import PLACE_BITS, MemoryUse
from lograft_replication.group_journal import GroupJournal
from lograft_replication.journal_file import Waiting
from lograft_replication.journal_files import JournalFiles
from lograft_replication.journal_format import Kind
from lograft_replication.journal_limits import JournalLimits
from lograft_wire import errors


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalStats:
    written_bytes: int  # since opening, headers and padding included
    sync_count: int
    record_count: int
    file_count: int
    spare_file_count: int
    pending_bytes: int  # handed in and not yet durable
    memory_bytes: int  # of commands kept in memory
    group_count: int


@dataclass(slots=True)
class _Batch:
    """Records that lie one behind the other in one file and will be written together."""

    number: int
    position: int
    records: list[Waiting] = field(default_factory=list)
    size_bytes: int = 0


class Journal:
    def __init__(
        self,
        *,
        disk: env.Disk,
        folder: str,
        limits: JournalLimits,
        rng: env.Rng,
        incarnation: bytes,
        scheduler: background.Scheduler,
        writer: background.Background,
        helper: background.Background,
    ) -> None:
        """Use `Journal.open`."""
        assert len(incarnation) == 16, incarnation
        self.limits = limits
        self.on_failed: Callable[[errors.StorageError], None] | None = None
        self.recovered_clean = False  # the journal was closed, not killed, before this opening
        self.recovered_cut_bytes = 0  # torn tail that recovery cut off
        self._disk = disk
        self._folder = folder
        self._incarnation = incarnation
        self._scheduler = scheduler
        self._writer = writer
        self._files = JournalFiles(
            disk=disk,
            folder=folder,
            limits=limits,
            rng=rng,
            incarnation=incarnation,
            helper=helper,
            on_ready=self._on_files_ready,
            on_failed=self._fail,
        )
        self._listeners: list[Callable[[], None]] = []
        self._failed: errors.StorageError | None = None
        self._closing: Callable[[], None] | None = None
        self._clean_marked = False
        self._closed = False

        self._groups: dict[int, GroupJournal] = {}
        self._forgetting: set[GroupJournal] = set()  # forgot entries, durably or not yet
        self._memory = MemoryUse()

        self._head_position = 0  # where the next record will lie in the youngest file
        self._next_sequence = 1
        self._batches: deque[_Batch] = deque()  # not yet given to the writer; only the last grows
        self._pending_bytes = 0
        self._flush_handle: background.Handle | None = None
        self._flushing = False
        self._durable_sequence = 0
        self._content_sequence = 0  # of the last record that is not a MARK
        self._marked_sequence = 0  # highest durable number that is on disk itself
        self._mark_handle: background.Handle | None = None
        self._sync_count = 0
        self._written_bytes = 0

    @classmethod
    def open(
        cls,
        *,
        disk: env.Disk,
        folder: str,
        limits: JournalLimits,
        rng: env.Rng,
        incarnation: bytes,
        scheduler: background.Scheduler,
        writer: background.Background,
        helper: background.Background,
    ) -> "Journal":
        """Recover what is in the folder, or start a new journal there. Blocks. The folder above
        it is the caller's, and durable.

        DamagedError when something that was durable is wrong, StorageError for other trouble.
        """
        journal = cls(
            disk=disk,
            folder=folder,
            limits=limits,
            rng=rng,
            incarnation=incarnation,
            scheduler=scheduler,
            writer=writer,
            helper=helper,
        )
        try:
            journal._recover()
        except OSError as error:
            raise errors.StorageError(f"journal in {folder}: {error}", path=folder) from error
        return journal

    def __repr__(self) -> str:
        return (
            f"Journal({self._folder!r}, next={self._next_sequence}, "
            f"durable={self._durable_sequence}, files={self._files!r}, failed={self._failed!r})"
        )

    def group(self, group_id: int) -> GroupJournal:
        """The group's view, recovered or fresh; the same object each time."""
        found = self._groups.get(group_id)
        if found is None:
            if len(self._groups) >= self.limits.group_count_max:
                raise errors.RefusedError(
                    f"group {group_id}: the journal holds {len(self._groups)} groups, its limit"
                )
            found = self._groups[group_id] = self._make_group(group_id)
        return found

    def groups(self) -> list[int]:
        return sorted(self._groups)

    @property
    def durable_sequence(self) -> int:
        return self._durable_sequence

    @property
    def next_sequence(self) -> int:
        return self._next_sequence

    @property
    def failed(self) -> errors.StorageError | None:
        return self._failed

    @property
    def stats(self) -> JournalStats:
        return JournalStats(
            written_bytes=self._written_bytes,
            sync_count=self._sync_count,
            record_count=self._next_sequence - 1,
            file_count=len(self._files),
            spare_file_count=len(self._files.spares),
            pending_bytes=self._pending_bytes,
            memory_bytes=self._memory.used_bytes,
            group_count=len(self._groups),
        )

    def add_listener(self, on_durable: Callable[[], None]) -> None:
        """Called on the loop after each completed sync."""
        self._listeners.append(on_durable)

    def oldest_pinning_groups(self) -> list[int]:
        """Groups whose entries keep the oldest file; empty when that is the file in use."""
        oldest = self._files.oldest
        if oldest is self._files.head:
            return []
        return sorted(
            group.group_id for group in self._groups.values() if group.pinned_file == oldest.number
        )

    def record(
        self, kind: Kind, *, group: int, index: int, term: int, flags: int, payload: bytes
    ) -> tuple[int, int]:
        """For GroupJournal: take a record; its sequence number and its place."""
        if self._failed is not None:
            raise self._failed
        if self._closing is not None:
            raise errors.StorageError("the journal is closed", path=self._folder)
        if kind in (Kind.TRUNCATE, Kind.BASE):
            self._forgetting.add(self._groups[group])
        return self._lay(kind, group, index, term, flags, payload)

    def read_back(
        self, place: tuple[int, int, int], *, length: int, index: int, term: int
    ) -> bytes:
        """For GroupJournal: the command of an evicted entry."""
        number, position, sequence = place
        try:
            return journal_file.read_payload(
                self._files[number], position, length, sequence=sequence, index=index, term=term
            )
        except OSError as error:
            path = self._files[number].path
            raise errors.StorageError(f"{path}: {error}", path=path, position=position) from error

    def flush_now(self) -> None:
        """Give the oldest batch to the writer, unless it is busy or the file is not ready."""
        if self._flush_handle is not None:
            self._flush_handle.cancel()
            self._flush_handle = None
        if self._flushing or self._failed is not None or not self._batches:
            return
        held = self._files[self._batches[0].number]
        if held.file is None:
            return  # goes on when the helper has it ready
        batch = self._batches.popleft()
        durable = self._durable_sequence
        self._flushing = True
        self._writer.run(
            partial(
                journal_file.write_batch,
                held.file,
                batch.position,
                batch.records,
                epoch=held.epoch,
                durable=durable,
            ),
            partial(self._on_flushed, batch, durable),
        )

    def close(self, done: Callable[[], None] | None = None) -> None:
        """Take no more; flush, mark the stop as clean, close the files, then call `done`.

        `done` is called too when the journal has failed or fails meanwhile.
        """
        assert self._closing is None, self
        self._closing = done if done is not None else _nothing
        self._files.stop()
        self._cancel_mark()
        self._lay_clean_mark()
        self.flush_now()
        self._close_when_idle()

    # Laying records out.

    def _lay(
        self, kind: Kind, group: int, index: int, term: int, flags: int, payload: bytes
    ) -> tuple[int, int]:
        size = fmt.record_bytes(len(payload))
        if self._head_position + size > self._files.head.file_bytes:
            self._files.roll()
            self._head_position = fmt.FILE_HEADER_BYTES
        if self._head_position == fmt.FILE_HEADER_BYTES:
            self._lay_table()
        place = self._files.head.number << PLACE_BITS | self._head_position
        return self._put(kind, group, index, term, flags, payload, size), place

    def _lay_table(self) -> None:
        """Hard states and bases as they are here, so that older files may go without them."""
        rows = [group.row() for group in self._groups.values()]
        payload = fmt.encode_table(rows)
        self._files.head.first_sequence = self._next_sequence
        self._put(Kind.TABLE, 0, 0, 0, 0, payload, fmt.record_bytes(len(payload)))

    def _put(
        self,
        kind: Kind,
        group: int,
        index: int,
        term: int,
        flags: int,
        payload: bytes,
        size: int,
    ) -> int:
        sequence = self._next_sequence
        self._next_sequence = sequence + 1
        if kind is not Kind.MARK:
            self._content_sequence = sequence
        head = self._files.head
        batch = self._batches[-1] if self._batches else None
        if (
            batch is None
            or batch.number != head.number
            or batch.size_bytes >= self.limits.flush_bytes_max
        ):
            batch = _Batch(head.number, self._head_position)
            self._batches.append(batch)
        batch.records.append((sequence, index, term, group, kind, flags, payload))
        batch.size_bytes += size
        self._head_position += size
        self._pending_bytes += size
        assert self._head_position <= head.file_bytes, self
        if self._head_position > head.file_bytes // 2 or head.file is None:
            self._files.prepare_ahead(self._head_position)
        if not self._flushing and self._flush_handle is None:
            self._flush_handle = self._scheduler.call_soon(self._on_flush_turn)
        return sequence

    def _on_flush_turn(self) -> None:
        self._flush_handle = None
        self.flush_now()

    # What comes back from the writer.

    def _on_flushed(
        self, batch: _Batch, durable: int, _result: object, error: BaseException | None
    ) -> None:
        self._flushing = False
        if error is not None:
            self._fail(error, self._files[batch.number].path, batch.position)
        if self._failed is not None:
            self._close_when_idle()
            return
        self._durable_sequence = batch.records[-1][0]
        self._marked_sequence = durable
        self._sync_count += 1
        self._written_bytes += batch.size_bytes
        self._pending_bytes -= batch.size_bytes
        self._lay_clean_mark()
        self.flush_now()  # first, so that the disk works while the news is told
        self._evict()
        self._release_files()
        if self._mark_handle is None and self._closing is None and not self._is_marked():
            self._mark_later()
        for listener in self._listeners:
            listener()
        self._close_when_idle()

    def _is_marked(self) -> bool:
        return self._marked_sequence >= self._content_sequence

    def _mark_later(self) -> None:
        delay_s = self.limits.mark_delay_ms / 1000
        self._mark_handle = self._scheduler.call_later(
            delay_s, partial(self._on_mark_time, self._sync_count)
        )

    def _on_mark_time(self, sync_count: int) -> None:
        """Quiet since then? Then say on disk that the last batch is durable."""
        self._mark_handle = None
        if self._failed is not None or self._closing is not None or self._is_marked():
            return
        if self._sync_count != sync_count or self._flushing or self._batches:
            self._mark_later()
        else:
            self._lay(Kind.MARK, 0, 0, 0, 0, b"")

    def _cancel_mark(self) -> None:
        if self._mark_handle is not None:
            self._mark_handle.cancel()
            self._mark_handle = None

    def _lay_clean_mark(self) -> None:
        """When closing: the last record of all, once everything before it is durable."""
        idle = not self._flushing and not self._batches and self._failed is None
        if self._closing is not None and idle and not self._clean_marked:
            self._clean_marked = True
            self._lay(Kind.MARK, 0, 0, 0, fmt.FLAG_CLEAN, b"")

    def _evict(self) -> None:
        group_entries.evict_oldest(
            (group.entries_held for group in self._groups.values()),
            self._memory,
            bytes_max=self.limits.memory_bytes_max,
            durable_sequence=self._durable_sequence,
        )

    def _fail(self, error: BaseException, path: str, position: int = -1) -> None:
        if self._failed is not None:
            return
        if isinstance(error, errors.StorageError):
            self._failed = error
        else:
            self._failed = errors.StorageError(
                f"journal file {path}: {error!r}", path=path, position=position
            )
            self._failed.__cause__ = error
        self._cancel_mark()
        if self.on_failed is not None:
            self.on_failed(self._failed)

    def _close_when_idle(self) -> None:
        if self._closing is None or self._closed or self._flushing or self._files.busy:
            return
        if self._failed is None and self._batches:
            return
        self._closed = True
        self._files.close()
        self._closing()

    # Files nobody needs.

    def _on_files_ready(self) -> None:
        if self._failed is None:
            self._files.prepare_ahead(self._head_position)
            self.flush_now()
            self._release_files()
        self._close_when_idle()

    def _release_files(self) -> None:
        """Recycle the oldest file when no group needs anything in it."""
        self._forgetting = {group for group in self._forgetting if not group.update_pin()}
        oldest = self._files.oldest
        if self._files.recycling or self._failed is not None or self._closing is not None:
            return
        if oldest is self._files.head:
            return
        if self._durable_sequence < self._files[oldest.number + 1].first_sequence:
            return  # the next file's table must stand in for it
        for group in self._groups.values():
            if group.pinned_file is not None and group.pinned_file <= oldest.number:
                return
        self._files.recycle_oldest()

    # Opening.

    def _make_group(self, group_id: int) -> GroupJournal:
        return GroupJournal(group_id, self, self._memory)

    def _recover(self) -> None:
        self._disk.make_folder(self._folder)
        self._disk.sync_folder(self._folder.rpartition("/")[0] or ".")
        found = journal_recovery.recover(
            self._disk,
            self._folder,
            limits=self.limits,
            incarnation=self._incarnation,
            memory=self._memory,
            make_group=self._make_group,
        )
        self._groups = found.groups
        self._files.adopt(found.files, found.spares)
        self.recovered_clean = found.clean
        self.recovered_cut_bytes = found.cut_bytes
        self._head_position = found.position
        self._next_sequence = found.next_sequence
        self._durable_sequence = found.next_sequence - 1
        self._content_sequence = found.content_sequence
        self._marked_sequence = found.marked_sequence
        self._forgetting = set(self._groups.values())
        self._release_files()
        self._files.prepare_ahead(self._head_position)
        if not self._is_marked():
            self._mark_later()


def _nothing() -> None:
    pass
