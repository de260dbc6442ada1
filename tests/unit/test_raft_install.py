"""A checkpoint that is pulled while the world goes on: other leaders, entries and offers."""

import pytest

from lograft_replication import manifest
from lograft_replication.manifest import Manifest
from lograft_replication.messages import (
    Append,
    Appended,
    Chunk,
    Offer,
    PreVote,
    PreVoteRequest,
    Pull,
    Vote,
)
from support.group_desk import entries
from support.sim_hosts import LIMITS, LoneHost


@pytest.fixture
def lone() -> LoneHost:
    return LoneHost()


def offer(lone: LoneHost) -> bytes:
    """Node one, leader of term 1, offers its checkpoint at index 10; the manifest it stands for."""
    config = lone.group.config
    data = manifest.encode(Manifest(group=1, index=10, term=1, config=config, payload=b"\x20ten"))
    lone.hear(lone.one, Offer(1, 10, 10, 1, len(data), manifest.seal(data)))
    return data


def catch_up_by_entries(lone: LoneHost, *, commit: int) -> None:
    """Node two, leader of term 2, still has all the entries, and sends them up to index 12."""
    old = entries(2, 1, *(b"%d" % number for number in range(2, 12)))
    lone.hear(lone.two, Append(2, commit, 1, 0, (*old, *entries(12, 2, b"12"))))


def lead(lone: LoneHost, *, term: int) -> None:
    lone.run(4.0)
    assert lone.take(PreVoteRequest)
    lone.hear(lone.two, PreVote(term))
    lone.hear(lone.two, Vote(term, 0, 0, stepped_down=False))
    assert lone.group.is_leader


def test_pulled_checkpoint_is_installed(lone: LoneHost) -> None:
    data = offer(lone)
    (pull,) = lone.take(Pull, lone.one)
    lone.hear(lone.one, Chunk(pull.request, "", data))
    assert (lone.group.log.base_index, lone.group.applied_index) == (10, 10)
    assert lone.take(Appended, lone.one) == [Appended(1, 11, reset=False, success=True)]


def test_pull_that_ends_late_takes_nothing_that_was_acknowledged(lone: LoneHost) -> None:
    data = offer(lone)
    (pull,) = lone.take(Pull, lone.one)
    catch_up_by_entries(lone, commit=5)
    assert lone.take(Appended, lone.two)[-1] == Appended(2, 13, reset=False, success=True)
    lone.hear(lone.one, Chunk(pull.request, "", data))
    assert lone.group.log.last_index == 12
    lone.hear(lone.two, Append(2, 12, 12, 2, ()))
    assert lone.group.applied_index == 12


def test_pull_that_ends_when_we_lead_is_given_up(lone: LoneHost) -> None:
    data = offer(lone)
    (pull,) = lone.take(Pull, lone.one)
    catch_up_by_entries(lone, commit=5)
    lead(lone, term=3)
    lone.hear(lone.one, Chunk(pull.request, "", data))
    assert lone.group.is_leader
    assert not lone.group.frozen


def test_pull_nobody_needs_any_more_does_not_keep_checkpoints_away(lone: LoneHost) -> None:
    offer(lone)
    lone.host.on_down(lone.one)  # and it never comes back
    catch_up_by_entries(lone, commit=12)
    assert lone.group.applied_index == 12
    lone.run(1.0)
    assert lone.host.pull_progress(1) is None
    assert lone.host.checkpoint(1)


def test_member_that_pulls_is_offered_the_same_checkpoint_until_it_has_it(lone: LoneHost) -> None:
    """Else a pull that takes longer than the time between two checkpoints never ends."""
    lead(lone, term=1)
    group, behind = lone.group, lone.two

    def checkpoint() -> int:
        group.propose(b"\x20more", lambda _outcome: None)
        lone.run(0.1)
        lone.hear(lone.one, Appended(1, group.log.last_index + 1, reset=False, success=True))
        lone.host.checkpoint(1)
        lone.run(0.2)
        assert group.checkpoint_index == group.applied_index
        return group.checkpoint_index

    lone.host.on_down(behind)
    lone.run(LIMITS.absent_s_max + 1.0)
    first = checkpoint()
    lone.host.on_up(behind, b"boot")
    lone.hear(behind, Appended(1, 2, reset=True, success=False))
    (given,) = lone.take(Offer, behind)
    assert given.index == first
    pull = Pull(1, 1, first, 0, 0, given.manifest_bytes)
    lone.hear(behind, pull)
    for _ in range(3):
        assert checkpoint() > first
        lone.run(1.0)
        lone.hear(lone.one, Appended(1, group.log.last_index + 1, reset=False, success=True))
        assert {again.index for again in lone.take(Offer, behind)} == {first}
        lone.hear(behind, pull)
        (chunk,) = lone.take(Chunk, behind)
        assert not chunk.error
    assert group.log.base_index == first  # what it will need next
