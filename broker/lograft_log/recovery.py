"""Opening a log: sweep leftovers, believe what was durable, scan the rest and cut it.

Durable is what a valid seal says, what the given Positions say, and every segment before one of
those. A bad frame there is damage: the segment is moved aside and reported. Everything else may
have been lost in any order by a power cut: it is scanned, cut at the first bad frame, and whatever
lies behind the cut is removed *before* the cut, so that a crash in between finds the same work
again. Runs before the log has readers, which is why it alone may shorten files in place.
"""

import itertools
import logging
from dataclasses import dataclass, field

from lograft_log import damage, files, index, layout, resume, writer
from lograft_log.env import Disk, File
from lograft_log.hot import record
from lograft_log.positions import Positions, SegmentPosition
from lograft_log.segment import PAYLOAD_MAX, START, Segment, State
from lograft_log.settings import LogSettings
from lograft_wire.errors import DamagedError, StorageError

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class RecoveryReport:
    """What opening found and did."""

    scanned_bytes: int = 0
    cut_bytes: int = 0
    cut_path: str = ""
    removed: list[str] = field(default_factory=list)
    rebuild_count: int = 0  # indexes that were missing, stale, misaligned or damaged
    damages: list[damage.Damage] = field(default_factory=list)


@dataclass(slots=True)
class Recovered:
    segments: list[Segment]
    writers: list[writer.SegmentWriter]  # not sealed yet, in order
    report: RecoveryReport


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """One base offset's files."""

    base_offset: int
    endings: frozenset[str]
    seal: layout.Seal | None

    @property
    def sealed(self) -> bool:
        """A rewrite syncs its new .log before it takes the old one's place, so a seal of either
        says that the whole segment is durable."""
        return self.seal is not None and self.seal.sealed


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scan:
    """A plan for one unsealed segment: keep so much of the log and of its indexes."""

    end: int
    next_offset: int
    resume: resume.Resume


def recover(disk: Disk, folder: str, settings: LogSettings, durable: Positions | None) -> Recovered:
    recovery = _Recovery(disk, folder, settings, durable)
    try:
        return recovery.run()
    except BaseException:
        recovery.close()
        raise


