"""What a request about an exchange or a binding is answered, as far as the state alone decides.

Pure, and used twice: by the channel before it proposes, and by `apply`, where it counts. None means
that nothing stands against it and it is not done yet. Permissions are asked of `access`.
"""

from lograft_broker.metadata import exchange_types, names, queue_arguments, refusal, words
from lograft_broker.metadata.commands import Bind, DeclareExchange, DeleteExchange, Unbind
from lograft_broker.metadata.limits import MetadataLimits
from lograft_broker.metadata.refusal import Refusal
from lograft_broker.metadata.results import Absent, Existing, Settled
from lograft_broker.metadata.rows import Binding, ConnectionId, Exchange, Kind, Queue
from lograft_broker.metadata.state import State
from lograft_wire.amqp.fields import Value


def passive(state: State, vhost: str, name: str) -> Existing | Refusal:
    """A passive declaration: arguments and properties are not compared."""
    if name == names.DEFAULT_EXCHANGE:
        return refusal.default_exchange()
    found = state.exchange(vhost, name)
    return Existing(found) if found is not None else refusal.no("exchange", name, vhost)


def publish(state: State, vhost: str, name: str) -> Refusal | None:
    found = state.exchange(vhost, name)
    if found is None:
        return refusal.no("exchange", name, vhost)
    if found.internal:
        return refusal.access(
            f"cannot publish to internal {words.resource('exchange', name, vhost)}"
        )
    return None


def declare(state: State, command: DeclareExchange, limits: MetadataLimits) -> Settled | None:
    unknown = exchange_types.unknown(command.type)
    if unknown is not None:
        return unknown
    if command.name == names.DEFAULT_EXCHANGE:
        return refusal.default_exchange()
    found = state.exchange(command.vhost, command.name)
    if found is not None:
        return inequivalent(found, command) or Existing(found)
    if command.vhost not in state.vhosts:
        return refusal.no_vhost(command.vhost)
    if command.name.startswith(names.RESERVED):
        return refusal.reserved("exchange", command.name)
    owner = words.resource("exchange", command.name, command.vhost)
    if len(state.exchanges) >= limits.exchange_count_max:
        limit = limits.exchange_count_max
        return refusal.failed(f"cannot declare {owner}: exchange limit of {limit} is reached")
    return (
        names.refused("exchange", command.name, limits)
        or exchange_types.invalid_arguments(owner, command.type, command.arguments)
        or too_large(owner, command.arguments.encoded, limits)
    )


def inequivalent(found: Exchange, command: DeclareExchange) -> Refusal | None:
    owner = words.resource("exchange", found.name, found.vhost)
    fields: tuple[tuple[str, Value, Value], ...] = (
        ("type", found.type, command.type),
        ("durable", found.durable, command.durable),
        ("auto_delete", found.auto_delete, command.auto_delete),
        ("internal", found.internal, command.internal),
    )
    for name, current, received in fields:
        if current != received:
            return refusal.inequivalent(
                name, owner, received=words.quoted(received), current=words.quoted(current)
            )
    for name in exchange_types.compared_arguments(found.type):
        different = queue_arguments.differ(owner, name, found.arguments, command.arguments)
        if different is not None:
            return different
    return None


def delete(state: State, command: DeleteExchange) -> Settled | None:
    owner = words.resource("exchange", command.name, command.vhost)
    if command.name == names.DEFAULT_EXCHANGE:
        return refusal.default_exchange()
    if command.name.startswith(names.RESERVED):
        return refusal.access(f"deletion of system {owner} not allowed")
    if state.exchange(command.vhost, command.name) is None:
        return Absent()
    if command.if_unused and state.sourced_by(command.vhost, command.name):
        return refusal.failed(f"{owner} in use")
    return None


def bind(state: State, command: Bind, limits: MetadataLimits) -> Settled | None:
    if _touches_default(command):
        return refusal.default_exchange()
    source = state.exchange(command.vhost, command.source)
    if source is None:
        return refusal.no("exchange", command.source, command.vhost)
    destination = _destination(state, command)
    if destination is None:
        return refusal.no(command.kind, command.destination, command.vhost)
    key = command.routing_key.encode("utf-8", "surrogateescape")  # any octets will do
    mistake = (
        _key_too_long(key, limits)
        or exchange_types.invalid_binding(source, key, command.arguments)
        or _locked(destination, command.by)
    )
    if mistake is not None:
        return mistake
    found = state.bindings.get(binding(command).key)
    if found is not None:
        return Existing(found)
    if len(state.bindings) >= limits.binding_count_max:
        return refusal.too_many("a binding", limits.binding_count_max)
    owner = words.resource("exchange", command.source, command.vhost)
    return too_large(owner, command.arguments.encoded, limits)


def unbind(state: State, command: Unbind) -> Settled | None:
    """What is not bound, or not there at all, is not an error."""
    if _touches_default(command):
        return refusal.default_exchange()
    if binding(command).key not in state.bindings:
        return Absent()
    destination = _destination(state, command)
    assert destination is not None, command  # it has a binding
    return _locked(destination, command.by)


def binding(command: Bind | Unbind) -> Binding:
    return Binding(
        vhost=command.vhost,
        source=command.source,
        kind=command.kind,
        destination=command.destination,
        routing_key=command.routing_key,
        arguments=command.arguments,
    )


def too_large(owner: str, encoded: bytes, limits: MetadataLimits) -> Refusal | None:
    if len(encoded) <= limits.arguments_bytes_max:
        return None
    return refusal.failed(
        f"arguments for {owner} have {len(encoded)} bytes, "
        f"at most {limits.arguments_bytes_max} are allowed"
    )


def _key_too_long(routing_key: bytes, limits: MetadataLimits) -> Refusal | None:
    size = len(routing_key)
    if size <= limits.name_bytes_max:
        return None
    return refusal.failed(
        f"routing key has {size} bytes, at most {limits.name_bytes_max} are allowed"
    )


def _touches_default(command: Bind | Unbind) -> bool:
    into_default = command.kind is Kind.EXCHANGE and command.destination == names.DEFAULT_EXCHANGE
    return into_default or command.source == names.DEFAULT_EXCHANGE


def _destination(state: State, command: Bind | Unbind) -> Queue | Exchange | None:
    if command.kind is Kind.QUEUE:
        return state.queue(command.vhost, command.destination)
    return state.exchange(command.vhost, command.destination)


def _locked(destination: Queue | Exchange, by: ConnectionId) -> Refusal | None:
    if isinstance(destination, Queue) and destination.owner not in (None, by):
        return refusal.locked(destination.name, destination.vhost)
    return None
