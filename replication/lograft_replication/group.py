"""RaftGroup: this node's member of one Raft cluster, with its machine.

Puts pysyncobj (through `library`) on the node's journal and links and holds it to what it promises.
The parts decide: `follower`, `leader`, `voting`; this is the face towards the host and towards
whoever proposes. No I/O and no clock of its own: the host feeds it messages, timers and the
journal's progress, all on one event loop, and carries what it sends.
"""

import logging
from dataclasses import dataclass
from enum import Enum

from lograft_replication import lease
from lograft_replication.changes import Changes
from lograft_replication.core import Core, HaltError, Surroundings
from lograft_replication.follower import Follower
from lograft_replication.group_journal import GroupJournal
from lograft_replication.leader import Leader, TransferDone
from lograft_replication.library import CANDIDATE, FOLLOWER, LEADER, Library, Member, Message
from lograft_replication.machine import Machine
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
    Stale,
    TimeoutNow,
    Vote,
    VoteRequest,
)
from lograft_replication.proposals import Done, Proposals, Refused
from lograft_replication.voting import Voting
from lograft_wire.errors import LograftError

logger = logging.getLogger(__name__)

COMMAND_BYTE_MIN = 0x20  # first byte of a machine's command; below that it is ours or pysyncobj's


class Role(Enum):
    FOLLOWER = FOLLOWER
    CANDIDATE = CANDIDATE
    LEADER = LEADER


@dataclass(frozen=True, slots=True)
class Status:
    """One group as health pages and metrics show it."""

    group: int
    role: str
    term: int
    leader: str | None
    serving: bool
    base_index: int
    commit_index: int
    applied_index: int
    durable_index: int
    last_index: int
    voters: tuple[str, ...]
    learners: tuple[str, ...]
    halted: str | None


