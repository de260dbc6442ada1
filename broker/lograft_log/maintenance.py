"""Acts on retention, compaction and archiving. The deciding is pure and done elsewhere.

Rewriting a segment is slow, so it comes in two halves: a CompactionWork or ArchiveWork does the
slow one, in any thread, on sealed segments alone; `adopt` does the quick one, on the writer's.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lograft_log import compaction, damage, files, layout, retention, rewrite
from lograft_log.hot.record import Record
from lograft_log.log import Log
from lograft_log.segment import START, Segment, State
from lograft_log.settings import Codec
from lograft_log.sync import seal_of
from lograft_wire.errors import RefusedError


def facts(log: Log) -> list[retention.SegmentFacts]:
    segments = log.segments()
    return [
        retention.SegmentFacts(
            base_offset=segment.base_offset,
            next_offset=segment.next_offset,
            log_bytes=segment.length,
            timestamp_ms_max=segment.timestamp_ms_max if segment.length > START else None,
            active=segment is segments[-1],
        )
        for segment in segments
    ]


def retain(
    log: Log, limits: retention.RetentionLimits, *, hold_offset: int | None = None
) -> list[int]:
    """Remove what is too old or too much; returns the base offsets. Files go with the next sync."""
    gone = retention.expired(
        facts(log), limits, now_ms=log.clock.wall_ms(), hold_offset=hold_offset
    )
    log.remove_segments(gone)
    return gone


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionWork:
    segments: tuple[Segment, ...]  # sealed, sound, oldest first
    targets: frozenset[int]
    limits: compaction.CompactionLimits
    tombstones_before_ms: int

    def __call__(self) -> list[rewrite.Rewritten]:
        result: list[rewrite.Rewritten] = []
        with damage.guard(self.segments[0].folder if self.segments else ""):
            try:
                self._rewrite(result)
            except damage.ChangedError:  # trimmed or cut meanwhile; the next pass sees what is left
                for one in result:
                    rewrite.discard(one)
                return []
            except BaseException:
                with contextlib.suppress(OSError):
                    for one in result:
                        rewrite.discard(one)
                raise
        return result

    def _rewrite(self, result: list[rewrite.Rewritten]) -> None:
        latest = compaction.LatestKeys(self.limits)
        for segment in self.segments:
            for item in _records(segment):
                latest.note(item)

        def keep(item: Record) -> bool:
            return compaction.survives(
                item, latest.offsets, tombstones_before_ms=self.tombstones_before_ms
            )

        for segment in self.segments:
            if segment.base_offset in self.targets and not all(map(keep, _records(segment))):
                codec = segment.settings.codec
                result.append(rewrite.prepare(segment, keep=keep, codec=codec, archived=False))


def pending_compaction(
    log: Log, limits: compaction.CompactionLimits, *, hold_offset: int | None = None
) -> CompactionWork:
    """What compaction has to do now; call it anywhere, then `adopt` its result."""
    sealed = [s for s in log.segments() if s.sealed or s.damage is not None]
    candidates = [
        compaction.Candidate(
            base_offset=segment.base_offset,
            next_offset=segment.next_offset,
            fixed=segment.damage is not None or segment.state is not State.FULL,
        )
        for segment in sealed
    ]
    return CompactionWork(
        segments=tuple(segment for segment in sealed if segment.damage is None),
        targets=frozenset(compaction.targets(candidates, hold_offset=hold_offset)),
        limits=limits,
        tombstones_before_ms=compaction.tombstones_before_ms(
            candidates, limits, now_ms=log.clock.wall_ms()
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveWork:
    segment: Segment
    codec: Codec

    def __call__(self) -> list[rewrite.Rewritten]:
        with damage.guard(self.segment.path):
            try:
                done = rewrite.prepare(
                    self.segment, keep=lambda _: True, codec=self.codec, archived=True
                )
            except damage.ChangedError:  # it is gone
                return []
            return [done]


def pending_archive(log: Log, base_offset: int, codec: Codec) -> ArchiveWork:
    """Archive a sealed segment compressed anew; call it anywhere, then `adopt` its result."""
    return ArchiveWork(segment=_sealed(log, base_offset), codec=codec)


def archive_as_is(log: Log, base_offset: int) -> None:
    """Archive a sealed segment with the bytes it has: only its seal says so."""
    segment = _sealed(log, base_offset)
    seal = seal_of(segment, flags=layout.SEALED | layout.ARCHIVED)
    with damage.guard(log.folder):
        files.write_seal(log.disk, log.folder, seal)
    segment.state = State.ARCHIVED
    segment.drop_views()


def archived(log: Log) -> list[Segment]:
    """What the archive pipeline may take."""
    return [segment for segment in log.segments() if segment.state is State.ARCHIVED]


def adopt(log: Log, rewritten: Sequence[rewrite.Rewritten]) -> list[int]:
    """Put rewritten segments in the place of the old ones; returns their base offsets. Those that
    were trimmed, cut or replaced meanwhile are discarded."""
    result: list[int] = []
    all_adopted = True
    with log.changing():
        for one in rewritten:
            replaced = one.old not in log.segments() or one.old.damage is not None
            # Without its tombstone a deleted record would be back, were it still there: so a
            # tombstone goes after what it deletes, and never before the disk has forgotten that.
            if replaced or (one.drops_tombstones and not all_adopted):
                rewrite.discard(one)
                all_adopted = False
                continue
            if one.drops_tombstones:
                log.disk.sync_folder(log.folder)
            # Readers of the new one use its map until the names are right.
            log.replace_segment(one.old, one.new)
            rewrite.put_in_place(one)
            result.append(one.new.base_offset)
    return result


def _sealed(log: Log, base_offset: int) -> Segment:
    for segment in log.segments():
        if segment.base_offset == base_offset and segment.sealed and segment.damage is None:
            return segment
    raise RefusedError(f"{log.folder}: no sealed segment {base_offset} to archive")


def _records(segment: Segment) -> Iterator[Record]:
    position = START
    limits = segment.settings.limits
    while True:
        chunk, position = segment.take(position, offset_from=0, bytes_max=limits.read_bytes_max)
        if chunk is None:
            return
        yield from chunk.records(0, limits)
