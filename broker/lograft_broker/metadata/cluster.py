"""The first start, the runs of nodes and the ends of connections."""

from typing import assert_never

from lograft_broker.metadata import exchange_types, names, refusal, removal
from lograft_broker.metadata.commands import (
    ClusterCommand,
    ConnectionClosed,
    FirstStart,
    NodeBooted,
    NodeGone,
)
from lograft_broker.metadata.limits import MetadataLimits
from lograft_broker.metadata.results import (
    Absent,
    Changed,
    Created,
    Deleted,
    Existing,
    Result,
    Settled,
)
from lograft_broker.metadata.rows import Boot, Node, Permission, User, Vhost
from lograft_broker.metadata.state import State

ADMINISTRATOR = "administrator"
BOOT_BYTES_MAX = 64


def settled(state: State, command: ClusterCommand, limits: MetadataLimits) -> Settled | None:
    match command:
        case FirstStart():
            return _first_start_settled(state, command, limits)
        case NodeBooted():
            return _booted_settled(state, command, limits)
        case NodeGone():
            node = state.nodes.get(command.node)
            return None if node is not None and node.boot == command.boot else Absent()
        case ConnectionClosed():
            return None if state.queues_of[command.connection] else Absent()
        case _:
            assert_never(command)


def act(state: State, command: ClusterCommand) -> Result:
    match command:
        case FirstStart():
            return _first_start(state, command)
        case NodeBooted():
            return _booted(state, command)
        case NodeGone():
            return _gone(state, command)
        case ConnectionClosed():
            queues = tuple(state.queues_of[command.connection].values())
            for queue in queues:
                removal.remove_queue(state, queue)
            return Deleted(queues)
        case _:
            assert_never(command)


def _first_start_settled(
    state: State, command: FirstStart, limits: MetadataLimits
) -> Settled | None:
    if state.shard_queue_counts:
        first = next(iter(state.vhosts), None)
        return Absent() if first is None else Existing(first)
    if not 1 <= command.shard_count <= limits.shard_count_max:
        return refusal.failed(
            f"{command.shard_count} shards: it must be from 1 to {limits.shard_count_max}"
        )
    return (
        names.refused("vhost", command.vhost, limits)
        or names.refused("user", command.user, limits)
        or names.too_long("password hash", command.password_hash, limits.text_bytes_max)
    )


def _first_start(state: State, command: FirstStart) -> Result:
    state.shard_queue_counts = [0] * command.shard_count
    made = add_vhost(state, Vhost(name=command.vhost))
    user = User(name=command.user, password_hash=command.password_hash, tags=(ADMINISTRATOR,))
    state.put(user)
    everything = ".*"
    state.put(
        Permission(
            user=user.name,
            vhost=made.name,
            configure=everything,
            write=everything,
            read=everything,
        )
    )
    return Created(made)


def add_vhost(state: State, vhost: Vhost) -> Vhost:
    """With the exchanges every vhost has."""
    state.put(vhost)
    for exchange in exchange_types.predeclared(vhost.name):
        state.put(exchange)
    return vhost


def _booted_settled(state: State, command: NodeBooted, limits: MetadataLimits) -> Settled | None:
    node = state.nodes.get(command.node)
    if node is not None and node.boot == command.boot:
        return Existing(node)
    if node is None and len(state.nodes) >= limits.node_count_max:
        return refusal.too_many("a node", limits.node_count_max)
    if not 1 <= len(command.boot) <= BOOT_BYTES_MAX:
        return refusal.failed(f"a boot id of {len(command.boot)} bytes")
    return names.refused("node", command.node, limits)


def _booted(state: State, command: NodeBooted) -> Result:
    before = state.nodes.get(command.node)
    if before is not None:
        _drop_queues(state, before.home)
    if all(node.name == command.node for node in state.nodes):
        # Nobody else is there who kept the cluster going: what is not durable ends here.
        for exchange in [row for row in state.exchanges if not row.durable]:
            if exchange.key in state.exchanges:
                removal.remove_exchange(state, exchange)
    node = Node(name=command.node, boot=command.boot)
    state.put(node)
    return Created(node) if before is None else Changed(node)


def _gone(state: State, command: NodeGone) -> Result:
    node = state.nodes.get(command.node)
    assert node is not None, command
    _drop_queues(state, node.home)
    state.remove(node)
    return Deleted((node,))


def _drop_queues(state: State, home: Boot) -> None:
    for queue in list(state.queues_at[home].values()):
        removal.remove_queue(state, queue)
