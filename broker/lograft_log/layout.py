"""Names and fixed layouts of the files of a log: file header and seal.

A log is a folder. A segment with base offset 42 owns the names 00000000000000000042.*:

    .log         file header, then frames (layout in hot/record.pyx)
    .index       file header, then offset entries (layout in hot/search.pyx); absent when not wanted
    .timeindex   file header, then time entries
    .hashindex   file header, then hash entries; sealed segments of logs that ask for it
    .seal        what of the .log is known to be durable, and whether more may follow
    .log.damaged the .log of a quarantined segment
    .*.new       being written; removed when found at opening

Pure: bytes in, values out. `recovery`, `segment`, `writer` and `rewrite` call it.
"""

import re
import struct
from dataclasses import dataclass

from lograft_log.hot import crc
from lograft_wire.errors import DamagedError, StorageError

VERSION = 1

# magic 8s | version u16 | flags u16 | generation u32 | base_offset u64 | extra u64
# | created_ms u64 | parameter u32 | crc32c u32 (over the 44 bytes before)
FILE_HEADER = struct.Struct("<8sHHIQQQII")
FILE_HEADER_BYTES = 48
assert FILE_HEADER.size == FILE_HEADER_BYTES

# magic 8s | version u16 | flags u16 | generation u32 | base_offset u64 | created_ms u64
# | log_bytes u64 | next_offset u64 | timestamp_ms_max u64 | zero u32 | crc32c u32 (over 60 bytes)
SEAL = struct.Struct("<8sHHIQQQQQII")
assert SEAL.size == 64

# The same layouts that hot/search.pyx reads and writes, for dump and for rebuilding.
OFFSET_ENTRY = struct.Struct("<QQII")  # offset | position | length | crc32c
TIME_ENTRY = struct.Struct("<QQQI")  # timestamp_ms | offset | position | crc32c
HASH_ENTRY = struct.Struct("<QQ")  # hash | position
assert (OFFSET_ENTRY.size, TIME_ENTRY.size, HASH_ENTRY.size) == (24, 28, 16)

MAGIC_LOG = b"LGRAFTLG"
MAGIC_INDEX = b"LGRAFTIX"
MAGIC_TIME = b"LGRAFTTX"
MAGIC_HASH = b"LGRAFTHX"
MAGIC_SEAL = b"LGRAFTSL"

LOG = ".log"
INDEX = ".index"
TIMEINDEX = ".timeindex"
HASHINDEX = ".hashindex"
SEAL_NAME = ".seal"
DAMAGED = ".log.damaged"
NEW = ".new"

NO_PREVIOUS = (1 << 64) - 1  # `extra` of a .log that never had a segment before it

SEALED = 1  # flag of a seal: the segment takes no more records
ARCHIVED = 2  # flag of a seal: it has been handed to the archive

_NAME = re.compile(r"(\d{20})(\.log|\.index|\.timeindex|\.hashindex|\.seal|\.log\.damaged)(\.new)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHeader:
    """Generation and creation time tie an index or a seal to the one .log it was made from."""

    magic: bytes
    base_offset: int
    created_ms: int
    generation: int = 0  # how often the .log was rewritten (cut, compacted, recompressed)
    extra: int = 0  # .log: where the segment before it ended; .hashindex: CRC of the entries
    parameter: int = 0  # .index, .timeindex: interval in bytes; .hashindex: CRC of the term's name

    def encode(self) -> bytes:
        fields = (self.magic, VERSION, 0, self.generation, self.base_offset, self.extra)
        return _signed(FILE_HEADER.pack(*fields, self.created_ms, self.parameter, 0))

    def same_log(self, other: "FileHeader") -> bool:
        mine = (self.base_offset, self.generation, self.created_ms)
        return mine == (other.base_offset, other.generation, other.created_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    base_offset: int
    generation: int
    created_ms: int
    log_bytes: int
    next_offset: int
    timestamp_ms_max: int
    flags: int

    @property
    def sealed(self) -> bool:
        return bool(self.flags & SEALED)

    def encode(self) -> bytes:
        fields = (MAGIC_SEAL, VERSION, self.flags, self.generation, self.base_offset)
        sizes = (self.created_ms, self.log_bytes, self.next_offset, self.timestamp_ms_max)
        return _signed(SEAL.pack(*fields, *sizes, 0, 0))


def decode_header(data: bytes, *, magic: bytes, path: str) -> FileHeader:
    """Raises DamagedError for bytes that a crash or a bad disk may leave behind, and StorageError
    for a file that is whole but not ours to read."""
    if len(data) < FILE_HEADER_BYTES or not any(data[:FILE_HEADER_BYTES]):
        raise DamagedError(f"{path}: no file header", path=path, position=0)
    data = data[:FILE_HEADER_BYTES]
    found, version, _, generation, base_offset, extra, created_ms, parameter, _ = (
        FILE_HEADER.unpack(data)
    )
    whole = intact(data)
    if found != magic and (whole or not found.startswith(b"LGRAFT")):
        raise StorageError(f"{path}: not a Lograft file of this kind: {found!r}", path=path)
    if not whole:
        raise DamagedError(f"{path}: file header fails its check", path=path, position=0)
    if version != VERSION:
        raise StorageError(
            f"{path}: format {version}; this program reads format {VERSION}", path=path
        )
    return FileHeader(
        magic=magic,
        base_offset=base_offset,
        created_ms=created_ms,
        generation=generation,
        extra=extra,
        parameter=parameter,
    )


def decode_seal(data: bytes, *, path: str) -> Seal | None:
    """None for a seal that was not written whole; it can always be made again."""
    if len(data) != SEAL.size or not intact(data):
        return None
    magic, version, flags, generation, base_offset, created_ms, *sizes, _, _ = SEAL.unpack(data)
    if magic != MAGIC_SEAL or version != VERSION:
        raise StorageError(f"{path}: not a seal this program reads: {magic!r} {version}", path=path)
    log_bytes, next_offset, timestamp_ms_max = sizes
    return Seal(
        base_offset=base_offset,
        generation=generation,
        created_ms=created_ms,
        log_bytes=log_bytes,
        next_offset=next_offset,
        timestamp_ms_max=timestamp_ms_max,
        flags=flags,
    )


def intact(data: bytes) -> bool:
    """Whether the last four bytes are the CRC of those before: headers, seals, index entries."""
    return crc.checksum(data[:-4]) == int.from_bytes(data[-4:], "little")


def _signed(data: bytes) -> bytes:
    return data[:-4] + crc.checksum(data[:-4]).to_bytes(4, "little")


def name(base_offset: int, ending: str) -> str:
    return f"{base_offset:020d}{ending}"


def parse_name(text: str) -> tuple[int, str, bool] | None:
    """(base offset, ending, whether it is a `.new`), or None for a name that is not ours."""
    match = _NAME.fullmatch(text)
    return (int(match[1]), match[2], match[3] is not None) if match else None
