"""When a leader may serve: what votes and heartbeat answers add up to."""

from pathlib import Path

from lograft_replication.lease import VoterWord, majority_time, wait_s
from lograft_replication.messages import PreVote, Vote, VoteRequest
from lograft_replication.proposals import Committed, Refused
from support.group_desk import TIMING, A, B, C, GroupDesk, append


def word(term: int, left_s: float, *, stepped_down: bool = False) -> VoterWord:
    return VoterWord(term, left_s, stepped_down)


def test_waits_for_the_longest_lease_any_voter_knows_of() -> None:
    assert wait_s([word(4, 0.1), word(4, 0.5), word(3, 0.0)]) == 0.5


def test_no_votes_no_wait() -> None:
    assert wait_s([]) == 0.0


def test_leader_that_stepped_down_ends_the_wait_for_its_own_term() -> None:
    assert wait_s([word(4, 0.5), word(4, 0.0, stepped_down=True)]) == 0.0


def test_leader_that_stepped_down_hands_on_its_own_wait() -> None:
    # It was elected a moment ago and had itself to wait for the leader before it.
    assert wait_s([word(4, 0.5), word(3, 0.6), word(4, 0.3, stepped_down=True)]) == 0.3


def test_contact_with_a_later_leader_still_counts() -> None:
    assert wait_s([word(5, 0.4), word(4, 0.0, stepped_down=True)]) == 0.4


def test_majority_time_is_that_of_the_slowest_needed() -> None:
    assert majority_time(100.0, [99.0, 42.0], 2) == 99.0
    assert majority_time(100.0, [99.0, 98.0, 1.0, 2.0], 3) == 98.0
    assert majority_time(100.0, [], 1) == 100.0
    assert majority_time(100.0, [99.0], 3) == float("-inf")


def vote_after(desk: GroupDesk, candidate: str, term: int) -> Vote:
    desk.take()
    desk.hear(candidate, VoteRequest(term, 99, term - 1, transfer=False))
    desk.sync()
    (vote,) = desk.take(candidate)
    assert isinstance(vote, Vote)
    return vote


def lose(desk: GroupDesk, peer: str) -> None:
    desk.links.discard(peer)
    desk.group.link_down(peer)


def test_vote_leaves_room_for_a_leader_whose_clock_is_slow(tmp_path: Path) -> None:
    """Its lease and our word are measured by two clocks."""
    desk = GroupDesk(tmp_path)
    desk.pass_time(5)
    desk.hear(B, append(1, 1, 0))
    desk.sync()
    lose(desk, B)
    vote = vote_after(desk, C, 2)
    assert vote.lease_left_ms >= 1000 * TIMING.lease_s * 1.05
    desk.pass_time(TIMING.lease_s * 1.05)
    assert vote_after(desk, C, 3).lease_left_ms > 0


def test_death_of_a_leader_does_not_end_the_lease_of_the_one_before(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path, voters=(A, B, C, "d", "e"))
    desk.pass_time(5)
    desk.hear(B, append(1, 1, 0))
    desk.sync()
    lose(desk, B)  # it may live on and serve
    vote_after(desk, C, 2)
    desk.pass_time(0.1)
    desk.hear(C, append(2, 1, 0))
    lose(desk, C)
    desk.group.peer_gone(C)
    vote = vote_after(desk, "d", 3)
    assert vote.lease_left_ms >= 1000 * (TIMING.lease_s - 0.1)


def test_death_of_the_only_leader_ends_the_wait(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path)
    desk.pass_time(5)
    desk.hear(B, append(1, 1, 0))
    desk.sync()
    lose(desk, B)
    desk.group.peer_gone(B)
    assert vote_after(desk, C, 2).lease_left_ms == 0


def test_restarted_member_keeps_unknown_promises_when_its_leader_dies(tmp_path: Path) -> None:
    """It may have answered another leader in an earlier term, just before it went down."""
    desk = GroupDesk(tmp_path)
    desk.hear(B, append(1, 1, 0))
    desk.sync()
    lose(desk, B)
    desk.group.peer_gone(B)
    assert vote_after(desk, C, 2).lease_left_ms > 0


def test_members_do_not_change_while_an_earlier_leader_may_serve(tmp_path: Path) -> None:
    """The voters that know of its lease might be gone when the next leader asks."""
    desk = GroupDesk(tmp_path)
    desk.pass_time(TIMING.election_s_max)
    desk.group.timer()
    desk.hear(B, PreVote(1))
    desk.sync()
    desk.hear(B, Vote(1, 0, lease_left_ms=500, stepped_down=False))
    desk.sync()
    desk.ack(B)
    outcomes: list[object] = []
    desk.group.remove(C, outcomes.append)
    (refused,) = outcomes
    assert isinstance(refused, Refused)
    assert "may still serve" in refused.reason
    desk.pass_time(0.51)
    desk.group.confirmed(B, desk.clock.now_s())
    desk.group.remove(C, outcomes.append)
    desk.sync()
    desk.ack(B)
    assert isinstance(outcomes[-1], Committed)
