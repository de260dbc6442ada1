"""Find out what a journal's files say after a stop of any kind, and make the folder fit for use.

Records form one chain: sequence numbers without a gap, from the oldest file's table on. A power
cut keeps any subset of the sectors that were not synced, so behind the first bad record there may
be valid ones. Each of those still tells how far the journal was durable when it was written:

- the break lies within what was durable: DamagedError;
- else it is a torn tail. What follows the break was never promised and must never come back. If
  any trace of this file's records is found behind it, the file is not written on: the journal
  goes on in the next file, under another epoch, and the break stays in this one for good. Files
  behind the one that holds the break can hold only strays: they become spares.

What was accepted beyond the last known durable number is written again in place and synced: after
a failed sync the system may show bytes that are on no way to the disk. Only `Journal.open` calls
this; it blocks.
"""

import itertools
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field

from lograft_log import env
from lograft_replication import group_entries, journal_file
from lograft_replication import journal_format as fmt
from lograft_replication.group_entries import MemoryUse
from lograft_replication.group_journal import GroupJournal
from lograft_replication.journal_file import JournalFile
from lograft_replication.journal_limits import JournalLimits
from lograft_replication.journal_replay import Replay
from lograft_wire import errors


@dataclass(slots=True)
class Recovered:
    groups: dict[int, GroupJournal]
    files: list[JournalFile]  # oldest first; the last one is written on. Empty: a new journal
    spares: list[str]
    position: int  # where the next record may lie; the end of the file when it must be another
    next_sequence: int
    content_sequence: int  # of the last record that is not a MARK
    marked_sequence: int  # highest durable number found
    clean: bool  # the last record was written by close()
    cut_bytes: int  # from the break to the last stray behind it; 0 when nothing was cut


@dataclass(slots=True)
class _Scan:
    """What is known while walking over the files."""

    replay: Replay
    expected: int = 1  # next sequence number of the chain
    durable: int = 0  # highest durable number any valid record tells
    content: int = 0  # sequence of the last record that is not a MARK
    clean: bool = False
    ended: bool = False  # the chain does not reach into the next file
    cut: int = fmt.FILE_HEADER_BYTES  # end of the chain in the last file it reaches
    stray_end: int = 0  # behind the last trace of a record behind `cut` in that file
    break_path: str = ""
    break_position: int = 0
    positions: "array[int]" = field(default_factory=lambda: array("Q"))  # of records in that file


def recover(
    disk: env.Disk,
    folder: str,
    *,
    limits: JournalLimits,
    incarnation: bytes,
    memory: MemoryUse,
    make_group: Callable[[int], GroupJournal],
) -> Recovered:
    numbers, spares = _list_folder(disk, folder, limits)
    scan = _Scan(Replay(make_group))
    files: list[JournalFile] = []
    used = 0  # files the chain reaches
    try:
        for number in numbers:
            held, data = _open_file(disk, folder, number, incarnation)
            files.append(held)
            if _scan_file(scan, held, data, oldest=len(files) == 1):
                used = len(files)
            group_entries.evict_oldest(
                [group.entries_held for group in scan.replay.groups.values()],
                memory,
                bytes_max=limits.memory_bytes_max,
                durable_sequence=scan.expected - 1,
            )
        if files:
            _check(scan, files[0])
            used = max(used, 1)
            _repair(scan, files[used - 1])
            spares = _retire(disk, folder, files[used:], spares, limits)
    except BaseException:
        for held in files:
            if held.file is not None:
                held.file.close()
        raise
    disk.sync_folder(folder)  # names as seen now survive, before spares are written over
    return Recovered(
        groups=scan.replay.groups,
        files=files[:used],
        spares=spares,
        position=files[used - 1].file_bytes if scan.stray_end > scan.cut else scan.cut,
        next_sequence=scan.expected,
        content_sequence=scan.content,
        marked_sequence=scan.durable,
        clean=scan.clean,
        cut_bytes=max(scan.stray_end - scan.cut, 0),
    )


def _list_folder(disk: env.Disk, folder: str, limits: JournalLimits) -> tuple[list[int], list[str]]:
    """Numbers of the journal's files, without a gap, and paths of spares that may be used."""
    numbers: list[int] = []
    spares: list[str] = []
    for name in disk.names(folder):
        path = f"{folder}/{name}"
        if name.endswith(journal_file.JOURNAL_SUFFIX):
            numbers.append(_number_of(name, path))
        elif name.endswith(journal_file.NEW_SUFFIX):
            disk.remove(path)
        elif name.endswith(journal_file.SPARE_SUFFIX):
            if len(spares) < limits.spare_files_max and _size(disk, path) == limits.file_bytes:
                spares.append(path)
            else:
                disk.remove(path)
    for before, number in itertools.pairwise(numbers):
        if number != before + 1:
            path = journal_file.path_of(folder, before + 1)
            raise errors.DamagedError(f"journal file {path} is missing", path=path, position=0)
    return numbers, spares


def _number_of(name: str, path: str) -> int:
    digits = name.removesuffix(journal_file.JOURNAL_SUFFIX)
    if not digits.isdecimal() or journal_file.path_of("", int(digits)) != f"/{name}":
        raise errors.DamagedError(f"{path} is no name of a journal file", path=path, position=0)
    return int(digits)


def _size(disk: env.Disk, path: str) -> int:
    file = disk.open(path, writable=False)
    try:
        return file.size()
    finally:
        file.close()


