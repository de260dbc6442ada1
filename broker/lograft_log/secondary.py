"""The secondary index: from a key or a header's value to the records that carry it.

A sealed segment has a .hashindex: hashes of the terms, sorted, each with the position of its frame.
It is checked as a whole (CRC in the file header) and made again when it is missing, of another
.log, of another term or damaged. The part for the active segment is kept in memory and catches up
when it is asked. A hash only proposes; every hit is compared with the record itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from lograft_log import compression, files, headers, layout
from lograft_log.hot import crc, record, search
from lograft_log.segment import START, Segment
from lograft_log.settings import Term
from lograft_wire.errors import StorageError


@dataclass(frozen=True, slots=True)
class KeyTerm:
    """Index by the record's key."""

    name: str = "key"

    def of(self, item: record.Record) -> bytes | None:
        return item.key


@dataclass(frozen=True, slots=True)
class HeaderTerm:
    """Index by one header of the record's AMQP properties."""

    header: str

    @property
    def name(self) -> str:
        return f"header:{self.header}"

    def of(self, item: record.Record) -> bytes | None:
        return headers.value(item.headers, self.header)


class LiveTerms:
    """The terms of the active segment, in memory."""

    def __init__(self, segment: Segment, term: Term) -> None:
        self.segment = segment
        self._term = term
        self._position = START  # frames below have been noted
        self._found: dict[int, list[int]] = {}

    def positions(self, value: bytes) -> list[int]:
        length = self.segment.length
        for hash_value, position in _terms(self.segment, self._term, self._position):
            known = self._found.setdefault(hash_value, [])
            if not known or known[-1] < position:  # a batch may hold the term several times
                known.append(position)
        self._position = length
        return list(self._found.get(search.hash_term(value), ()))


def make(segment: Segment, term: Term) -> memoryview:
    """The entries of a segment, from its .log."""
    rows = sorted(set(_terms(segment, term, START)))
    return memoryview(b"".join(layout.HASH_ENTRY.pack(*row) for row in rows))


def save(segment: Segment, term: Term, entries: memoryview) -> None:
    """Write a sealed segment's .hashindex. The caller syncs the folder."""
    write_new(segment, term, entries)
    segment.disk.rename(_path(segment) + layout.NEW, _path(segment))
    segment.terms_unsaved = False


def write_new(segment: Segment, term: Term, entries: memoryview) -> None:
    header = _header(segment, term, extra=crc.checksum(entries))
    files.write_new(segment.disk, _path(segment), [header.encode(), entries])


def entries_of(segment: Segment, term: Term) -> memoryview:
    """The entries of a sealed segment: as loaded, or made anew and saved by the next sync."""
    entries = segment.terms
    if entries is None:
        entries = _load(segment, term)
        if entries is None:
            entries = make(segment, term)
            segment.terms_unsaved = True
            segment.rebuild_count += 1
        segment.terms = entries
    return entries


def _load(segment: Segment, term: Term) -> memoryview | None:
    """The entries of a sealed segment, or None when they must be made again."""
    try:
        file = segment.disk.open(_path(segment), writable=False)
    except FileNotFoundError:
        return None
    try:
        data = file.read_at(0, layout.FILE_HEADER_BYTES)
        found = layout.decode_header(data, magic=layout.MAGIC_HASH, path=file.path)
        entries = file.map(file.size())[layout.FILE_HEADER_BYTES :]
    except StorageError:
        return None
    finally:
        file.close()
    if found != _header(segment, term, extra=crc.checksum(entries)):
        return None
    return entries if len(entries) % layout.HASH_ENTRY.size == 0 else None


def positions(entries: memoryview, value: bytes) -> list[int]:
    """Positions of the frames that may hold a record with this value, rising."""
    first, last = search.hash_range(entries, search.hash_term(value))
    size = layout.HASH_ENTRY.size
    return [layout.HASH_ENTRY.unpack_from(entries, at * size)[1] for at in range(first, last)]


def _terms(segment: Segment, term: Term, position: int) -> Iterator[tuple[int, int]]:
    """(hash, position of the frame) of every record from `position` on."""
    limits = segment.settings.limits
    while True:
        chunk, position = segment.take(position, offset_from=0, bytes_max=limits.read_bytes_max)
        if chunk is None:
            return
        for start, size, *_ in record.frames(chunk.data):
            frame = chunk.data[start : start + size]
            at = chunk.position + start
            plain = compression.unfold(frame, limits, path=chunk.path, position=at)
            for item in record.decode(plain):
                value = term.of(item)
                if value is not None:
                    yield search.hash_term(value), at


def _header(segment: Segment, term: Term, *, extra: int) -> layout.FileHeader:
    return layout.FileHeader(
        magic=layout.MAGIC_HASH,
        base_offset=segment.base_offset,
        created_ms=segment.header.created_ms,
        generation=segment.header.generation,
        extra=extra,
        parameter=crc.checksum(term.name.encode()),
    )


def _path(segment: Segment) -> str:
    return f"{segment.folder}/{layout.name(segment.base_offset, layout.HASHINDEX)}"
