"""The bytes of a journal file: its header, its records, and the table of groups.

Pure layout: knows no disk and no policy. `journal` lays records out, `journal_file` writes them,
`journal_recovery` reads them back; docs/FORMATS.md tells the same for people.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from lograft_log.hot import crc
from lograft_wire import errors

# The header has a 512-byte sector of its own, so that no later write touches it; the rest is zero.
# magic 8s | version u32 | reserved u32 | number u64 | epoch u64 | file_bytes u64 | incarnation 16s
# | crc32c u32 (over all before it)
FILE_HEADER = struct.Struct("<8sIIQQQ16s")
FILE_HEADER_CRC = struct.Struct("<I")
FILE_HEADER_BYTES = 512
MAGIC = b"LGRJRNL\n"
VERSION = 1
assert FILE_HEADER.size == 56

# A record begins at a multiple of 8; the payload is followed by zeros up to the next one.
# crc32c u32 (over all behind it, without the padding)
# | length u32 (of the payload) | epoch u64 | sequence u64 | durable u64 | index u64 | term u64
# | group u32 | kind u8 | flags u8 | reserved u16 | payload
RECORD_CRC = struct.Struct("<I")
RECORD_REST = struct.Struct("<IQQQQQIBBH")
RECORD_HEADER_BYTES = 56
EPOCH_POSITION = 8  # of the epoch in a record: a multiple of 8, so it lies within one sector
assert RECORD_CRC.size + RECORD_REST.size == RECORD_HEADER_BYTES

# Payload of a TABLE: count u32 | reserved u32, then for each group
# group u32 | vote_length u16 | flags u8 | reserved u8 | term u64 | base_index u64 | base_term u64
# | last_index u64 | last_term u64 | vote
TABLE_HEADER = struct.Struct("<II")
TABLE_ROW = struct.Struct("<IHBBQQQQQ")
assert TABLE_HEADER.size == 8
assert TABLE_ROW.size == 48

FLAG_VOTE = 1  # of STATE and of a row: there is a vote (an empty one is not the same as none)
FLAG_RESET = 1  # of BASE: entries above the base are forgotten too
FLAG_CLEAN = 1  # of MARK: the journal was closed behind it

PADDING = [bytes(count) for count in range(8)]


class Kind(IntEnum):
    TABLE = 1  # hard state and base of every group; the first record of every file and only there
    ENTRY = 2  # (group, index, term), payload = command
    STATE = 3  # term in `term`, payload = vote
    TRUNCATE = 4  # entries from `index` on are forgotten
    BASE = 5  # the log begins behind (index, term)
    MARK = 6  # only says what is durable


@dataclass(frozen=True, slots=True)
class FileHeader:
    number: int
    epoch: int
    file_bytes: int
    incarnation: bytes


@dataclass(frozen=True, slots=True)
class Record:
    """A record that passed its check. The payload lies at `position + RECORD_HEADER_BYTES`."""

    position: int
    length: int
    sequence: int
    durable: int
    index: int
    term: int
    group: int
    kind: int
    flags: int

    @property
    def payload_position(self) -> int:
        return self.position + RECORD_HEADER_BYTES

    @property
    def end(self) -> int:
        return self.position + record_bytes(self.length)


@dataclass(frozen=True, slots=True)
class Row:
    """One group as a TABLE remembers it."""

    group: int
    term: int
    vote: str | None
    base_index: int
    base_term: int
    last_index: int
    last_term: int


def record_bytes(length: int) -> int:
    """Bytes a record with a payload of `length` takes in the file, padding included."""
    return (RECORD_HEADER_BYTES + length + 7) & ~7


def table_bytes(group_count: int, vote_bytes: int) -> int:
    return TABLE_HEADER.size + group_count * (TABLE_ROW.size + vote_bytes)


def encode_file_header(header: FileHeader) -> bytes:
    assert len(header.incarnation) == 16, header
    assert header.epoch != 0, header
    body = FILE_HEADER.pack(
        MAGIC, VERSION, 0, header.number, header.epoch, header.file_bytes, header.incarnation
    )
    return (body + FILE_HEADER_CRC.pack(crc.checksum(body))).ljust(FILE_HEADER_BYTES, b"\0")


def parse_file_header(data: bytes, *, path: str) -> FileHeader:
    """The header, or DamagedError: a file gets its name only when its header is on disk."""
    if len(data) < FILE_HEADER_BYTES:
        raise errors.DamagedError(f"journal file {path} has no header", path=path, position=0)
    body = data[: FILE_HEADER.size]
    magic, version, _, number, epoch, file_bytes, incarnation = FILE_HEADER.unpack(body)
    (found,) = FILE_HEADER_CRC.unpack_from(data, FILE_HEADER.size)
    if magic != MAGIC or found != crc.checksum(body):
        raise errors.DamagedError(f"header of journal file {path} is bad", path=path, position=0)
    if version != VERSION:
        raise errors.StorageError(
            f"journal file {path} has format version {version}; this program reads {VERSION}",
            path=path,
            position=0,
        )
    return FileHeader(number, epoch, file_bytes, incarnation)


def parse_record(data: memoryview, position: int, *, epoch: int) -> Record | None:
    """The record at `position`, or None when there is no whole and valid one of this epoch."""
    rest = position + RECORD_CRC.size
    if position + RECORD_HEADER_BYTES > len(data):
        return None
    (length, found_epoch, sequence, durable, index, term, group, kind, flags, _) = (
        RECORD_REST.unpack_from(data, rest)
    )
    end = position + RECORD_HEADER_BYTES + length
    if found_epoch != epoch or end > len(data):
        return None
    (found,) = RECORD_CRC.unpack_from(data, position)
    if found != crc.checksum(data[rest:end]):
        return None
    return Record(position, length, sequence, durable, index, term, group, kind, flags)


def encode_table(rows: Sequence[Row]) -> bytes:
    parts = [TABLE_HEADER.pack(len(rows), 0)]
    for row in rows:
        vote = b"" if row.vote is None else row.vote.encode()
        flags = 0 if row.vote is None else FLAG_VOTE
        parts.append(
            TABLE_ROW.pack(
                row.group,
                len(vote),
                flags,
                0,
                row.term,
                row.base_index,
                row.base_term,
                row.last_index,
                row.last_term,
            )
        )
        parts.append(vote)
    return b"".join(parts)


def parse_table(payload: bytes) -> list[Row]:
    """The rows of a payload whose CRC was right; ValueError when they do not fit it."""
    rows = []
    try:
        count, _ = TABLE_HEADER.unpack_from(payload)
        position = TABLE_HEADER.size
        for _ in range(count):
            group, vote_length, flags, _, *numbers = TABLE_ROW.unpack_from(payload, position)
            position += TABLE_ROW.size
            vote = decode_vote(payload[position : position + vote_length], flags)
            position += vote_length
            rows.append(Row(group, numbers[0], vote, *numbers[1:]))
    except struct.error as error:
        raise ValueError(f"table of {len(payload)} bytes is too short") from error
    if position != len(payload):
        raise ValueError(f"table of {len(payload)} bytes ends at {position}")
    return rows


def decode_vote(data: bytes, flags: int) -> str | None:
    return data.decode() if flags & FLAG_VOTE else None
