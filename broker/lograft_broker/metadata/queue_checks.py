"""What a request about a queue is answered, as far as the state alone decides.

Pure, and used twice: by the channel before it proposes, and by `apply`, where it counts. None means
that nothing stands against it and it is not done yet. Permissions are asked of `access`.
"""

from dataclasses import replace

from lograft_broker.metadata import (
    exchange_checks,
    names,
    queue_arguments,
    refusal,
    words,
)
from lograft_broker.metadata.commands import DeclareQueue, DeleteQueue
from lograft_broker.metadata.limits import MetadataLimits
from lograft_broker.metadata.refusal import Refusal
from lograft_broker.metadata.results import Absent, Existing, Settled
from lograft_broker.metadata.rows import ConnectionId, Queue, QueueType, Vhost
from lograft_broker.metadata.state import State


def access(state: State, vhost: str, name: str, by: ConnectionId) -> Queue | Refusal:
    """The queue, for whoever wants to use it: consume, get, purge, declare passively."""
    found = state.queue(vhost, name)
    if found is None:
        return refusal.no("queue", name, vhost)
    return found if found.owner in (None, by) else refusal.locked(name, vhost)


def declare(state: State, command: DeclareQueue, limits: MetadataLimits) -> Settled | None:
    vhost = state.vhosts.get(command.vhost)
    if vhost is None:
        return refusal.no_vhost(command.vhost)
    if command.name.startswith(names.RESERVED) and not command.server_named:
        return refusal.reserved("queue", command.name)
    command = completed(vhost, command)
    found = state.queue(command.vhost, command.name)
    if found is not None:
        return inequivalent(found, command) or Existing(found)
    owner = words.resource("queue", command.name, command.vhost)
    return (
        names.refused("queue", command.name, limits)
        or queue_arguments.invalid(owner, command.arguments)
        or exchange_checks.too_large(owner, command.arguments.encoded, limits)
        or _improper(owner, command)
        or _too_many(state, vhost, command.name, limits)
        or _homeless(state, command)
    )


def completed(vhost: Vhost, command: DeclareQueue) -> DeclareQueue:
    """With the vhost's default type, where a queue of that type could be meant."""
    kind = vhost.default_queue_type
    if kind is None or queue_arguments.TYPE in command.arguments:
        return command
    plain = command.durable and not command.exclusive and not command.auto_delete
    if kind is not QueueType.CLASSIC and not plain:
        return command
    arguments = command.arguments.with_entry(queue_arguments.TYPE, kind.value)
    return replace(command, arguments=arguments)


def is_durable(command: DeclareQueue) -> bool:
    """An exclusive queue dies with its connection, whatever it was declared as."""
    return command.durable and not command.exclusive


def inequivalent(found: Queue, command: DeclareQueue) -> Refusal | None:
    if found.owner != (command.by if command.exclusive else None):
        return refusal.locked(found.name, found.vhost)
    owner = words.resource("queue", found.name, found.vhost)
    for name, current, received in (
        ("durable", found.durable, is_durable(command)),
        ("auto_delete", found.auto_delete, command.auto_delete),
    ):
        if current != received:
            return refusal.inequivalent(
                name, owner, received=words.quoted(received), current=words.quoted(current)
            )
    return queue_arguments.inequivalent(owner, found.arguments, command.arguments)


def delete(state: State, command: DeleteQueue) -> Settled | None:
    """Deleting what is not there is not an error."""
    found = state.queue(command.vhost, command.name)
    if found is None or (command.id and found.id != command.id):
        return Absent()
    if command.by is not None and found.owner not in (None, command.by):
        return refusal.locked(found.name, found.vhost)
    return None


def refuses_delete(
    queue: Queue, *, if_unused: bool, if_empty: bool, consumer_count: int, message_count: int
) -> Refusal | None:
    """For the owner of the queue, which alone knows the counts."""
    owner = words.resource("queue", queue.name, queue.vhost)
    if if_unused and consumer_count:
        return refusal.failed(f"{owner} in use")
    if if_empty and message_count:
        return refusal.failed(f"{owner} not empty")
    return None


def _improper(owner: str, command: DeclareQueue) -> Refusal | None:
    """Properties that the type of the queue cannot have. A quorum queue may be exclusive or
    auto-delete here, which RabbitMQ refuses: our queues of all types are the same inside."""
    kind = queue_arguments.queue_type(command.arguments)
    if kind is QueueType.STREAM and command.server_named:
        return refusal.failed("Cannot declare a server-named queue for type rabbit_stream_queue")
    if kind is QueueType.STREAM and command.auto_delete:
        return refusal.failed(f"invalid property 'auto-delete' for {owner}")
    if kind is QueueType.STREAM and command.exclusive:
        return refusal.failed(f"invalid property 'exclusive-owner' for {owner}")
    if kind is not QueueType.CLASSIC and not command.durable and not command.exclusive:
        return refusal.failed(f"invalid property 'non-durable' for {owner}")
    return None


def _too_many(state: State, vhost: Vhost, name: str, limits: MetadataLimits) -> Refusal | None:
    limit = vhost.max_queues
    if limit is not None and len(state.queues_in[vhost.name]) >= limit:
        return refusal.failed(
            f"cannot declare queue '{name}': queue limit in vhost '{vhost.name}' ({limit}) "
            "is reached"
        )
    limit = limits.queue_count_max
    if len(state.queues) >= limit:
        return refusal.failed(
            f"cannot declare queue '{name}': queue limit in cluster ({limit}) is reached"
        )
    return None


def _homeless(state: State, command: DeclareQueue) -> Refusal | None:
    """A queue that lives and dies with a run of a node must not outlive it by coming late."""
    if is_durable(command):
        started = bool(state.shard_queue_counts)
        return None if started else refusal.failed("the cluster has no shards yet")
    node = state.nodes.get(command.by.node)
    if node is None or node.home != command.by.home:
        return refusal.failed(
            f"cannot declare queue '{command.name}': node '{command.by.node}' has ended or was "
            "started anew"
        )
    return None
