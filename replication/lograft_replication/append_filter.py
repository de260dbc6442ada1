"""What a follower does with an Append, decided before pysyncobj sees it. Pure.

The library cuts the log at any overlap, even for a repeated message, and commits what it never
compared. So the message is rewritten: entries we hold already are taken out, the log is cut only
where a term really differs, and the commit mark never passes what this message has shown to be
equal. What would cut below our own commit mark is a broken promise somewhere: the group halts.
"""

from dataclasses import dataclass
from typing import Protocol

from lograft_replication.messages import Append, Entry


class ReadableLog(Protocol):
    @property
    def base_index(self) -> int: ...
    @property
    def base_term(self) -> int: ...
    @property
    def last_index(self) -> int: ...
    @property
    def last_term(self) -> int: ...
    def term_at(self, index: int) -> int: ...


@dataclass(frozen=True, slots=True)
class Accept:
    """Give the library `entries` behind `prev_index`; all up to `verified` then equals the
    leader's log."""

    prev_index: int
    prev_term: int
    entries: tuple[Entry, ...]
    commit: int
    verified: int


@dataclass(frozen=True, slots=True)
class Reject:
    """We lack what the message builds on; ask the leader to go on from `next_index`."""

    next_index: int


@dataclass(frozen=True, slots=True)
class Contradiction:
    """The leader's log differs from ours at or below our commit mark."""

    index: int
    ours: int
    theirs: int


def decide(log: ReadableLog, commit: int, message: Append) -> Accept | Reject | Contradiction:
    prev_index, prev_term, entries = message.prev_index, message.prev_term, message.entries
    if prev_index < log.base_index:
        # What a checkpoint covers is committed, hence equal: start the comparison behind it.
        entries = entries[log.base_index - prev_index :]
        prev_index, prev_term = log.base_index, log.base_term
    if prev_index > log.last_index:
        return Reject(log.last_index + 1)
    ours = log.term_at(prev_index)
    if ours != prev_term:
        if prev_index <= commit:
            return Contradiction(prev_index, ours, prev_term)
        return Reject(_first_of_term(log, prev_index, commit))
    known = _count_known(log, prev_index, entries)
    verified = prev_index + len(entries)
    commit_mark = min(message.commit, verified)
    if known == len(entries):
        # Nothing new. Built on our very last entry, the message cuts nothing.
        return Accept(log.last_index, log.last_term, (), commit_mark, verified)
    cut = prev_index + known + 1
    if cut <= min(log.last_index, commit):
        return Contradiction(cut, log.term_at(cut), entries[known][2])
    prev_index += known
    return Accept(prev_index, log.term_at(prev_index), entries[known:], commit_mark, verified)


def _count_known(log: ReadableLog, prev_index: int, entries: tuple[Entry, ...]) -> int:
    known = 0
    last = log.last_index
    for _, index, term in entries:
        if index > last or log.term_at(index) != term:
            break
        known += 1
    assert not entries or entries[0][1] == prev_index + 1, (entries[0][1], prev_index)
    return known


def _first_of_term(log: ReadableLog, index: int, commit: int) -> int:
    """Skip a whole conflicting term at once instead of one entry per round trip."""
    term = log.term_at(index)
    floor = max(commit, log.base_index) + 1
    while index > floor and log.term_at(index - 1) == term:
        index -= 1
    return index
