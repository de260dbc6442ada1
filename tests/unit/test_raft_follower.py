"""What a follower keeps, refuses and acknowledges; each test names a failure of pysyncobj's own."""

from pathlib import Path

import pytest

from lograft_replication.messages import Appended, Stale, Vote, VoteRequest
from support.group_desk import A, B, C, GroupDesk, append, entries


def ack_of(index: int, term: int = 1) -> Appended:
    return Appended(term, index + 1, reset=False, success=True)


@pytest.fixture
def desk(tmp_path: Path) -> GroupDesk:
    return GroupDesk(tmp_path)


def follow(desk: GroupDesk, *texts: bytes, term: int = 1) -> None:
    desk.hear(B, append(term, 1, 0, entries(2, term, *texts)))
    desk.sync()
    desk.take()


def test_entry_is_acknowledged_only_when_on_disk(desk: GroupDesk) -> None:
    follow(desk, b"w")
    desk.hear(B, append(1, 2, 1, entries(3, 1, b"x", b"y")))
    assert desk.take() == []
    desk.sync()
    assert desk.take(B) == [ack_of(4)]


def test_repeated_shorter_append_cuts_nothing(desk: GroupDesk) -> None:
    follow(desk, b"1", b"2", b"3", b"4", b"5")
    desk.hear(B, append(1, 1, 0, entries(2, 1, b"1", b"2")))
    assert desk.log.last_index == 6
    assert desk.take(B) == [ack_of(6)]


def test_old_heartbeat_cuts_nothing(desk: GroupDesk) -> None:
    follow(desk, b"1", b"2", b"3")
    desk.hear(B, append(1, 2, 1))
    assert desk.log.last_index == 4


def test_overlapping_append_adds_only_what_is_new(desk: GroupDesk) -> None:
    follow(desk, b"1", b"2")
    desk.hear(B, append(1, 1, 0, entries(2, 1, b"1", b"2", b"3")))
    desk.sync()
    assert desk.log.last_index == 4
    assert desk.take(B) == [ack_of(4)]


def test_real_conflict_replaces_the_tail(desk: GroupDesk) -> None:
    follow(desk, b"1", b"2", b"3")
    desk.hear(C, append(2, 2, 1, entries(3, 2, b"new")))
    desk.sync()
    assert (desk.log.last_index, desk.log.term_at(3)) == (3, 2)
    assert desk.take(C) == [ack_of(3, term=2)]


def test_conflict_below_commit_halts_the_group(desk: GroupDesk) -> None:
    desk.hear(B, append(1, 1, 0, entries(2, 1, b"1", b"2"), commit=3))
    desk.sync()
    desk.take()
    desk.hear(C, append(2, 1, 0, entries(2, 2, b"other")))
    assert "committed here with term 1" in str(desk.errors[0])
    assert desk.log.term_at(2) == 1
    desk.hear(C, append(2, 3, 1))
    assert desk.take() == []


def test_commit_never_passes_what_was_compared(desk: GroupDesk) -> None:
    follow(desk, b"1", b"2", b"tail of a dead leader")
    desk.hear(C, append(2, 2, 1, (), commit=100))
    assert desk.group.commit_index == 2
    assert desk.machine.applied == [b"\x201"]


def test_missing_predecessor_asks_to_go_back(desk: GroupDesk) -> None:
    follow(desk, b"1")
    desk.hear(B, append(1, 9, 1, entries(10, 1, b"far")))
    assert desk.take(B) == [Appended(1, 3, reset=True, success=False)]


def test_whole_conflicting_term_is_skipped_at_once(desk: GroupDesk) -> None:
    follow(desk, *(b"%d" % i for i in range(50)))
    desk.hear(C, append(3, 51, 2, ()))
    desk.sync()
    assert desk.take(C) == [Appended(3, 2, reset=True, success=False)]


def test_stale_leader_is_told(desk: GroupDesk) -> None:
    follow(desk, b"1", term=9)
    desk.hear(C, append(3, 1, 0))
    assert desk.take(C) == [Stale(9)]
    desk.pass_time(5)
    desk.hear(C, VoteRequest(3, 99, 3, transfer=False))
    assert desk.take(C) == [Stale(9)]


def test_vote_leaves_only_when_it_is_on_disk(desk: GroupDesk) -> None:
    desk.pass_time(5)
    desk.hear(B, VoteRequest(7, 1, 0, transfer=False))
    assert desk.take() == []
    desk.sync()
    assert desk.take(B) == [Vote(7, 0, 0, stepped_down=False)]


def test_vote_survives_a_restart(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path)
    desk.pass_time(5)
    desk.hear(B, VoteRequest(7, 1, 0, transfer=False))
    desk.sync()
    desk.desk.close()
    again = GroupDesk(tmp_path)
    again.pass_time(5)
    again.hear(C, VoteRequest(7, 1, 0, transfer=False))
    again.sync()
    assert again.take() == []
    assert (again.group.term, again.log.vote) == (7, B)


def test_candidate_with_shorter_log_gets_no_vote(desk: GroupDesk) -> None:
    follow(desk, b"1", b"2")
    desk.pass_time(5)
    desk.hear(C, VoteRequest(2, 2, 1, transfer=False))
    desk.sync()
    assert desk.take() == []


def test_candidate_is_ignored_while_the_leader_lives(desk: GroupDesk) -> None:
    follow(desk, b"1")
    desk.hear(C, VoteRequest(99, 50, 98, transfer=False))
    desk.sync()
    assert desk.group.term == 1
    assert desk.take() == []


def test_hand_over_is_not_ignored(desk: GroupDesk) -> None:
    follow(desk, b"1")
    desk.hear(C, VoteRequest(2, 2, 1, transfer=True))
    desk.sync()
    (vote,) = desk.take(C)
    assert isinstance(vote, Vote)
    assert (vote.contact_term, vote.stepped_down) == (1, False)
    assert vote.lease_left_ms > 0


def test_heartbeat_is_promised_only_to_the_leader_of_this_term(desk: GroupDesk) -> None:
    follow(desk, b"1")
    assert desk.group.heartbeat(B, 1)
    assert not desk.group.heartbeat(C, 1)
    assert not desk.group.heartbeat(B, 2)


def test_apply_that_raises_halts_the_group_once(desk: GroupDesk) -> None:
    desk.hear(B, append(1, 1, 0, entries(2, 1, b"fine", b"explode", b"never"), commit=4))
    assert desk.machine.applied == [b"\x20fine"]
    assert len(desk.errors) == 1
    desk.turn()
    desk.hear(B, append(1, 4, 1, (), commit=4))
    desk.sync()
    assert desk.machine.applied == [b"\x20fine"]
    assert desk.take() == []


def test_entries_survive_a_restart_and_are_applied_again(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path)
    desk.hear(B, append(1, 1, 0, entries(2, 1, b"1", b"2"), commit=3))
    desk.sync()
    desk.desk.close()
    again = GroupDesk(tmp_path)
    assert again.machine.applied == []  # what is committed is learned from the leader
    again.hear(B, append(1, 3, 1, (), commit=3))
    assert again.machine.applied == [b"\x201", b"\x202"]


def test_node_is_a_member_under_its_own_name(desk: GroupDesk) -> None:
    assert desk.group.config.voters == (A, B, C)
    assert desk.group.is_voter
