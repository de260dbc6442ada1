"""Safeguards switched off one at a time, to show that the simulation would notice.

A Mutation changes code of the running process for good, so each is tried in a process of its own
(`run.py --mutation NAME`). With each stand the faults under which its safeguard matters. Those the
simulation meets too rarely are left to directed tests of the part.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from lograft_replication import append_filter, journal_recovery, lease
from lograft_replication.append_filter import Accept, Contradiction, ReadableLog, Reject
from lograft_replication.election import Election
from lograft_replication.follower import Follower
from lograft_replication.group_journal import GroupJournal
from lograft_replication.leader import Leader
from lograft_replication.messages import Append
from sim import disk
from sim.profile import Profile

POWER = ("kill_leader", "power_cut", "power_cut_all", "crash_point", "cut_link", "slow_disk")
PARTS = ("isolate", "pause", "cut_one_way", "cut_link", "reset_link")
DEPOSE = ("isolate", "kill_leader", "pause")
CUTS = ("power_cut", "power_cut_all", "crash_point")
SYNCS = ("sync_error", "power_cut", "power_cut_all", "cut_link", "slow_disk")
DAMAGE = "finds undamaged data damaged"
LOSS = "lacks the committed entry|was committed|the machine differs|is lost"
ALONE = ("isolate",)
DISK_CHOICES_S = (0.001, 0.005, 0.03, 0.2)


@dataclass(frozen=True, slots=True)
class Mutation:
    safeguard: str  # what is switched off
    faults: tuple[str, ...]
    switch_off: Callable[[], None]
    shows: str  # pattern of the violations it causes; another one proves nothing about it
    is_rare: bool = False  # shows in one seed of ten or so

    def profile(self, drawn: Profile) -> Profile:
        return replace(drawn, faults=self.faults, disk_choices_s=DISK_CHOICES_S)


def _file_sync(part: str) -> Callable[[], None]:
    """Files whose path has `part` in it are never synced."""

    def switch_off() -> None:
        sync = disk.SimFile.sync

        def without(self: disk.SimFile) -> None:
            if part not in self.path:
                sync(self)

        disk.SimFile.sync = without  # type: ignore[method-assign]

    return switch_off


def _folder_sync(part: str) -> Callable[[], None]:
    def switch_off() -> None:
        sync = disk.SimDisk.sync_folder

        def without(self: disk.SimDisk, path: str) -> None:
            if part not in path:
                sync(self, path)

        disk.SimDisk.sync_folder = without  # type: ignore[method-assign]

    return switch_off


def _set(owner: object, name: str, value: object) -> Callable[[], None]:
    assert hasattr(owner, name), (owner, name)
    return lambda: setattr(owner, name, value)


def _decide(change: Callable[[Accept, ReadableLog, Append], Accept]) -> Callable[[], None]:
    """Let followers take appends with less care."""

    def switch_off() -> None:
        decide = append_filter.decide

        def careless(
            log: ReadableLog, commit: int, message: Append
        ) -> Accept | Reject | Contradiction:
            decision = decide(log, commit, message)
            return change(decision, log, message) if isinstance(decision, Accept) else decision

        append_filter.decide = careless

    return switch_off


def _last(accept: Accept, log: ReadableLog) -> int:
    return max(accept.verified, log.last_index)


MUTATIONS = {
    "journal_sync": Mutation(
        "fdatasync of the journal",
        POWER,
        _file_sync("/journal/"),
        DAMAGE,
    ),
    "state_sync": Mutation(
        "fdatasync of the machine's files before a checkpoint",
        (*POWER, "checkpoint"),
        _file_sync("/state-"),
        DAMAGE,
    ),
    "manifest_sync": Mutation(
        "fdatasync of a manifest",
        POWER,
        _file_sync("manifest"),
        DAMAGE,
    ),
    "pointer_sync": Mutation(
        "fdatasync of the checkpoint pointer",
        POWER,
        _file_sync("CURRENT"),
        DAMAGE,
    ),
    "identity_sync": Mutation(
        "fdatasync of the identity",
        POWER,
        _file_sync("identity"),
        DAMAGE,
    ),
    "journal_folder_sync": Mutation(
        "sync of the journal's folder",
        POWER,
        _folder_sync("journal"),
        DAMAGE,
    ),
    "groups_folder_sync": Mutation(
        "sync of the groups' folders",
        POWER,
        _folder_sync("groups"),
        f"{DAMAGE}|not whole",
    ),
    "journal_repair": Mutation(
        "what recovery accepts without proof is written and synced again",
        SYNCS,
        _set(journal_recovery, "_repair", lambda scan, active: None),
        DAMAGE,
    ),
    "vote_before_disk": Mutation(
        "term and vote on disk before they are told",
        ("kill_leader", *CUTS),
        _set(GroupJournal, "state_durable", property(lambda log: True)),
        "votes for|two leaders",
        is_rare=True,
    ),
    "ack_before_disk": Mutation(
        "entries on disk before they are acknowledged",
        CUTS,
        _set(Follower, "_holds", lambda follower: follower._verified),
        LOSS,
    ),
    "leader_counts_early": Mutation(
        "the leader's own disk counts, not its memory",
        POWER,
        _set(Leader, "_own_index", lambda leader: leader._core.log.last_index),
        LOSS,
    ),
    "ack_unverified": Mutation(
        "only what was compared with the leader's log is acknowledged",
        DEPOSE,
        _decide(lambda accept, log, message: replace(accept, verified=_last(accept, log))),
        f"{LOSS}|Appended|not equal",
        is_rare=True,
    ),
    "commit_unverified": Mutation(
        "only what was compared with the leader's log is committed",
        DEPOSE,
        _decide(
            lambda accept, log, message: replace(
                accept, commit=min(message.commit, _last(accept, log))
            )
        ),
        f"{LOSS}|committed here",
        is_rare=True,
    ),
    "no_wait_for_old_lease": Mutation(
        "a new leader waits until an old one cannot serve any more",
        ALONE,
        _set(Election, "wait_s", lambda election: 0.0),
        "both serve",
        is_rare=True,
    ),
    "no_lease": Mutation(
        "a leader serves only in contact with a majority",
        ALONE,
        _set(lease, "majority_time", lambda own, others, majority: own),
        "both serve",
        is_rare=True,
    ),
}