class RaftGroup:
    def __init__(
        self,
        *,
        group_id: int,
        log: GroupJournal,
        machine: Machine,
        manifest: Manifest,
        around: Surroundings,
    ) -> None:
        self.group_id = group_id
        self.node = around.node
        self.machine = machine
        self.log = log
        self.checkpoint_index = manifest.index
        self._limits = limits = around.limits
        self._port = port = around.port
        self._proposals = Proposals()
        self._halted: LograftError | None = None  # something is wrong here
        self._stopped: LograftError | None = None  # why nothing is done any more; also if halted
        self.unfit = False  # our copy of the state has holes: another member should lead
        self.frozen = False  # a pulled checkpoint is taking the place of our state
        self._role_seen = (FOLLOWER, log.term)
        self._led_term = 0  # the last term in which we were ready to lead
        self._core = Core(self, group_id, log, manifest.config, around)
        self._library = self._core.library = Library(
            node=around.node,
            log=log,
            applied=manifest.index,
            apply=self._apply,
            send=self._library_sends,
            on_append=self._log_grew,
            on_truncate=self._log_shrank,
            on_state=lambda: port.journaled(self),
            on_role=self._role_turned,
            append_bytes_max=limits.append_bytes_max,
            apply_bytes_max=limits.apply_bytes_max,
        )
        self._follower = Follower(self._core)
        self._leader = Leader(self._core)
        self._voting = Voting(self._core)
        self._changes = Changes(self._core, self._leader, self.refuses, self._propose)
        self._members_changed()

    def __repr__(self) -> str:
        return (
            f"RaftGroup({self.group_id}, {self.role.name}, term={self.term}, "
            f"commit={self.commit_index}, last={self.log.last_index})"
        )

    # Reading

    @property
    def role(self) -> Role:
        return Role(self._library.role)

    @property
    def is_leader(self) -> bool:
        return self._library.role == LEADER

    @property
    def term(self) -> int:
        return self._library.term

    @property
    def leader(self) -> str | None:
        return self._library.leader

    @property
    def commit_index(self) -> int:
        return self._library.commit_index

    @property
    def applied_index(self) -> int:
        return self._library.applied_index

    @property
    def config(self) -> Config:
        return self._core.config

    @property
    def is_voter(self) -> bool:
        return self.node in self._core.config.voters

    @property
    def halted(self) -> LograftError | None:
        """What is wrong here, if anything is."""
        return self._halted

    @property
    def stopped(self) -> bool:
        """Halted, or taken out of service in order."""
        return self._stopped is not None

    @property
    def serving(self) -> bool:
        """Leader, up to date, and sure that nobody else serves: may deliver and answer reads."""
        return self.is_leader and self._leader.may_serve

    def status(self) -> Status:
        return Status(
            group=self.group_id,
            role=self.role.name.lower(),
            term=self.term,
            leader=self.leader,
            serving=self.serving,
            base_index=self.log.base_index,
            commit_index=self.commit_index,
            applied_index=self.applied_index,
            durable_index=self.log.durable_index,
            last_index=self.log.last_index,
            voters=self.config.voters,
            learners=self.config.learners,
            halted=None if self._halted is None else str(self._halted),
        )

    # Proposing

    def propose(self, command: bytes, done: Done) -> None:
        """Replicate one command (a batch). `done` is called once, on a later turn or at once."""
        assert command[0] >= COMMAND_BYTE_MIN, command[0]
        refusal = self.refuses(len(command))
        if refusal is None:
            self._propose(command, done)
        else:
            done(refusal)

    def _propose(self, command: bytes, done: Done) -> None:
        index = self._library.append(command)
        self._proposals.add(index, self.term, done)
        self._port.wake(self)

    def refuses(self, command_bytes: int) -> Refused | None:
        """Why nothing can be proposed here now, if so."""
        if self._stopped is not None:
            return Refused(f"group {self.group_id} is stopped here: {self._stopped}")
        if not self.is_leader:
            return Refused(f"not the leader of group {self.group_id}", leader=self.leader)
        if self._leader.transfer is not None:
            target = self._leader.transfer.target
            return Refused("leadership is being handed over", leader=target)
        if command_bytes > self._limits.command_bytes_max:
            limit = self._limits.command_bytes_max
            return Refused(f"a command of {command_bytes} bytes; at most {limit} are allowed")
        if len(self._proposals) >= self._limits.proposals_max:
            return Refused(f"{len(self._proposals)} proposals are waiting; try again later")
        return None

    # Members

    def add_learner(self, member: str, done: Done) -> None:
        """Replicate to `member` without counting it. It must have created the group, empty."""
        self._changes.add_learner(member, done)

    def promote(self, member: str, done: Done) -> None:
        """Make a learner that has caught up a voter."""
        self._changes.promote(member, done)

    def remove(self, member: str, done: Done) -> None:
        self._changes.remove(member, done)

    def _log_grew(self, entry: Entry) -> None:
        command, index, _ = entry
        self._port.journaled(self)
        if self._core.members.appended(command, index):
            self._members_changed()

    def _log_shrank(self, from_index: int) -> None:
        self._port.journaled(self)
        if self._core.members.truncated(from_index):
            self._members_changed()

    def _members_changed(self) -> None:
        config = self.config
        self._library.set_members(
            set(config.voters) - {self.node}, set(config.learners) - {self.node}
        )
        if self.is_leader:
            self._leader.members_changed()

    # Leadership

    def step_down(self) -> None:
        """Give up leadership and let another member go first."""
        if self.is_leader:
            self._library.become_follower()
            self._core.election.postpone()
            self._after()

    def transfer(self, target: str | None, done: TransferDone) -> None:
        """Hand leadership to `target` (or the voter furthest on). Proposals are refused meanwhile.
        `done` is told why not, or None once this node no longer leads."""
        refusal = self.refuses(0)
        if refusal is None:
            self._leader.begin_transfer(target, done)
        else:
            done(refusal.reason)

    def contact_age_s(self) -> float:
        """As leader: how long ago a majority was last in contact."""
        return self._core.clock.now_s() - self._leader.majority_contact()

    def leader_word(self) -> lease.VoterWord | None:
        return self._leader.word() if self.is_leader else None

    def voted_late(self) -> None:
        self._leader.voted_late()

    def confirmed(self, peer: str, sent_at: float) -> None:
        """The peer answered a heartbeat of ours, sent at `sent_at`, for this group and term."""
        if self.is_leader:
            self._leader.confirmed(peer, sent_at)

    def contradicted(self, peer: str, term: int) -> None:
        """The peer does not follow us, though our heartbeat says that we lead; its term is this."""
        if self._stopped is not None or self.frozen:
            return
        if term > self.term:
            self._adopt_term(term)
        elif self.is_leader:
            self._leader.ask(peer)

    def heartbeat(self, leader: str, term: int) -> bool:
        """The leader's node is alive. True is a promise not to elect anyone else for a while, so
        it is given only under a term that is on disk."""
        library = self._library
        if (
            self._stopped is not None
            or self.frozen
            or term != library.term
            or library.role != FOLLOWER
            or library.leader != leader
            or not self.log.state_durable
        ):
            return False
        self._core.election.heard(term)
        return True

    # Timers, links and the journal, driven by the host

    def start(self) -> None:
        """A group of one member need not wait for anybody."""
        if self.config.voters == (self.node,):
            self._voting.begin()
            self._after()

    def timer(self) -> None:
        if self._stopped is not None:
            return
        if self.is_leader:
            self._leader_timer()
        elif self.is_voter and not self.frozen and self._core.election.due(self._patience_s()):
            self._voting.begin()
            self._after()

    def _patience_s(self) -> float:
        """With holes in our state others go first; when all have some, somebody must lead."""
        return self._core.timing.unfit_s if self.unfit and self._core.other_voters else 0.0

    def _leader_timer(self) -> None:
        if not self._leader.timer():
            self.step_down()
        elif self.unfit:
            self._leader.offer_to_others()

    def link_up(self, peer: str) -> None:
        if self.is_leader:
            self._leader.link_up(peer)

    def link_down(self, peer: str) -> None:
        if self.is_leader:
            self._leader.link_down(peer)
        elif self.leader == peer:
            self._core.election.lost_link()

    def peer_gone(self, peer: str) -> None:
        if self._follower.follows(peer):
            self._core.election.leader_gone()

    def durable(self) -> bool:
        """The journal has synced: send what waited for it. True when nothing waits any more."""
        if self._stopped is None:
            self._core.release_outbox()
            self._follower.acknowledge(asked=False)
            if self.is_leader:
                self._port.wake(self)
        return self.log.state_durable and self.log.durable_index == self.log.last_index

    def turn(self) -> None:
        """Commit, apply and replicate what this turn of the loop brought."""
        if self._stopped is not None or self.frozen:
            return
        try:
            if self.is_leader:
                self._leader.advance_commit()
            self._library.apply_committed()
        except HaltError as error:
            self.halt(error)
            return
        if self.is_leader:
            self._leader.continue_transfer()
            self._leader.replicate()
        self._after()
        if self.applied_index < self.commit_index:
            self._port.wake(self)

    def halt(self, error: LograftError) -> None:
        """Something is wrong: stop for good on this node, and say so."""
        if self._halted is None:
            logger.error("event=group_halted group=%d error=%r", self.group_id, str(error))
            self._halted = error
            try:
                self.stop(error)
            finally:
                self._port.halted(self, error)

    def stop(self, why: LograftError) -> None:
        """No votes, no acknowledgements, no service, no apply from here on."""
        if self._library.role != FOLLOWER:
            self._library.become_follower()
        self._stopped = why
        self._core.clear_outbox()
        self._follower.forget()
        self._after()

    # Messages

    def receive(self, sender: str, message: GroupMessage) -> None:
        if self._stopped is not None or self.frozen:
            return
        try:
            self._dispatch(sender, message)
        except HaltError as error:
            self.halt(error)
            return
        self._after()

    def _dispatch(self, sender: str, message: GroupMessage) -> None:
        match message:
            case Append():
                self._follower.on_append(sender, message)
            case Appended():
                if self.is_leader:
                    self._leader.on_appended(sender, message)
            case VoteRequest():
                self._voting.on_vote_request(sender, message)
            case Vote():
                self._voting.on_vote(sender, message)
            case PreVoteRequest():
                self._voting.on_pre_vote_request(sender, message)
            case PreVote():
                self._voting.on_pre_vote(sender, message)
            case Stale():
                if message.term > self.term:
                    self._adopt_term(message.term)
            case TimeoutNow():
                self._voting.on_timeout_now(sender, message)
            case Offer():
                self._follower.on_offer(sender, message)

    def _adopt_term(self, term: int) -> None:
        """Someone is in a later term: follow it there. The next election needs a pre-vote."""
        self._library.adopt_term(term)
        self._after()

    def _library_sends(self, node: Member, message: Message) -> None:
        match message["type"]:
            case "append_entries" if "entries" in message:
                self._leader.library_appends(node, message)
            case "append_entries":
                assert "serialized" in message, "an entry was cut into chunks"
                self._leader.library_offers(node)
            case "next_node_idx":
                self._follower.library_answers(node.id)
            case "request_vote":
                self._voting.library_asks(
                    node.id,
                    message["term"],
                    message["last_log_index"],
                    message["last_log_term"],
                )
            case "response_vote":
                self._voting.library_votes(node.id, message["term"])
            case other:
                raise AssertionError(f"the library sends {other!r}, which we never asked for")

    # Checkpoints

    def config_at(self, index: int) -> Config:
        return self._core.members.at(index)

    def lacks(self, index: int, term: int) -> bool:
        """Whether a checkpoint that ends with this entry is of any use here."""
        return self._follower.lacks(index, term)

    def freeze(self) -> None:
        """Neither take messages nor apply until `installed`: the state is being replaced."""
        assert not self.is_leader
        self.frozen = True

    def installed(self, manifest: Manifest) -> None:
        """The machine was restored from a checkpoint pulled from the leader; the log starts anew
        behind it."""
        assert self.lacks(manifest.index, manifest.term), (manifest, self)
        self.frozen = False
        self.log.reset(base_index=manifest.index, base_term=manifest.term)
        self._port.journaled(self)
        self._library.installed(manifest.index)
        self._core.members.installed(manifest.config)
        self._members_changed()
        self.checkpoint_index = manifest.index
        self._follower.reached(manifest.index)

    def checkpointed(self, index: int) -> None:
        """A checkpoint at `index` is on disk: the journal may forget what nobody needs."""
        self.checkpoint_index = max(self.checkpoint_index, index)
        self.trim()

    def trim(self) -> None:
        point = self.checkpoint_index
        if point == self.log.base_index:
            return
        if self.is_leader:
            point = self._leader.trim_point(point)
        if point > self.log.base_index:
            self._core.members.trimmed(point)
            self.log.trim(point)

    # Applying and roles

    def _apply(self, entry: Entry) -> None:
        command, index, term = entry
        result: object = None
        if command[0] >= COMMAND_BYTE_MIN:
            try:
                result = self.machine.apply(index, term, command)
            except Exception as error:
                what = f"group {self.group_id}: apply of index {index} failed: {error!r}"
                raise HaltError(what) from error
        self._proposals.applied(index, term, result)

    def _role_turned(self) -> None:
        """Called by the library in the middle of its work."""
        if self.is_leader:
            self._follower.forget()
            self._leader.start()

    def _after(self) -> None:
        """At the end of every call from outside: tell what changed."""
        seen = (self._library.role, self.term)
        if seen != self._role_seen:
            was_leader = self._role_seen[0] == LEADER
            self._role_seen = seen
            if was_leader:
                self._proposals.fail_all("leadership was lost before the outcome was known")
                self._leader.end()
            if self.is_leader:
                self._port.wake(self)
            self._port.role_changed(self)
        if self.is_leader and self._led_term < self.term and self._leader.knows_all:
            self._led_term = self.term
            self._port.leads(self)
        self._proposals.tell()
