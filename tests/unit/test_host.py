"""Several groups on one node: what they share, and what the failure of one does to the others."""

import pytest

from lograft_replication.membership import Config
from lograft_replication.proposals import Committed, Refused, Unknown
from lograft_wire.errors import RefusedError
from support.sim_hosts import SimHosts


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


def test_dropped_group_is_forgotten_with_its_votes_and_may_be_made_anew() -> None:
    hosts = SimHosts(1)
    hosts.create(1)
    node = hosts.leader(1)
    hosts.propose(node, 1, b"old life")
    hosts.run(1.0)
    node.host.drop_group(1)
    hosts.run(1.0)
    assert node.host.journal.groups() == []
    node.host.create_group(1, Config((node.id,)))
    fresh = hosts.leader(1).host.groups[1]
    assert fresh.term == 1
    assert fresh.machine.applied == []  # type: ignore[attr-defined]


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
