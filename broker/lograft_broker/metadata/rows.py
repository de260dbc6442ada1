"""The rows of the metadata, as values: what stands in a checkpoint and what readers see.

Frozen: a change makes a new row. The declaration of a row is its layout (see `packing`).
"""

import zlib
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias
from urllib.parse import quote_plus

from lograft_broker.metadata import values
from lograft_broker.metadata.values import Arguments, Json


class QueueType(StrEnum):
    CLASSIC = "classic"
    QUORUM = "quorum"
    STREAM = "stream"


class Kind(StrEnum):
    """What a binding may lead to."""

    QUEUE = "queue"
    EXCHANGE = "exchange"


class ApplyTo(StrEnum):
    ALL = "all"
    QUEUES = "queues"
    CLASSIC_QUEUES = "classic_queues"
    QUORUM_QUEUES = "quorum_queues"
    STREAMS = "streams"
    EXCHANGES = "exchanges"


# Plain tuples, which the garbage collector passes over: there are as many as rows.
Key: TypeAlias = tuple[str, str]  # vhost and name of an exchange, a queue or a policy
# All that a binding is, so that the same again is the same binding: vhost, source, kind,
# destination, routing key, encoded arguments.
BindingKey: TypeAlias = tuple[str, str, str, str, str, bytes]


@dataclass(frozen=True, slots=True)
class Boot:
    """One run of a node's process."""

    node: str
    boot: bytes


@dataclass(frozen=True, slots=True)
class ConnectionId:
    """Number 0 is no AMQP connection: the admin API of that node."""

    node: str
    boot: bytes
    number: int

    @property
    def home(self) -> Boot:
        return Boot(self.node, self.boot)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vhost:
    name: str
    description: str = ""
    tags: tuple[str, ...] = ()
    default_queue_type: QueueType | None = None
    max_connections: int | None = None
    max_queues: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    name: str
    password_hash: str  # as `passwords` writes it; "" logs nobody in
    tags: tuple[str, ...] = ()
    max_connections: int | None = None
    max_channels: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """Regular expressions; an empty one matches the empty name only."""

    user: str
    vhost: str
    configure: str
    write: str
    read: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPermission:
    user: str
    vhost: str
    exchange: str
    write: str
    read: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A policy or, in its own table, an operator policy."""

    vhost: str
    name: str
    pattern: str
    apply_to: ApplyTo
    priority: int
    definition: Json
    operator: bool

    @property
    def key(self) -> Key:
        return self.vhost, self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    vhost: str
    component: str
    name: str
    value: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalParameter:
    name: str
    value: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    vhost: str
    name: str
    type: str
    durable: bool
    auto_delete: bool
    internal: bool
    arguments: Arguments = values.EMPTY

    @property
    def key(self) -> Key:
        return self.vhost, self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """Lives on a shard, or, when it is exclusive or not durable, on the node of its `home`."""

    vhost: str
    name: str
    id: int  # of its stream: the index of the command that made it; never used twice
    type: QueueType
    durable: bool  # never true for an exclusive queue
    auto_delete: bool
    owner: ConnectionId | None  # the connection an exclusive queue belongs to
    home: Boot | None
    shard: int | None  # from 0 on
    arguments: Arguments = values.EMPTY

    @property
    def key(self) -> Key:
        return self.vhost, self.name

    @property
    def exclusive(self) -> bool:
        return self.owner is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    vhost: str
    source: str
    kind: Kind
    destination: str
    routing_key: str
    arguments: Arguments = values.EMPTY

    @property
    def key(self) -> BindingKey:
        return (
            self.vhost,
            self.source,
            self.kind,
            self.destination,
            self.routing_key,
            self.arguments.encoded,
        )

    @property
    def properties_key(self) -> str:
        """Tells bindings between the same two apart in the admin API: the routing key, and a hash
        of the arguments if there are any. RabbitMQ's form; its hash is Erlang's own, ours is not,
        and nobody computes it: it is read from an answer and sent back."""
        key = _quoted(self.routing_key)
        if not self.arguments:
            return key or "~"
        digest = zlib.crc32(self.arguments.encoded).to_bytes(4, "big")
        return f"{key}~{urlsafe_b64encode(digest).decode().rstrip('=')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    name: str
    boot: bytes

    @property
    def home(self) -> Boot:
        return Boot(self.name, self.boot)


Row = (
    Vhost
    | User
    | Permission
    | TopicPermission
    | Policy
    | Parameter
    | GlobalParameter
    | Exchange
    | Queue
    | Binding
    | Node
)


def _quoted(text: str) -> str:
    return quote_plus(text, errors="surrogateescape").replace("~", "%7E")
