"""One real RaftGroup on a real journal, whose links, clock and disk a test moves by hand.

What the group sends is collected in `sent`; what others would say is fed with `hear`. The journal
syncs only in `sync`, so a test sees what leaves before and what after.
"""

from collections.abc import Callable
from pathlib import Path

from lograft_log.env import RealDisk
from lograft_replication.core import Surroundings
from lograft_replication.group import RaftGroup
from lograft_replication.machine import Capture
from lograft_replication.manifest import Manifest
from lograft_replication.membership import Config
from lograft_replication.messages import (
    Append,
    Appended,
    Entry,
    GroupMessage,
    Offer,
    PreVote,
    PreVoteRequest,
    Vote,
    VoteRequest,
)
from lograft_replication.proposals import Outcome
from lograft_replication.timing import GroupLimits, Timing
from lograft_wire.errors import LograftError
from support.journal_desk import JournalDesk
from support.stepped import SteppedClock

A, B, C = "a", "b", "c"
GROUP = 1
TIMING = Timing()


class FixedRng:
    """Every delay is the shortest."""

    def uniform(self, low: float, _high: float) -> float:
        return low

    def token(self, size: int) -> bytes:
        return bytes(range(size))


class ListMachine:
    """Remembers what was applied; `explode` makes one command fail."""

    def __init__(self) -> None:
        self.applied: list[bytes] = []

    def apply(self, _index: int, _term: int, command: bytes) -> object:
        if command.endswith(b"explode"):
            raise ValueError("as asked")
        self.applied.append(command)
        return len(self.applied)

    def capture(self) -> Capture:
        return Capture(b"\n".join(self.applied), lambda: None)

    def restore(self, payload: bytes, _folder: str) -> None:
        self.applied = payload.split(b"\n") if payload else []

    def damaged(self) -> str:
        return ""

    def close(self) -> None:
        pass


class GroupDesk:
    """Member `a` of a group of three, unless told otherwise."""

    def __init__(
        self,
        folder: Path,
        *,
        voters: tuple[str, ...] = (A, B, C),
        node: str = A,
        limits: GroupLimits | None = None,
    ) -> None:
        self.clock = SteppedClock()
        self.desk = JournalDesk(RealDisk(), str(folder))
        self.desk.journal.add_listener(self._synced)
        self.log = self.desk.journal.group(GROUP)
        if self.log.base_index == 0:
            self.log.reset(base_index=1, base_term=0)
        self.machine = ListMachine()
        self.sent: list[tuple[str, GroupMessage]] = []
        self.links = {peer for peer in voters if peer != node}
        self.offers: list[tuple[str, Offer]] = []
        self.roles: list[str] = []
        self.led: list[int] = []
        self.errors: list[LograftError] = []
        self.woken = False
        self._delayed: list[Callable[[], None]] = []
        self.group = RaftGroup(
            group_id=GROUP,
            log=self.log,
            machine=self.machine,
            manifest=Manifest(group=GROUP, index=1, term=0, config=Config(voters)),
            around=Surroundings(
                node=node,
                clock=self.clock,
                rng=FixedRng(),
                timing=TIMING,
                limits=limits or GroupLimits(command_bytes_max=2048, append_bytes_max=8192),
                port=self,
            ),
        )
        self.sync()

    # GroupPort

    def send(self, group: int, peer: str, message: GroupMessage) -> bool:
        assert group == GROUP
        if peer not in self.links:
            return False
        self.sent.append((peer, message))
        return True

    def linked(self, peer: str) -> bool:
        return peer in self.links

    def wake(self, _group: RaftGroup) -> None:
        self.woken = True

    def journaled(self, _group: RaftGroup) -> None:
        pass

    def later(self, _delay_s: float, callback: Callable[[], None]) -> None:
        self._delayed.append(callback)

    def role_changed(self, group: RaftGroup) -> None:
        self.roles.append(group.role.name)

    def leads(self, group: RaftGroup) -> None:
        self.led.append(group.term)

    def halted(self, _group: RaftGroup, error: LograftError) -> None:
        self.errors.append(error)

    def offered(self, _group: RaftGroup, peer: str, offer: Offer) -> None:
        self.offers.append((peer, offer))

    def offer_for(self, group: RaftGroup, _again: int) -> tuple[int, int, int, int]:
        return group.checkpoint_index, self.log.base_term, 100, 7

    def _synced(self) -> None:
        self.group.durable()

    # What a test does

    def turn(self) -> None:
        while self.woken:
            self.woken = False
            self.group.turn()

    def sync(self) -> None:
        """All that was written is on disk, and the group knows."""
        self.desk.settle()
        self.turn()

    def pass_time(self, seconds: float) -> None:
        self.clock.at_s += seconds

    def announce(self) -> None:
        delayed, self._delayed = self._delayed, []
        for callback in delayed:
            callback()
        self.turn()

    def hear(self, sender: str, message: GroupMessage) -> None:
        self.group.receive(sender, message)
        self.turn()

    def take(self, peer: str | None = None) -> list[GroupMessage]:
        """What was sent since the last look, to one peer or to all."""
        found = [message for to, message in self.sent if peer in (None, to)]
        self.sent.clear()
        return found

    def propose(self, text: bytes) -> list[Outcome]:
        outcomes: list[Outcome] = []
        self.group.propose(command(text), outcomes.append)
        self.turn()
        return outcomes

    def elect(self) -> None:
        """Make the group leader with b's help; its first entry is on disk here, not elsewhere."""
        self.pass_time(TIMING.election_s_max)
        self.group.timer()
        request = next(message for message in self.take() if isinstance(message, PreVoteRequest))
        self.hear(B, PreVote(request.term))
        self.sync()
        assert any(isinstance(message, VoteRequest) for message in self.take())
        self.hear(B, Vote(self.group.term, 0, 0, False))
        assert self.group.is_leader
        self.sync()

    def ack(self, peer: str, index: int | None = None) -> None:
        """`peer` has everything up to `index` on its disk."""
        index = self.log.last_index if index is None else index
        self.hear(peer, Appended(self.group.term, index + 1, reset=False, success=True))


def command(text: bytes) -> bytes:
    return b"\x20" + text


def entries(first: int, term: int, *texts: bytes) -> tuple[Entry, ...]:
    return tuple((command(text), first + i, term) for i, text in enumerate(texts))


def append(
    term: int, prev_index: int, prev_term: int, found: tuple[Entry, ...] = (), commit: int = 1
) -> Append:
    return Append(term, commit, prev_index, prev_term, found)
