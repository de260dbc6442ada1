"""Log: ordered segments in one folder; append, cut at either end, sync.

One writer: every method that changes the log is called from one thread. Readers may be anywhere:
they use `reading`, on immutable snapshots. Nothing here waits for the disk except `sync`,
`truncate` and `close`; `pending_sync` hands that wait to a background thread. Retention, compaction
and archiving decide elsewhere and act through `maintenance`.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from typing_extensions import Buffer

from lograft_log import compression, damage, files, layout, recovery, rewrite, writer
from lograft_log.env import Clock, Disk
from lograft_log.hot import record
from lograft_log.hot.record import Record
from lograft_log.positions import Positions, SegmentPosition
from lograft_log.reading import Reading
from lograft_log.segment import START, Segment, State
from lograft_log.settings import Codec, LogSettings
from lograft_log.sync import SyncWork, seal_of
from lograft_wire.errors import DamagedError, RefusedError, StorageError


def open_log(
    folder: str,
    *,
    disk: Disk,
    clock: Clock,
    settings: LogSettings | None = None,
    durable: Positions | None = None,
    base_offset: int = 0,
) -> "Log":
    """Open or make the log in `folder`. `durable` is what a checkpoint said of it; `base_offset`
    is where a new log begins."""
    settings = settings or LogSettings()
    with damage.guard(folder):
        files.make_folder(disk, folder)
        recovered = recovery.recover(disk, folder, settings, durable)
        if durable is not None:
            base_offset = max(base_offset, durable.next_offset)
        try:
            return Log(
                disk=disk,
                clock=clock,
                folder=folder,
                settings=settings,
                recovered=recovered,
                first_offset=durable.first_offset if durable else 0,
                next_offset=base_offset,
            )
        except BaseException:
            for opened in recovered.writers:
                opened.close()
            raise


class Log(Reading):
    """Made by `open_log`, which has recovered what is in the folder."""

    def __init__(
        self,
        *,
        disk: Disk,
        clock: Clock,
        folder: str,
        settings: LogSettings,
        recovered: recovery.Recovered,
        first_offset: int,
        next_offset: int,
    ) -> None:
        super().__init__(folder, settings)
        self.disk = disk
        self.clock = clock
        self.recovery = recovered.report
        self._sealing = list(recovered.writers)  # take no more records, not sealed yet
        self._garbage: list[int] = []  # base offsets of segments the next sync removes
        self._closing: list[writer.SegmentWriter] = []  # let go while a sync used their files
        self._syncing: SyncWork | None = None
        self._names_changed = True  # since the folder was last synced
        self._failed: StorageError | None = None
        segments = tuple(recovered.segments)
        self._writer = self._first_writer(segments, next_offset)
        if not segments or segments[-1] is not self._writer.segment:
            segments = (*segments, self._writer.segment)
        start = max(first_offset, segments[0].base_offset)
        self._replace_segments(segments, first_offset=start, cut_count=0)
        try:
            if self.next_offset < next_offset:
                self._begin(next_offset)  # what a checkpoint promised is missing; go on behind it
            self.trim(start)
        except BaseException:
            self._writer.close()
            raise

    def __repr__(self) -> str:
        return (
            f"Log({self.folder!r}, {self.first_offset}..{self.next_offset}, "
            f"segments={len(self.segments())})"
        )

    def append(
        self,
        records: Iterable[Record],
        *,
        offset: int | None = None,
        offsets: Iterable[int] | None = None,
        skip_existing: bool = False,
        codec: Codec | None = None,
    ) -> tuple[int, int]:
        """Write records as one batch; returns the first and the one-behind-last offset written.

        The log numbers them, unless `offset` (of the first, the others follow) or `offsets` (of
        each, rising) says otherwise. Offsets below `next_offset` are refused, or, with
        `skip_existing`, taken to be there already and left out.
        """
        first = self.next_offset if offset is None else offset
        frames = record.encode(records, first, offsets, timestamp_ms=self.clock.wall_ms())
        codec = self.settings.codec if codec is None else codec
        return self._append(frames, skip_existing=skip_existing, codec=codec, verify=False)

    def append_frames(self, frames: Buffer, *, skip_existing: bool = False) -> tuple[int, int]:
        """Write frames that carry their offsets, compressed or not, as they are."""
        return self._append(frames, skip_existing=skip_existing, codec=Codec.NONE, verify=True)

    def roll(self) -> None:
        """Begin a new segment. The old one is sealed by the next sync."""
        self._check_open()
        if self._writer.segment.length > START:
            self._begin(self.next_offset)

    def roll_if_old(self) -> bool:
        """For quiet logs: roll by age without waiting for an append."""
        due = self._must_roll(0)
        if due:
            self.roll()
        return due

    def trim(self, offset: int) -> None:
        """Records below `offset` are gone; segments with nothing else are removed by the next
        sync. A wholly trimmed active segment is rolled first, so that its space is freed too."""
        offset = max(self.first_offset, min(offset, self.next_offset))
        if offset == self.next_offset:
            self.roll()
        segments = self.segments()
        gone = [s.base_offset for s in segments[:-1] if s.next_offset <= offset]
        self._replace_segments(segments, first_offset=offset, cut_count=self._cut_count)
        self.remove_segments(gone)

    def remove_segments(self, base_offsets: Iterable[int]) -> None:
        """Forget the oldest segments; the next sync removes their files."""
        gone = set(base_offsets)
        if not gone:
            return
        segments = self.segments()
        kept = segments[len(gone) :]
        assert gone == {s.base_offset for s in segments[: len(gone)]}, "only the oldest may go"
        assert kept, "the active segment stays"
        self._garbage += sorted(gone)
        for held in [w for w in self._sealing if w.segment.base_offset in gone]:
            self._sealing.remove(held)
            self._closing.append(held)
        first_offset = max(self.first_offset, kept[0].base_offset)
        self._replace_segments(kept, first_offset=first_offset, cut_count=self._cut_count)

    def truncate(self, offset: int) -> None:
        """Records at and above `offset` are gone, durably when this returns. Whoever keeps
        positions that reach further writes down their `below(offset)` first."""
        self._check_open()
        if offset >= self.next_offset:
            return
        assert offset >= self.first_offset, (offset, self.first_offset)
        self.sync()
        number = self.snapshot().number_of(offset)
        segments = self.segments()
        kept, dropped = segments[: number + 1], segments[number + 1 :]
        with self.changing():
            self._writer.retire()
            # Readers are told before the files go: none looks for a name that is not there.
            self._replace_end(kept)
            self._writer.close()
            self._writer = rewrite.cut(kept[-1], dropped=dropped, offset=offset, clock=self.clock)
            if self._writer.segment.base_offset == kept[-1].base_offset:
                kept = kept[:-1]  # else it is quarantined and stays as it is
            self._replace_end((*kept, self._writer.segment))
            self.disk.sync_folder(self.folder)
        if self.next_offset < self.first_offset:  # what was trimmed ended in a gap
            self._begin(self.first_offset)

    def replace_segment(self, old: Segment, new: Segment) -> None:
        """Take over a sealed segment whose rewritten files are in place."""
        assert old in self.segments(), old
        self._names_changed = True
        segments = tuple(new if segment is old else segment for segment in self.segments())
        self._replace_segments(segments, first_offset=self.first_offset, cut_count=self._cut_count)

    def positions(self) -> Positions:
        """How far this log is durable."""
        waiting = {w.segment: w for w in (*self._sealing, self._writer)}
        rows = []
        for segment in self.segments():
            held = waiting.get(segment)
            row = _position(segment) if held is None else _synced(held)
            if row.log_bytes:
                rows.append(row)
            if row.log_bytes < segment.length:
                break
        next_offset = max([self.first_offset, *(row.next_offset for row in rows)])
        return Positions(
            first_offset=self.first_offset, next_offset=next_offset, segments=tuple(rows)
        )

    def sync(self) -> Positions:
        """Make everything appended so far durable, and wait for it."""
        work = self.pending_sync()
        try:
            positions = work()
        except StorageError as error:
            self.sync_failed(error)
            raise
        self.sync_done(work)
        return positions

    def pending_sync(self) -> SyncWork:
        """What a sync has to do, to be called anywhere; then `sync_done` or `sync_failed` here."""
        assert self._syncing is None, "one sync at a time"
        self._check_open()
        sealed = self.segments()[:-1]
        writers = (*self._sealing, self._writer)
        aside = [s for s in sealed if s.damage and s.state is not State.QUARANTINED]
        saving = [s for s in sealed if (s.unsaved or s.terms_unsaved) and s.damage is None]
        work = SyncWork(
            disk=self.disk,
            folder=self.folder,
            writers=tuple(w for w in writers if w.synced_bytes < w.segment.length),
            sealing=tuple(w for w in self._sealing if w.segment.damage is None),
            active=self._writer.segment,
            saving=tuple(saving),
            aside=tuple(s.base_offset for s in aside),
            garbage=tuple(self._garbage),
            names_changed=self._names_changed,
            positions=Positions(
                first_offset=self.first_offset,
                next_offset=self.next_offset,
                segments=tuple(_position(s) for s in self.segments()),
            ),
        )
        for segment in aside:
            segment.state = State.QUARANTINED
        self._garbage = []
        self._names_changed = False
        self._syncing = work
        return work

    def sync_done(self, work: SyncWork) -> None:
        assert work is self._syncing, "not the sync that was handed out"
        self._syncing = None
        known = {p.base_offset: p for p in work.positions.segments}
        for held in work.writers:
            position = known.get(held.segment.base_offset)
            if position is not None:
                held.synced_bytes = position.log_bytes
                held.synced_next_offset = position.next_offset
        for held in work.sealing:
            held.segment.sealed = held.segment.damage is None
        for held in list(self._sealing):
            if held.segment.sealed or held.segment.state is State.QUARANTINED:
                self._sealing.remove(held)
                self._closing.append(held)
        self._close_let_go()

    def sync_failed(self, error: StorageError) -> None:
        """After a failed sync nobody knows what is on disk: this log takes nothing more."""
        self._syncing = None
        self._failed = error

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Where the disk refuses in the middle of a change, nobody knows how much of it was done:
        this log takes nothing more. Opening it again finds out."""
        try:
            with damage.guard(self.folder):
                yield
        except StorageError as error:
            self._failed = error
            raise

    def close(self) -> None:
        """Sync, write down how far the active segment goes, and close all files."""
        assert self._syncing is None, "close during a sync"
        try:
            if self._failed is None:
                with self.changing():
                    self._close_cleanly()
        finally:
            self._closing += [*self._sealing, self._writer]
            self._sealing = []
            self._close_let_go()
            self._failed = self._failed or StorageError(f"{self.folder}: closed", path=self.folder)
            self._finder = None
            for segment in (*self.segments(), *list(self._views)):
                segment.drop_views()
            self._views.clear()

    def _close_cleanly(self) -> None:
        self._writer.flush_indexes()
        self._writer.sync_indexes()
        self.sync()
        segment = self._writer.segment
        if segment.damage is None:
            files.write_seal(self.disk, self.folder, seal_of(segment, flags=0))
            self.disk.sync_folder(self.folder)

    def _close_let_go(self) -> None:
        for held in self._closing:
            held.close()
        self._closing = []

    @property
    def _cut_count(self) -> int:
        return self.snapshot().cut_count

    def _check_open(self) -> None:
        if self._failed is not None:
            raise StorageError(
                f"{self.folder}: takes nothing more: {self._failed}", path=self.folder
            ) from self._failed

    def _append(
        self, frames: Buffer, *, skip_existing: bool, codec: Codec, verify: bool
    ) -> tuple[int, int]:
        self._check_open()
        next_offset = self.next_offset
        offset_from = next_offset if skip_existing else 0
        span = self._checked(frames, offset_from=offset_from, verify=verify)
        if not span.frame_count:
            return next_offset, next_offset
        if span.offset_first < next_offset:
            if not skip_existing:
                raise RefusedError(f"offset {span.offset_first} is below {next_offset}")
            # A compressed batch that reaches over the end of the log: only its rest is new.
            kept = record.decode(compression.unfold(frames, self._limits), next_offset)
            frames = record.encode(kept, 0, [item.offset for item in kept])
            span = self._checked(frames, offset_from=0, verify=False)
        data = memoryview(frames)[span.start : span.end]
        if codec is not Codec.NONE and not span.batch_count:
            data = memoryview(compression.fold(bytes(data), codec, self._limits))
        if self._must_roll(len(data)):
            self._begin(next_offset)
        with self.changing():
            self._writer.append(data, span)
        return span.offset_first, span.offset_last + 1

    def _checked(self, frames: Buffer, *, offset_from: int, verify: bool) -> record.Span:
        """Frames that come from elsewhere are verified before they go to disk; of those made here
        only the order and the limits can be wrong. The caller hears of it."""
        span = record.scan(
            frames,
            0,
            memoryview(frames).nbytes,
            offset_min=0,
            payload_max=self._limits.payload_bytes_max,
            offset_from=offset_from,
            verify=verify,
        )
        if span.fault:
            raise RefusedError(f"frame at {span.end}: {record.FAULTS[span.fault]}")
        if verify and span.batch_count:
            self._check_batches(frames)
        return span

    def _check_batches(self, frames: Buffer) -> None:
        """A batch that does not unfold would be stored and never be readable."""
        try:
            compression.unfold(frames, self._limits)
        except DamagedError as error:
            raise RefusedError(str(error)) from error

    def _must_roll(self, size: int) -> bool:
        segment = self._writer.segment
        if segment.length == START:
            return False
        if segment.damage is not None or segment.length + size > self._limits.segment_bytes_max:
            return True
        age_ms = self.clock.wall_ms() - segment.header.created_ms
        return age_ms >= self._limits.segment_age_ms_max

    def _first_writer(self, segments: tuple[Segment, ...], offset: int) -> writer.SegmentWriter:
        """The active segment after opening: the last one found, or a new one."""
        last = self._sealing.pop() if self._sealing else None
        if last is not None and last.segment is not segments[-1]:
            self._sealing.append(last)
            last = None
        for held in self._sealing:
            held.retire()
        if last is not None:
            return last
        if not segments:
            return self._create(offset, layout.NO_PREVIOUS)
        behind = segments[-1].next_offset
        return self._create(max(offset, behind), behind)

    def _begin(self, offset: int) -> None:
        """Retire the active segment and go on in a new one."""
        old = self._writer
        with self.changing():
            old.flush_indexes()
            created = self._create(offset, old.segment.next_offset)
        old.retire()
        self._sealing.append(old)
        self._writer = created
        self._live_terms = None
        self._replace_segments(
            (*self.segments(), created.segment),
            first_offset=self.first_offset,
            cut_count=self._cut_count,
        )

    def _replace_end(self, segments: tuple[Segment, ...]) -> None:
        self._live_terms = None
        self._replace_segments(
            segments, first_offset=self.first_offset, cut_count=self._cut_count + 1
        )

    def _create(self, offset: int, previous_next_offset: int) -> writer.SegmentWriter:
        self._names_changed = True
        return writer.create(
            disk=self.disk,
            folder=self.folder,
            settings=self.settings,
            base_offset=offset,
            previous_next_offset=previous_next_offset,
            created_ms=self.clock.wall_ms(),
        )


def _position(segment: Segment) -> SegmentPosition:
    return SegmentPosition(
        base_offset=segment.base_offset,
        log_bytes=segment.length,
        next_offset=segment.next_offset,
    )


def _synced(held: writer.SegmentWriter) -> SegmentPosition:
    return SegmentPosition(
        base_offset=held.segment.base_offset,
        log_bytes=held.synced_bytes,
        next_offset=held.synced_next_offset,
    )
