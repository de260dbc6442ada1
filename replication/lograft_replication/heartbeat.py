"""One heartbeat per pair of nodes, for all the groups they share. Without I/O.

A node tells each peer which groups it leads there and in which terms; while that does not change
only a version number travels, so quiet groups cost nothing on the wire. The answer names the groups
that the peer does not follow; for all others it is the promise that a lease rests on.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from lograft_replication.messages import Heartbeat, HeartbeatOk

Table = tuple[tuple[int, int], ...]  # (group, term), sorted
VERSIONS_KEPT = 8  # answers to older tables say nothing about the present


class LedGroup(Protocol):
    """A group as heartbeats see it."""

    @property
    def term(self) -> int: ...
    @property
    def is_leader(self) -> bool: ...
    def confirmed(self, peer: str, sent_at: float) -> None: ...
    def contradicted(self, peer: str, term: int) -> None: ...
    def heartbeat(self, leader: str, term: int) -> bool: ...


class PeerBeat:
    """Heartbeats to and from one peer, for as long as the link lasts."""

    def __init__(self, peer: str) -> None:
        self._peer = peer
        self._sent: dict[int, Table] = {}  # the last tables sent, by version
        self._version = 0
        self._known = 0  # the highest version the peer has answered for
        self._theirs: tuple[int, Table] = (0, ())

    def beat(self, table: Table, now_s: float) -> Heartbeat:
        if self._version == 0 or self._sent[self._version] != table:
            self._version += 1
            self._sent[self._version] = table
            self._sent.pop(self._version - VERSIONS_KEPT, None)
        known = self._known == self._version
        return Heartbeat(self._version, int(now_s * 1e6), None if known else table)

    def answer(self, beat: Heartbeat, groups: Mapping[int, LedGroup]) -> HeartbeatOk:
        if beat.table is not None:
            self._theirs = (beat.version, beat.table)
        version, table = self._theirs
        if version != beat.version:
            return HeartbeatOk(beat.version, beat.sent_at_us, True, ())
        return HeartbeatOk(version, beat.sent_at_us, False, tuple(self._refused(table, groups)))

    def _refused(self, table: Table, groups: Mapping[int, LedGroup]) -> Iterable[tuple[int, int]]:
        for group_id, term in table:
            group = groups.get(group_id)
            if group is None:
                yield group_id, 0
            elif not group.heartbeat(self._peer, term):
                yield group_id, group.term

    def answered(self, ok: HeartbeatOk, groups: Mapping[int, LedGroup]) -> None:
        table = self._sent.get(ok.version)
        if ok.unknown or table is None:
            self._known = min(self._known, ok.version - 1)
            return
        self._known = max(self._known, ok.version)
        refused = dict(ok.refused)
        sent_at = ok.sent_at_us / 1e6
        for group_id, term in table:
            group = groups.get(group_id)
            if group is None or not group.is_leader or group.term != term:
                continue
            if group_id in refused:
                group.contradicted(self._peer, refused[group_id])
            else:
                group.confirmed(self._peer, sent_at)
