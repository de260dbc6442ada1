"""The kinds of exchange there are, by the name a client declares, and what each refuses.

The metadata machine asks for refusals before it lets an exchange or a binding be, hence the router
never sees a bad one. A refusal is the text behind PRECONDITION_FAILED (406, the channel closes).
"""

from lograft_broker.routing import hashing, headers
from lograft_broker.routing.chance import Random
from lograft_broker.routing.direct import Direct
from lograft_broker.routing.fanout import Fanout
from lograft_broker.routing.matcher import D, Matcher
from lograft_broker.routing.topic import Topic
from lograft_log.env import Rng
from lograft_wire.amqp.fields import Table

DELAYED = "x-delayed-message"
DELAYED_TYPE = "x-delayed-type"

KINDS = (
    "direct", "fanout", "topic", "headers", "x-consistent-hash", "x-modulus-hash", "x-random",
    DELAYED,
)  # fmt: skip


def make(kind: str, arguments: Table, rng: Rng) -> Matcher[D]:
    match underlying(kind, arguments):
        case "direct":
            return Direct()
        case "fanout":
            return Fanout()
        case "topic":
            return Topic()
        case "headers":
            return headers.Headers()
        case "x-consistent-hash":
            return hashing.ConsistentHash(arguments)
        case "x-modulus-hash":
            return hashing.ModulusHash()
        case "x-random":
            return Random(rng)
        case other:
            raise AssertionError(f"exchange of kind {other!r}")


def underlying(kind: str, arguments: Table) -> str:
    """The kind it routes as: a delayed exchange is one of the others besides."""
    return str(arguments[DELAYED_TYPE]) if kind == DELAYED else kind


def exchange_refusal(kind: str, arguments: Table) -> str | None:
    """Why an exchange cannot be declared so; None when it can."""
    if kind == DELAYED:
        inner = arguments.get(DELAYED_TYPE)
        if not isinstance(inner, str):
            return "Invalid argument, 'x-delayed-type' must be an existing exchange type"
        if inner == DELAYED:
            return "Invalid argument, 'x-delayed-message' can't be used for 'x-delayed-type'"
        kind = inner
    if kind not in KINDS:
        return f"unknown exchange type '{kind}'"
    return hashing.exchange_refusal(arguments) if kind == "x-consistent-hash" else None


def binding_refusal(
    kind: str, exchange_arguments: Table, *, key: bytes, arguments: Table
) -> str | None:
    """Why an exchange of this kind cannot have such a binding; None when it can."""
    kind = underlying(kind, exchange_arguments)
    if kind == "headers":
        return headers.refusal(arguments)
    if kind == "x-consistent-hash":
        return hashing.binding_refusal(key)
    return None
