"""What goes along when something goes: bindings with their ends, auto-delete exchanges with their
last binding, everything with its vhost.

Changes the state; called by the modules that apply commands. Nothing here recurses: exchanges may
be chained as long as anybody likes.
"""

from collections.abc import Iterable

from lograft_broker.metadata.rows import Binding, Exchange, Kind, Queue, User, Vhost
from lograft_broker.metadata.state import State


def remove_queue(state: State, queue: Queue) -> None:
    bindings = list(state.leading_to(Kind.QUEUE, queue.vhost, queue.name).values())
    state.remove(queue)
    remove_bindings(state, bindings)


def remove_bindings(state: State, bindings: Iterable[Binding]) -> None:
    """An auto-delete exchange goes when nothing leads on from it any more, and with it the
    bindings that lead to it."""
    waiting = list(bindings)
    while waiting:
        binding = waiting.pop()
        if binding.key not in state.bindings:
            continue  # gone with an exchange in the meantime
        state.remove(binding)
        source = state.exchanges.get((binding.vhost, binding.source))
        if source is not None and source.auto_delete and not state.bindings_from[source.key]:
            waiting += _detach(state, source)


def remove_exchange(state: State, exchange: Exchange) -> None:
    remove_bindings(state, _detach(state, exchange))


def _detach(state: State, exchange: Exchange) -> list[Binding]:
    """The exchange and what leads on from it go; what leads to it is returned, still there."""
    for binding in list(state.bindings_from[exchange.key].values()):
        state.remove(binding)
    state.remove(exchange)
    return list(state.bindings_to[Kind.EXCHANGE, exchange.key].values())


def remove_vhost(state: State, vhost: Vhost) -> None:
    for queue in list(state.queues_in[vhost.name].values()):
        remove_queue(state, queue)
    for exchange in list(state.exchanges_in[vhost.name].values()):
        if exchange.key in state.exchanges:  # not yet gone with another one
            remove_exchange(state, exchange)
    for table in (state.policies, state.operator_policies):
        for policy in [row for row in table if row.vhost == vhost.name]:
            state.remove(policy)
    for parameter in [row for row in state.parameters if row.vhost == vhost.name]:
        state.remove(parameter)
    for permission in [row for row in state.permissions if row.vhost == vhost.name]:
        state.remove(permission)
    for topic in [row for row in state.topic_permissions if row.vhost == vhost.name]:
        state.remove(topic)
    state.remove(vhost)


def remove_user(state: State, user: User) -> None:
    for permission in [row for row in state.permissions if row.user == user.name]:
        state.remove(permission)
    for topic in [row for row in state.topic_permissions if row.user == user.name]:
        state.remove(topic)
    state.remove(user)
