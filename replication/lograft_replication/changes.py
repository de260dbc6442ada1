"""Changes of a group's members: learner, voter, removed; asked of the leader, one at a time.

`membership` knows the single steps, `members` follows them through the log; this decides whether
one may begin now.
"""

from collections.abc import Callable

from lograft_replication import members, membership
from lograft_replication.core import Core
from lograft_replication.leader import Leader
from lograft_replication.membership import Config
from lograft_replication.proposals import Done, Refused
from lograft_wire.errors import RefusedError


class Changes:
    def __init__(
        self,
        core: Core,
        leader: Leader,
        refuses: Callable[[int], Refused | None],
        propose: Callable[[bytes, Done], None],
    ) -> None:
        self._core = core
        self._leader = leader
        self._refuses = refuses
        self._propose = propose

    def add_learner(self, member: str, done: Done) -> None:
        self._change(lambda: membership.add_learner(self._core.config, member), done)

    def promote(self, member: str, done: Done) -> None:
        self._change(lambda: self._promoted(member), done)

    def remove(self, member: str, done: Done) -> None:
        self._change(lambda: self._removed(member), done)

    def _change(self, step: Callable[[], Config], done: Done) -> None:
        try:
            self._check_may_change()
            config = step()
            membership.check_step(self._core.config, config)
            self._check_alive(config)
        except RefusedError as error:
            done(Refused(str(error), leader=self._core.library.leader))
            return
        self._propose(members.encode_entry(config), done)

    def _check_may_change(self) -> None:
        """One change at a time, and none before this term's first entry is committed: otherwise
        two configurations without a common member could both decide. And none while an earlier
        leader may hold its lease: the voters that know of it might be gone at the next election."""
        refusal = self._refuses(0)
        if refusal is not None:
            raise RefusedError(refusal.reason)
        committed = self._core.library.commit_index
        if committed < self._leader.noop_index:
            raise RefusedError("the new leader has not yet committed its first entry")
        if self._core.clock.now_s() < self._leader.serve_at:
            raise RefusedError("an earlier leader may still serve; try again in a moment")
        if self._core.members.index > committed:
            raise RefusedError("another change of members is under way")

    def _check_alive(self, config: Config) -> None:
        """The voters there would be must have a majority that is alive: a change that the group
        cannot survive can never be taken back."""
        core = self._core
        silent = [
            peer for peer in config.voters if peer != core.node and not self._leader.hears(peer)
        ]
        if len(config.voters) - len(silent) < config.majority_count:
            raise RefusedError(
                f"of the voters {', '.join(config.voters)} the group would have no majority: "
                f"nothing is heard of {', '.join(silent)}; replace those first"
            )

    def _promoted(self, member: str) -> Config:
        log = self._core.log
        config = membership.promote(self._core.config, member)
        match = self._leader.match(member)
        lag = log.bytes_between(max(match, log.base_index) + 1, log.last_index)
        if match < log.base_index or lag > self._core.limits.learner_lag_bytes_max:
            raise RefusedError(f"{member} is still behind, at index {match}")
        return config

    def _removed(self, member: str) -> Config:
        if member == self._core.node:
            raise RefusedError("a leader is not removed; transfer leadership first")
        return membership.remove(self._core.config, member)
