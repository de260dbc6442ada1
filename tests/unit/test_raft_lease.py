"""When a leader may serve: what votes and heartbeat answers add up to."""

from lograft_replication.lease import VoterWord, majority_time, wait_s


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
