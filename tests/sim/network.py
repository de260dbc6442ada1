"""The network between simulated processes: links that behave like TCP, and what breaks them.

A Fabric joins every pair of running processes by a link, once both run and the path is open both
ways. Frames on a link arrive whole and in order after random delays. What may go wrong:
- A path may be blocked in one or both directions. Frames wait (as TCP sends again) until it opens
  or a side gives the link up after a silence; each side finds out on its own.
- A link may be reset: frames under way are lost, both sides are told.
- Weather (loss, repetition, reordering of single frames) goes beyond TCP, for a carrier that may
  reconnect in the middle of anything.
- A killed process resets its links at once; a machine without power just falls silent. on_gone is
  told only for a process that is really dead on a machine that answers (connection refused).
- A paused process keeps its links, takes nothing in, and cannot open new links.

Events about one peer reach a process in order. Used by `world`; carries bytes, knows no codec.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from typing_extensions import Buffer

from lograft_replication.network import NetworkEvents
from sim.loop import NodeScheduler, SimLoop

POISON = 0xDD  # what a frame's bytes turn into when the call that brought them is over


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """Chances per frame, and times in seconds."""

    delays_s: tuple[float, ...] = (0.0003, 0.0005, 0.001, 0.003, 0.02)
    loss: float = 0.0
    loss_resets: float = 0.5  # of the lost frames, how many take the link with them
    repeat: float = 0.0
    reorder: float = 0.0
    dial_s: tuple[float, float] = (0.03, 0.15)
    silence_s: tuple[float, float] = (0.5, 4.0)  # after which a side gives a silent link up
    socket_bytes: int = 1 << 16  # taken by the system before a backlog shows


@dataclass(slots=True)
class Lane:
    """One direction of one link."""

    arrives_at: float = 0.0  # of the newest frame; later ones never overtake it
    queued_bytes: int = 0


class Link:
    """One connection between two processes; each side has its own belief that it is up."""

    def __init__(self, one: "SimNetwork", two: "SimNetwork", silence_s: float) -> None:
        self.sides = (one, two)
        self.up = {one.node: False, two.node: False}
        self.lanes = {one.node: Lane(), two.node: Lane()}  # by sender
        self.silence_s = silence_s
        self.silent_since: float | None = None

    def peer_of(self, side: "SimNetwork") -> "SimNetwork":
        return self.sides[1] if side is self.sides[0] else self.sides[0]


class SimNetwork:
    """PeerNetwork for one boot of one process."""

    def __init__(
        self, fabric: "Fabric", *, node: str, boot: bytes, scheduler: NodeScheduler
    ) -> None:
        self.node = node
        self.boot = boot
        self.scheduler = scheduler
        self.events: NetworkEvents | None = None
        self.links: dict[str, Link] = {}  # as this process believes
        self._fabric = fabric

    def __repr__(self) -> str:
        return f"SimNetwork({self.node}, up={sorted(self.links)})"

    def attach(self, events: NetworkEvents) -> None:
        self.events = events
        self._fabric.joined(self)

    def send(self, peer: str, frame: Sequence[Buffer]) -> bool:
        link = self.links.get(peer)
        if link is None or not self.scheduler.alive:
            return False
        self._fabric.carry(link, self, b"".join(frame))
        return True

    def backlog_bytes(self, peer: str) -> int:
        link = self.links.get(peer)
        if link is None:
            return 0
        return max(0, link.lanes[self.node].queued_bytes - self._fabric.weather.socket_bytes)

    def told_up(self, link: Link) -> None:
        assert self.events is not None
        peer = link.peer_of(self)
        self.links[peer.node] = link
        self.events.on_up(peer.node, peer.boot)

    def told_down(self, link: Link) -> None:
        assert self.events is not None
        peer = link.peer_of(self).node
        if self.links.get(peer) is link:
            del self.links[peer]
            self.events.on_down(peer)

    def told_gone(self, peer: str) -> None:
        assert self.events is not None
        self.events.on_gone(peer)

    def told_frame(self, link: Link, frame: bytes) -> None:
        assert self.events is not None
        peer = link.peer_of(self).node
        if self.links.get(peer) is not link:
            return
        buffer = bytearray(frame)
        self.events.on_frame(peer, memoryview(buffer).toreadonly())
        buffer[:] = bytes([POISON]) * len(buffer)  # a view kept beyond the call shows at once


class Fabric:
    """All processes and the links between them."""

    def __init__(self, loop: SimLoop, *, rng: random.Random, weather: Weather) -> None:
        self.weather = weather
        self.tap: Callable[[str, str, bytes], None] | None = (
            None  # sees (from, to, frame) when sent
        )
        self.frame_count = 0
        self._loop = loop
        self._rng = rng
        self._running: dict[str, SimNetwork] = {}
        self._refusing: set[str] = set()  # dead, on a machine that answers for them
        self._proven: set[tuple[str, str]] = set()  # (who knows, who is gone)
        self._links: dict[tuple[str, str], Link] = {}  # by sorted pair; the newest one
        self._blocked: set[tuple[str, str]] = set()  # (from, to)
        self._watched: set[tuple[str, str]] = set()
        self._told: dict[tuple[str, str], float] = {}  # (process, peer) -> its newest event
        self._stalled: list[tuple[Link, SimNetwork, bytes]] = []  # frames before a blocked path

    def join(self, node: str, *, boot: bytes, scheduler: NodeScheduler) -> SimNetwork:
        """The network of a process that starts; it takes part once events are attached."""
        return SimNetwork(self, node=node, boot=boot, scheduler=scheduler)

    def joined(self, network: SimNetwork) -> None:
        node = network.node
        self._running[node] = network
        self._refusing.discard(node)
        self._proven = {pair for pair in self._proven if node not in pair}
        for other in sorted(self._refusing.union(self._running)):
            if other != node:
                self._watch(_pair(node, other))

    def leave(self, node: str, *, refuses: bool) -> None:
        """The process is dead; `refuses`: its machine runs on and answers for it."""
        if self._running.pop(node, None) is None:
            return
        if refuses:
            self._refusing.add(node)
            for other in list(self._running.values()):
                link = self._links.get(_pair(node, other.node))
                if link is not None and other in link.sides and self.is_open(node, other.node):
                    self._give_up(link, other)

    def answers_for(self, node: str) -> None:
        """The machine of a dead process is on again and refuses connections for it."""
        if node not in self._running:
            self._refusing.add(node)
            for other in list(self._running):
                self._watch(_pair(node, other))

    def block(self, sender: str, receiver: str) -> None:
        self._blocked.add((sender, receiver))

    def open(self, sender: str, receiver: str) -> None:
        self._blocked.discard((sender, receiver))
        stalled, self._stalled = self._stalled, []
        for link, side, frame in stalled:
            self._arrive(link, side, frame)

    def open_all(self) -> None:
        for sender, receiver in sorted(self._blocked):
            self.open(sender, receiver)

    def is_open(self, sender: str, receiver: str) -> bool:
        return (sender, receiver) not in self._blocked

    def reset(self, one: str, two: str) -> None:
        """Cut the connection: frames under way are lost, each side learns of it soon."""
        link = self._links.get(_pair(one, two))
        if link is not None:
            for side in link.sides:
                self._give_up(link, side)

    def pairs(self) -> list[tuple[str, str]]:
        nodes = sorted(self._running)
        return [(one, two) for one in nodes for two in nodes if one < two]

    def carry(self, link: Link, sender: SimNetwork, frame: bytes) -> None:
        self.frame_count += 1
        if self.tap is not None:
            self.tap(sender.node, link.peer_of(sender).node, frame)
        weather, rng = self.weather, self._rng
        if weather.loss and rng.random() < weather.loss:
            if rng.random() < weather.loss_resets:
                self.reset(link.sides[0].node, link.sides[1].node)
            return
        self._send(link, sender, frame)
        if weather.repeat and rng.random() < weather.repeat:
            self._send(link, sender, frame)

    def _send(self, link: Link, sender: SimNetwork, frame: bytes) -> None:
        lane = link.lanes[sender.node]
        lane.queued_bytes += len(frame)
        when = self._loop.now + self._delay()
        if not self.weather.reorder or self._rng.random() >= self.weather.reorder:
            when = lane.arrives_at = max(when, lane.arrives_at)
        when = max(when, self._told.get((link.peer_of(sender).node, sender.node), 0.0))
        self._loop.call_at(when, self._arrive, link, sender, frame)

    def _arrive(self, link: Link, sender: SimNetwork, frame: bytes) -> None:
        receiver = link.peer_of(sender)
        if link.up[receiver.node] and not self.is_open(sender.node, receiver.node):
            self._stalled.append((link, sender, frame))
            return
        link.lanes[sender.node].queued_bytes -= len(frame)
        if link.up[receiver.node]:
            receiver.scheduler.run(receiver.told_frame, link, frame)

    def _watch(self, pair: tuple[str, str]) -> None:
        """Look after a pair of nodes from now on."""
        if pair not in self._watched:
            self._watched.add(pair)
            self._loop.call_later(self._rng.uniform(0.0, 0.01), self._look, pair)

    def _look(self, pair: tuple[str, str]) -> None:
        one, two = self._running.get(pair[0]), self._running.get(pair[1])
        if one is not None and two is not None:
            self._look_at_both(one, two)
        else:
            alive = one or two
            dead = pair[1] if alive is one else pair[0]
            if alive is None or self._look_at_dead(alive, dead):
                self._watched.discard(pair)  # nothing more to learn until one of them joins
                return
        self._loop.call_later(self._rng.uniform(*self.weather.dial_s), self._look, pair)

    def _look_at_both(self, one: SimNetwork, two: SimNetwork) -> None:
        pair = _pair(one.node, two.node)
        link = self._links.get(pair)
        if link is not None and link.sides == (one, two) and all(link.up.values()):
            self._listen(link)
            return
        if one.scheduler.paused or two.scheduler.paused or not self._is_path(*pair):
            if link is not None:
                self._listen(link)
            return
        if link is not None:
            for side in link.sides:
                self._give_up(link, side)
        link = self._links[pair] = Link(one, two, self._rng.uniform(*self.weather.silence_s))
        for side in link.sides:
            link.up[side.node] = True
            self._tell(side, link.peer_of(side).node, side.told_up, link)

    def _look_at_dead(self, alive: SimNetwork, dead: str) -> bool:
        """Silence ends the link, a refusal proves its process gone; True when that is told."""
        link = self._links.get(_pair(alive.node, dead))
        if link is not None:
            self._listen(link)
        is_refused = dead in self._refusing and self._is_path(alive.node, dead)
        if (alive.node, dead) in self._proven or not is_refused or alive.scheduler.paused:
            return (alive.node, dead) in self._proven
        self._proven.add((alive.node, dead))
        if link is not None and alive in link.sides:
            self._give_up(link, alive)
        self._tell(alive, dead, alive.told_gone, dead)
        return True

    def _listen(self, link: Link) -> None:
        """Each side gives a link up when it has long heard nothing of the other."""
        deaf = [side for side in link.sides if not self._hears(side, link.peer_of(side))]
        if not deaf:
            link.silent_since = None
        elif link.silent_since is None:
            link.silent_since = self._loop.now
        elif self._loop.now - link.silent_since > link.silence_s:
            for side in deaf:
                peer = link.peer_of(side)
                self._give_up(link, side)
                if self.is_open(side.node, peer.node):
                    self._give_up(link, peer)  # it is told by the side that hung up

    def _hears(self, side: SimNetwork, peer: SimNetwork) -> bool:
        runs = peer.scheduler.alive and not peer.scheduler.paused
        return runs and self.is_open(peer.node, side.node)

    def _give_up(self, link: Link, side: SimNetwork) -> None:
        if link.up[side.node]:
            link.up[side.node] = False
            self._tell(side, link.peer_of(side).node, side.told_down, link)

    def _tell(
        self, side: SimNetwork, peer: str, event: Callable[..., None], about: Link | str
    ) -> None:
        """Events about one peer reach a process in the order in which they came about."""
        when = max(self._loop.now + self._delay(), self._told.get((side.node, peer), 0.0))
        self._told[side.node, peer] = when
        self._loop.call_at(when, side.scheduler.run, event, about)

    def _is_path(self, one: str, two: str) -> bool:
        return self.is_open(one, two) and self.is_open(two, one)

    def _delay(self) -> float:
        return self._rng.choice(self.weather.delays_s) * self._rng.uniform(0.5, 1.5)


def _pair(one: str, two: str) -> tuple[str, str]:
    return (one, two) if one < two else (two, one)
