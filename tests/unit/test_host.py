"""Several groups on one node: what they share, and what the failure of one does to the others."""

import contextlib

import pytest

from lograft_replication.core import HaltError
from lograft_replication.group import RaftGroup
from lograft_replication.machine import Capture
from lograft_replication.membership import Config
from lograft_replication.messages import Vote, VoteRequest
from lograft_replication.proposals import Committed, Refused, Unknown
from lograft_replication.timing import Timing
from lograft_wire.errors import LograftError, RefusedError, StorageError
from sim.inode import Survival
from sim.loop import SimCrash
from support.sim_hosts import DATA, JOURNAL, LoneHost, SimHosts


def test_groups_commit_side_by_side() -> None:
    hosts = SimHosts(3)
    for group in (1, 2, 3):
        hosts.create(group)
    for group in (1, 2, 3):
        outcomes = hosts.propose(hosts.leader(group), group, b"hello")
        hosts.until(lambda found=outcomes: bool(found))  # type: ignore[misc]
        assert isinstance(outcomes[0], Committed)


def test_failed_sync_stops_every_group_of_the_node_and_is_not_tried_again() -> None:
    hosts = SimHosts(3)
    hosts.create(1)
    hosts.create(2)
    node = hosts.leader(1)
    hosts.run(1.0)
    node.volume.sync_errors = 1
    outcomes = hosts.propose(node, 1, b"never durable")
    hosts.until(lambda: bool(node.failures))
    assert {group for group, _ in node.halts} == {1, 2}
    assert [type(outcome) for outcome in outcomes] == [Unknown]
    assert not node.host.groups[2].is_leader
    written = node.volume.operation_count
    hosts.run(5.0)
    assert node.volume.operation_count == written
    # The others go on without it.
    assert hosts.leader(1) is not node
    assert hosts.leader(2) is not node


def test_full_disk_stops_every_group_of_the_node() -> None:
    hosts = SimHosts(3)
    hosts.create(1)
    hosts.create(2)
    node = hosts.leader(1)
    hosts.run(1.0)
    node.volume.capacity_bytes = node.volume.used_bytes
    for number in range(200):  # beyond what the journal has prepared
        if node.failures:
            break
        hosts.propose(node, 1, b"%d" % number + bytes(3000))
        hosts.run(0.05)
    assert node.failures
    assert "ENOSPC" in str(node.failures[0]) or "No space" in str(node.failures[0])
    assert {group for group, _ in node.halts} == {1, 2}
    assert hosts.leader(1) is not node


def test_machine_that_fails_halts_its_group_only() -> None:
    hosts = SimHosts(1)
    hosts.create(1)
    hosts.create(2)
    node = hosts.leader(1)
    outcomes = hosts.propose(node, 1, b"explode")
    hosts.until(lambda: bool(node.halts))
    assert [group for group, _ in node.halts] == [1]
    assert "apply of index" in str(node.halts[0][1])
    assert [type(outcome) for outcome in outcomes] == [Unknown]
    assert isinstance(hosts.propose(node, 1, b"more")[0], Refused)
    fine = hosts.propose(hosts.leader(2), 2, b"fine")
    hosts.until(lambda: bool(fine))
    assert isinstance(fine[0], Committed)


def test_quiet_groups_send_one_heartbeat_per_pair_of_nodes() -> None:
    hosts = SimHosts(3)
    for group in range(12):
        hosts.create(group)
    for group in range(12):
        hosts.leader(group)
    hosts.run(5.0)
    before = hosts.fabric.frame_count
    hosts.run(10.0)
    # Six directions, a heartbeat and an answer each, ten times a second for ten seconds.
    assert hosts.fabric.frame_count - before <= 6 * 2 * 10 * 10 * 1.2


def test_group_cannot_be_made_twice() -> None:
    hosts = SimHosts(1)
    hosts.create(1)
    with pytest.raises(RefusedError, match="group 1 exists already"):
        hosts.create(1)


