"""What Raft members and their nodes say to each other, as values.

`codec` turns them into frames and back. A message belongs to one group (`GroupMessage`) or to the
pair of nodes (`NodeMessage`). Node ids are `name@incarnation`; the link knows who sent a message,
so none carries its sender.
"""

from dataclasses import dataclass, field

from typing_extensions import Buffer

# One entry of a group's log as pysyncobj keeps it: (command, index, term).
Entry = tuple[bytes, int, int]


@dataclass(frozen=True, slots=True)
class Append:
    """Entries behind (prev_index, prev_term), and how far the leader has committed."""

    term: int
    commit: int
    prev_index: int
    prev_term: int
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Appended:
    """Answer to Append. `success`: all below next_index is on my disk and equals yours.
    `reset`: I do not have what you built on; go back to next_index."""

    term: int
    next_index: int
    reset: bool
    success: bool


@dataclass(frozen=True, slots=True)
class VoteRequest:
    term: int
    last_index: int
    last_term: int
    transfer: bool  # the leader itself asked for this election: do not shield it


@dataclass(frozen=True, slots=True)
class Vote:
    """Granted. Until `lease_left_ms` from now a leader of `contact_term` that I answered may still
    believe in its lease; if I was that leader myself, until then I was not allowed to serve."""

    term: int
    contact_term: int
    lease_left_ms: int
    stepped_down: bool  # the voter led `contact_term` until this vote


@dataclass(frozen=True, slots=True)
class PreVoteRequest:
    term: int
    last_index: int
    last_term: int


@dataclass(frozen=True, slots=True)
class PreVote:
    term: int


@dataclass(frozen=True, slots=True)
class Stale:
    """Your term is over; mine is `term`."""

    term: int


@dataclass(frozen=True, slots=True)
class TimeoutNow:
    """Leader to its successor: start an election at once."""

    term: int


@dataclass(frozen=True, slots=True)
class Offer:
    """Leader to a member too far behind: take my checkpoint `index` by pulling it."""

    term: int
    commit: int
    index: int
    index_term: int
    manifest_bytes: int
    manifest_crc: int


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """One per pair of nodes. `table` lists (group, term) the sender leads with the receiver in it;
    None means: as in the table of the same `version` sent before."""

    version: int
    sent_at_us: int  # sender's clock, returned as it is
    table: tuple[tuple[int, int], ...] | None


@dataclass(frozen=True, slots=True)
class HeartbeatOk:
    """`refused` lists (group, term) of the table that the receiver does not follow, with the term
    it is in itself. `unknown`: the table of this version never arrived; send it again."""

    version: int
    sent_at_us: int
    unknown: bool
    refused: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Pull:
    """Ask for bytes of a file named in a checkpoint's manifest; file 0 is the manifest itself."""

    request: int
    group: int
    checkpoint: int
    file: int
    position: int
    size: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """Answer to Pull. `error` is empty, or says why there are no bytes."""

    request: int
    error: str
    data: Buffer = field(repr=False)


GroupMessage = (
    Append | Appended | VoteRequest | Vote | PreVoteRequest | PreVote | Stale | TimeoutNow | Offer
)
NodeMessage = Heartbeat | HeartbeatOk | Pull | Chunk
