"""What a leader counts, sends and promises; each test names a failure of pysyncobj's own."""

from pathlib import Path

import pytest

from lograft_replication.membership import Config
from lograft_replication.messages import (
    Append,
    Appended,
    Offer,
    PreVote,
    PreVoteRequest,
    Stale,
    TimeoutNow,
    Vote,
    VoteRequest,
)
from lograft_replication.proposals import Committed, Refused, Unknown
from lograft_replication.timing import GroupLimits
from support.group_desk import TIMING, A, B, C, GroupDesk


@pytest.fixture
def desk(tmp_path: Path) -> GroupDesk:
    desk = GroupDesk(tmp_path)
    desk.elect()
    desk.take()
    return desk


def appends(desk: GroupDesk, peer: str) -> list[Append]:
    return [message for message in desk.take(peer) if isinstance(message, Append)]


def test_group_of_one_commits_only_what_is_on_disk(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path, voters=(A,))
    desk.group.start()
    desk.sync()
    outcomes = desk.propose(b"x")
    assert outcomes == []
    desk.sync()
    assert outcomes == [Committed(3, 1)]
    assert desk.group.serving


def test_commit_needs_the_leaders_own_disk(desk: GroupDesk) -> None:
    desk.ack(B)
    outcomes = desk.propose(b"x")
    desk.ack(B)
    desk.ack(C)
    assert outcomes == []
    desk.sync()
    assert outcomes == [Committed(3, 1)]


def test_commit_needs_a_majority(desk: GroupDesk) -> None:
    outcomes = desk.propose(b"x")
    desk.sync()
    assert outcomes == []
    desk.ack(C)
    assert outcomes == [Committed(3, 1)]


def test_entries_of_an_earlier_term_commit_only_with_one_of_this_term(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path)
    desk.elect()
    desk.propose(b"first term")
    desk.sync()
    desk.hear(C, Stale(5))
    desk.sync()
    desk.elect()
    desk.take()
    desk.ack(B, 3)
    assert desk.group.commit_index == 1
    desk.ack(B, 4)
    assert desk.group.commit_index == 4


def test_ack_of_an_earlier_term_counts_for_nothing(desk: GroupDesk) -> None:
    desk.propose(b"x")
    desk.sync()
    desk.hear(B, Appended(desk.group.term - 1, 4, reset=False, success=True))
    assert desk.group.commit_index == 1


def test_what_is_in_flight_is_not_sent_again_after_an_ack(desk: GroupDesk) -> None:
    desk.ack(B)
    for text in (b"1", b"2", b"3"):
        desk.propose(text)
    sent = [index for message in appends(desk, B) for _, index, _ in message.entries]
    assert sent == [3, 4, 5]
    desk.ack(B, 3)
    assert [message.entries for message in appends(desk, B)] == []


def test_rejections_in_flight_cause_one_resend(desk: GroupDesk) -> None:
    desk.ack(B)
    for text in (b"1", b"2", b"3"):
        desk.propose(text)
    desk.take()
    for _ in range(3):
        desk.hear(B, Appended(desk.group.term, 3, reset=True, success=False))
    resent = appends(desk, B)
    assert [[index for _, index, _ in message.entries] for message in resent] == [[3, 4, 5]]


def test_nothing_is_said_when_there_is_nothing_to_say(desk: GroupDesk) -> None:
    desk.ack(B)
    desk.ack(C)
    desk.announce()
    desk.take()
    desk.ack(B)
    desk.announce()
    assert desk.take() == []


def test_commit_mark_is_announced_when_no_entry_follows(desk: GroupDesk) -> None:
    desk.ack(B)
    desk.ack(C)
    assert desk.take() == []
    desk.announce()
    marks = {peer: message for peer, message in desk.sent if isinstance(message, Append)}
    assert {peer: (m.commit, m.entries) for peer, m in marks.items()} == {B: (2, ()), C: (2, ())}


def test_window_bounds_what_is_unacknowledged(tmp_path: Path) -> None:
    limits = GroupLimits(command_bytes_max=2048, append_bytes_max=4096, window_bytes_max=4000)
    desk = GroupDesk(tmp_path, limits=limits)
    desk.elect()
    desk.ack(B)
    desk.take()
    for _ in range(10):
        desk.propose(bytes(1000))
    sent = [index for message in appends(desk, B) for _, index, _ in message.entries]
    assert sent == [3, 4, 5, 6]
    desk.ack(B, 6)
    sent = [index for message in appends(desk, B) for _, index, _ in message.entries]
    assert sent == [7, 8, 9, 10]


