"""The commands of the metadata machine, and their bytes.

    type u8 | version u8 | the fields of the command, as `packing` writes them

Whoever proposes puts in what apply may not find out by itself: time, chance, who asks. Names come
cleaned (`names.clean`). A command is a wish: whether it is granted is decided when it is applied,
and every one may be repeated without harm.
"""

from dataclasses import dataclass
from typing import Any

from lograft_broker.metadata import values
from lograft_broker.metadata.packing import Packer
from lograft_broker.metadata.rows import ApplyTo, ConnectionId, Kind, QueueType
from lograft_broker.metadata.values import Arguments, Json
from lograft_wire.errors import DamagedError

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStart:
    """Makes the cluster's first vhost and user. Does nothing once there is anything."""

    shard_count: int
    vhost: str
    user: str
    password_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBooted:
    """A node's process has begun: what its earlier one held of its own is gone. A node says so
    before it serves anybody."""

    node: str
    boot: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGone:
    """That run of the node is over and nothing of it will come back."""

    node: str
    boot: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionClosed:
    """Its exclusive queues go. Proposed behind the last declaration of that connection."""

    connection: ConnectionId


@dataclass(frozen=True, slots=True, kw_only=True)
class PutVhost:
    """Makes a vhost, or changes what is said about one; its limits stay."""

    name: str
    description: str = ""
    tags: tuple[str, ...] = ()
    default_queue_type: QueueType | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteVhost:
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetVhostLimit:
    """`limit` is max-connections or max-queues; None or a negative value takes it away."""

    vhost: str
    limit: str
    value: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PutUser:
    """Makes a user, or changes one; limits stay. The hash is made by `passwords`."""

    name: str
    password_hash: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteUser:
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUserLimit:
    """`limit` is max-connections or max-channels; None or a negative value takes it away."""

    user: str
    limit: str
    value: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPermission:
    user: str
    vhost: str
    configure: str
    write: str
    read: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearPermission:
    user: str
    vhost: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTopicPermission:
    user: str
    vhost: str
    exchange: str
    write: str
    read: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearTopicPermission:
    user: str
    vhost: str
    exchange: str | None  # None: for all exchanges


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPolicy:
    vhost: str
    name: str
    pattern: str
    apply_to: ApplyTo
    priority: int
    definition: Json
    operator: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearPolicy:
    vhost: str
    name: str
    operator: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetParameter:
    vhost: str
    component: str
    name: str
    value: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearParameter:
    vhost: str
    component: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetGlobalParameter:
    name: str
    value: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearGlobalParameter:
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclareExchange:
    vhost: str
    name: str
    type: str
    durable: bool = False
    auto_delete: bool = False
    internal: bool = False
    arguments: Arguments = values.EMPTY


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteExchange:
    vhost: str
    name: str
    if_unused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclareQueue:
    vhost: str
    name: str
    by: ConnectionId
    durable: bool = False
    exclusive: bool = False
    auto_delete: bool = False
    server_named: bool = False  # the channel made the name up: "amq." is allowed
    arguments: Arguments = values.EMPTY


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteQueue:
    """Whether it is unused or empty only its owner knows: it asks `queue_checks.refuses_delete`
    and names the queue it looked at by `id`. 0 means whichever has the name."""

    vhost: str
    name: str
    by: ConnectionId | None  # None: the broker itself (expired, auto-deleted)
    id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    vhost: str
    source: str
    kind: Kind
    destination: str
    by: ConnectionId
    routing_key: str = ""
    arguments: Arguments = values.EMPTY


@dataclass(frozen=True, slots=True, kw_only=True)
class Unbind:
    vhost: str
    source: str
    kind: Kind
    destination: str
    by: ConnectionId
    routing_key: str = ""
    arguments: Arguments = values.EMPTY


ClusterCommand = FirstStart | NodeBooted | NodeGone | ConnectionClosed
AdminCommand = (
    PutVhost
    | DeleteVhost
    | SetVhostLimit
    | PutUser
    | DeleteUser
    | SetUserLimit
    | SetPermission
    | ClearPermission
    | SetTopicPermission
    | ClearTopicPermission
)
RuleCommand = (
    SetPolicy
    | ClearPolicy
    | SetParameter
    | ClearParameter
    | SetGlobalParameter
    | ClearGlobalParameter
)
TopologyCommand = DeclareExchange | DeleteExchange | DeclareQueue | DeleteQueue | Bind | Unbind
Command = ClusterCommand | AdminCommand | RuleCommand | TopologyCommand

# Types below 0x20 belong to the Raft group. A number is never used again for something else.
TYPES: dict[int, type[Command]] = {
    0x20: FirstStart,
    0x21: NodeBooted,
    0x22: NodeGone,
    0x23: ConnectionClosed,
    0x28: PutVhost,
    0x29: DeleteVhost,
    0x2A: SetVhostLimit,
    0x2B: PutUser,
    0x2C: DeleteUser,
    0x2D: SetUserLimit,
    0x2E: SetPermission,
    0x2F: ClearPermission,
    0x30: SetTopicPermission,
    0x31: ClearTopicPermission,
    0x38: SetPolicy,
    0x39: ClearPolicy,
    0x3A: SetParameter,
    0x3B: ClearParameter,
    0x3C: SetGlobalParameter,
    0x3D: ClearGlobalParameter,
    0x40: DeclareExchange,
    0x41: DeleteExchange,
    0x42: DeclareQueue,
    0x43: DeleteQueue,
    0x44: Bind,
    0x45: Unbind,
}
_NUMBERS = {kind: number for number, kind in TYPES.items()}
_PACKERS: dict[int, Packer[Any]] = {number: Packer(kind) for number, kind in TYPES.items()}
_HEADER_BYTES = 2


def encode(command: Command) -> bytes:
    """RefusedError if something in it cannot be written: half a surrogate pair, a huge number."""
    number = _NUMBERS[type(command)]
    out = bytearray((number, VERSION))
    _PACKERS[number].pack_into(out, command)
    return bytes(out)


def decode(data: bytes) -> Command:
    if len(data) < _HEADER_BYTES:
        raise DamagedError(f"metadata command of {len(data)} bytes")
    number, version = data[0], data[1]
    packer = _PACKERS.get(number)
    if packer is None:
        raise DamagedError(f"metadata command of the unknown type {number:#x}")
    if version != VERSION:
        raise DamagedError(f"metadata command {number:#x} of version {version}, not {VERSION}")
    command, position = packer.read(data, _HEADER_BYTES)
    if position != len(data):
        raise DamagedError(f"metadata command {number:#x} ends at {position}, not {len(data)}")
    found: Command = command
    return found
