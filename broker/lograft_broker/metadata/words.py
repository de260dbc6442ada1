"""Values in RabbitMQ's words: its error texts print Erlang terms, and clients compare them.

Pure formatting, no decisions. Field values are those of `lograft_wire.amqp.fields`.
"""

from collections.abc import Mapping

from lograft_broker.routing.values import shown
from lograft_wire.amqp import fields
from lograft_wire.amqp.fields import Value


def resource(kind: str, name: str, vhost: str) -> str:
    return f"{kind} '{name}' in vhost '{vhost}'"


def type_name(value: Value) -> str:
    """The type a value has, or would have if JSON did not know larger numbers than AMQP."""
    too_large = isinstance(value, int) and not fields.INT64_MIN <= value <= fields.INT64_MAX
    return "long" if too_large else fields.type_name(value)


def term(value: Value) -> str:
    """As Erlang's ~p prints it."""
    match value:
        case Mapping():
            rows = (
                f"{{{term(key)},{type_name(item)},{term(item)}}}" for key, item in value.items()
            )
            return f"[{','.join(rows)}]"
        case list() | tuple():
            return f"[{','.join(f'{{{type_name(item)},{term(item)}}}' for item in value)}]"
        case fields.Decimal(scale=scale, value=unscaled):
            return f"{{{scale},{unscaled}}}"
        case _:
            return shown(value)


def string(text: str) -> str:
    """A list of characters, as ~p prints it."""
    return f'"{_escaped(text)}"'


def quoted(value: Value) -> str:
    """A bare value in an inequivalence."""
    return f"'{_plain(value)}'"


def typed(value: Value) -> str:
    """A value that stands against nothing in an inequivalence."""
    return f"the value '{_plain(value)}' of type '{type_name(value)}'"


def _plain(value: Value) -> str:
    return value if isinstance(value, str) else term(value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
