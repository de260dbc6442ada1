"""pysyncobj's SyncObj, made to run on our journal, our transport and our clock.

The only file that knows the library's private names; `tests/unit/test_library_source.py` fails when
the source behind them changes. What the library keeps: the votes, the handling of messages, what is
sent to whom, the apply loop. What is taken from it, because it is unsafe or blocks (each repair is
named in docs/decisions/0003): its timers and tick, its commit count, its queue and callbacks, its
files, its snapshots, its membership commands, its pickles. `RaftGroup` calls this and decides.

Time stands still for the library: every period in its configuration is NEVER_S, so nothing inside
it depends on a clock, and a run is decided by its inputs alone.
"""

import functools
from collections.abc import Callable
from typing import Any

from pysyncobj import SyncObj, SyncObjConf
from pysyncobj.journal import Journal as LibraryJournal
from pysyncobj.node import Node
from pysyncobj.transport import Transport

from lograft_log.hot import crc
from lograft_replication.group_journal import GroupJournal
from lograft_replication.messages import Entry

NEVER_S = 1e9
NO_OP = b"\x01"  # what the library appends when a leader is elected
FOLLOWER, CANDIDATE, LEADER = 0, 1, 2  # pysyncobj.syncobj._RAFT_STATE

Message = dict[str, Any]  # the library's own form of a message


class LogView(LibraryJournal):  # type: ignore[misc]  # the library has no types
    """A group's log in the shape the library wants: a list whose first element is the base."""

    def __init__(
        self,
        log: GroupJournal,
        on_append: Callable[[Entry], None],
        on_truncate: Callable[[int], None],
        on_state: Callable[[], None],
    ) -> None:
        self._log = log
        self._on_state = on_state
        self._on_append = on_append
        self._on_truncate = on_truncate

    def __len__(self) -> int:
        return self._log.last_index - self._log.base_index + 1

    def __getitem__(self, place: int) -> Entry:
        """The library reads only index and term through this; commands come from `entries`."""
        log = self._log
        index = log.base_index + place if place >= 0 else log.last_index + 1 + place
        return NO_OP, index, log.term_at(index)

    def add(self, command: bytes, idx: int, term: int) -> None:
        self._log.append(command, index=idx, term=term)
        self._on_append((command, idx, term))

    def deleteEntriesFrom(self, place: int) -> None:
        from_index = self._log.base_index + place
        self._log.truncate(from_index)
        self._on_truncate(from_index)

    def setCurrentTerm(self, term: int, vote: str | None) -> None:
        self._log.save_state(term=term, vote=vote)
        self._on_state()

    def getCurrentTerm(self) -> int:
        return self._log.term

    def getVotedForNodeId(self) -> str | None:
        return self._log.vote

    def setRaftCommitIndex(self, index: int) -> None:
        """Not kept: what was committed is learned again from the leader or the checkpoint."""

    def _destroy(self) -> None:
        """The journal belongs to the node, not to one group."""


class Member(Node):  # type: ignore[misc]
    """A node of the group. Its hash is the same in every process, so that sets of members are
    walked in the same order and a simulated run can be repeated."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self._hash = crc.checksum(id.encode())

    def __hash__(self) -> int:
        return self._hash


@functools.cache
def member(id: str) -> Member:
    """The one object for a node id: look-ups then compare by identity. Node ids are few."""
    return Member(id)


class NoSnapshots:
    """In the place of the library's serializer: checkpoints travel by `bulk`, not by messages."""

    def getTransmissionData(self, _node: Member) -> None:
        return None

    def cancelTransmisstion(self, _node: Member) -> None:  # the library's spelling
        return None


class Wire(Transport):  # type: ignore[misc]
    """Hands what the library wants to send to the group, which decides what leaves and when."""

    def __init__(self, send: Callable[[Member, Message], None]) -> None:
        super().__init__(None, None, None)
        self._send = send

    def send(self, node: Member, message: Message) -> bool:
        self._send(node, message)
        return True


