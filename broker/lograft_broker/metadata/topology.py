"""Exchanges, queues and bindings: how their commands change the state once nothing stands against
them (`exchange_checks`, `queue_checks`)."""

from typing import assert_never

from lograft_broker.metadata import (
    exchange_checks,
    queue_arguments,
    queue_checks,
    removal,
)
from lograft_broker.metadata.commands import (
    Bind,
    DeclareExchange,
    DeclareQueue,
    DeleteExchange,
    DeleteQueue,
    TopologyCommand,
    Unbind,
)
from lograft_broker.metadata.limits import MetadataLimits
from lograft_broker.metadata.results import Created, Deleted, Result, Settled
from lograft_broker.metadata.rows import Exchange, Queue
from lograft_broker.metadata.state import State


def settled(state: State, command: TopologyCommand, limits: MetadataLimits) -> Settled | None:
    match command:
        case DeclareExchange():
            return exchange_checks.declare(state, command, limits)
        case DeleteExchange():
            return exchange_checks.delete(state, command)
        case DeclareQueue():
            return queue_checks.declare(state, command, limits)
        case DeleteQueue():
            return queue_checks.delete(state, command)
        case Bind():
            return exchange_checks.bind(state, command, limits)
        case Unbind():
            return exchange_checks.unbind(state, command)
        case _:
            assert_never(command)


def act(state: State, index: int, command: TopologyCommand) -> Result:
    match command:
        case DeclareExchange():
            return _declare_exchange(state, command)
        case DeleteExchange():
            return _delete_exchange(state, command)
        case DeclareQueue():
            return _declare_queue(state, index, command)
        case DeleteQueue():
            return _delete_queue(state, command)
        case Bind():
            binding = exchange_checks.binding(command)
            state.put(binding)
            return Created(binding)
        case Unbind():
            binding = exchange_checks.binding(command)
            removal.remove_bindings(state, [binding])
            return Deleted((binding,))
        case _:
            assert_never(command)


def _declare_exchange(state: State, command: DeclareExchange) -> Result:
    exchange = Exchange(
        vhost=command.vhost,
        name=command.name,
        type=command.type,
        durable=command.durable,
        auto_delete=command.auto_delete,
        internal=command.internal,
        arguments=command.arguments,
    )
    state.put(exchange)
    return Created(exchange)


def _delete_exchange(state: State, command: DeleteExchange) -> Result:
    exchange = state.exchange(command.vhost, command.name)
    assert exchange is not None, command
    removal.remove_exchange(state, exchange)
    return Deleted((exchange,))


def _declare_queue(state: State, index: int, command: DeclareQueue) -> Result:
    vhost = state.vhosts.get(command.vhost)
    assert vhost is not None, command
    command = queue_checks.completed(vhost, command)
    durable = queue_checks.is_durable(command)
    queue = Queue(
        vhost=command.vhost,
        name=command.name,
        id=index,
        type=queue_arguments.queue_type(command.arguments),
        durable=durable,
        auto_delete=command.auto_delete,
        owner=command.by if command.exclusive else None,
        home=None if durable else command.by.home,
        shard=state.least_loaded_shard(command.vhost, command.name) if durable else None,
        arguments=command.arguments,
    )
    state.put(queue)
    return Created(queue)


def _delete_queue(state: State, command: DeleteQueue) -> Result:
    queue = state.queue(command.vhost, command.name)
    assert queue is not None, command
    removal.remove_queue(state, queue)
    return Deleted((queue,))
