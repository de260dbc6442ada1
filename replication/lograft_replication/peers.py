"""Which peers have a link, and what the host must be told when links come and go: pure decisions.

For each name it remembers the last proven identity, so that a new boot or incarnation proves the
old process dead. It knows links only as values to compare. Called by `link`, which performs the
events in the order given.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from lograft_replication.handshake import Identity

LinkT = TypeVar("LinkT")
SUPERSEDED_COUNT_MAX = 8  # boots of one name remembered as replaced


@dataclass(frozen=True, slots=True)
class Up:
    peer: str
    boot: bytes


@dataclass(frozen=True, slots=True)
class Down:
    peer: str


@dataclass(frozen=True, slots=True)
class Gone:
    peer: str


Event = Up | Down | Gone


@dataclass(slots=True)
class _Peer(Generic[LinkT]):
    identity: Identity
    link: LinkT | None
    gone: bool = False  # the host has been told that this identity is dead
    superseded: deque[bytes] = field(default_factory=lambda: deque(maxlen=SUPERSEDED_COUNT_MAX))


class Peers(Generic[LinkT]):
    def __init__(self, me: Identity, names: Iterable[str]) -> None:
        self._me = me
        self._names = frozenset(names)
        self._peers: dict[str, _Peer[LinkT]] = {}

    def set_names(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)

    def dials(self, name: str) -> bool:
        """Of two nodes the one with the smaller name dials, so a pair has one link."""
        return self._me.name < name

    def judge(self, peer: Identity, *, dialled: str) -> str:
        """Why a link with `peer` is not welcome, or "". `dialled` is "" where the peer dialled."""
        name = peer.name
        if peer.cluster != self._me.cluster:
            return f"cluster id {peer.cluster!r} of node {name!r} is not {self._me.cluster!r}"
        if name == self._me.name:
            return f"name {name!r} is my own"
        if dialled and name != dialled:
            return f"name {name!r} answered where {dialled!r} was dialled"
        if name not in self._names:
            return f"name {name!r} is not among the peers of {self._me.name!r}"
        if not dialled and self.dials(name):
            return f"name {name!r} must wait to be dialled by {self._me.name!r}"
        known = self._peers.get(name)
        if known is not None and known.link is not None and peer.boot in known.superseded:
            # Two live processes under one name must not take the link from each other for ever.
            return f"boot {peer.boot.hex()} of node {name!r} was succeeded by a newer one"
        return ""

    def link_of(self, name: str) -> LinkT | None:
        known = self._peers.get(name)
        return None if known is None else known.link

    def up(self, peer: Identity, link: LinkT) -> tuple[list[Event], LinkT | None]:
        """A proven link: the events, and the older link of the same name, which must be closed."""
        known = self._peers.get(peer.name)
        if known is None:
            self._peers[peer.name] = _Peer(peer, link)
            return [Up(peer.node_id, peer.boot)], None
        events: list[Event] = []
        before, older = known.identity, known.link
        if older is not None:
            events.append(Down(before.node_id))
        if before != peer:
            if not known.gone:
                events.append(Gone(before.node_id))
            known.superseded.append(before.boot)
        known.identity, known.link, known.gone = peer, link, False
        events.append(Up(peer.node_id, peer.boot))
        return events, older

    def down(self, link: LinkT) -> list[Event]:
        """A link is lost; no events when a newer one has already taken its place."""
        for known in self._peers.values():
            if known.link is link:
                known.link = None
                return [Down(known.identity.node_id)]
        return []

    def refused(self, peer: Identity) -> list[Event]:
        """The address where `peer` was last reached refuses connections: its process is dead."""
        known = self._peers.get(peer.name)
        if known is None or known.identity != peer or known.link is not None or known.gone:
            return []
        known.gone = True
        return [Gone(peer.node_id)]
