"""When to call an election, and who may be elected: timers, pre-vote and the tally of votes.

Pure but for its clock and dice. pysyncobj's own timer is off: an election starts only after a
pre-vote was won, so that a member coming back from isolation does not depose a healthy leader; and
a voter that heard from its leader within `election_s_min` answers nobody else. Votes are counted
once per voter of the present configuration. `RaftGroup` sends what this decides.
"""

from lograft_log.env import Clock, Rng
from lograft_replication import lease
from lograft_replication.timing import Timing

NEVER = float("-inf")


class Election:
    def __init__(self, *, clock: Clock, rng: Rng, timing: Timing, term: int) -> None:
        self._clock = clock
        self._rng = rng
        self._timing = timing
        self._elect_at = 0.0
        self._hasty_s: float | None = None  # the leader is probably dead: how soon to try again
        self._contact_at = NEVER  # when the leader of contact_term was last answered
        self._contact_term = term
        # When a leader of an earlier term may have been answered last. A process that starts does
        # not know what it promised to whom before.
        self._earlier_at = clock.now_s()
        self._shielded_until = NEVER  # until then no other candidate is answered
        self._pre_votes: set[str] | None = None
        self._pre_term = 0
        self._votes: dict[str, lease.VoterWord] = {}
        # It may have answered a heartbeat a moment ago, so it keeps that promise in full.
        self.heard(term)
        self.postpone()

    def heard(self, term: int) -> None:
        """The leader of `term` was heard and is going to be answered."""
        now = self._clock.now_s()
        if term > self._contact_term:
            self._earlier_at = self._contact_at
        self._contact_at = now
        self._contact_term = term
        self._shielded_until = now + self._timing.election_s_min
        self._pre_votes = None
        self._hasty_s = None
        self.postpone()

    def lost_link(self) -> None:
        """The link to the leader was reset: it is probably dead, so do not wait long."""
        self._shielded_until = NEVER
        self._hasty_s = self._timing.reset_s_max
        self._try_again()

    def leader_gone(self) -> None:
        """The leader's process is proven dead, and its lease with it; those of leaders before it
        are not."""
        self._contact_at = self._earlier_at

    def postpone(self) -> None:
        """Start the election timer again."""
        self._elect_at = self._clock.now_s() + self._rng.uniform(
            self._timing.election_s_min, self._timing.election_s_max
        )

    def _try_again(self) -> None:
        """When to call the next election should this one come to nothing. With the leader probably
        dead, a split vote need not cost a whole election time: soon, but each time less soon."""
        if self._hasty_s is None or self._hasty_s > self._timing.election_s_min:
            self.postpone()
            return
        wait_s = self._rng.uniform(self._timing.reset_s_min, self._hasty_s)
        self._elect_at = self._clock.now_s() + wait_s
        self._hasty_s *= 2

    def due(self, patience_s: float = 0.0) -> bool:
        return self._clock.now_s() >= self._elect_at + patience_s

    @property
    def shielded(self) -> bool:
        """A live leader was heard so lately that no other candidate is answered."""
        return self._clock.now_s() < self._shielded_until

    def word(self) -> lease.VoterWord:
        """What our vote says: how long a leader we answered may still believe in its lease."""
        left = self._contact_at + self._timing.lease_told_s - self._clock.now_s()
        return lease.VoterWord(self._contact_term, max(0.0, left), stepped_down=False)

    def begin_pre_vote(self, term: int) -> None:
        self._pre_votes = set()
        self._pre_term = term
        self._try_again()

    def pre_vote(self, voter: str, term: int, *, majority: int) -> bool:
        """Count a pre-vote; True when with our own it makes a majority."""
        if self._pre_votes is None or term != self._pre_term:
            return False
        self._pre_votes.add(voter)
        if len(self._pre_votes) + 1 < majority:
            return False
        self._pre_votes = None
        return True

    def begin_vote(self, own: str) -> None:
        """We stand for election; our own vote says what we know of earlier leaders."""
        self._pre_votes = None
        self._votes = {own: self.word()}
        self._try_again()

    def vote(self, voter: str, word: lease.VoterWord) -> bool:
        """Note a vote; False when this voter was counted before."""
        fresh = voter not in self._votes
        self._votes[voter] = word
        return fresh

    def wait_s(self) -> float:
        """How long the elected leader must wait before it serves."""
        return lease.wait_s(self._votes.values())