class Library(SyncObj):  # type: ignore[misc]
    def __init__(
        self,
        *,
        node: str,
        log: GroupJournal,
        applied: int,
        apply: Callable[[Entry], None],
        send: Callable[[Member, Message], None],
        on_append: Callable[[Entry], None],
        on_truncate: Callable[[int], None],
        on_state: Callable[[], None],
        on_role: Callable[[], None],
        append_bytes_max: int,
        apply_bytes_max: int,
    ) -> None:
        self._log = log
        self._apply = apply
        self._apply_bytes_max = apply_bytes_max
        conf = SyncObjConf(
            autoTick=False,
            appendEntriesBatchSizeBytes=append_bytes_max,
            appendEntriesPeriod=NEVER_S,
            raftMinTimeout=4 * NEVER_S,
            raftMaxTimeout=5 * NEVER_S,
            connectionTimeout=6 * NEVER_S,
            leaderFallbackTimeout=2 * NEVER_S,
            onStateChanged=lambda _old, _new: on_role(),
        )
        super().__init__(member(node), [], conf, nodeClass=Member, transport=Wire(send))
        self._SyncObj__serializer = NoSnapshots()
        self._SyncObj__raftLog = LogView(log, on_append, on_truncate, on_state)
        assert log.term >= log.last_term, (log.term, log.last_term)
        self._SyncObj__raftCurrentTerm = log.term
        self._SyncObj__votedForNodeId = log.vote
        self._SyncObj__raftCommitIndex = applied
        self._SyncObj__raftLastApplied = applied

    # What the group reads.

    @property
    def role(self) -> int:
        return int(self._SyncObj__raftState)

    @property
    def term(self) -> int:
        return int(self._SyncObj__raftCurrentTerm)

    @property
    def leader(self) -> str | None:
        node = self._SyncObj__raftLeader
        return None if node is None else node.id

    @property
    def commit_index(self) -> int:
        return int(self._SyncObj__raftCommitIndex)

    @property
    def applied_index(self) -> int:
        return int(self._SyncObj__raftLastApplied)

    @property
    def next_index(self) -> dict[Member, int]:
        return self._SyncObj__raftNextIndex  # type: ignore[no-any-return]

    @property
    def match_index(self) -> dict[Member, int]:
        return self._SyncObj__raftMatchIndex  # type: ignore[no-any-return]

    @property
    def connected(self) -> set[Member]:
        """Who is sent to at present; the group takes a node out to hold it back."""
        return self._SyncObj__connectedNodes  # type: ignore[no-any-return]

    # What the group does.

    def set_members(self, voters: set[str], learners: set[str]) -> None:
        """Other voters and learners; both are sent entries, voters are counted."""
        # Sorted: the order of insertion is part of the order in which a set is walked.
        self._SyncObj__otherNodes = {member(name) for name in sorted(voters)}
        self._SyncObj__readonlyNodes = {member(name) for name in sorted(learners)}
        members = self._SyncObj__otherNodes | self._SyncObj__readonlyNodes
        for table in (self.next_index, self.match_index):
            for node in [node for node in table if node not in members]:
                del table[node]
        for node in members:
            self.next_index.setdefault(node, self._log.last_index + 1)
            self.match_index.setdefault(node, 0)

    def receive(self, sender: str, message: Message) -> None:
        self._SyncObj__onMessageReceived(member(sender), message)

    def campaign(self) -> None:
        """Begin an election: a new term, our own vote, and requests to every voter."""
        self._SyncObj__raftLeader = None
        self._SyncObj__setState(CANDIDATE)
        self._SyncObj__setCurrentTerm(self.term + 1, self._SyncObj__selfNode.id)
        self._SyncObj__votesCount = 1
        others = sorted(self._SyncObj__otherNodes, key=lambda node: node.id)
        for node in others:
            self._SyncObj__transport.send(
                node,
                {
                    "type": "request_vote",
                    "term": self.term,
                    "last_log_index": self._log.last_index,
                    "last_log_term": self._log.last_term,
                },
            )
        if not others:
            self._SyncObj__onBecomeLeader()

    def adopt_term(self, term: int) -> None:
        """Another member is in a later term: follow it there, with no vote given."""
        assert term > self.term, (term, self.term)
        self._SyncObj__setCurrentTerm(term, None)
        self.become_follower()

    def become_follower(self) -> None:
        self._SyncObj__raftLeader = None
        self._SyncObj__setState(FOLLOWER)

    def append(self, command: bytes) -> int:
        """As leader: put one entry behind the last and return its index."""
        index = self._log.last_index + 1
        self._SyncObj__raftLog.add(command, index, self.term)
        return index

    def commit(self, index: int) -> None:
        assert self.commit_index <= index <= self._log.last_index
        self._SyncObj__raftCommitIndex = index

    def apply_committed(self) -> None:
        self._SyncObj__applyLogEntries()

    def replicate(self) -> None:
        self._SyncObj__sendAppendEntries()

    def installed(self, index: int) -> None:
        """The machine stands at `index` by a checkpoint that was pulled."""
        self._SyncObj__raftCommitIndex = index
        self._SyncObj__raftLastApplied = index

    # The library's own methods, replaced by their private names.

    def _onTick(self, _time_to_wait: float = 0.0) -> None:
        raise AssertionError("the library's tick is not used: its commit count trusts no disk")

    def _SyncObj__generateRaftTimeout(self) -> float:
        return NEVER_S

    def _SyncObj__doApplyCommand(self, command: bytes) -> None:
        index = self.applied_index + 1
        self._apply((command, index, self._log.term_at(index)))

    def _SyncObj__getEntries(
        self, fromIDx: int | None, count: int | None = None, maxSizeBytes: int | None = None
    ) -> list[Entry]:
        log = self._log
        if fromIDx is None or fromIDx < log.base_index or fromIDx > log.last_index:
            return []
        if maxSizeBytes is not None:  # to be sent
            return log.entries(fromIDx, bytes_max=maxSizeBytes)
        if count is not None and count > 1:  # to be applied; what is left comes in the next turn
            return log.entries(fromIDx, bytes_max=self._apply_bytes_max, count_max=count)
        if count == 1 and fromIDx == self.applied_index + 1:
            return log.entries(fromIDx, bytes_max=self._apply_bytes_max, count_max=1)
        # To be compared: only index and term are looked at, and whether one more follows.
        last = min(fromIDx + (count or 2), log.last_index + 1)
        return [(NO_OP, index, log.term_at(index)) for index in range(fromIDx, last)]
