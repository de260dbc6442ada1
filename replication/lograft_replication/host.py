"""All Raft groups of one node: one journal, one link per peer, one timer.

The composition root of this package and the only one who knows the journal, the network and the
groups together. Everything here runs on one event loop; blocking work goes to three Backgrounds:
`writer` (the journal's syncs), `helper` (its spare files) and `worker` (checkpoints and pulls).
A journal that fails stops every group of the node at once, and nothing is tried again.
"""

import itertools
import logging
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

from lograft_log.background import Background, Handle, Scheduler
from lograft_log.env import Clock, Disk, Rng
from lograft_replication import bulk, codec, durable, replica
from lograft_replication.checkpoint import CheckpointStore
from lograft_replication.core import HaltError, Surroundings
from lograft_replication.group import RaftGroup
from lograft_replication.heartbeat import PeerBeat
from lograft_replication.journal import Journal
from lograft_replication.journal_limits import JournalLimits
from lograft_replication.machine import Machine
from lograft_replication.membership import Config
from lograft_replication.messages import (
    Chunk,
    GroupMessage,
    Heartbeat,
    HeartbeatOk,
    NodeMessage,
    Offer,
    Pull,
)
from lograft_replication.network import PeerNetwork
from lograft_replication.replica import Replica, ReplicaEnv
from lograft_replication.throttle import Throttle
from lograft_replication.timing import GroupLimits, Timing
from lograft_wire.errors import LograftError, RefusedError

logger = logging.getLogger(__name__)

NODE_GROUP = 0xFFFFFFFF  # in a frame: not for a group but for the node
HOUSEKEEPING_S = 1.0
BUSY_S = 2.0  # a group that did nothing for so long is quiet
QUIET_TICKS = 4  # and is looked at only every so many ticks
DROPPED = ".dropped"  # behind the name of a folder that is being removed
JOURNAL_FILES_CALM = 4  # with more files than this, groups that hold the oldest checkpoint first


class HostListener(Protocol):
    """Who builds on the groups; always called on the loop."""

    def on_role(self, group: RaftGroup) -> None:
        """Role or term of the group changed."""

    def on_leads(self, group: RaftGroup) -> None:
        """This node was elected and has applied all that was committed before: it may take over.
        It serves while `group.serving` says so."""

    def on_halted(self, group: RaftGroup, error: LograftError) -> None:
        """The group has stopped on this node for good."""

    def on_failed(self, error: LograftError) -> None:
        """The node's disk failed: every group has stopped."""


