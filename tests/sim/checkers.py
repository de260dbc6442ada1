"""What must hold at every moment of a simulated cluster, looked at after every step.

Checker.look compares one process with all that was ever seen, after each callback it ran:
- one leader per term and group, and it holds every entry committed in an earlier term;
- an index once committed keeps its term and command, on every node and after every restart, so
  logs are equal below the commit mark;
- at most one leader per group serves (holds its lease) at any instant;
- machines that applied up to the same index are equal.
Checker.sent watches the wire: nobody votes for two candidates in one term, restarts included.
Outcome bookkeeping: what was confirmed is committed under its index, what was refused never is.

The first broken rule is kept in `broken`, not raised: a raise inside a process would be caught by
the code under test. `world` calls all this and stops; faults and repairs are none of its business.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from lograft_replication import codec
from lograft_replication.group import RaftGroup
from lograft_replication.messages import Vote, VoteRequest
from lograft_replication.proposals import Committed, Outcome, Refused
from lograft_wire.errors import StorageError

ENTRIES_BYTES_MAX = 1 << 30  # compare all that is new at once


@dataclass(frozen=True, slots=True)
class Chosen:
    term: int
    command: bytes
    seen_in: int  # the term of whoever was first seen to count it as committed


@dataclass(slots=True)
class View:
    """How far one boot of one member has been compared."""

    compared: int = 0
    led_term: int = 0


Groups = dict[int, RaftGroup]


class Checker:
    def __init__(self) -> None:
        self.leaders: dict[tuple[int, int], str] = {}
        self.chosen: dict[int, dict[int, Chosen]] = {}
        self.confirmed: dict[int, dict[int, bytes]] = {}
        self.refused: dict[int, set[bytes]] = {}
        self.unknown_count = 0
        self.broken: str | None = None  # the first rule that was broken, and how
        self._digests: dict[int, dict[int, bytes]] = {}  # group -> index -> machine's digest
        self._votes: dict[tuple[int, str, int], str] = {}
        self._views: dict[tuple[str, bytes, int], View] = {}

    @property
    def confirmed_count(self) -> int:
        return sum(map(len, self.confirmed.values()))

    def found(self, violation: str) -> None:
        if self.broken is None:
            self.broken = violation

    def look(self, node: str, boot: bytes, groups: Groups, others: Iterable[Groups]) -> None:
        """A process ran: compare it with everything known."""
        for group_id, group in groups.items():
            view = self._views.get((node, boot, group_id))
            if view is None:
                view = self._views[node, boot, group_id] = View()
            if group.commit_index != view.compared:
                self._compare(node, group, view)
            if group.is_leader:
                if view.led_term != group.term:
                    view.led_term = group.term
                    self._leads(node, group)
                if group.serving:
                    self._serves_alone(node, group, others)

    def applied(self, node: str, group: int, index: int, digest: bytes) -> None:
        known = self._digests.setdefault(group, {}).setdefault(index, digest)
        if known != digest:
            self.found(f"{node} group {group}: the machine differs at index {index}")

    def sent(self, sender: str, receiver: str, frame: bytes) -> None:
        kind = codec.HEADER.unpack_from(frame)[3]
        if kind == codec.KIND_APPEND or kind >= codec.KIND_HEARTBEAT:
            return
        group, message = codec.decode(memoryview(frame))
        if isinstance(message, Vote | VoteRequest):
            candidate = receiver if isinstance(message, Vote) else sender
            known = self._votes.setdefault((group, sender, message.term), candidate)
            if known != candidate:
                self.found(
                    f"{sender} group {group}: votes for {known} and {candidate} "
                    f"in term {message.term}"
                )

    def outcome(self, group: int, command: bytes, outcome: Outcome) -> None:
        match outcome:
            case Committed(index=index):
                known = self.confirmed.setdefault(group, {}).setdefault(index, command)
                if known != command:
                    self.found(f"group {group}: two commands confirmed at index {index}")
                chosen = self.chosen.get(group, {}).get(index)
                if chosen is not None and chosen.command != command:
                    self.found(f"group {group}: confirmed {index}, but another is committed")
            case Refused():
                self.refused.setdefault(group, set()).add(command)
            case _:
                self.unknown_count += 1

    def finish(self) -> None:
        """At the end: confirmed commands are in the history, refused ones are not."""
        for group, confirmed in self.confirmed.items():
            chosen = self.chosen.get(group, {})
            for index, command in confirmed.items():
                if index not in chosen or chosen[index].command != command:
                    self.found(f"group {group}: confirmed index {index} is lost")
        for group, refused in self.refused.items():
            for index, entry in self.chosen.get(group, {}).items():
                if entry.command in refused:
                    self.found(f"group {group}: refused, yet committed at index {index}")

    def _compare(self, node: str, group: RaftGroup, view: View) -> None:
        chosen = self.chosen.setdefault(group.group_id, {})
        log, commit, term_now = group.log, group.commit_index, group.term
        first = max(view.compared, log.base_index) + 1
        view.compared = commit
        if first > min(commit, log.last_index):
            return
        try:
            entries = log.entries(first, bytes_max=ENTRIES_BYTES_MAX, count_max=commit - first + 1)
        except StorageError:
            return  # damaged on purpose; the node finds out by itself
        for command, index, term in entries:
            known = chosen.get(index)
            if known is None:
                chosen[index] = Chosen(term, bytes(command), term_now)
            elif known.term != term or known.command != command:
                self.found(
                    f"{node} group {group.group_id}: committed term {term} at index {index}, "
                    f"where term {known.term} was committed"
                )

    def _leads(self, node: str, group: RaftGroup) -> None:
        known = self.leaders.setdefault((group.group_id, group.term), node)
        where = f"group {group.group_id} term {group.term}"
        if known != node:
            self.found(f"{where}: two leaders, {known} and {node}")
        log = group.log
        for index, entry in self.chosen.get(group.group_id, {}).items():
            if entry.seen_in >= group.term or index <= log.base_index:
                continue
            if index > log.last_index or log.term_at(index) != entry.term:
                self.found(f"{where}: leader {node} lacks the committed entry {index}")

    def _serves_alone(self, node: str, group: RaftGroup, others: Iterable[Groups]) -> None:
        for groups in others:
            other = groups.get(group.group_id)
            if other is not None and other is not group and other.is_leader and other.serving:
                self.found(
                    f"group {group.group_id}: {node} (term {group.term}) and {other.node} "
                    f"(term {other.term}) both serve"
                )
