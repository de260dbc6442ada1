"""The arguments of a queue.declare: valid ones, and equivalent ones on a redeclaration.

Pure. `queue_checks` asks; the words are RabbitMQ's. Arguments nobody knows are kept and ignored.
RabbitMQ refuses some arguments on one type of queue that it takes on another; here classic and
quorum queues are the same inside and take both.
"""

from lograft_broker.metadata import knobs, refusal, words
from lograft_broker.metadata.refusal import Refusal
from lograft_broker.metadata.rows import QueueType
from lograft_broker.metadata.values import Arguments
from lograft_wire.amqp import fields

TYPE = "x-queue-type"
DEAD_LETTER_EXCHANGE = "x-dead-letter-exchange"
DEAD_LETTER_ROUTING_KEY = "x-dead-letter-routing-key"
_TYPE_WORDS = {
    QueueType.CLASSIC: "rabbit_classic_queue",
    QueueType.QUORUM: "rabbit_quorum_queue",
    QueueType.STREAM: "rabbit_stream_queue",
}


def queue_type(arguments: Arguments) -> QueueType:
    """Of arguments that were found valid."""
    value = arguments.get(TYPE, QueueType.CLASSIC)
    return QueueType(value) if isinstance(value, str) else QueueType.CLASSIC


def invalid(owner: str, arguments: Arguments) -> Refusal | None:
    """Why a new queue cannot have these. `owner` is the queue as `words.resource` names it."""
    if not arguments:
        return None
    exchange = arguments.get(DEAD_LETTER_EXCHANGE, "")
    if not isinstance(exchange, str):
        kind = fields.type_name(exchange)
        return refusal.failed(f"invalid type '{kind}' for arg '{DEAD_LETTER_EXCHANGE}' in {owner}")
    for name in knobs.known(arguments):
        knob = knobs.BY_ARGUMENT[name]
        mistake = knob.check(arguments[name]) or _missing(name, arguments)
        if mistake:
            return refusal.failed(f"invalid arg '{name}' for {owner}: {mistake}")
    return _unsupported(owner, arguments)


def inequivalent(owner: str, current: Arguments, received: Arguments) -> Refusal | None:
    """Why a queue that has `current` cannot be declared again with `received`."""
    if current == received:
        return None
    for name in knobs.known({**current, **received}):
        found = differ(owner, name, current, received)
        if found is not None:
            return found
    return None


def differ(owner: str, name: str, current: Arguments, received: Arguments) -> Refusal | None:
    """Why one argument is not equivalent in two declarations of `owner`."""
    if name in current and name in received:
        if fields.equivalent(current[name], received[name]):
            return None
        return refusal.inequivalent(
            name,
            owner,
            received=words.quoted(received[name]),
            current=words.quoted(current[name]),
        )
    if name not in current and name not in received:
        return None
    if name == TYPE and QueueType.CLASSIC in (current.get(name), received.get(name)):
        return None  # classic is what a queue is without the argument
    return refusal.inequivalent(
        name, owner, received=_typed(received, name), current=_typed(current, name)
    )


def _typed(arguments: Arguments, name: str) -> str:
    return words.typed(arguments[name]) if name in arguments else "none"


def _missing(name: str, arguments: Arguments) -> str:
    """What an argument needs besides itself."""
    if name == DEAD_LETTER_ROUTING_KEY and DEAD_LETTER_EXCHANGE not in arguments:
        return "routing_key_but_no_dlx_defined"
    return ""


def _unsupported(owner: str, arguments: Arguments) -> Refusal | None:
    kind = queue_type(arguments)
    for name in knobs.known(arguments):
        if kind not in knobs.BY_ARGUMENT[name].types:
            return refusal.failed(
                f"invalid arg '{name}' for {owner} of queue type {_TYPE_WORDS[kind]}"
            )
    return None
