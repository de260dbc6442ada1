"""A member that leads: replicates, commits, serves under a lease, and hands over.

Everything here belongs to one leadership; `start` begins it anew. Commits need the majority's disks
and this node's own. A follower gets at most a window of unacknowledged bytes, one message at a time
while it is not known where it stands, and the checkpoint when the journal no longer reaches back.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from lograft_replication import lease
from lograft_replication.core import Core
from lograft_replication.library import Member, Message, member
from lograft_replication.messages import Append, Appended, Entry, Offer, TimeoutNow
from lograft_replication.progress import Progress

logger = logging.getLogger(__name__)

OFFER_S = 1.0  # a checkpoint is offered again after this long without an answer
TransferDone = Callable[[str | None], None]  # None: handed over; else why not


@dataclass(frozen=True, slots=True)
class Transfer:
    target: str
    deadline: float
    done: TransferDone


class Leader:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._progress: dict[str, Progress] = {}
        self.noop_index = 0  # once applied, this leader knows all that was committed before it
        self.serve_at = 0.0  # from here on no earlier leader can believe in its lease
        self._quorum_from = 0.0  # from here on a majority must have been heard
        self._announcing = False  # a turn is planned to tell followers the commit mark
        self._announce_now = False  # and this is it
        self.transfer: Transfer | None = None
        self._hand_over_at = 0.0  # when others are asked next, should our state have holes
        self._hand_over_count = 0

    def start(self) -> None:
        """Elected. Called by the library in the middle of its work: touches only sets of it."""
        core = self._core
        now = core.clock.now_s()
        self.noop_index = core.log.last_index + 1
        # Alone, there is nobody whose lease we would have to wait for.
        self.serve_at = now + (core.election.wait_s() if core.other_voters else 0.0)
        self._quorum_from = now + core.timing.fallback_s
        self._hand_over_at = now
        others = [peer for peer in core.config.members if peer != core.node]
        self._progress = {peer: self._new_progress(peer, now) for peer in others}
        core.library.connected.clear()
        for peer in others:
            if core.port.linked(peer):
                core.library.connected.add(member(peer))

    def _new_progress(self, peer: str, now: float) -> Progress:
        absent_since = None if self._core.port.linked(peer) else now
        return Progress(answered_at=now, absent_since=absent_since)

    def members_changed(self) -> None:
        core = self._core
        members = [peer for peer in core.config.members if peer != core.node]
        now = core.clock.now_s()
        self._progress = {
            peer: self._progress.get(peer) or self._new_progress(peer, now) for peer in members
        }
        core.library.connected.intersection_update({member(peer) for peer in members})
        for peer in members:
            self._release(peer)

    # Contact and lease

    def majority_contact(self) -> float:
        """The latest time at which a majority was in contact: the send time of what it answered."""
        core = self._core
        times = [self._progress[peer].confirmed_at for peer in core.other_voters]
        return lease.majority_time(core.clock.now_s(), times, core.config.majority_count)

    def hears(self, peer: str) -> bool:
        """Whether a member answered lately and its link is up."""
        core = self._core
        progress = self._progress.get(peer)
        if progress is None or not core.port.linked(peer):
            return False
        return core.clock.now_s() - progress.confirmed_at <= core.timing.fallback_s

    @property
    def knows_all(self) -> bool:
        """All that was committed before this leadership is applied here."""
        return self._core.library.applied_index >= self.noop_index

    @property
    def may_serve(self) -> bool:
        core = self._core
        now = core.clock.now_s()
        return (
            self.transfer is None
            and self.knows_all
            and now >= self.serve_at
            and now - self.majority_contact() < core.timing.lease_s
        )

    def word(self) -> lease.VoterWord:
        """What our vote for a successor says: we have stopped, and others before us may serve for
        as long as we ourselves had to wait."""
        left = max(0.0, self.serve_at - self._core.clock.now_s())
        return lease.VoterWord(self._core.term, left, stepped_down=True)

    def voted_late(self) -> None:
        """A vote that came after the majority may show that the old leader has stopped."""
        core = self._core
        self.serve_at = min(self.serve_at, core.clock.now_s() + core.election.wait_s())

    def confirmed(self, peer: str, sent_at: float) -> None:
        progress = self._progress.get(peer)
        if progress is not None:
            progress.confirmed_at = max(progress.confirmed_at, sent_at)

    def timer(self) -> bool:
        """False when we no longer have a majority and must step down."""
        core = self._core
        now = core.clock.now_s()
        if now > self._quorum_from and now - self.majority_contact() > core.timing.fallback_s:
            logger.warning("event=leader_alone group=%d term=%d", core.group_id, core.term)
            return False
        for peer, progress in self._progress.items():
            if not core.port.linked(peer):
                continue  # it is asked when it comes back
            behind = self.match(peer) < core.log.last_index
            unanswered = progress.sent_at > progress.answered_at
            silent_s = now - max(progress.sent_at, progress.answered_at)
            if (behind or unanswered) and silent_s > core.timing.probe_s:
                progress.sent_at = now
                self.ask(peer)
        self.continue_transfer()
        return True

    def link_up(self, peer: str) -> None:
        progress = self._progress.get(peer)
        if progress is None:
            return
        progress.absent_since = None
        progress.sent_commit = -1
        progress.probing = True
        progress.offered_at = -OFFER_S
        match = self.match(peer)
        # Nothing acknowledged yet in this term: guess that it has all; its answer corrects us.
        self._core.library.next_index[member(peer)] = (match or self._core.log.last_index) + 1
        self.ask(peer)

    def link_down(self, peer: str) -> None:
        self._core.library.connected.discard(member(peer))
        progress = self._progress.get(peer)
        if progress is not None:
            progress.absent_since = self._core.clock.now_s()

    def ask(self, peer: str) -> None:
        """Find out where this follower stands."""
        progress = self._progress.get(peer)
        if progress is not None:
            progress.probe_wanted = True
            self._release(peer)
            self._core.wake()

    # Commit and replicate

    def advance_commit(self) -> None:
        core = self._core
        durable = self._own_index()
        matches = [self.match(peer) for peer in core.other_voters]
        ranked = sorted([durable, *matches], reverse=True)
        # Our own disk must have it too: a confirm follows apply on this node.
        index = min(ranked[core.config.majority_count - 1], durable)
        if index > core.library.commit_index and core.log.term_at(index) == core.term:
            core.library.commit(index)

    def _own_index(self) -> int:
        return self._core.log.durable_index

    def replicate(self) -> None:
        """Send entries at once; a commit mark alone waits a moment for entries to ride with."""
        library = self._core.library
        last = self._core.log.last_index
        announce_now, self._announce_now = self._announce_now, False
        announce = False
        for node in library.connected:
            progress = self._progress[node.id]
            if progress.probe_wanted or library.next_index[node] <= last:
                library.replicate()
                return
            announce = announce or progress.sent_commit < library.commit_index
        if announce and announce_now:
            library.replicate()
        elif announce and not self._announcing:
            self._announcing = True
            self._core.port.later(self._core.timing.announce_s, self._announce)

    def _announce(self) -> None:
        self._announcing = False
        if self._core.group.is_leader:
            self._announce_now = True
            self._core.wake()

    def match(self, peer: str) -> int:
        return self._core.library.match_index.get(member(peer), 0)

    def library_appends(self, node: Member, message: Message) -> None:
        core = self._core
        progress = self._progress[node.id]
        entries: list[Entry] = message["entries"]
        commit: int = message["commit_index"]
        if not entries and progress.sent_commit >= commit and not progress.probe_wanted:
            return  # the node's heartbeat says that we live; there is nothing else to say
        progress.sent_at = core.clock.now_s()
        prev_index, prev_term = message["prevLogIdx"], message["prevLogTerm"]
        append = Append(message["term"], commit, prev_index, prev_term, tuple(entries))
        if core.post(node.id, append):
            progress.sent_commit = commit
            progress.probe_wanted = False
        else:  # it did not leave: again from here, when the timer asks
            core.library.next_index[node] = prev_index + 1
            progress.probing = True
            progress.probe_wanted = False
        if progress.probing or not self._window_open(node):
            core.library.connected.discard(node)

    def library_offers(self, node: Member) -> None:
        """The journal does not reach back to what this follower needs: offer the checkpoint."""
        core = self._core
        progress = self._progress[node.id]
        now = core.clock.now_s()
        core.library.connected.discard(node)
        progress.probing = True
        progress.probe_wanted = False
        progress.sent_at = now
        if now - progress.offered_at < OFFER_S:
            return
        again = progress.offered_index
        index, term, manifest_bytes, manifest_crc = core.port.offer_for(core.group, again)
        progress.offered_at = now
        progress.offered_index = index
        commit = core.library.commit_index
        core.post(node.id, Offer(core.term, commit, index, term, manifest_bytes, manifest_crc))

    def on_appended(self, sender: str, message: Appended) -> None:
        core = self._core
        progress = self._progress.get(sender)
        if message.term != core.term or progress is None:
            return  # an answer to an earlier leadership proves nothing now
        library, node = core.library, member(sender)
        now = core.clock.now_s()
        keep = 0
        if message.success:
            assert message.next_index - 1 <= core.log.last_index, (message, core.log.last_index)
            progress.accepted(now)
            keep = library.next_index[node]
        else:
            progress.answered_at = now
            if message.next_index <= library.match_index[node]:
                return  # older than an acknowledgement we already had
            if progress.repeated_reset(message.next_index, now, core.timing.probe_s):
                return
            progress.probing = progress.probe_wanted = True
        library.receive(
            sender,
            {
                "type": "next_node_idx",
                "next_node_idx": min(message.next_index, core.log.last_index + 1),
                "reset": message.reset,
                "success": message.success,
            },
        )
        self._keep_in_flight(node, keep)
        self._release(sender)
        core.wake()

    def _keep_in_flight(self, node: Member, next_index: int) -> None:
        """The library goes back to what was acknowledged and would send all in flight again."""
        table = self._core.library.next_index
        table[node] = max(table[node], next_index)

    def _release(self, peer: str) -> None:
        """Let the library send to this peer again: one message to find out where it stands, or as
        many as its window holds."""
        progress = self._progress[peer]
        open_now = not progress.probing and self._window_open(member(peer))
        if self._core.port.linked(peer) and (progress.probe_wanted or open_now):
            self._core.library.connected.add(member(peer))

    def _window_open(self, node: Member) -> bool:
        core = self._core
        first = max(core.library.match_index[node], core.log.base_index) + 1
        sent = core.library.next_index[node] - 1
        return core.log.bytes_between(first, sent) < core.limits.window_bytes_max

    def trim_point(self, checkpoint_index: int) -> int:
        """As far as the checkpoint goes, but not past what a follower still lacks, unless it is
        so far or so long behind, or away, that it must install anyway."""
        core = self._core
        limits = core.limits
        now = core.clock.now_s()
        point = checkpoint_index
        for peer, progress in self._progress.items():
            # Of one that has not answered yet in this term we know nothing: keep what there is.
            has = max(self.match(peer), progress.offered_index) or core.log.base_index
            if has >= checkpoint_index:
                progress.behind_since = None
                continue
            if progress.behind_since is None:
                progress.behind_since = now
            away = progress.absent_since
            if (
                core.log.base_index <= has < point
                and core.log.bytes_between(has + 1, core.log.last_index) <= limits.lag_bytes_max
                and now - progress.behind_since < limits.lag_s_max
                and (away is None or now - away < limits.absent_s_max)
            ):
                point = has
        return point

    # Hand-over

    def begin_transfer(self, target: str | None, done: TransferDone) -> None:
        core = self._core
        reachable = [peer for peer in core.other_voters if core.port.linked(peer)]
        if target is None and reachable:
            target = max(reachable, key=lambda peer: (self.match(peer), peer))
        if target is None or target not in reachable:
            done(f"{target or 'no other voter'} cannot be reached as a voter")
            return
        deadline = core.clock.now_s() + core.timing.transfer_s
        self.transfer = Transfer(target, deadline, done)
        self.continue_transfer()

    def offer_to_others(self) -> None:
        """Our state has holes: now and then ask a voter to take over, each in its turn, for one of
        them may be no better. In between we lead as well as we can."""
        core = self._core
        now = core.clock.now_s()
        reachable = [peer for peer in core.other_voters if core.port.linked(peer)]
        if self.transfer is not None or now < self._hand_over_at or not reachable:
            return
        self._hand_over_at = now + core.timing.unfit_s
        reachable.sort(key=lambda peer: (self.match(peer), peer), reverse=True)
        target = reachable[self._hand_over_count % len(reachable)]
        self._hand_over_count += 1
        self.begin_transfer(target, lambda _why_not: None)

    def continue_transfer(self) -> None:
        """Once the successor has everything, tell it to stand for election."""
        transfer, core = self.transfer, self._core
        if transfer is None:
            return
        if core.clock.now_s() > transfer.deadline:
            self.transfer = None
            transfer.done(f"{transfer.target} did not take over in {core.timing.transfer_s} s")
        elif self.match(transfer.target) == core.log.last_index:
            core.post(transfer.target, TimeoutNow(core.term))

    def end(self) -> None:
        """We no longer lead."""
        transfer, self.transfer = self.transfer, None
        if transfer is not None:
            transfer.done(None)
