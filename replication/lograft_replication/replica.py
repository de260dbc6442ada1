"""One group on this node with everything it keeps on disk besides the journal.

Opens the group from its checkpoint, writes new checkpoints, serves the present one to members that
are too far behind, and installs one pulled from the leader. Blocking work runs in the worker; the
group stands still only while a pulled checkpoint takes the place of its state.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lograft_log.background import Background
from lograft_log.env import Disk
from lograft_replication import bulk
from lograft_replication import manifest as manifests
from lograft_replication.bulk import PullServer
from lograft_replication.checkpoint import CheckpointStore
from lograft_replication.core import Surroundings
from lograft_replication.group import RaftGroup
from lograft_replication.group_journal import GroupJournal
from lograft_replication.machine import Machine
from lograft_replication.manifest import Manifest
from lograft_replication.membership import Config
from lograft_replication.messages import Offer, Pull
from lograft_replication.puller import Puller
from lograft_replication.throttle import Throttle
from lograft_wire.errors import DamagedError, LograftError, StorageError

logger = logging.getLogger(__name__)

GENESIS_INDEX = 1  # every group starts from a checkpoint at this index and term 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaEnv:
    """What all replicas of a node are given."""

    around: Surroundings
    disk: Disk
    folder: str  # of all groups
    worker: Background
    bulk_limits: bulk.Limits
    throttle: Throttle
    requests: Iterator[int]
    send_pull: Callable[[str, Pull], None]
    on_failed: Callable[[LograftError], None]


def create_store(env: ReplicaEnv, group_id: int, config: Config, machine: Machine) -> None:
    """Put a group that never existed on disk. Blocks."""
    store = CheckpointStore(env.disk, env.folder, group_id)
    if store.open() is not None:
        raise StorageError(f"group {group_id} exists already in {store.folder}", path=store.folder)
    try:
        machine.restore(b"", store.state_folder)
        store.take(machine.capture(), index=GENESIS_INDEX, term=0, config=config)
    finally:
        machine.close()


def match_log(log: GroupJournal, manifest: Manifest) -> None:
    """After a crash the checkpoint may be ahead of the journal, never behind its base."""
    if log.base_index > manifest.index:
        raise DamagedError(
            f"group {manifest.group}: its journal starts behind {log.base_index}, its checkpoint "
            f"ends at {manifest.index}"
        )
    if log.term < manifest.term:
        # Applied in a term that the journal had not yet synced; nothing was said in it, so no
        # vote of ours can be forgotten here.
        log.save_state(term=manifest.term, vote=None)
    if log.last_index < manifest.index or log.term_at(manifest.index) != manifest.term:
        log.reset(base_index=manifest.index, base_term=manifest.term)


class Replica:
    def __init__(
        self,
        env: ReplicaEnv,
        store: CheckpointStore,
        manifest: Manifest,
        log: GroupJournal,
        machine: Machine,
    ) -> None:
        self._env = env
        self._clock = env.around.clock
        self._store = store
        self._server = PullServer(
            env.disk, store, env.bulk_limits, clock=self._clock, background=env.worker
        )
        self._puller: Puller | None = None
        self._source = ""  # whom we pull from
        self._offer: Offer | None = None
        self._checkpointing = False
        self._closed = False
        self._checkpoint_at = self._clock.now_s()
        match_log(log, manifest)
        machine.restore(manifest.payload, store.state_folder)
        self.group = RaftGroup(
            group_id=store.group_id,
            log=log,
            machine=machine,
            manifest=manifest,
            around=env.around,
        )

    @property
    def pull_progress(self) -> tuple[int, int] | None:
        """(bytes done, bytes in all) of a checkpoint being pulled."""
        return None if self._puller is None else (self._puller.bytes_done, self._puller.bytes_total)

    # Writing checkpoints

    def checkpoint_due(self) -> bool:
        group = self.group
        if group.applied_index <= group.checkpoint_index:
            return False
        first = max(group.checkpoint_index, group.log.base_index) + 1
        grown = group.log.bytes_between(first, group.applied_index)
        age_s = self._clock.now_s() - self._checkpoint_at
        return (
            grown >= self._env.around.limits.checkpoint_bytes
            or age_s >= self._env.around.timing.checkpoint_s
        )

    def checkpoint(self) -> bool:
        """Begin a checkpoint at the applied index; False when there is nothing to do or it cannot
        be done now."""
        group = self.group
        busy = self._checkpointing or self._puller is not None or group.stopped
        if busy or group.applied_index <= group.checkpoint_index:
            return False
        index = group.applied_index
        capture = group.machine.capture()
        term, config = group.log.term_at(index), group.config_at(index)

        def work() -> None:
            self._store.take(capture, index=index, term=term, config=config)

        def done(_result: object, error: BaseException | None) -> None:
            self._checkpointing = False
            if self._closed:
                return  # its files may have been closed under it; nobody needs it any more
            if error is not None:
                self._env.on_failed(as_lograft(error, "a checkpoint failed"))
            elif not group.stopped:
                group.checkpointed(index)

        self._checkpointing = True
        self._checkpoint_at = self._clock.now_s()
        self._env.worker.run(work, done)
        return True

    # Serving and pulling them

    def offer_for(self, again: int) -> tuple[int, int, int, int]:
        """A member that pulls is offered the same checkpoint until it has it: checkpoints may come
        faster than it can pull. The journal must still reach back to it."""
        held = self._server.held(again) if again >= self.group.log.base_index else None
        if held is not None:
            old, data = held
            return old.index, old.term, len(data), manifests.seal(data)
        placed = self._store.placed
        assert placed.manifest is not None
        manifest = placed.manifest
        return manifest.index, manifest.term, placed.manifest_bytes, placed.manifest_crc

    @property
    def server(self) -> PullServer:
        return self._server

    @property
    def puller(self) -> Puller | None:
        return self._puller

    def offered(self, peer: str, offer: Offer) -> None:
        if self._checkpointing or (self._offer is not None and self._offer_stands(peer, offer)):
            return  # it is offered again and again until it is taken
        if self._puller is not None:
            if self.group.frozen:
                return
            self._puller.cancel()
        self._source, self._offer = peer, offer
        logger.info("event=pull_begins group=%d index=%d from=%s", *self._where(offer), peer)
        self._puller = puller = Puller(
            self._env.disk,
            self._store,
            offer,
            self._clock,
            self._env.bulk_limits,
            lambda pull: self._env.send_pull(peer, pull),
            lambda manifest, error: self._pulled(puller, manifest, error),
            background=self._env.worker,
            requests=self._env.requests,
            throttle=self._env.throttle,
        )
        self._puller.on_timer()

    def _offer_stands(self, peer: str, offer: Offer) -> bool:
        """A pull of this very checkpoint is under way; a later term may offer it again."""
        ours = self._offer
        assert ours is not None
        return peer == self._source and offer.index == ours.index

    def _where(self, offer: Offer) -> tuple[int, int]:
        return self.group.group_id, offer.index

    def _pulled(self, puller: Puller, manifest: Manifest | None, error: Exception | None) -> None:
        if puller is not self._puller:
            return  # it had failed already when another took its place
        group = self.group
        if manifest is None:
            logger.warning("event=pull_failed group=%d error=%r", group.group_id, str(error))
            self._puller = self._offer = None
            return
        if group.stopped or not group.lacks(manifest.index, manifest.term):
            self._end_pull(cancel=True)  # entries came faster than the checkpoint
            return
        group.freeze()
        self._env.worker.run(lambda: self._store.finish_install(manifest), self._finished(manifest))

    def _finished(self, manifest: Manifest) -> Callable[[object, BaseException | None], None]:
        def done(_result: object, error: BaseException | None) -> None:
            self._end_pull(cancel=False)
            if self.group.stopped:
                return
            if error is None:
                try:
                    self.group.machine.restore(manifest.payload, self._store.state_folder)
                except Exception as caught:  # whatever it is, the group cannot go on from here
                    error = caught
            if error is not None:
                self._env.on_failed(as_lograft(error, "an install failed"))
                return
            logger.info("event=installed group=%d index=%d", manifest.group, manifest.index)
            self.group.installed(manifest)
            self._env.worker.run(self._store.clean, bulk.report)

        return done

    def _end_pull(self, *, cancel: bool) -> None:
        if cancel and self._puller is not None:
            self._puller.cancel()
        self._puller = self._offer = None

    def link(self, peer: str, *, up: bool) -> None:
        if self._puller is not None and peer == self._source:
            self._puller.on_link(up)

    def timer(self) -> None:
        self._server.on_timer()
        if self._puller is None or self._offer is None or self.group.frozen:
            return
        if self.group.lacks(self._offer.index, self._offer.index_term):
            self._puller.on_timer()
        else:  # its source may never come back, and no checkpoint is taken while we pull
            self._end_pull(cancel=True)

    def close(self) -> None:
        self._closed = True
        self._end_pull(cancel=True)
        self._server.close()
        self.group.machine.close()


def as_lograft(error: BaseException, what: str) -> LograftError:
    if isinstance(error, LograftError):
        return error
    wrapped = StorageError(f"{what}: {error!r}")
    wrapped.__cause__ = error
    return wrapped
