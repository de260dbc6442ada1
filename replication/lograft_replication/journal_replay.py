"""Apply the journal's records, in order, to the groups they speak of.

Pure: recovery finds the records, this decides what they mean. A record that passed its check but
cannot follow those before it means that something durable is wrong or missing: DamagedError.
"""

from collections.abc import Callable
from dataclasses import replace

from lograft_replication import journal_format as fmt
from lograft_replication.group_entries import ABSENT, PLACE_BITS
from lograft_replication.group_journal import GroupJournal
from lograft_replication.journal_file import JournalFile
from lograft_replication.journal_format import Kind, Record, Row
from lograft_wire import errors


class Replay:
    def __init__(self, make_group: Callable[[int], GroupJournal]) -> None:
        self.groups: dict[int, GroupJournal] = {}
        self._make_group = make_group
        self._has_table = False

    def apply(self, held: JournalFile, record: Record, payload: bytes) -> None:
        try:
            self._apply(held, record, payload)
        except ValueError as error:  # of decoding too: the CRC was right, so it is our order
            raise errors.DamagedError(
                f"journal file {held.path} at {record.position}: {error}",
                path=held.path,
                position=record.position,
            ) from error

    def check_complete(self, oldest: JournalFile) -> None:
        """Every entry above its group's base must have been found."""
        for group in self.groups.values():
            if group.entries_held.first_place == ABSENT:
                raise errors.DamagedError(
                    f"journal file {oldest.path} is the oldest, but entry {group.first_index} of "
                    f"group {group.group_id} was before it",
                    path=oldest.path,
                    position=0,
                )

    def _apply(self, held: JournalFile, record: Record, payload: bytes) -> None:
        match record.kind:
            case Kind.MARK:
                return
            case Kind.TABLE if record.position == fmt.FILE_HEADER_BYTES:
                self._table(fmt.parse_table(payload))
                return
        group = self._group(record.group)
        match record.kind:
            case Kind.ENTRY:
                _entry(group, record, payload, held.number << PLACE_BITS | record.position)
            case Kind.STATE:
                _state(group, record, fmt.decode_vote(payload, record.flags))
            case Kind.TRUNCATE:
                _require(group.base_index < record.index <= group.last_index, record, group)
                group.entries_held.cut(record.index)
            case Kind.BASE:
                _base(group, record)
            case _:
                raise ValueError(f"no record of kind {record.kind} belongs here")

    def _group(self, group_id: int) -> GroupJournal:
        if group_id not in self.groups:
            self.groups[group_id] = self._make_group(group_id)
        return self.groups[group_id]

    def _table(self, rows: list[Row]) -> None:
        if self._has_table:
            self._check_table(rows)
            return
        self._has_table = True
        for row in rows:
            group = self._group(row.group)
            group.term, group.vote = row.term, row.vote
            held = group.entries_held
            held.reset(base_index=row.base_index, base_term=row.base_term)
            if row.last_index > row.base_index:
                held.push_absent(row.last_index - row.base_index, last_term=row.last_term)

    def _check_table(self, rows: list[Row]) -> None:
        """A later table must say what the records before it say."""
        for row in rows:
            group = self._group(row.group)
            found = group.row()
            if group.entries_held.last_is_absent:
                found = replace(found, last_term=row.last_term)
            if found != row:
                raise ValueError(f"table says {row}, the records before it {found}")
        unnamed = self.groups.keys() - {row.group for row in rows}
        if unnamed:
            raise ValueError(f"table lacks groups {sorted(unnamed)}")


def _entry(group: GroupJournal, record: Record, payload: bytes, place: int) -> None:
    held = group.entries_held
    _require(record.index == held.last_index + 1 and record.term >= held.last_term, record, group)
    held.push(payload, term=record.term, sequence=record.sequence, place=place)


def _state(group: GroupJournal, record: Record, vote: str | None) -> None:
    forward = record.term > group.term or (record.term == group.term and group.vote is None)
    _require(forward, record, group)
    group.term, group.vote = record.term, vote


def _base(group: GroupJournal, record: Record) -> None:
    held = group.entries_held
    if record.flags & fmt.FLAG_RESET:
        held.reset(base_index=record.index, base_term=record.term)
        return
    _require(held.base_index < record.index <= held.last_index, record, group)
    held.trim(record.index, base_term=record.term)


def _require(condition: bool, record: Record, group: GroupJournal) -> None:
    if not condition:
        raise ValueError(f"{record} cannot follow {group}")
