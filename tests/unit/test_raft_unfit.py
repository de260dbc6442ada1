"""Members whose state has holes: others lead while they can, but somebody always does."""

from pathlib import Path

from lograft_replication.messages import PreVoteRequest, TimeoutNow, VoteRequest
from lograft_replication.proposals import Refused
from support.group_desk import TIMING, A, B, C, GroupDesk, append


def keep_contact(desk: GroupDesk, seconds: float) -> None:
    """Time passes in small steps, with both followers answering heartbeats."""
    steps = int(seconds / TIMING.heartbeat_s)
    for _ in range(steps):
        desk.pass_time(TIMING.heartbeat_s)
        for peer in (B, C):
            desk.group.confirmed(peer, desk.clock.now_s())
        desk.group.timer()
        desk.turn()


def leading(desk: GroupDesk) -> None:
    desk.elect()
    for peer in (B, C):
        desk.ack(peer)
        desk.group.confirmed(peer, desk.clock.now_s())
    desk.take()


def test_unfit_member_stands_when_nobody_else_does(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path)
    desk.group.unfit = True
    desk.pass_time(TIMING.election_s_max)
    desk.group.timer()
    assert desk.take() == []
    desk.pass_time(TIMING.unfit_s)
    desk.group.timer()
    assert isinstance(desk.take()[0], PreVoteRequest)


def test_unfit_member_does_not_take_over(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path)
    desk.group.unfit = True
    desk.hear(B, append(1, 1, 0))
    desk.sync()
    desk.take()
    desk.hear(B, TimeoutNow(1))
    desk.sync()
    assert not any(isinstance(message, VoteRequest) for message in desk.take())


def test_unfit_leader_nobody_relieves_takes_proposals(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path)
    leading(desk)
    desk.group.unfit = True
    taken = 0
    for _ in range(40):
        keep_contact(desk, 0.2)
        taken += not any(isinstance(outcome, Refused) for outcome in desk.propose(b"x"))
        for peer in (B, C):
            desk.ack(peer)
    assert desk.group.is_leader
    assert taken > 20


def test_unfit_leader_asks_every_voter_in_turn(tmp_path: Path) -> None:
    """One of them may be as unfit as we are."""
    desk = GroupDesk(tmp_path)
    leading(desk)
    desk.group.unfit = True
    asked: set[str] = set()
    for _ in range(3):
        keep_contact(desk, TIMING.unfit_s + TIMING.transfer_s)
        asked |= {peer for peer, message in desk.sent if isinstance(message, TimeoutNow)}
        desk.take()
    assert asked == {B, C}


def test_unfit_group_of_one_leads(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path, voters=(A,))
    desk.group.unfit = True
    desk.group.start()
    desk.sync()
    assert desk.group.is_leader
