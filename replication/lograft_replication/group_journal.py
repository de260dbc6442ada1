"""One Raft group's part of the node's journal: its hard state and its log.

Calls change what is in memory at once and hand a record to the journal, which makes it durable
later; `durable_index` and `state_durable` say how far that is. Raft's rules (when to vote, what to
truncate) are its caller's; what Raft can never ask for (a term going back, a gap) is asserted.
"""

from typing import Protocol

from lograft_replication import group_entries
from lograft_replication.group_entries import GroupEntries, MemoryUse
from lograft_replication.journal_format import FLAG_RESET, FLAG_VOTE, Kind, Row
from lograft_replication.journal_limits import JournalLimits
from lograft_replication.messages import Entry


class Recorder(Protocol):
    """The journal, as its groups see it."""

    @property
    def durable_sequence(self) -> int: ...

    @property
    def limits(self) -> JournalLimits: ...

    def record(
        self, kind: Kind, *, group: int, index: int, term: int, flags: int, payload: bytes
    ) -> tuple[int, int]:
        """Take one record; its sequence number and its place. Raises once the journal failed."""

    def read_back(
        self, place: tuple[int, int, int], *, length: int, index: int, term: int
    ) -> bytes: ...


class GroupJournal:
    def __init__(self, group_id: int, recorder: Recorder, memory: MemoryUse) -> None:
        self.group_id = group_id
        self.term = 0
        self.vote: str | None = None
        self.entries_held = GroupEntries(memory)
        self.pinned_file: int | None = None  # the oldest file recovery would need for our entries
        self._recorder = recorder
        self._state_sequence = 0
        self._forget_sequence = 0  # of the last record that made us forget entries
        # Until the record `_base_sequence` is durable, the base does not count as being on disk:
        # what is there is what was durable before.
        self._base_sequence = 0
        self._durable_before = 0

    def __repr__(self) -> str:
        return (
            f"GroupJournal({self.group_id}, term={self.term}, vote={self.vote!r}, "
            f"base={self.base_index}, last={self.last_index}, durable={self.durable_index})"
        )

    @property
    def base_index(self) -> int:
        return self.entries_held.base_index

    @property
    def base_term(self) -> int:
        return self.entries_held.base_term

    @property
    def first_index(self) -> int:
        return self.entries_held.base_index + 1

    @property
    def last_index(self) -> int:
        return self.entries_held.last_index

    @property
    def last_term(self) -> int:
        return self.entries_held.last_term

    @property
    def state_durable(self) -> bool:
        return self._state_sequence <= self._recorder.durable_sequence

    @property
    def durable_index(self) -> int:
        """All entries up to it, as they are now, are on disk. 0 until a reset is on disk."""
        durable_sequence = self._recorder.durable_sequence
        if durable_sequence < self._base_sequence:
            return self._durable_before
        return self.base_index + self.entries_held.durable_count(durable_sequence)

    def save_state(self, *, term: int, vote: str | None) -> None:
        if (term, vote) == (self.term, self.vote):
            return
        assert term > self.term or (term == self.term and self.vote is None), (term, vote, self)
        payload = b"" if vote is None else vote.encode()
        assert len(payload) <= self._recorder.limits.vote_bytes_max, vote
        flags = 0 if vote is None else FLAG_VOTE
        self._state_sequence, _ = self._record(
            Kind.STATE, index=0, term=term, flags=flags, payload=payload
        )
        self.term = term
        self.vote = vote

    def append(self, command: bytes, *, index: int, term: int) -> None:
        held = self.entries_held
        assert index == held.last_index + 1, (index, self)
        assert term >= held.last_term, (term, self)
        assert len(command) <= self._recorder.limits.entry_bytes_max, len(command)
        sequence, place = self._record(Kind.ENTRY, index=index, term=term, payload=command)
        held.push(command, term=term, sequence=sequence, place=place)
        if self.pinned_file is None:
            self.pinned_file = place >> group_entries.PLACE_BITS

    def truncate(self, from_index: int) -> None:
        assert from_index > self.base_index, (from_index, self)
        if from_index > self.last_index:
            return
        self._forget_sequence, _ = self._record(Kind.TRUNCATE, index=from_index, term=0)
        self.entries_held.cut(from_index)

    def reset(self, *, base_index: int, base_term: int) -> None:
        sequence, _ = self._record(Kind.BASE, index=base_index, term=base_term, flags=FLAG_RESET)
        self.entries_held.reset(base_index=base_index, base_term=base_term)
        self._forget_sequence = self._base_sequence = sequence
        self._durable_before = 0

    def trim(self, to_index: int) -> None:
        if to_index <= self.base_index:
            return
        base_term = self.term_at(to_index)
        durable_before = self.durable_index
        sequence, _ = self._record(Kind.BASE, index=to_index, term=base_term)
        self.entries_held.trim(to_index, base_term=base_term)
        self._forget_sequence = sequence
        if durable_before < to_index:
            self._base_sequence = sequence
            self._durable_before = durable_before

    def term_at(self, index: int) -> int:
        return self.entries_held.term_at(index)

    def entry(self, index: int) -> Entry:
        held = self.entries_held
        term = held.term_at(index)
        command = held.command_at(index)
        if command is None:
            command = self._recorder.read_back(
                held.place_at(index), length=held.size_at(index), index=index, term=term
            )
        return command, index, term

    def entries(
        self, from_index: int, *, bytes_max: int, count_max: int | None = None
    ) -> list[Entry]:
        """Entries from `from_index` on, at least one if there is one, else within the limits."""
        assert from_index > self.base_index, (from_index, self)
        found: list[Entry] = []
        room = bytes_max
        end = self.last_index + 1
        if count_max is not None:
            end = min(end, from_index + max(count_max, 1))
        for index in range(from_index, end):
            room -= self.entries_held.size_at(index)
            if room < 0 and found:
                break
            found.append(self.entry(index))
        return found

    def bytes_between(self, low: int, high: int) -> int:
        return self.entries_held.bytes_between(low, high)

    def update_pin(self) -> bool:
        """Let go of files behind what is durably forgotten; whether there is nothing left to do.

        While a forgetting record is not on disk, a crash brings the entries back, so their files
        stay. Afterwards the first entry that is held lies in the oldest file needed: later ones
        can only lie behind it.
        """
        if self._forget_sequence > self._recorder.durable_sequence:
            return False
        place = self.entries_held.first_place
        self.pinned_file = None if place is None else place >> group_entries.PLACE_BITS
        return True

    def row(self) -> Row:
        return Row(
            group=self.group_id,
            term=self.term,
            vote=self.vote,
            base_index=self.base_index,
            base_term=self.base_term,
            last_index=self.last_index,
            last_term=self.last_term,
        )

    def _record(
        self, kind: Kind, *, index: int, term: int, flags: int = 0, payload: bytes = b""
    ) -> tuple[int, int]:
        return self._recorder.record(
            kind, group=self.group_id, index=index, term=term, flags=flags, payload=payload
        )
