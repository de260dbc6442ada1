"""The seam between Raft hosts and whatever carries their frames.

`link` is the real carrier (one authenticated TCP link per pair of nodes); the simulation has its
own, which loses, delays and repeats. A peer is named by its node id, `name@incarnation`: a node
that lost its data comes back under another id and so can never be taken for its old self.
"""

from collections.abc import Sequence
from typing import Protocol

from typing_extensions import Buffer


class NetworkEvents(Protocol):
    """What a carrier tells its host, always on the event loop."""

    def on_up(self, peer: str, boot: bytes) -> None:
        """A link to `peer` is ready. `boot` differs each time the peer's process starts."""

    def on_down(self, peer: str) -> None:
        """The link is lost; what was sent and not answered may or may not have arrived."""

    def on_gone(self, peer: str) -> None:
        """The process behind `peer` is proven dead (connection refused, or a new boot)."""

    def on_frame(self, peer: str, frame: memoryview) -> None:
        """One whole frame as `codec.encode` made it. The view is valid during the call only."""


class PeerNetwork(Protocol):
    def attach(self, events: NetworkEvents, /) -> None: ...

    def send(self, peer: str, frame: Sequence[Buffer], /) -> bool:
        """Queue one frame; False when there is no link. The buffers may not change afterwards."""

    def backlog_bytes(self, peer: str, /) -> int:
        """Bytes queued and not yet taken by the system."""