def test_dropped_group_is_forgotten_and_may_be_made_anew() -> None:
    hosts = SimHosts(1)
    hosts.create(1)
    node = hosts.leader(1)
    hosts.propose(node, 1, b"old life")
    hosts.run(1.0)
    node.host.drop_group(1)
    hosts.run(1.0)
    assert node.host.journal.group(1).last_index == 0
    node.host.create_group(1, Config((node.id,)))
    fresh = hosts.leader(1).host.groups[1]
    assert fresh.term == 2  # one vote in a term, for good
    assert fresh.machine.applied == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("restarted", [False, True])
def test_vote_outlives_the_group_on_this_node(restarted: bool) -> None:
    """Removed, dropped and added again, a member has the same name and votes once in a term."""
    lone = LoneHost()
    request = VoteRequest(5, 1, 0, transfer=True)
    lone.hear(lone.one, request)
    assert [vote.term for vote in lone.take(Vote, lone.one)] == [5]
    lone.host.drop_group(1)
    lone.run(0.5)
    if restarted:
        lone.restart()
    lone.group = lone.host.create_group(1, Config())
    lone.run(0.1)
    lone.hear(lone.two, request)
    assert lone.take(Vote) == []
    lone.hear(lone.two, VoteRequest(6, 1, 0, transfer=True))
    assert [vote.term for vote in lone.take(Vote, lone.two)] == [6]


def test_learner_joins_catches_up_and_becomes_a_voter() -> None:
    hosts = SimHosts(4)
    first, newcomer = hosts.nodes[:3], hosts.nodes[3]
    for node in first:
        node.host.create_group(1, Config(tuple(node.id for node in first)))
    newcomer.host.create_group(1, Config())
    leader = hosts.leader(1)
    for number in range(20):
        hosts.propose(leader, 1, b"%d" % number)
    hosts.run(1.0)
    leader.host.checkpoint(1)
    hosts.run(2.0)
    assert leader.host.groups[1].log.base_index > 20  # the journal no longer has the beginning
    done: list[object] = []
    leader.host.groups[1].add_learner(newcomer.id, done.append)
    member = newcomer.host.groups[1]
    hosts.until(lambda: len(member.machine.applied) == 20)  # type: ignore[attr-defined]
    hosts.run(1.0)  # until the leader knows
    done.clear()
    leader.host.groups[1].promote(newcomer.id, done.append)
    hosts.until(lambda: bool(done))
    assert isinstance(done[0], Committed)
    hosts.until(lambda: member.is_voter)


def test_stopped_node_answers_what_was_proposed_and_closes_its_journal() -> None:
    hosts = SimHosts(1)
    hosts.create(1)
    node = hosts.leader(1)
    outcomes = hosts.propose(node, 1, b"in flight")
    closed: list[bool] = []
    node.host.stop(lambda: closed.append(True))
    hosts.run(1.0)
    assert closed == [True]
    assert [type(outcome) for outcome in outcomes] == [Unknown]
    assert node.halts == []


def test_answer_that_raises_does_not_swallow_the_others() -> None:
    hosts = SimHosts(1)
    hosts.create(1)
    group = hosts.leader(1).host.groups[1]
    outcomes: list[object] = []

    def careless(outcome: object) -> None:
        outcomes.append(outcome)
        raise ValueError("as asked")

    group.propose(b"\x20one", careless)
    group.propose(b"\x20two", outcomes.append)
    group.propose(b"\x20three", outcomes.append)
    hosts.run(1.0)
    assert [type(outcome) for outcome in outcomes] == [Committed] * 3
    assert "as asked" in str(group.halted)


