"""The checkers that need no cluster to be wrong: votes on the wire, machines, outcomes."""

from typing_extensions import Buffer

from lograft_replication import codec
from lograft_replication.messages import PreVote, Vote, VoteRequest
from lograft_replication.proposals import Committed, Refused, Unknown
from sim.checkers import Checker, Chosen


def frame(message: Vote | VoteRequest | PreVote) -> bytes:
    parts: list[Buffer] = codec.encode(1, message)
    return b"".join(parts)


def vote(term: int) -> bytes:
    return frame(Vote(term, 0, 0, False))


def test_vote_repeated_for_the_same_candidate_is_fine() -> None:
    checker = Checker()
    checker.sent("a", "b", vote(3))
    checker.sent("a", "b", vote(3))
    checker.sent("a", "c", vote(4))
    checker.sent("a", "c", frame(PreVote(3)))
    assert checker.broken is None


def test_two_votes_in_one_term_are_noticed() -> None:
    checker = Checker()
    checker.sent("a", "b", vote(3))
    checker.sent("a", "c", vote(3))
    assert checker.broken is not None
    assert "votes for b and c in term 3" in checker.broken


def test_vote_for_another_after_standing_oneself_is_noticed() -> None:
    checker = Checker()
    checker.sent("a", "b", frame(VoteRequest(3, 1, 1, False)))
    checker.sent("a", "c", frame(VoteRequest(3, 1, 1, False)))
    assert checker.broken is None
    checker.sent("a", "c", vote(3))
    assert checker.broken is not None


def test_machines_that_differ_at_one_index_are_noticed() -> None:
    checker = Checker()
    checker.applied("a", 1, 5, b"x")
    checker.applied("b", 1, 5, b"x")
    checker.applied("b", 2, 5, b"y")
    assert checker.broken is None
    checker.applied("c", 1, 5, b"y")
    assert checker.broken == "c group 1: the machine differs at index 5"


def test_confirmed_command_that_was_not_committed_is_noticed_at_the_end() -> None:
    checker = Checker()
    checker.outcome(1, b"one", Committed(5, None))
    checker.outcome(1, b"two", Unknown("who knows"))
    assert (checker.confirmed_count, checker.unknown_count) == (1, 1)
    checker.finish()
    assert checker.broken == "group 1: confirmed index 5 is lost"


def test_command_confirmed_where_another_is_committed_is_noticed() -> None:
    checker = Checker()
    checker.chosen[1] = {5: Chosen(2, b"other", 2)}
    checker.outcome(1, b"one", Committed(5, None))
    assert checker.broken is not None


def test_refused_command_that_was_committed_is_noticed() -> None:
    checker = Checker()
    checker.outcome(1, b"one", Refused("no"))
    checker.chosen[1] = {5: Chosen(2, b"one", 2)}
    checker.finish()
    assert checker.broken == "group 1: refused, yet committed at index 5"


def test_first_violation_is_kept() -> None:
    checker = Checker()
    checker.found("first")
    checker.found("second")
    assert checker.broken == "first"