def _open_file(
    disk: env.Disk, folder: str, number: int, incarnation: bytes
) -> tuple[JournalFile, bytes]:
    path = journal_file.path_of(folder, number)
    file = disk.open(path)
    try:
        data = file.read_at(0, file.size())
        header = fmt.parse_file_header(data, path=path)
        if header.number != number or header.incarnation != incarnation:
            raise errors.DamagedError(
                f"journal file {path} is number {header.number} of incarnation "
                f"{header.incarnation.hex()}, not of {incarnation.hex()}",
                path=path,
                position=0,
            )
        if header.file_bytes != len(data):
            raise errors.DamagedError(
                f"journal file {path} has {len(data)} of {header.file_bytes} bytes",
                path=path,
                position=len(data),
            )
    except BaseException:
        file.close()
        raise
    return JournalFile(number, path, header.file_bytes, header.epoch, file=file), data


def _scan_file(scan: _Scan, held: JournalFile, data: bytes, *, oldest: bool) -> bool:
    """Follow the chain into this file, then look at what lies behind it; whether it reaches in."""
    view = memoryview(data)
    end = fmt.FILE_HEADER_BYTES
    if not scan.ended:
        if oldest:
            _begin(scan, held, view)
        end = _follow(scan, held, view)
    reached = end > fmt.FILE_HEADER_BYTES
    if reached or oldest:
        scan.cut, scan.stray_end = end, end
        scan.break_path, scan.break_position = held.path, end
    elif not scan.ended:
        scan.ended = True
        first = fmt.parse_record(view, end, epoch=held.epoch)
        if first is None:  # if anything is amiss, it is this file's table
            scan.break_path, scan.break_position = held.path, end
    _strays(scan, held, data, view, end, mine=reached or oldest)
    return reached


def _begin(scan: _Scan, held: JournalFile, view: memoryview) -> None:
    """The chain starts with the oldest file's table. Only the very first file may lack one: others
    became the oldest after their table was on disk."""
    first = fmt.parse_record(view, fmt.FILE_HEADER_BYTES, epoch=held.epoch)
    if first is not None:
        scan.expected = first.sequence
    elif held.number != 1:
        raise errors.DamagedError(
            f"journal file {held.path} is the oldest and has no table",
            path=held.path,
            position=fmt.FILE_HEADER_BYTES,
        )


def _follow(scan: _Scan, held: JournalFile, view: memoryview) -> int:
    """Replay records as long as they are valid and in order; the position behind them."""
    position = fmt.FILE_HEADER_BYTES
    positions = array("Q")
    while True:
        record = fmt.parse_record(view, position, epoch=held.epoch)
        if record is None or record.sequence != scan.expected:
            break
        if (record.kind == fmt.Kind.TABLE) != (position == fmt.FILE_HEADER_BYTES):
            raise errors.DamagedError(
                f"journal file {held.path} at {position}: a table begins a file and is only there",
                path=held.path,
                position=position,
            )
        payload_end = record.payload_position + record.length
        scan.replay.apply(held, record, bytes(view[record.payload_position : payload_end]))
        positions.append(position)
        scan.durable = max(scan.durable, record.durable)
        scan.clean = record.kind == fmt.Kind.MARK and bool(record.flags & fmt.FLAG_CLEAN)
        if record.kind != fmt.Kind.MARK:
            scan.content = record.sequence
        scan.expected += 1
        position = record.end
    if positions:
        scan.positions = positions
        held.first_sequence = scan.expected - len(positions)
    return position


def _strays(
    scan: _Scan, held: JournalFile, data: bytes, view: memoryview, start: int, *, mine: bool
) -> None:
    """Traces of this file's records behind the chain: the epoch, at its place in a record."""
    mark = held.epoch.to_bytes(8, "little")
    found = data.find(mark, start)
    while found >= 0:
        if found % 8 == 0:
            record = fmt.parse_record(view, found - fmt.EPOCH_POSITION, epoch=held.epoch)
            if record is not None:
                scan.durable = max(scan.durable, record.durable)
            if mine:
                scan.stray_end = found + len(mark)
        found = data.find(mark, found + 1)


def _check(scan: _Scan, oldest: JournalFile) -> None:
    if scan.durable >= scan.expected:
        raise errors.DamagedError(
            f"journal file {scan.break_path} at {scan.break_position}: record {scan.expected} is "
            f"not there, but all up to {scan.durable} were durable",
            path=scan.break_path,
            position=scan.break_position,
        )
    scan.replay.check_complete(oldest)


def _repair(scan: _Scan, active: JournalFile) -> None:
    """Make durable what was accepted without proof that it is."""
    assert active.file is not None
    if scan.durable < scan.expected - 1:
        # Everything in older files is durable: this file's table was written after their sync.
        position = scan.positions[max(scan.durable + 1 - active.first_sequence, 0)]
        active.file.write_at(position, [active.file.read_at(position, scan.cut - position)])
        active.file.sync()


def _retire(
    disk: env.Disk,
    folder: str,
    unused: list[JournalFile],
    spares: list[str],
    limits: JournalLimits,
) -> list[str]:
    """Files behind the end of the chain hold nothing; last first, so that no gap can appear."""
    for held in reversed(unused):
        assert held.file is not None
        held.file.close()
        path = journal_file.path_of(folder, held.number, journal_file.SPARE_SUFFIX)
        if len(spares) < limits.spare_files_max and held.file_bytes == limits.file_bytes:
            disk.rename(held.path, path)
            spares = [*(spare for spare in spares if spare != path), path]
        else:
            disk.remove(held.path)
        disk.sync_folder(folder)
    return spares