def test_silent_follower_is_asked_where_it_stands(desk: GroupDesk) -> None:
    desk.ack(B)
    desk.propose(b"lost on the way")
    desk.take()
    desk.group.confirmed(B, desk.clock.now_s() + 1)
    desk.pass_time(TIMING.probe_s * 2)
    desk.group.timer()
    desk.turn()
    assert [message.prev_index for message in appends(desk, B)] == [3]


def test_follower_without_a_link_keeps_nobody_busy(desk: GroupDesk) -> None:
    desk.ack(B)
    desk.links.discard(C)
    desk.group.link_down(C)
    desk.group.confirmed(B, desk.clock.now_s() + 1)
    desk.pass_time(TIMING.probe_s * 2)
    desk.group.timer()
    assert not desk.woken


def test_follower_behind_the_journal_is_offered_the_checkpoint(desk: GroupDesk) -> None:
    desk.ack(B)
    for text in (b"1", b"2", b"3"):
        desk.propose(text)
    desk.sync()
    desk.ack(B)
    desk.links.discard(C)
    desk.group.link_down(C)
    desk.pass_time(GroupLimits().absent_s_max * 2)
    desk.group.confirmed(B, desk.clock.now_s())
    desk.group.checkpointed(4)
    assert desk.log.base_index == 4
    desk.links.add(C)
    desk.group.link_up(C)
    desk.turn()
    desk.take()
    desk.hear(C, Appended(desk.group.term, 2, reset=True, success=False))
    assert desk.take(C) == [Offer(1, 5, 4, 1, 100, 7)]
    desk.hear(C, Appended(desk.group.term, 5, reset=False, success=True))
    assert [index for m in appends(desk, C) for _, index, _ in m.entries] == [5]


def test_journal_keeps_what_a_reachable_follower_lacks(desk: GroupDesk) -> None:
    desk.ack(C, 2)
    for text in (b"1", b"2", b"3"):
        desk.propose(text)
    desk.sync()
    desk.ack(B)
    desk.group.checkpointed(5)
    assert desk.log.base_index == 2
    desk.ack(C, 4)
    desk.group.trim()
    assert desk.log.base_index == 4


def trimmed_under_load(desk: GroupDesk, *, seconds: float) -> int:
    """C has index 2 and no more while b and we go on, with checkpoints; the base at the end."""
    desk.ack(C, 2)
    for _ in range(10):
        desk.pass_time(seconds / 10)
        desk.propose(b"x")
        desk.sync()
        desk.ack(B)
        desk.group.checkpointed(desk.group.applied_index)
    return desk.log.base_index


def test_follower_that_is_behind_for_too_long_must_install(tmp_path: Path) -> None:
    limits = GroupLimits(command_bytes_max=2048, append_bytes_max=8192, lag_s_max=100.0)
    desk = GroupDesk(tmp_path, limits=limits)
    desk.elect()
    assert trimmed_under_load(desk, seconds=90.0) == 2
    assert trimmed_under_load(desk, seconds=90.0) == desk.group.applied_index


def test_follower_that_restarts_finds_the_journal_as_it_left_it(desk: GroupDesk) -> None:
    """Otherwise every restart under load would end in an install of the whole state."""
    desk.ack(C, 2)
    desk.links.discard(C)
    desk.group.link_down(C)
    assert trimmed_under_load(desk, seconds=30.0) == 2
    desk.links.add(C)
    desk.group.link_up(C)
    desk.turn()
    desk.take()
    desk.hear(C, Appended(1, 3, reset=True, success=False))
    assert appends(desk, C)[-1].prev_index == 2


def test_new_leader_forgets_nothing_before_it_knows_where_followers_stand(desk: GroupDesk) -> None:
    for text in (b"1", b"2", b"3"):
        desk.propose(text)
    desk.sync()
    desk.ack(B)
    desk.group.checkpointed(5)
    assert desk.log.base_index == 1  # nothing was heard of c yet
    desk.ack(C, 4)
    desk.group.trim()
    assert desk.log.base_index == 4


def test_follower_that_stays_away_keeps_nothing_in_the_journal(desk: GroupDesk) -> None:
    desk.ack(C, 2)
    desk.links.discard(C)
    desk.group.link_down(C)
    desk.pass_time(GroupLimits().absent_s_max)
    assert trimmed_under_load(desk, seconds=1.0) == desk.group.applied_index