class Host:
    def __init__(
        self,
        *,
        node: str,
        incarnation: bytes,
        disk: Disk,
        folder: str,
        clock: Clock,
        rng: Rng,
        scheduler: Scheduler,
        network: PeerNetwork,
        writer: Background,
        helper: Background,
        worker: Background,
        machine_for: Callable[[int], Machine],
        listener: HostListener,
        timing: Timing,
        limits: GroupLimits,
        journal_limits: JournalLimits,
        bulk_limits: bulk.Limits,
    ) -> None:
        self.node = node
        self.groups: dict[int, RaftGroup] = {}
        self.failed: LograftError | None = None
        self.journal: Journal
        self._replicas: dict[int, Replica] = {}
        self._incarnation = incarnation
        self._disk = disk
        self._folder = folder
        self._clock = clock
        self._rng = rng
        self._scheduler = scheduler
        self._network = network
        self._writer = writer
        self._helper = helper
        self._machine_for = machine_for
        self._listener = listener
        self._timing = timing
        self._journal_limits = journal_limits
        self._beats: dict[str, PeerBeat] = {}  # one per link that is up
        self._woken: dict[RaftGroup, None] = {}  # in order: a set would not repeat itself
        self._turning = False
        self._unsynced: dict[RaftGroup, None] = {}
        self._dropping: dict[int, int] = {}  # group -> what must be durable before it may come back
        self._busy: dict[int, float] = {}  # group -> until when it is looked at in every tick
        self._tick_count = 0
        self._beat_at = self._housekeeping_at = 0.0
        self._timer: Handle | None = None
        self.running = False  # between start and stop
        self._env = ReplicaEnv(
            around=Surroundings(
                node=node, clock=clock, rng=rng, timing=timing, limits=limits, port=self
            ),
            disk=disk,
            folder=f"{folder}/groups",
            worker=worker,
            bulk_limits=bulk_limits,
            throttle=Throttle(
                bytes_per_s=bulk_limits.bytes_per_s,
                burst_bytes=bulk_limits.burst_bytes,
                now_s=clock.now_s(),
            ),
            requests=itertools.count(1),
            send_pull=lambda peer, pull: self._send_node(peer, pull),
            on_failed=self.fail,
        )

    def start(self) -> None:
        """Recover from disk, blocking, and take part. DamagedError: durable data is wrong, and
        this node may not go on under its present identity."""
        self.journal = Journal.open(
            disk=self._disk,
            folder=f"{self._folder}/journal",
            limits=self._journal_limits,
            rng=self._rng,
            incarnation=self._incarnation,
            scheduler=self._scheduler,
            writer=self._writer,
            helper=self._helper,
        )
        self.journal.on_failed = self.fail
        self.journal.add_listener(self._journal_synced)
        if self._disk.exists(self._env.folder):
            # Names that went may be gone in the system's cache alone: on disk first, before the
            # journal forgets their entries.
            self._disk.sync_folder(self._env.folder)
        for name in self._disk.names(self._env.folder):
            if name.isdigit():
                self._open_group(int(name))
            elif name.endswith(DROPPED):
                self._disk.remove_folder(f"{self._env.folder}/{name}")
        for group_id in self.journal.groups():
            if group_id not in self.groups:
                self._forget_entries(group_id)  # a drop that a crash cut short
        self.running = True
        self._network.attach(self)
        self._timer = self._scheduler.call_later(0, self._tick)

    def stop(self, done: Callable[[], None]) -> None:
        """Write out what is known and end. Leadership should have been handed over before."""
        self.running = False
        if self._timer is not None:
            self._timer.cancel()
        for one in self._replicas.values():
            if not one.group.stopped:
                one.group.stop(RefusedError(f"node {self.node} is stopping"))
            one.close()
        self.journal.close(done)

    # Groups

    def create_group(self, group_id: int, config: Config) -> RaftGroup:
        """A group that starts with these members on all of them; or, with no voters, an empty
        member that waits to be added by the group's leader. Blocks shortly."""
        if group_id in self.groups:
            raise RefusedError(f"group {group_id} exists already")
        if self._dropping.get(group_id, 0) > self.journal.durable_sequence:
            raise RefusedError(f"group {group_id} is still being dropped; try again in a moment")
        self._dropping.pop(group_id, None)
        self.journal.group(group_id)  # refused before anything is on disk, if there is no room
        replica.create_store(self._env, group_id, config, self._machine_for(group_id))
        group = self._open_group(group_id)
        assert group is not None
        return group

    def drop_group(self, group_id: int) -> None:
        """Let go of a group this node is no longer a member of; done a moment later, behind what
        the worker still does for it. The folder goes first: what is left in the journal after a
        crash is found at the next start. The journal keeps term and vote for good, a few bytes:
        added again, this node is still the same voter."""
        one = self._replicas.pop(group_id)
        group = self.groups.pop(group_id)
        self._busy.pop(group_id, None)
        self._woken.pop(group, None)
        self._unsynced.pop(group, None)
        if not group.stopped:
            group.stop(RefusedError(f"group {group_id} was dropped from this node"))
        one.close()
        self._dropping[group_id] = sys.maxsize
        folder = f"{self._env.folder}/{group_id:08d}"

        self._env.worker.run(partial(self._remove, folder), partial(self._dropped, group_id))

    def _remove(self, folder: str) -> None:
        """A group's folder goes at once, by another name: half of one would be damage. Blocks."""
        with durable.disk_errors("removing", folder):
            self._disk.remove_folder(folder + DROPPED)
            self._disk.rename(folder, folder + DROPPED)
            self._disk.sync_folder(self._env.folder)
            self._disk.remove_folder(folder + DROPPED)

    def _dropped(self, group_id: int, _result: object, error: BaseException | None) -> None:
        if error is not None:
            self.fail(replica.as_lograft(error, f"group {group_id} could not be dropped"))
        elif self.running and self.failed is None:
            self._forget_entries(group_id)
            self._dropping[group_id] = self.journal.next_sequence - 1

    def _forget_entries(self, group_id: int) -> None:
        log = self.journal.group(group_id)
        if log.last_index > 0:
            log.reset(base_index=0, base_term=0)

    def _open_group(self, group_id: int) -> RaftGroup | None:
        store = CheckpointStore(self._disk, self._env.folder, group_id)
        manifest = store.open()
        if manifest is None:  # a creation that a crash cut short: it never took part
            self._remove(store.folder)
            return None
        log = self.journal.group(group_id)
        one = Replica(self._env, store, manifest, log, self._machine_for(group_id))
        self._replicas[group_id] = one
        self.groups[group_id] = one.group
        one.group.start()
        self._unsynced[one.group] = None
        return one.group

    def checkpoint(self, group_id: int) -> bool:
        return self._replicas[group_id].checkpoint()

    def pull_progress(self, group_id: int) -> tuple[int, int] | None:
        return self._replicas[group_id].pull_progress

    # For the groups (GroupPort)

    def send(self, group: int, peer: str, message: GroupMessage) -> bool:
        if peer not in self._beats:
            return False
        return self._network.send(peer, codec.encode(group, message))

    def linked(self, peer: str) -> bool:
        return peer in self._beats

    def wake(self, group: RaftGroup) -> None:
        self._woken[group] = None
        self._is_busy(group.group_id)
        if not self._turning:
            self._turning = True
            self._scheduler.call_soon(self._turn)

    def journaled(self, group: RaftGroup) -> None:
        self._unsynced[group] = None

    def later(self, delay_s: float, callback: Callable[[], None]) -> None:
        self._scheduler.call_later(delay_s, callback)

    def role_changed(self, group: RaftGroup) -> None:
        logger.info(
            "event=role group=%d role=%s term=%d", group.group_id, group.role.name, group.term
        )
        self._tell(group, partial(self._listener.on_role, group))

    def leads(self, group: RaftGroup) -> None:
        self._tell(group, partial(self._listener.on_leads, group))

    def halted(self, group: RaftGroup, error: LograftError) -> None:
        self._tell(group, partial(self._listener.on_halted, group, error))

    def _tell(self, group: RaftGroup, call: Callable[[], None]) -> None:
        """A listener that raises must not end what the group is in the middle of; it halts next."""
        try:
            call()
        except Exception as error:
            self._scheduler.call_soon(self._broken, group, error)

    def offered(self, group: RaftGroup, peer: str, offer: Offer) -> None:
        self._replicas[group.group_id].offered(peer, offer)

    def offer_for(self, group: RaftGroup, again: int) -> tuple[int, int, int, int]:
        return self._replicas[group.group_id].offer_for(again)

    # From the network (NetworkEvents)

    def on_up(self, peer: str, boot: bytes) -> None:
        logger.info("event=link_up peer=%s boot=%s", peer, boot.hex())
        self._beats[peer] = PeerBeat(peer)
        for one in self._replicas.values():
            one.group.link_up(peer)
            one.link(peer, up=True)
        self._beat([peer])

    def on_down(self, peer: str) -> None:
        logger.info("event=link_down peer=%s", peer)
        del self._beats[peer]
        for group_id, one in self._replicas.items():
            self._is_busy(group_id)  # an election may be due very soon
            one.group.link_down(peer)
            one.link(peer, up=False)

    def on_gone(self, peer: str) -> None:
        for group in self.groups.values():
            group.peer_gone(peer)

    def on_frame(self, peer: str, frame: memoryview) -> None:
        if not self.running:
            return
        group_id, message = codec.decode(frame)
        if isinstance(message, NodeMessage):
            self._on_node_message(peer, message)
            return
        group = self.groups.get(group_id)
        if group is not None:
            self._guarded(group, lambda: group.receive(peer, message))

    def _on_node_message(self, peer: str, message: NodeMessage) -> None:
        match message:
            case Heartbeat():
                self._send_node(peer, self._beats[peer].answer(message, self.groups))
            case HeartbeatOk():
                self._beats[peer].answered(message, self.groups)
            case Pull():
                self._on_pull(peer, message)
            case Chunk():
                for group_id, one in self._replicas.items():
                    if one.puller is not None:
                        self._is_busy(group_id)
                        one.puller.on_chunk(message)

    def _on_pull(self, peer: str, message: Pull) -> None:
        one = self._replicas.get(message.group)
        if one is None:
            text = f"group {message.group} is not on node {self.node}"
            self._send_node(peer, Chunk(message.request, text, b""))
        else:
            one.server.on_pull(message, lambda chunk: self._send_node(peer, chunk))

    def _send_node(self, peer: str, message: NodeMessage) -> None:
        if peer in self._beats:
            self._network.send(peer, codec.encode(NODE_GROUP, message))

    # Time and the journal

    def _tick(self) -> None:
        try:
            self._tick_once()
        finally:
            if self.running:
                self._timer = self._scheduler.call_later(self._timing.heartbeat_s / 2, self._tick)

    def _tick_once(self) -> None:
        now = self._clock.now_s()
        if now >= self._beat_at:
            self._beat_at = now + self._timing.heartbeat_s * 0.9
            self._beat(self._beats)
        self._tick_count += 1
        everyone = self._tick_count % QUIET_TICKS == 0
        for group_id in list(self._replicas if everyone else self._busy):
            one = self._replicas.get(group_id)
            if one is not None:
                quiet = group_id not in self._busy
                self._guarded(one.group, one.group.timer if quiet else partial(self._mind, one))
            if self._busy.get(group_id, now) < now:
                del self._busy[group_id]
        if now >= self._housekeeping_at and self.failed is None:
            self._housekeeping_at = now + HOUSEKEEPING_S
            self._keep_house()

    def _mind(self, one: Replica) -> None:
        one.group.timer()
        self._tend(one)

    def _tend(self, one: Replica) -> None:
        one.timer()
        if self.failed is None and not one.group.stopped:
            one.group.trim()  # followers may have caught up since the checkpoint
            if one.checkpoint_due():
                one.checkpoint()

    def _is_busy(self, group_id: int) -> None:
        self._busy[group_id] = self._clock.now_s() + BUSY_S

    def _beat(self, peers: Iterable[str]) -> None:
        now = self._clock.now_s()
        led: dict[str, list[tuple[int, int]]] = {peer: [] for peer in peers}
        for group_id, group in sorted(self.groups.items()):
            if group.is_leader:
                for member in group.config.members:
                    if member in led:
                        led[member].append((group_id, group.term))
        for peer, table in led.items():
            self._send_node(peer, self._beats[peer].beat(tuple(table), now))

    def _keep_house(self) -> None:
        """Tend quiet groups too, look for damage, and take checkpoints where they keep an old
        journal file alive."""
        urgent: set[int] = set()
        if self.journal.stats.file_count > JOURNAL_FILES_CALM:
            urgent.update(self.journal.oldest_pinning_groups())
        for group_id, one in list(self._replicas.items()):
            self._guarded(one.group, partial(self._keep_group, one, urgent=group_id in urgent))

    def _keep_group(self, one: Replica, *, urgent: bool) -> None:
        self._tend(one)
        if not one.group.stopped:
            self._look_for_damage(one.group)
            if urgent:
                one.checkpoint()

    def _look_for_damage(self, group: RaftGroup) -> None:
        damage = group.machine.damaged()
        if damage and not group.unfit:
            logger.error("event=state_damaged group=%d damage=%r", group.group_id, damage)
        group.unfit = bool(damage)

    def _turn(self) -> None:
        self._turning = False
        woken, self._woken = self._woken, {}
        for group in woken:
            self._guarded(group, group.turn)

    def _journal_synced(self) -> None:
        unsynced, self._unsynced = self._unsynced, {}
        for group in unsynced:
            if not group.durable():
                self._unsynced[group] = None

    def _guarded(self, group: RaftGroup, call: Callable[[], None]) -> None:
        """A mistake of ours in one group stops that group, not the node and not the link."""
        try:
            call()
        except Exception as error:
            self._broken(group, error)

    def _broken(self, group: RaftGroup, error: Exception) -> None:
        logger.error("event=group_broken group=%d", group.group_id, exc_info=error)
        halt = HaltError(f"group {group.group_id}: {error!r}")
        halt.__cause__ = error
        self._halt(group, halt)

    def _halt(self, group: RaftGroup, error: LograftError) -> None:
        try:
            group.halt(error)
        except Exception:  # of whoever proposed; everyone has been told, and the group has stopped
            logger.exception("event=answer_failed group=%d", group.group_id)

    def fail(self, error: LograftError) -> None:
        """The disk failed: stop every group now. Nothing is written or tried again."""
        if self.failed is not None:
            return
        self.failed = error
        logger.critical("event=node_failed node=%s error=%r", self.node, str(error))
        for group in list(self.groups.values()):
            self._halt(group, error)
        self._listener.on_failed(error)
