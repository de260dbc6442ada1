"""Each repair of pysyncobj (docs/decisions/0003) switched off is noticed.

This is the list. What a directed test notices is tried here: with the repair off, that test must
fail. What only a power cut or a parted network shows is left to the simulation, by the names of
tests/sim/mutations.py. Every number of the record's table must be in one of the two.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from lograft_replication import append_filter, lease, library
from lograft_replication.append_filter import Accept
from lograft_replication.changes import Changes
from lograft_replication.core import Core
from lograft_replication.election import Election
from lograft_replication.follower import Follower
from lograft_replication.group import RaftGroup
from lograft_replication.group_journal import GroupJournal
from lograft_replication.leader import Leader
from lograft_replication.members import Members
from lograft_replication.messages import Appended, Stale
from lograft_replication.progress import Progress
from lograft_replication.proposals import Proposals
from lograft_replication.timing import Timing
from lograft_replication.voting import Voting
from sim import mutations
from support.group_desk import GroupDesk
from unit import test_raft_follower as follower_tests
from unit import test_raft_leader as leader_tests
from unit import test_raft_lease as lease_tests

RECORD = Path(__file__).parents[2] / "docs/decisions/0003-pysyncobj-held-to-its-promises.md"
Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Directed:
    repairs: tuple[int, ...]  # numbers in the record
    off: Callable[[Patch], None]
    noticed_by: Callable[..., None]


def naive(log: Any, commit: int, message: Any) -> Accept:
    """What the library does by itself: cut wherever the message starts."""
    return Accept(
        message.prev_index,
        message.prev_term,
        message.entries,
        message.commit,
        message.prev_index + len(message.entries),
    )


def without_clamp(patch: Patch) -> None:
    decide = append_filter.decide
    patch.setattr(
        append_filter,
        "decide",
        lambda log, commit, message: replace(
            decide(log, commit, message),
            commit=min(message.commit, log.last_index),
        ),
    )


def any_term(patch: Patch) -> None:
    """Acks count for whatever term the leader is in."""
    on_appended = Leader.on_appended

    def careless(self: Leader, sender: str, message: Appended) -> None:
        on_appended(self, sender, replace(message, term=self._core.term))

    patch.setattr(Leader, "on_appended", careless)


def no_stale(patch: Patch) -> None:
    post = Core.post

    def mute(self: Core, peer: str, message: Any) -> bool:
        return isinstance(message, Stale) or post(self, peer, message)

    patch.setattr(Core, "post", mute)


def commit_any_term(patch: Patch) -> None:
    """A majority is enough, whatever term the entry is of."""

    def careless(self: Leader) -> None:
        core = self._core
        matches = [core.log.durable_index, *(self.match(peer) for peer in core.other_voters)]
        index = sorted(matches, reverse=True)[core.config.majority_count - 1]
        if index > core.library.commit_index:
            core.library.commit(index)

    patch.setattr(Leader, "advance_commit", careless)


def no_pre_vote(patch: Patch) -> None:
    patch.setattr(Voting, "begin", lambda self: self._campaign(transfer=False))


def always(value: object) -> Callable[..., object]:
    return lambda *_arguments, **_named: value


def attribute(owner: object, name: str, value: object) -> Callable[[Patch], None]:
    assert hasattr(owner, name), (owner, name)
    return lambda patch: patch.setattr(owner, name, value)


DIRECTED = {
    "overlap cuts": Directed(
        (1,),
        attribute(append_filter, "decide", naive),
        follower_tests.test_repeated_shorter_append_cuts_nothing,
    ),
    "in flight is sent again": Directed(
        (2,),
        attribute(Leader, "_keep_in_flight", always(None)),
        leader_tests.test_what_is_in_flight_is_not_sent_again_after_an_ack,
    ),
    "commit is not clamped": Directed(
        (3,), without_clamp, follower_tests.test_commit_never_passes_what_was_compared
    ),
    "ack before disk": Directed(
        (4,),
        attribute(Follower, "_holds", lambda self: self._verified),
        follower_tests.test_entry_is_acknowledged_only_when_on_disk,
    ),
    "leader counts itself at once": Directed(
        (5,),
        attribute(Leader, "_own_index", lambda self: self._core.log.last_index),
        leader_tests.test_commit_needs_the_leaders_own_disk,
    ),
    "vote before disk": Directed(
        (6,),
        attribute(GroupJournal, "state_durable", property(always(True))),
        follower_tests.test_vote_leaves_only_when_it_is_on_disk,
    ),
    "ack of any term": Directed(
        (7,), any_term, leader_tests.test_ack_of_an_earlier_term_counts_for_nothing
    ),
    "stale leaders hear nothing": Directed(
        (8,), no_stale, follower_tests.test_stale_leader_is_told
    ),
    "no pre-vote": Directed(
        (9,), no_pre_vote, leader_tests.test_isolated_member_does_not_raise_the_term
    ),
    "leader is not shielded": Directed(
        (9,),
        attribute(Election, "shielded", property(always(False))),
        follower_tests.test_candidate_is_ignored_while_the_leader_lives,
    ),
    "changes overlap": Directed(
        (10,),
        attribute(Changes, "_check_may_change", always(None)),
        leader_tests.test_second_change_of_members_waits_for_the_first,
    ),
    "members are not rolled back": Directed(
        (10,),
        attribute(Members, "truncated", always(False)),
        leader_tests.test_config_of_a_lost_leadership_is_rolled_back,
    ),
    "apply goes on after an error": Directed(
        (11,),
        attribute(RaftGroup, "halt", always(None)),
        follower_tests.test_apply_that_raises_halts_the_group_once,
    ),
    "callbacks are forgotten": Directed(
        (12, 13),
        attribute(Proposals, "fail_all", always(None)),
        leader_tests.test_leader_alone_steps_down_and_its_proposals_are_unknown,
    ),
    "one index back at a time": Directed(
        (17,),
        attribute(append_filter, "_first_of_term", lambda log, index, commit: index),
        follower_tests.test_whole_conflicting_term_is_skipped_at_once,
    ),
    "a resend per rejection": Directed(
        (17,),
        attribute(Progress, "repeated_reset", always(False)),
        leader_tests.test_rejections_in_flight_cause_one_resend,
    ),
    "entries wait for a tick": Directed(
        (19,),
        attribute(GroupDesk, "wake", always(None)),
        leader_tests.test_what_is_in_flight_is_not_sent_again_after_an_ack,
    ),
    "votes per message": Directed(
        (21,),
        attribute(Election, "vote", always(True)),
        leader_tests.test_two_votes_of_one_voter_count_once,
    ),
    "no lease": Directed(
        (22,),
        attribute(lease, "majority_time", lambda own, others, majority: own),
        leader_tests.test_serving_needs_a_majority_within_the_lease,
    ),
    "no wait for the old lease": Directed(
        (22,),
        attribute(lease, "wait_s", always(0.0)),
        leader_tests.test_leader_waits_out_the_lease_of_the_one_before,
    ),
    "clocks run alike": Directed(
        (22,),
        attribute(Timing, "lease_told_s", property(lambda self: self.lease_s)),
        lease_tests.test_vote_leaves_room_for_a_leader_whose_clock_is_slow,
    ),
    "one dead leader ends every lease": Directed(
        (22,),
        attribute(Election, "leader_gone", lambda self: setattr(self, "_contact_at", 0.0)),
        lease_tests.test_death_of_a_leader_does_not_end_the_lease_of_the_one_before,
    ),
    "old entries commit by count": Directed(
        (5,),
        commit_any_term,
        leader_tests.test_entries_of_an_earlier_term_commit_only_with_one_of_this_term,
    ),
    "transfer before the successor has all": Directed(
        (23,),
        attribute(Leader, "match", lambda self, peer: self._core.log.last_index),
        leader_tests.test_transfer_waits_until_the_successor_has_everything,
    ),
}

# Repair -> what notices that it is off, elsewhere.
ELSEWHERE = {
    14: "commands carry producer id and sequence: a machine's own tests",
    15: "sim: state_sync, manifest_sync, pointer_sync, groups_folder_sync",
    16: "test_raft_limits: entries stay below the size at which the library cuts them",
    18: "sim: journal_sync, journal_folder_sync, journal_repair",
    20: "tidy: nobody imports pickle",
    24: "test_host: a failed sync stops every group",
}


@pytest.mark.parametrize("name", sorted(DIRECTED))
def test_missing_repair_is_noticed(name: str, monkeypatch: Patch, tmp_path: Path) -> None:
    mutation = DIRECTED[name]
    wants_folder = "tmp_path" in mutation.noticed_by.__annotations__
    if wants_folder:
        given: object = tmp_path
        mutation.off(monkeypatch)
    else:
        desk = GroupDesk(tmp_path)
        if mutation.noticed_by.__module__ == leader_tests.__name__:
            desk.elect()
            desk.take()
        mutation.off(monkeypatch)
        given = desk
    with pytest.raises((AssertionError, ValueError)):
        mutation.noticed_by(given)


def test_every_repair_of_the_record_is_tried_somewhere() -> None:
    rows = re.findall(r"^\| ([0-9, ]+) \|", RECORD.read_text(encoding="utf-8"), re.MULTILINE)
    numbers = {int(number) for row in rows for number in row.split(",")}
    tried = {number for mutation in DIRECTED.values() for number in mutation.repairs}
    assert numbers == tried | set(ELSEWHERE) == set(range(1, 25))


def test_simulated_mutations_named_here_exist() -> None:
    named = {
        name.strip()
        for text in ELSEWHERE.values()
        if text.startswith("sim: ")
        for name in text.removeprefix("sim: ").split(",")
    }
    assert named <= set(mutations.MUTATIONS)


def test_library_is_not_ticked_by_itself(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path)
    inner = desk.group._library
    assert isinstance(inner, library.Library)
    with pytest.raises(AssertionError, match="trusts no disk"):
        inner.doTick(0.0)
