"""When a follower stands for election, and when it tries again."""

from pathlib import Path

from lograft_replication.messages import PreVote, PreVoteRequest, VoteRequest
from support.group_desk import TIMING, B, C, GroupDesk, append


def follow(desk: GroupDesk) -> None:
    desk.hear(B, append(1, 1, 0))
    desk.sync()
    desk.take()


def stands_within(desk: GroupDesk, seconds: float) -> bool:
    """Whether it asks for pre-votes in that time, looked at every few milliseconds."""
    for _ in range(int(seconds / 0.01)):
        desk.pass_time(0.01)
        desk.group.timer()
        if any(isinstance(message, PreVoteRequest) for message in desk.take()):
            return True
    return False


def split(desk: GroupDesk, term: int) -> None:
    """The pre-vote is won, but the other follower votes for itself."""
    desk.hear(C, PreVote(term))
    desk.sync()
    assert any(isinstance(message, VoteRequest) for message in desk.take(C))


def test_split_vote_after_a_lost_link_is_tried_again_soon(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path)
    follow(desk)
    desk.links.discard(B)
    desk.group.link_down(B)
    assert stands_within(desk, TIMING.reset_s_max + 0.01)
    split(desk, 2)
    assert stands_within(desk, TIMING.election_s_min * 0.7)


def test_haste_ends_when_nothing_comes_of_it(tmp_path: Path) -> None:
    """A minority must not ask all the time."""
    desk = GroupDesk(tmp_path)
    follow(desk)
    desk.links.discard(B)
    desk.group.link_down(B)
    while stands_within(desk, TIMING.election_s_min - 0.01):
        pass
    assert stands_within(desk, TIMING.election_s_max)
    assert not stands_within(desk, TIMING.election_s_min - 0.01)


def test_haste_ends_with_the_next_leader(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path)
    follow(desk)
    desk.links.discard(B)
    desk.group.link_down(B)
    desk.hear(C, append(2, 1, 0))
    desk.sync()
    assert not stands_within(desk, TIMING.election_s_min - 0.01)
    assert stands_within(desk, TIMING.election_s_max)
    assert not stands_within(desk, TIMING.election_s_min - 0.01)
