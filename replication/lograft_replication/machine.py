"""The seam between a Raft group and the deterministic state it drives.

A group applies committed commands to its machine in order, captures it for checkpoints and
restores it at start or after an install. All of it is called on the event loop except `sync` and
`after` of a Capture. A machine writes its own files inside the state folder it was given and
nothing else; it reads no clock and no randomness. An `apply` that raises halts the group.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class StateFile:
    """A file of a checkpoint: its first `length` bytes belong to it, whatever follows does not."""

    path: str  # inside the state folder, parts joined with "/"
    length: int
    crc: int = 0  # CRC-32C of those bytes, 0 when it was not computed


def _nothing() -> None:
    return


@dataclass(frozen=True, slots=True)
class Capture:
    """The machine at one applied index. Complete on its own: nothing in it changes later."""

    payload: bytes = field(repr=False)  # state in intervals, not in messages
    sync: Callable[[], None]  # blocks; makes `files` durable; runs before the manifest is written
    files: tuple[StateFile, ...] = ()
    after: Callable[[], None] = _nothing  # blocks; runs once the manifest is durable: what only
    # older checkpoints needed may be removed now


class Machine(Protocol):
    def apply(self, index: int, term: int, command: bytes) -> object:
        """Do one committed command. The result goes to whoever proposed it. Entries the files
        already hold may come again after a restart, in order and without a gap."""

    def capture(self) -> Capture: ...

    def restore(self, payload: bytes, folder: str) -> None:
        """Forget everything and become the captured state. `folder` holds the captured files, and
        possibly more that later entries wrote before a crash. An empty payload with an empty
        folder is the machine before its first command."""

    def damaged(self) -> str:
        """What this copy of the state can no longer serve, or "". Such a member follows and votes
        but does not lead while another can, so that holes are not handed to others; when every
        voter has some, one of them leads nevertheless."""

    def close(self) -> None: ...
