"""What the types of exchanges ask of declarations and bindings. Pure.

The types themselves and what they refuse are the router's (`routing.kinds`); here is what metadata
adds: the exchanges every vhost has, the alternate exchange, what a redeclaration compares.
"""

from lograft_broker.metadata import refusal
from lograft_broker.metadata.refusal import Refusal
from lograft_broker.metadata.rows import Exchange
from lograft_broker.metadata.values import Arguments
from lograft_broker.routing import kinds
from lograft_wire.amqp import fields

PREDECLARED = {
    "": "direct",
    "amq.direct": "direct",
    "amq.fanout": "fanout",
    "amq.topic": "topic",
    "amq.headers": "headers",
    "amq.match": "headers",
}
ALTERNATE = "alternate-exchange"
# The arguments a redeclaration must have alike, besides the alternate exchange. RabbitMQ compares
# that one only, and leaves a client with an exchange that routes by another header than it thinks.
_COMPARED = ("hash-header", "hash-property", kinds.DELAYED_TYPE)


def predeclared(vhost: str) -> list[Exchange]:
    return [
        Exchange(vhost=vhost, name=name, type=kind, durable=True, auto_delete=False, internal=False)
        for name, kind in PREDECLARED.items()
    ]


def compared_arguments(kind: str) -> tuple[str, ...]:
    return (ALTERNATE, *_COMPARED) if kind.startswith("x-") else (ALTERNATE,)


def unknown(kind: str) -> Refusal | None:
    return None if kind in kinds.KINDS else refusal.failed(f"unknown exchange type '{kind}'")


def invalid_arguments(owner: str, kind: str, arguments: Arguments) -> Refusal | None:
    """Why a new exchange of this type cannot have these."""
    alternate = arguments.get(ALTERNATE, "")
    if not isinstance(alternate, str):
        found = fields.type_name(alternate)
        return refusal.failed(f"invalid type '{found}' for arg '{ALTERNATE}' in {owner}")
    said = kinds.exchange_refusal(kind, arguments)
    return refusal.failed(said) if said is not None else None


def invalid_binding(exchange: Exchange, routing_key: bytes, arguments: Arguments) -> Refusal | None:
    """Why this exchange cannot be the source of such a binding."""
    said = kinds.binding_refusal(
        exchange.type, exchange.arguments, key=routing_key, arguments=arguments
    )
    return refusal.failed(said) if said is not None else None