def test_leader_alone_steps_down_and_its_proposals_are_unknown(desk: GroupDesk) -> None:
    outcomes = desk.propose(b"x")
    desk.pass_time(TIMING.fallback_s * 2)
    desk.group.timer()
    assert not desk.group.is_leader
    assert len(outcomes) == 1
    assert isinstance(outcomes[0], Unknown)
    assert isinstance(desk.propose(b"y")[0], Refused)


def test_serving_needs_a_majority_within_the_lease(desk: GroupDesk) -> None:
    desk.ack(B)
    assert not desk.group.serving
    desk.group.confirmed(B, desk.clock.now_s())
    assert desk.group.serving
    desk.pass_time(TIMING.lease_s)
    assert not desk.group.serving


def test_leader_waits_out_the_lease_of_the_one_before(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path)
    desk.pass_time(TIMING.election_s_max)
    desk.group.timer()
    desk.hear(B, PreVote(1))
    desk.sync()
    desk.hear(B, Vote(1, 0, lease_left_ms=500, stepped_down=False))
    desk.sync()
    desk.ack(B)
    desk.group.confirmed(B, desk.clock.now_s())
    assert not desk.group.serving
    assert desk.group.commit_index == 2  # commits need no lease
    desk.pass_time(0.51)
    desk.group.confirmed(B, desk.clock.now_s())
    assert desk.group.serving


def test_vote_of_the_old_leader_itself_ends_the_wait(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path)
    desk.pass_time(TIMING.election_s_max)
    desk.group.timer()
    desk.hear(B, PreVote(1))
    desk.sync()
    desk.hear(B, Vote(1, 0, lease_left_ms=500, stepped_down=False))
    desk.sync()
    desk.ack(B)
    desk.group.confirmed(B, desk.clock.now_s())
    desk.hear(C, Vote(1, 0, lease_left_ms=0, stepped_down=True))
    assert desk.group.serving


def test_isolated_member_does_not_raise_the_term(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path)
    for _ in range(20):
        desk.pass_time(TIMING.election_s_max)
        desk.group.timer()
        desk.sync()
    assert desk.group.term == 0
    assert all(isinstance(message, PreVoteRequest) for message in desk.take())


def test_two_votes_of_one_voter_count_once(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path, voters=(A, B, C, "d", "e"))
    desk.pass_time(TIMING.election_s_max)
    desk.group.timer()
    desk.hear(B, PreVote(1))
    desk.hear(C, PreVote(1))
    desk.sync()
    for _ in range(3):
        desk.hear(B, Vote(1, 0, 0, stepped_down=False))
    assert not desk.group.is_leader
    desk.hear("stranger", Vote(1, 0, 0, stepped_down=False))
    assert not desk.group.is_leader
    desk.hear(C, Vote(1, 0, 0, stepped_down=False))
    assert desk.group.is_leader


def test_own_vote_is_on_disk_before_others_are_asked(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path)
    desk.pass_time(TIMING.election_s_max)
    desk.group.timer()
    desk.take()
    desk.hear(B, PreVote(1))
    assert desk.take() == []
    desk.sync()
    assert desk.take(B) == [VoteRequest(1, 1, 0, transfer=False)]


def test_transfer_waits_until_the_successor_has_everything(desk: GroupDesk) -> None:
    told: list[str | None] = []
    desk.ack(B)
    desk.propose(b"x")
    desk.group.transfer(B, told.append)
    assert TimeoutNow(1) not in desk.take(B)
    assert isinstance(desk.propose(b"refused meanwhile")[0], Refused)
    desk.sync()
    desk.ack(B)
    assert TimeoutNow(1) in desk.take(B)
    assert not desk.group.serving
    desk.hear(B, VoteRequest(2, 3, 1, transfer=True))
    desk.sync()
    (vote,) = desk.take(B)
    assert isinstance(vote, Vote)
    assert (vote.contact_term, vote.stepped_down) == (1, True)
    assert told == [None]


def test_transfer_that_takes_too_long_is_given_up(desk: GroupDesk) -> None:
    told: list[str | None] = []
    desk.ack(B)
    desk.ack(C)
    desk.group.transfer(B, told.append)
    desk.group.confirmed(B, desk.clock.now_s() + TIMING.transfer_s)
    desk.pass_time(TIMING.transfer_s + 0.1)
    desk.group.timer()
    assert told == [f"b did not take over in {TIMING.transfer_s} s"]
    desk.propose(b"x")
    assert desk.log.last_index == 3


def confirm(desk: GroupDesk, *peers: str) -> None:
    for peer in peers:
        desk.group.confirmed(peer, desk.clock.now_s())