@pytest.mark.parametrize("method", ["on_role", "on_leads", "on_halted"])
def test_listener_that_raises_stops_that_group_and_no_other(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = SimHosts(3)
    hosts.create(1)
    hosts.create(2)
    node = hosts.leader(1)

    def careless(group: RaftGroup, *_more: object) -> None:
        if group.group_id == 1:
            raise ValueError("as asked")

    monkeypatch.setattr(node, method, careless)
    group = node.host.groups[1]
    if method == "on_halted":
        group.halt(HaltError("as asked"))
    else:
        group.step_down()
        hosts.until(lambda: group.halted is not None or group.serving)
    hosts.run(5.0)
    if method == "on_role":
        assert "as asked" in str(group.halted)
    fine = hosts.propose(hosts.leader(2), 2, b"fine")
    hosts.until(lambda: bool(fine))
    assert isinstance(fine[0], Committed)
    assert node.host.groups[2].halted is None


def test_machine_that_cannot_be_captured_stops_its_group_and_no_other() -> None:
    hosts = SimHosts(1)
    hosts.create(1)
    hosts.create(2)
    node = hosts.leader(1)
    hosts.leader(2)

    def careless() -> Capture:
        raise ValueError("as asked")

    node.host.groups[1].machine.capture = careless  # type: ignore[method-assign]
    hosts.run(Timing().checkpoint_s + 1.0)
    assert [group for group, _ in node.halts] == [1]
    assert node.host.groups[2].serving


def test_failed_node_stops_every_group_though_a_listener_raises() -> None:
    hosts = SimHosts(1)
    for group in (1, 2, 3):
        hosts.create(group)
    node = hosts.leader(1)

    def careless(_group: RaftGroup, _error: LograftError) -> None:
        raise ValueError("as asked")

    node.on_halted = careless  # type: ignore[method-assign, assignment]
    node.host.fail(StorageError("the disk is gone"))
    assert all(group.halted is not None for group in node.host.groups.values())
    assert len(node.failures) == 1


def test_group_is_dropped_in_the_middle_of_a_checkpoint() -> None:
    hosts = SimHosts(1)
    hosts.create(1)
    hosts.create(2)
    node = hosts.leader(1)
    hosts.propose(node, 1, b"x")
    hosts.run(1.0)
    assert node.host.checkpoint(1)
    node.host.drop_group(1)
    with pytest.raises(RefusedError, match="being dropped"):
        node.host.create_group(1, Config((node.id,)))
    hosts.run(1.0)
    assert node.failures == []
    assert node.disk.names(f"{DATA}/groups") == ["00000002"]
    assert node.host.journal.group(1).last_index == 0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("killed_first", [False, True])
def test_crash_while_a_group_is_dropped_harms_nothing(killed_first: bool, seed: int) -> None:
    """Half a folder of a group would look like damage, and the node would lose its identity."""
    for point in range(1, 40):
        hosts = SimHosts(1, seed=seed)
        hosts.create(1)
        hosts.create(2)
        node = hosts.leader(1)
        hosts.propose(node, 1, b"x")
        hosts.run(1.0)
        node.volume.crash_at(point)
        with contextlib.suppress(SimCrash):
            node.host.drop_group(1)
            hosts.run(1.0)
        struck = node.volume.crash_in == 0
        node.die()
        if killed_first:  # a second process goes on from what may be in the system's cache alone
            node.volume.process_died(forget_cache=False)
            node = hosts.restart(node)
            hosts.run(0.5)
            node.die()
        node.volume.power_cut(Survival.RANDOM)
        again = hosts.restart(node)
        assert set(again.host.groups) in ({1, 2}, {2})
        for group_id in (1, 2):
            log = again.host.journal.group(group_id)
            assert log.term > 0
            assert (log.last_index > 0) == (group_id in again.host.groups)
        if not struck:
            return
    raise AssertionError("never came to the end")


def test_group_that_does_not_fit_into_the_journal_leaves_nothing_behind() -> None:
    hosts = SimHosts(1)
    node = hosts.nodes[0]
    for group in range(JOURNAL.group_count_max):
        hosts.create(group)
    with pytest.raises(RefusedError, match="its limit"):
        hosts.create(99)
    assert "00000099" not in node.disk.names(f"{DATA}/groups")


@pytest.mark.parametrize("second_point", range(1, 14))
def test_crash_while_a_half_made_group_is_cleared_away_harms_nothing(second_point: int) -> None:
    for point in range(1, 60):
        hosts = SimHosts(1, seed=second_point)
        node = hosts.nodes[0]
        hosts.run(0.5)
        node.volume.crash_at(point)
        with contextlib.suppress(SimCrash):
            hosts.create(1)
        struck = node.volume.crash_in == 0
        node.die()
        node.volume.power_cut(Survival.RANDOM)
        node.volume.crash_at(second_point)
        with contextlib.suppress(SimCrash):
            hosts.restart(node)
        hosts.nodes[0].die()
        node.volume.power_cut(Survival.RANDOM)
        hosts.restart(hosts.nodes[0])
        if not struck:
            return
    raise AssertionError("never came to the end")
