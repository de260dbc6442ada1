"""What the journal does to its files: prepare, recycle, write a batch, read an entry back.

All of it blocks. `prepare` and `recycle` run in the journal's helper, `write_batch` in its writer,
each touching only what it was handed; `read_payload` runs on the event loop. OSError travels on to
the journal, which makes a StorageError of it in one place.

Names: `<number>.journal` is part of the journal, `<number>.spare` waits to be used again,
`<number>.new` is being filled for the first time and is worthless after a crash.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from typing_extensions import Buffer

from lograft_log import env
from lograft_log.hot import crc
from lograft_replication import journal_format as fmt
from lograft_wire import errors

ZERO_BYTES = 1 << 20  # a file is filled in pieces of this size
JOIN_BYTES_MAX = 8 << 10  # smaller payloads are copied: cheaper than a part of their own
JOURNAL_SUFFIX = ".journal"
SPARE_SUFFIX = ".spare"
NEW_SUFFIX = ".new"

# One record before it has an epoch: (sequence, index, term, group, kind, flags, payload).
Waiting = tuple[int, int, int, int, int, int, bytes]


@dataclass(slots=True)
class JournalFile:
    """A file of the journal as the event loop sees it; `file` is None until it is prepared."""

    number: int
    path: str
    file_bytes: int
    epoch: int
    first_sequence: int = 0  # of its TABLE; 0 until the journal has rolled into it
    file: env.File | None = None


def path_of(folder: str, number: int, suffix: str = JOURNAL_SUFFIX) -> str:
    return f"{folder}/{number:016d}{suffix}"


def prepare(disk: env.Disk, folder: str, header: fmt.FileHeader, *, spare: str | None) -> env.File:
    """Put file `header.number` into place, from `spare` (a path) or filled with zeros.

    Pre-written files sync 2 to 4 times faster than growing ones. The name comes last: a file with
    a journal's name has a valid header, always.
    """
    path = path_of(folder, header.number)
    source = spare if spare is not None else path_of(folder, header.number, NEW_SUFFIX)
    file = disk.open(source, create=spare is None)
    try:
        if spare is None:
            fill(file, fmt.FILE_HEADER_BYTES, header.file_bytes)
        file.write_at(0, [fmt.encode_file_header(header)])
        file.sync()
        disk.rename(source, path)
        disk.sync_folder(folder)
    finally:
        file.close()
    return disk.open(path)


def recycle(disk: env.Disk, folder: str, number: int, file: env.File, *, keep: bool) -> None:
    """Take the oldest file out of the journal, to a spare or for good.

    The folder is synced before anything else may happen: were this name to come back after a power
    cut, it must not name bytes of another file, nor leave a gap before younger ones.
    """
    file.close()
    if keep:
        disk.rename(path_of(folder, number), path_of(folder, number, SPARE_SUFFIX))
    else:
        disk.remove(path_of(folder, number))
    disk.sync_folder(folder)


def fill(file: env.File, start: int, end: int) -> None:
    zeros = bytes(ZERO_BYTES)
    for position in range(start, end, ZERO_BYTES):
        size = min(ZERO_BYTES, end - position)
        file.write_at(position, [zeros if size == ZERO_BYTES else bytes(size)])


def write_batch(
    file: env.File, position: int, records: Sequence[Waiting], *, epoch: int, durable: int
) -> None:
    """Write the records one behind the other from `position`, and sync."""
    file.write_at(position, encode_batch(records, epoch=epoch, durable=durable))
    file.sync()


def encode_batch(records: Sequence[Waiting], *, epoch: int, durable: int) -> list[Buffer]:
    """The bytes of the records as parts; large payloads are parts themselves, never copied."""
    pack, pack_crc, checksum = fmt.RECORD_REST.pack, fmt.RECORD_CRC.pack, crc.checksum
    parts: list[Buffer] = []
    small: list[bytes] = []
    for sequence, index, term, group, kind, flags, payload in records:
        length = len(payload)
        rest = pack(length, epoch, sequence, durable, index, term, group, kind, flags, 0)
        small.append(pack_crc(checksum(payload, checksum(rest))))
        small.append(rest)
        if length > JOIN_BYTES_MAX:
            parts.append(b"".join(small))
            parts.append(payload)
            small = []
        else:
            small.append(payload)
        small.append(fmt.PADDING[-length % 8])
    parts.append(b"".join(small))
    return parts


def read_payload(
    held: JournalFile, position: int, length: int, *, sequence: int, index: int, term: int
) -> bytes:
    """The command of one entry that is on disk, checked again on its way back."""
    assert held.file is not None, held
    data = held.file.read_at(position, fmt.RECORD_HEADER_BYTES + length)
    record = fmt.parse_record(memoryview(data), 0, epoch=held.epoch)
    if record is None or (record.sequence, record.index, record.term, record.length) != (
        sequence,
        index,
        term,
        length,
    ):
        raise errors.DamagedError(
            f"journal file {held.path} at {position}: entry {index} of term {term} does not pass "
            "its check",
            path=held.path,
            position=position,
        )
    return data[fmt.RECORD_HEADER_BYTES :]