class _Recovery:
    def __init__(
        self, disk: Disk, folder: str, settings: LogSettings, durable: Positions | None
    ) -> None:
        self._disk = disk
        self._folder = folder
        self._settings = settings
        self._positions = {p.base_offset: p for p in durable.segments} if durable else {}
        self._result = Recovered([], [], RecoveryReport())
        self._report = self._result.report

    def run(self) -> Recovered:
        found = self._sweep()
        durable_below = self._durable_below(found)
        for number, item in enumerate(found):
            self._note_missing(item.base_offset)
            if layout.LOG not in item.endings:
                self._add_quarantined(item.base_offset, reason="quarantined earlier", position=-1)
                continue
            whole = item.sealed or item.base_offset < durable_below
            if not self._open(item, whole=whole, behind=found[number + 1 :]):
                break
        self._note_missing(1 << 64, all_lost=not self._result.segments)
        segments = self._result.segments
        for segment, following in itertools.pairwise(segments):
            if segment.state is State.QUARANTINED:
                segment.next_offset = following.base_offset
        return self._result

    def close(self) -> None:
        """Given up: nothing stays open."""
        for opened in self._result.writers:
            opened.close()

    def _sweep(self) -> list[_Found]:
        """Remove what a crash left half done; group the rest by base offset."""
        groups: dict[int, set[str]] = {}
        for text in self._disk.names(self._folder):
            parsed = layout.parse_name(text)
            if parsed is None:
                continue
            base_offset, ending, new = parsed
            if new:
                self._remove(text)
            else:
                groups.setdefault(base_offset, set()).add(ending)
        found = []
        for base_offset, endings in sorted(groups.items()):
            if layout.LOG not in endings:
                # Its .log is gone or moved aside: what is left of the segment is garbage.
                for ending in sorted(endings - {layout.DAMAGED}):
                    self._remove(layout.name(base_offset, ending))
            if endings & {layout.LOG, layout.DAMAGED}:
                seal = files.read_seal(self._disk, self._folder, base_offset)
                found.append(_Found(base_offset=base_offset, endings=frozenset(endings), seal=seal))
        return found

    def _durable_below(self, found: list[_Found]) -> int:
        """Segments with a lower base offset were wholly durable: a seal, of a segment that may
        still grow too, is written after everything before it was synced."""
        sealed = [item.base_offset for item in found if item.seal is not None]
        listed = [p.base_offset for p in self._positions.values() if p.log_bytes]
        return max([*sealed, *listed], default=0)

    def _open(self, item: _Found, *, whole: bool, behind: list[_Found]) -> bool:
        """Take one segment in; False when the log ends with it."""
        path = f"{self._folder}/{layout.name(item.base_offset, layout.LOG)}"
        file = self._disk.open(path)
        try:
            header = self._header(file, item, whole=whole)
            seal = item.seal if item.seal and _seals(item.seal, header) else None
            if seal is not None and seal.sealed:
                self._add_sealed(header, seal, file)
                file.close()
                return True
            durable = self._durable(item, seal)
            if not (whole or durable.log_bytes or self._result.segments):
                self._check_first(header, path)
            return self._open_unsealed(file, header, durable, whole=whole, behind=behind)
        except DamagedError as error:
            file.close()
            durable = self._durable(item, item.seal)
            if not whole and not durable.log_bytes:
                self._drop([item, *behind])
                return False
            self._move_aside(item.base_offset, error, next_offset=durable.next_offset)
            if not whole:
                self._drop(behind)
            return whole
        except BaseException:
            file.close()
            raise

    def _header(self, file: File, item: _Found, *, whole: bool) -> layout.FileHeader:
        data = file.read_at(0, START)
        try:
            header = layout.decode_header(data, magic=layout.MAGIC_LOG, path=file.path)
        except DamagedError:
            raise
        except StorageError as error:
            known = whole or self._durable(item, item.seal).log_bytes
            if known and not layout.intact(data):  # it was ours, whatever its first bytes say
                raise DamagedError(str(error), path=file.path, position=0) from error
            raise
        if header.base_offset != item.base_offset:
            raise StorageError(
                f"{file.path}: holds base offset {header.base_offset}", path=file.path
            )
        return header

    def _check_first(self, header: layout.FileHeader, path: str) -> None:
        """A segment that follows another one, which is gone, counts only if it is durable: trimming
        makes sure of that before it removes anything."""
        if header.extra != layout.NO_PREVIOUS:
            raise DamagedError(f"{path}: the segment before it was lost", path=path)

    def _add_sealed(self, header: layout.FileHeader, seal: layout.Seal, file: File) -> None:
        if file.size() < seal.log_bytes:
            raise DamagedError(
                f"{file.path}: {file.size()} bytes, sealed with {seal.log_bytes}",
                path=file.path,
                position=file.size(),
            )
        archived = bool(seal.flags & layout.ARCHIVED)
        segment = self._segment(
            header,
            length=seal.log_bytes,
            next_offset=seal.next_offset,
            state=State.ARCHIVED if archived else State.FULL,
        )
        segment.timestamp_ms_max = seal.timestamp_ms_max
        segment.sealed = True
        self._result.segments.append(segment)

    def _open_unsealed(
        self,
        file: File,
        header: layout.FileHeader,
        durable: SegmentPosition,
        *,
        whole: bool,
        behind: list[_Found],
    ) -> bool:
        size = file.size()
        if size < durable.log_bytes:
            raise DamagedError(
                f"{file.path}: {size} bytes, {durable.log_bytes} were durable",
                path=file.path,
                position=size,
            )
        offsets, times = writer.open_indexes(self._disk, self._folder, header, self._settings)
        try:
            view = file.map(size)
            believed = resume.believe(
                view, offsets, times, log_end=durable.log_bytes, settings=self._settings
            )
            scan = self._scan(view, durable, believed, path=file.path)
            if whole and scan.end < size:
                raise DamagedError(
                    f"{file.path}: bad frame at {scan.end}", path=file.path, position=scan.end
                )
            goes_on = whole or (scan.end == size and self._continues(behind, scan.next_offset))
            if not goes_on:
                self._drop(behind)
            entries = resume.feed(
                view, scan.resume, offsets, times, log_end=scan.end, settings=self._settings
            )
            del view  # never touched again: the file may get shorter now
            self._cut(file, scan.end, size)
        except BaseException:
            times.close()
            if offsets is not None:
                offsets.close()
            raise
        segment = self._segment(
            header, length=scan.end, next_offset=scan.next_offset, state=State.ACTIVE
        )
        segment.timestamp_ms_max = entries.timestamp_ms_max
        segment.rebuild_count = _made_anew(scan, offsets, times)
        self._report.rebuild_count += segment.rebuild_count
        self._result.segments.append(segment)
        opened = writer.SegmentWriter(
            segment=segment,
            file=file,
            entries=entries,
            offsets=offsets,
            times=times,
            synced_bytes=durable.log_bytes,
            synced_next_offset=durable.next_offset,
        )
        self._result.writers.append(opened)
        return goes_on

    def _scan(
        self,
        view: memoryview,
        durable: SegmentPosition,
        resume_from: resume.Resume,
        *,
        path: str,
    ) -> _Scan:
        """Verify from a little before the durable end on: from where the indexes must go on."""
        base_offset = durable.base_offset
        durable_bytes = max(durable.log_bytes, START)
        start = resume_from.position
        below = record.scan(
            view, start, durable_bytes, offset_min=base_offset, payload_max=PAYLOAD_MAX
        )
        self._check_format(below, path)
        if below.fault and start != START:
            # Before the log is blamed: it may be an index that is intact in itself but wrong.
            return self._scan(view, durable, resume.NOTHING, path=path)
        if below.fault:
            raise DamagedError(
                f"{path}: {record.FAULTS[below.fault]} at {below.end}, below its durable end "
                f"{durable_bytes}",
                path=path,
                position=below.end,
            )
        next_offset = below.offset_last + 1 if below.frame_count else base_offset
        if durable.log_bytes and next_offset != durable.next_offset:
            raise DamagedError(
                f"{path}: durable end at offset {next_offset}, expected {durable.next_offset}",
                path=path,
                position=durable_bytes,
            )
        above = record.scan(
            view, durable_bytes, len(view), offset_min=next_offset, payload_max=PAYLOAD_MAX
        )
        self._check_format(above, path)
        self._report.scanned_bytes += above.end - start
        if above.frame_count:
            next_offset = above.offset_last + 1
        # Offsets that compaction dropped at the end of a sealed segment stay used.
        next_offset = max(next_offset, durable.next_offset)
        return _Scan(end=above.end, next_offset=next_offset, resume=resume_from)

    def _check_format(self, span: record.Span, path: str) -> None:
        """What a newer program wrote is not cut by an older one."""
        if span.fault == record.UNKNOWN_FORMAT:
            raise StorageError(
                f"{path}: {record.FAULTS[span.fault]} at {span.end}: written by a newer program",
                path=path,
                position=span.end,
            )

    def _cut(self, file: File, end: int, size: int) -> None:
        if end == size:
            return
        logger.warning("log_cut path=%s position=%d bytes=%d", file.path, end, size - end)
        file.truncate(end)
        file.sync()
        self._report.cut_bytes += size - end
        self._report.cut_path = file.path

    def _continues(self, behind: list[_Found], next_offset: int) -> bool:
        """Whether the next segment began where this one ends. Gaps between offsets are legal, so
        only its header tells a lost tail or a lost segment from a rolled one."""
        if not behind or layout.LOG not in behind[0].endings:
            return bool(behind)
        path = f"{self._folder}/{layout.name(behind[0].base_offset, layout.LOG)}"
        file = self._disk.open(path, writable=False)
        try:
            data = file.read_at(0, START)
        finally:
            file.close()
        try:
            header = layout.decode_header(data, magic=layout.MAGIC_LOG, path=path)
        except DamagedError:
            return False
        return header.extra == next_offset

    def _drop(self, items: list[_Found]) -> None:
        """Remove segments behind a cut, the last first, for good before anything is cut."""
        for item in reversed(items):
            for ending in sorted(item.endings):
                self._remove(layout.name(item.base_offset, ending))
        if items:
            self._disk.sync_folder(self._folder)

    def _remove(self, text: str) -> None:
        self._disk.remove(f"{self._folder}/{text}")
        self._report.removed.append(text)

    def _move_aside(self, base_offset: int, error: DamagedError, *, next_offset: int) -> None:
        files.move_aside(self._disk, self._folder, base_offset)
        self._disk.sync_folder(self._folder)
        segment = self._add_quarantined(base_offset, reason=str(error), position=error.position)
        segment.next_offset = next_offset
        assert segment.damage is not None
        self._report.damages.append(damage.report(segment.damage))

    def _add_quarantined(self, base_offset: int, *, reason: str, position: int) -> Segment:
        header = layout.FileHeader(magic=layout.MAGIC_LOG, base_offset=base_offset, created_ms=0)
        known = self._positions.get(base_offset)
        segment = self._segment(
            header,
            length=0,
            next_offset=known.next_offset if known else base_offset,
            state=State.QUARANTINED,
        )
        segment.damage = damage.Damage(
            path=segment.path, position=position, reason=reason, base_offset=base_offset
        )
        self._result.segments.append(segment)
        return segment

    def _note_missing(self, below: int, *, all_lost: bool = False) -> None:
        """Segments that the positions list but the folder lacks. Before the first one they were
        trimmed after the positions were written; anywhere else they are lost. A trim leaves one
        segment at least, so in an empty folder all are."""
        have = self._result.segments
        if not have and not all_lost:
            return
        for position in self._lost(have[-1].base_offset if have else -1, below):
            segment = self._add_quarantined(
                position.base_offset, reason="segment is missing", position=-1
            )
            assert segment.damage is not None
            self._report.damages.append(damage.report(segment.damage))

    def _lost(self, above: int, below: int) -> list[SegmentPosition]:
        rows = sorted(self._positions.values(), key=lambda p: p.base_offset)
        return [p for p in rows if above < p.base_offset < below and p.log_bytes]

    def _durable(self, item: _Found, seal: layout.Seal | None) -> SegmentPosition:
        """How much of a segment is known to be durable. `seal` is of this very .log, or None."""
        base_offset = item.base_offset
        next_offset = item.seal.next_offset if item.seal and item.sealed else base_offset
        known = [SegmentPosition(base_offset=base_offset, log_bytes=0, next_offset=next_offset)]
        if seal is not None:
            known.append(
                SegmentPosition(
                    base_offset=base_offset, log_bytes=seal.log_bytes, next_offset=seal.next_offset
                )
            )
        if base_offset in self._positions and not item.sealed:
            known.append(self._positions[base_offset])
        return max(known, key=lambda p: p.log_bytes)

    def _segment(
        self, header: layout.FileHeader, *, length: int, next_offset: int, state: State
    ) -> Segment:
        return Segment(
            disk=self._disk,
            folder=self._folder,
            settings=self._settings,
            header=header,
            length=length,
            next_offset=next_offset,
            timestamp_ms_max=0,
            state=state,
        )


def _made_anew(scan: _Scan, offsets: index.IndexFile | None, times: index.IndexFile) -> int:
    """How many indexes had to be rebuilt because they were missing or of another file."""
    if scan.end == START:
        return 0
    return int(offsets is not None and offsets.fresh) + int(times.fresh)


def _seals(seal: layout.Seal, header: layout.FileHeader) -> bool:
    mine = (seal.base_offset, seal.generation, seal.created_ms)
    return mine == (header.base_offset, header.generation, header.created_ms)
