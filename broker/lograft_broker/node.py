"""The node: everything one broker process is made of, put together here and nowhere else.

Today that is its identity, its journal and its Raft groups: the shards, each with a machine that
keeps streams in segmented logs. A cluster of one is a group of one member on the same code. The
edges (HTTP today) see a node through `server` and `admin`.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from typing_extensions import Buffer

from lograft_log.background import DeferredScheduler, ThreadBackground
from lograft_log.env import Clock, Disk, RealRng
from lograft_replication import bulk, identity
from lograft_replication.group import RaftGroup
from lograft_replication.host import Host
from lograft_replication.journal_limits import JournalLimits
from lograft_replication.membership import Config
from lograft_replication.network import NetworkEvents
from lograft_replication.streams import StreamMachine
from lograft_replication.timing import GroupLimits, Timing
from lograft_wire.config import Settings
from lograft_wire.errors import ConfigError, LograftError, StorageError

log = logging.getLogger(__name__)

SHARD_FIRST = 1  # group 0 is kept for metadata
CHECKPOINT_S_MAX = 60.0
NEVER_S = 1e9
STOP_S_MIN = 1.0  # for the journal's last sync, even when there is no time to drain


class NoPeers:
    """The network of a cluster of one."""

    def attach(self, _events: NetworkEvents) -> None:
        pass

    def send(self, _peer: str, _frame: Sequence[Buffer]) -> bool:
        return False

    def backlog_bytes(self, _peer: str) -> int:
        return 0


class Node:
    def __init__(self, settings: Settings, *, clock: Clock, disk: Disk) -> None:
        """Inside a running event loop."""
        if settings.other_peers:
            raise ConfigError(
                "--peers names other nodes, but this version runs a cluster of one only: "
                "start it without --peers"
            )
        self._settings = settings
        self._clock = clock
        self._disk = disk
        self._loop = asyncio.get_running_loop()
        self.failed: asyncio.Future[StorageError] = self._loop.create_future()
        self._host: Host | None = None
        self._recovery: asyncio.Future[Host] | None = None  # in a thread; nobody else touches it
        self._backgrounds: list[ThreadBackground] = []
        self._leads: set[int] = set()
        self._all_lead = asyncio.Event()  # in a cluster of one this is when it serves

    async def start(self) -> None:
        scheduler = DeferredScheduler(self._loop)
        self._recovery = self._loop.run_in_executor(None, self._recover, scheduler)
        host = await asyncio.shield(self._recovery)
        for background in self._backgrounds:
            background.start()
        self._host = host
        scheduler.open()
        log.info("event=node_recovered groups=%d", len(host.groups))
        await self._all_lead.wait()

    def _recover(self, scheduler: DeferredScheduler) -> Host:
        """Blocks for as long as it takes to read what is on disk."""
        host = self._make_host(scheduler)
        host.start()
        self._create_shards(host)
        return host

    async def stop(self, *, grace_s: float) -> None:
        if self._recovery is not None and self._host is None:
            await asyncio.wait([self._recovery])  # a thread cannot be ended; then it is thrown away
        if self._host is not None:
            closed = asyncio.Event()
            self._host.stop(closed.set)
            try:
                await asyncio.wait_for(closed.wait(), timeout=max(grace_s, STOP_S_MIN))
            except TimeoutError:
                log.warning("event=stop_cut_short grace_s=%s", grace_s)
        self._host = None
        for background in self._backgrounds:
            background.close()
        self._backgrounds.clear()

    def ready_line(self) -> Mapping[str, object]:
        return {
            "node": self._settings.node,
            "amqp": None,
            "http": None,
            "feed": None,
            "peer": None,
        }

    def health(self) -> Mapping[str, object]:
        host = self._host
        reasons: list[str] = []
        details: dict[str, object] = {"groups": [], "journal": None}
        if self.failed.done():
            reasons.append(str(self.failed.result()))
        if host is None or not host.groups:
            reasons.append("the node is starting or stopping")
        else:
            statuses = [group.status() for group in host.groups.values()]
            waiting = [status.group for status in statuses if not status.serving]
            if waiting:
                reasons.append(f"groups without a serving leader here: {waiting}")
            details["groups"] = [asdict(status) for status in statuses]
            details["journal"] = asdict(host.journal.stats)
        return {
            "live": not self.failed.done(),
            "ready": not reasons,
            "reasons": reasons,
            "details": details,
        }

    # For the host (HostListener)

    def on_role(self, group: RaftGroup) -> None:
        """Nothing to give up yet: queues and topics will lose their owner here."""

    def on_leads(self, group: RaftGroup) -> None:
        self._leads.add(group.group_id)
        if self._host is not None and self._leads >= self._host.groups.keys():
            self._all_lead.set()

    def on_halted(self, group: RaftGroup, error: LograftError) -> None:
        log.critical("event=group_stopped group=%d error=%r", group.group_id, str(error))

    def on_failed(self, error: LograftError) -> None:
        if not self.failed.done():
            failure = error if isinstance(error, StorageError) else StorageError(str(error))
            self.failed.set_result(failure)

    def _make_host(self, scheduler: DeferredScheduler) -> Host:
        settings = self._settings
        rng = RealRng()
        self._disk.make_folder(settings.data)
        me = identity.load_or_create(
            self._disk, settings.data, settings.node, settings.cluster_id, rng
        )
        log.info("event=identity node=%s cluster=%s", me.id, me.cluster_id)
        interval_s = settings.offset_checkpoint_interval_s or NEVER_S
        return Host(
            node=me.id,
            incarnation=me.incarnation,
            disk=self._disk,
            folder=settings.data,
            clock=self._clock,
            rng=rng,
            scheduler=scheduler,
            network=NoPeers(),
            writer=self._background("journal"),
            helper=self._background("files"),
            worker=self._background("worker"),
            machine_for=lambda _group: StreamMachine(self._disk, self._clock),
            listener=self,
            timing=Timing(checkpoint_s=min(CHECKPOINT_S_MAX, interval_s)),
            limits=GroupLimits(),
            journal_limits=JournalLimits(file_bytes=settings.journal_file_bytes),
            bulk_limits=bulk.Limits(),
        )

    def _create_shards(self, host: Host) -> None:
        """At the first start. Later the number is what it was then."""
        if host.groups:
            if len(host.groups) != self._settings.shards:
                log.warning(
                    "event=shards_fixed have=%d asked=%d", len(host.groups), self._settings.shards
                )
            return
        for shard in range(self._settings.shards):
            host.create_group(SHARD_FIRST + shard, Config((host.node,)))

    def _background(self, name: str) -> ThreadBackground:
        background = ThreadBackground(f"lograft-{name}", self._loop, hold=True)
        self._backgrounds.append(background)
        return background