def test_second_change_of_members_waits_for_the_first(desk: GroupDesk) -> None:
    outcomes: list[object] = []
    desk.group.add_learner("d", outcomes.append)
    assert [type(outcome) for outcome in outcomes] == [Refused]  # nothing is committed yet
    outcomes.clear()
    desk.ack(B)
    confirm(desk, B)
    desk.group.add_learner("d", outcomes.append)
    desk.group.add_learner("e", outcomes.append)
    assert [type(outcome) for outcome in outcomes] == [Refused]
    desk.sync()
    desk.ack(B)
    assert [type(outcome) for outcome in outcomes] == [Refused, Committed]
    assert desk.group.config == Config((A, B, C), ("d",))


def test_learner_becomes_voter_only_when_it_is_near(desk: GroupDesk) -> None:
    outcomes: list[object] = []
    desk.links.add("d")
    desk.ack(B)
    confirm(desk, B)
    desk.group.add_learner("d", outcomes.append)
    desk.sync()
    desk.ack(B)
    confirm(desk, "d")
    outcomes.clear()
    desk.group.promote("d", outcomes.append)
    (refused,) = outcomes
    assert isinstance(refused, Refused)
    assert "still behind" in refused.reason
    outcomes.clear()
    desk.ack("d")
    desk.group.promote("d", outcomes.append)
    desk.sync()
    desk.ack(B)
    assert outcomes == []  # of four voters three are needed now
    desk.ack("d")
    assert [type(outcome) for outcome in outcomes] == [Committed]


def test_change_that_leaves_no_living_majority_is_refused(desk: GroupDesk) -> None:
    """Once it is in the log, nothing could ever be decided again."""
    desk.ack(B)
    confirm(desk, B, C)
    desk.links.discard(B)
    desk.group.link_down(B)
    outcomes: list[object] = []
    desk.group.remove(C, outcomes.append)
    (refused,) = outcomes
    assert isinstance(refused, Refused)
    assert "nothing is heard of b" in refused.reason
    assert desk.group.config == Config((A, B, C))
    desk.group.remove(B, outcomes.append)
    assert desk.group.config == Config((A, C))


def test_leader_does_not_remove_itself(desk: GroupDesk) -> None:
    desk.ack(B)
    outcomes: list[object] = []
    desk.group.remove(A, outcomes.append)
    (refused,) = outcomes
    assert isinstance(refused, Refused)
    assert "transfer leadership first" in refused.reason


def test_config_of_a_lost_leadership_is_rolled_back(desk: GroupDesk) -> None:
    desk.ack(B)
    confirm(desk, B)
    desk.group.remove(C, lambda _outcome: None)
    assert desk.group.config == Config((A, B))
    desk.hear(C, Append(9, 2, 2, 1, ((b"\x20other", 3, 9),)))
    assert desk.group.config == Config((A, B, C))


def test_oversize_and_overload_are_refused_with_numbers(tmp_path: Path) -> None:
    limits = GroupLimits(command_bytes_max=100, append_bytes_max=4096, proposals_max=2)
    desk = GroupDesk(tmp_path, limits=limits)
    desk.elect()
    (big,) = desk.propose(bytes(100))
    assert isinstance(big, Refused)
    assert "at most 100" in big.reason
    desk.propose(b"1")
    desk.propose(b"2")
    (many,) = desk.propose(b"3")
    assert isinstance(many, Refused)
    assert "2 proposals" in many.reason


def test_leader_whose_state_has_holes_hands_over(desk: GroupDesk) -> None:
    desk.ack(B)
    desk.ack(C)
    desk.group.unfit = True
    desk.group.confirmed(B, desk.clock.now_s())
    desk.group.timer()
    assert TimeoutNow(1) in desk.take(C)


def test_member_whose_state_has_holes_does_not_stand(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path)
    desk.group.unfit = True
    desk.pass_time(TIMING.election_s_max * 3)
    desk.group.timer()
    assert desk.take() == []
    desk.hear(B, VoteRequest(1, 1, 0, transfer=False))
    desk.sync()
    assert [type(message) for message in desk.take()] == [Vote]


def test_leadership_is_told_once_all_that_was_committed_before_is_applied(desk: GroupDesk) -> None:
    assert desk.roles[-1] == "LEADER"
    assert desk.led == []
    desk.ack(B)
    assert desk.led == [1]
    desk.propose(b"x")
    desk.sync()
    desk.ack(B)
    assert desk.led == [1]
