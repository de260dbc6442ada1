"""The blocking half of a sync: fdatasync of what was touched, seals, and the removal of garbage.

A SyncWork is made by `log` on its own thread and may be called on another one; it touches only
files, through handles that `log` keeps open until it is done. The order is the point: bytes before
the names that rely on them, indexes before the seal that vouches for them, seals before removals.
"""

from dataclasses import dataclass, replace

from lograft_log import files, layout, secondary
from lograft_log.damage import QuarantinedError
from lograft_log.env import Disk
from lograft_log.positions import Positions
from lograft_log.segment import Segment
from lograft_log.writer import SegmentWriter
from lograft_wire.errors import StorageError


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncWork:
    disk: Disk
    folder: str
    writers: tuple[SegmentWriter, ...]  # touched since the last sync, in order
    sealing: tuple[SegmentWriter, ...]  # those that take no more records
    active: Segment
    saving: tuple[Segment, ...]  # sealed, with indexes made anew in memory
    aside: tuple[int, ...]  # base offsets of segments found damaged
    garbage: tuple[int, ...]  # base offsets of segments to remove, rising
    names_changed: bool
    positions: Positions  # true when this work has been done

    def __call__(self) -> Positions:
        try:
            self._run()
        except OSError as error:
            raise StorageError(f"{self.folder}: sync failed: {error}", path=self.folder) from error
        return self.positions

    def _run(self) -> None:
        for writer in self.writers:
            writer.file.sync()
        if self.names_changed:
            self.disk.sync_folder(self.folder)
        for writer in self.sealing:
            self._seal(writer)
        for segment in self.saving:
            self._save(segment)
        for base_offset in self.aside:
            files.move_aside(self.disk, self.folder, base_offset)
        if self.sealing or self.saving or self.aside:
            self.disk.sync_folder(self.folder)
        if self.garbage:
            self._mark_first()
        for base_offset in self.garbage:
            files.remove(self.disk, self.folder, base_offset)
            # One at a time, so that no crash removes a later segment and keeps an earlier one.
            self.disk.sync_folder(self.folder)

    def _mark_first(self) -> None:
        """The log will begin with this segment; nothing else would prove that it is no leftover."""
        first = self.positions.segments[0]
        if first.base_offset == self.active.base_offset:
            seal = seal_of(self.active, flags=0)
            seal = replace(seal, log_bytes=first.log_bytes, next_offset=first.next_offset)
            files.write_seal(self.disk, self.folder, seal)
            self.disk.sync_folder(self.folder)

    def _save(self, segment: Segment) -> None:
        if segment.unsaved:
            segment.save_indexes()
        term, entries = segment.settings.term, segment.terms
        if segment.terms_unsaved and term is not None and entries is not None:
            secondary.save(segment, term, entries)

    def _seal(self, writer: SegmentWriter) -> None:
        segment = writer.segment
        writer.sync_indexes()
        if segment.settings.term is not None:
            term = segment.settings.term
            try:
                secondary.save(segment, term, secondary.make(segment, term))
            except QuarantinedError:
                return  # noted; the next sync moves it aside
        files.write_seal(self.disk, self.folder, seal_of(segment, flags=layout.SEALED))


def seal_of(segment: Segment, *, flags: int) -> layout.Seal:
    return layout.Seal(
        base_offset=segment.base_offset,
        generation=segment.header.generation,
        created_ms=segment.header.created_ms,
        log_bytes=segment.length,
        next_offset=segment.next_offset,
        timestamp_ms_max=segment.timestamp_ms_max,
        flags=flags,
    )
