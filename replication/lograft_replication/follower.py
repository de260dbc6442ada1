"""A member that follows: takes entries from its leader and says truthfully what it holds.

An acknowledgement names an index only when everything up to it was compared with this leader's log
in this term, and is on this node's disk. `append_filter` decides what the library gets to see.
"""

from lograft_replication import append_filter
from lograft_replication.core import Core, HaltError
from lograft_replication.library import FOLLOWER, Message
from lograft_replication.messages import Append, Appended, Offer, Stale


class Follower:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._leader: tuple[str, int] | None = None  # whom we follow, and in which term
        self._verified = 0  # all up to here equals that leader's log
        self._acked = 0  # the last index acknowledged to it; acked <= verified
        self._answer: append_filter.Accept | append_filter.Reject | None = None

    def follows(self, peer: str) -> bool:
        return self._leader is not None and self._leader[0] == peer

    def forget(self) -> None:
        """We lead now, or have halted: nobody is owed an acknowledgement."""
        self._leader = None

    def _heard(self, sender: str, term: int) -> bool:
        """Whether a message from a leader of `term` counts; notes the contact."""
        core = self._core
        if term < core.term:
            core.post(sender, Stale(core.term))
            return False
        if term == core.term and core.group.is_leader:
            raise HaltError(f"group {core.group_id}: {sender} leads term {term}, and so do we")
        core.election.heard(term)
        if self._leader != (sender, term):
            self._leader = (sender, term)
            self._verified = self._acked = 0
        return True

    def on_append(self, sender: str, message: Append) -> None:
        if not self._heard(sender, message.term):
            return
        core = self._core
        decision = append_filter.decide(core.log, core.library.commit_index, message)
        if isinstance(decision, append_filter.Contradiction):
            raise HaltError(
                f"group {core.group_id}: {sender} has term {decision.theirs} at index "
                f"{decision.index}, committed here with term {decision.ours}"
            )
        self._answer = decision
        core.library.receive(sender, _library_append(message.term, decision))
        self._answer = None
        if core.library.applied_index < core.library.commit_index:
            core.wake()

    def library_answers(self, leader: str) -> None:
        """The library answers an append: ours is more careful than its own."""
        answer = self._answer
        if isinstance(answer, append_filter.Accept):
            self._verified = max(self._verified, answer.verified)
            self.acknowledge(asked=True)
        elif answer is not None:
            term = self._core.term
            self._core.post(leader, Appended(term, answer.next_index, reset=True, success=False))

    def acknowledge(self, *, asked: bool) -> None:
        """Tell the leader how far we are. When the disk is behind, the answer waits for it."""
        core = self._core
        if self._leader is None or core.library.role != FOLLOWER or not core.log.state_durable:
            return
        leader, term = self._leader
        index = self._holds()
        if term == core.term and (index > self._acked or (asked and index == self._verified)):
            self._acked = index
            core.post(leader, Appended(term, index + 1, reset=False, success=True))

    def _holds(self) -> int:
        return min(self._verified, self._core.log.durable_index)

    def on_offer(self, sender: str, message: Offer) -> None:
        """We are behind the leader's journal. If we hold what its checkpoint ends with, say so;
        else pull the checkpoint."""
        if not self._heard(sender, message.term):
            return
        core = self._core
        if core.library.leader != sender or core.term != message.term:
            core.library.receive(sender, _library_append(message.term, None))
        if self.lacks(message.index, message.index_term):
            core.port.offered(core.group, sender, message)
        else:
            self.reached(max(message.index, core.library.commit_index))

    def lacks(self, index: int, term: int) -> bool:
        """Whether a checkpoint that ends with this entry has something for us. Where our log holds
        that entry, what follows it may have been acknowledged: nothing may take its place."""
        core = self._core
        if index <= core.library.commit_index:
            return False
        return index > core.log.last_index or core.log.term_at(index) != term

    def reached(self, index: int) -> None:
        """What stands at `index` here is committed, hence equal to the leader's log."""
        self._verified = max(self._verified, index)
        self.acknowledge(asked=True)


def _library_append(
    term: int, decision: append_filter.Accept | append_filter.Reject | None
) -> Message:
    """The message as the library gets it. One that builds on no entry at all teaches it who leads
    and gives it nothing else."""
    accept = decision if isinstance(decision, append_filter.Accept) else None
    return {
        "type": "append_entries",
        "term": term,
        "prevLogIdx": accept.prev_index if accept else None,
        "prevLogTerm": accept.prev_term if accept else None,
        "entries": list(accept.entries) if accept else [],
        "commit_index": accept.commit if accept else 0,
    }
