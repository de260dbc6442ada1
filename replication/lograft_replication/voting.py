"""Elections: pre-votes, votes, and the planned hand-over. Timers and tally stand in `election`."""

from lograft_replication import lease
from lograft_replication.core import Core
from lograft_replication.library import CANDIDATE
from lograft_replication.messages import (
    PreVote,
    PreVoteRequest,
    Stale,
    TimeoutNow,
    Vote,
    VoteRequest,
)


class Voting:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._word = core.election.word()  # what the vote being given says
        self._transfer = False  # as candidate: the leader asked us to stand

    def begin(self) -> None:
        """The election timer ran out: ask whether an election could be won."""
        core = self._core
        if not core.other_voters:
            self._campaign(transfer=False)
            return
        core.election.begin_pre_vote(core.term + 1)
        request = PreVoteRequest(core.term + 1, core.log.last_index, core.log.last_term)
        for peer in core.other_voters:
            core.post(peer, request)

    def on_pre_vote_request(self, sender: str, message: PreVoteRequest) -> None:
        core = self._core
        if message.term <= core.term:
            core.post(sender, Stale(core.term))  # so that its next try can count
            return
        ours = (core.log.last_term, core.log.last_index)
        if not self._shielded() and (message.last_term, message.last_index) >= ours:
            core.post(sender, PreVote(message.term))

    def on_pre_vote(self, sender: str, message: PreVote) -> None:
        core = self._core
        if (
            sender in core.config.voters
            and core.group.is_voter
            and not core.group.is_leader
            and message.term == core.term + 1
            and core.election.pre_vote(sender, message.term, majority=core.config.majority_count)
        ):
            self._campaign(transfer=False)

    def on_vote_request(self, sender: str, message: VoteRequest) -> None:
        core = self._core
        if message.term < core.term:
            core.post(sender, Stale(core.term))
            return
        if not message.transfer and self._shielded():
            return
        self._word = core.group.leader_word() or core.election.word()
        core.library.receive(
            sender,
            {
                "type": "request_vote",
                "term": message.term,
                "last_log_index": message.last_index,
                "last_log_term": message.last_term,
            },
        )

    def _shielded(self) -> bool:
        """A leader in contact with its majority, or a follower that heard one just now, does not
        let a newcomer disturb the group."""
        core = self._core
        if core.group.is_leader:
            return core.group.contact_age_s() < core.timing.election_s_min
        return core.election.shielded

    def library_votes(self, candidate: str, term: int) -> None:
        self._core.election.postpone()
        word = self._word
        # Rounded up: a lease may seem longer than it is, never shorter.
        left_ms = int(word.lease_left_s * 1000) + 1 if word.lease_left_s > 0 else 0
        self._core.post(candidate, Vote(term, word.contact_term, left_ms, word.stepped_down))

    def library_asks(self, voter: str, term: int, last_index: int, last_term: int) -> None:
        self._core.post(voter, VoteRequest(term, last_index, last_term, self._transfer))

    def on_vote(self, sender: str, message: Vote) -> None:
        core = self._core
        if message.term != core.term or sender not in core.config.voters:
            return
        word = lease.VoterWord(
            message.contact_term, message.lease_left_ms / 1000, message.stepped_down
        )
        fresh = core.election.vote(sender, word)
        if core.group.is_leader:
            core.group.voted_late()
        elif fresh and core.library.role == CANDIDATE:
            core.library.receive(sender, {"type": "response_vote", "term": message.term})

    def on_timeout_now(self, sender: str, message: TimeoutNow) -> None:
        core = self._core
        able = core.group.is_voter and not core.group.unfit
        if able and message.term == core.term and sender == core.library.leader:
            self._campaign(transfer=True)

    def _campaign(self, *, transfer: bool) -> None:
        core = self._core
        assert core.group.is_voter, core.config
        assert not core.group.is_leader
        core.election.begin_vote(core.node)
        self._transfer = transfer
        core.library.campaign()
