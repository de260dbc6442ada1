"""What the parts of one RaftGroup share: who we are, the log, the library, and the way out.

The way out has one rule: no message leaves under a term or vote that is not on disk. The parts are
`follower` (append and acknowledge), `leader` (replicate and commit), `voting` (elections) and
`group` (the public face); each keeps its own state and decides through this.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from lograft_log.env import Clock, Rng
from lograft_replication.election import Election
from lograft_replication.group_journal import GroupJournal
from lograft_replication.library import Library
from lograft_replication.members import Members
from lograft_replication.membership import Config
from lograft_replication.messages import GroupMessage, Offer, Stale
from lograft_replication.timing import GroupLimits, Timing
from lograft_wire.errors import LograftError

if TYPE_CHECKING:
    from lograft_replication.group import RaftGroup


class HaltError(LograftError):
    """The group on this node stops for good: its state cannot be trusted, or its machine failed."""


class GroupPort(Protocol):
    """What a group asks of its host."""

    def send(self, group: int, peer: str, message: GroupMessage) -> bool: ...

    def linked(self, peer: str) -> bool: ...

    def wake(self, group: "RaftGroup") -> None:
        """Call `turn` once before the loop turns."""

    def journaled(self, group: "RaftGroup") -> None:
        """Something was written to the journal: call `durable` when it has synced."""

    def later(self, delay_s: float, callback: Callable[[], None]) -> None: ...

    def role_changed(self, group: "RaftGroup") -> None: ...

    def leads(self, group: "RaftGroup") -> None:
        """Elected, and all that was committed before is applied. Once per term."""

    def halted(self, group: "RaftGroup", error: LograftError) -> None: ...

    def offered(self, group: "RaftGroup", peer: str, offer: Offer) -> None:
        """Pull this checkpoint and call `installed` when it is whole."""

    def offer_for(self, group: "RaftGroup", again: int) -> tuple[int, int, int, int]:
        """(index, term, manifest bytes, manifest CRC) of the checkpoint `again` as long as someone
        pulls it, else of the present one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all groups of a node are given."""

    node: str  # the id of this node, `name@incarnation`
    clock: Clock
    rng: Rng
    timing: Timing
    limits: GroupLimits
    port: GroupPort


class Core:
    library: Library  # set by the group: the library calls back into its parts

    def __init__(
        self,
        group: "RaftGroup",
        group_id: int,
        log: GroupJournal,
        config: Config,
        around: Surroundings,
    ) -> None:
        self.group = group
        self.group_id = group_id
        self.log = log
        self.node = around.node
        self.clock = clock = around.clock
        self.timing = timing = around.timing
        self.limits = around.limits
        self.port = around.port
        self.members = Members(config, log)
        self.election = Election(clock=clock, rng=around.rng, timing=timing, term=log.term)
        self._outbox: list[tuple[str, GroupMessage]] = []

    @property
    def term(self) -> int:
        return self.library.term

    @property
    def config(self) -> Config:
        return self.members.config

    @property
    def other_voters(self) -> list[str]:
        return [peer for peer in self.members.config.voters if peer != self.node]

    def wake(self) -> None:
        self.port.wake(self.group)

    def post(self, peer: str, message: GroupMessage) -> bool:
        """Send, but never under a term that is not on disk. False when there is no link."""
        if self.log.state_durable and not self._outbox:
            return self.port.send(self.group_id, peer, message)
        self._outbox.append((peer, message))
        return True

    def release_outbox(self) -> None:
        """Our term is on disk: send what waited for it and still speaks for the present."""
        if not self._outbox or not self.log.state_durable:
            return
        outbox, self._outbox = self._outbox, []
        for peer, message in outbox:
            if message.term >= self.term or isinstance(message, Stale):
                self.port.send(self.group_id, peer, message)

    def clear_outbox(self) -> None:
        self._outbox.clear()
