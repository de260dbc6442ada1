"""Values of field tables as the router compares, hashes and names them.

Two headers match when `fields.equivalent` says so; `comparable` turns that question into plain
equality, so that values can be looked up. Pure; used by the matchers and the router.
"""

from collections.abc import Hashable, Mapping, Sequence

from lograft_wire.amqp import fields
from lograft_wire.amqp.fields import Decimal, Timestamp, Value


def comparable(value: Value) -> Hashable:
    """Equal for two values just when these are equivalent. Strings and plain integers, which are
    nearly all there is, stand for themselves."""
    kind = type(value)
    if kind is str or kind is int:
        return value
    match value:
        case bool():
            return "t", value  # else it would equal 0 or 1
        case int():
            return int(value)
        case float():
            return "d", value + 0.0 if value == value else "nan"  # nor do signed zeros differ
        case bytes():
            return _text(value)
        case Timestamp(seconds):
            return seconds
        case None | str():
            return value
        case _:
            return exact(value)


def exact(value: Value) -> Hashable:
    """Equal for two values just when type and value are the same, all the way down."""
    kind = fields.type_name(value)
    match value:
        case Mapping():
            return kind, tuple((name, exact(value[name])) for name in sorted(value))
        case Decimal(scale=scale, value=digits):
            return kind, scale, digits
        case list() | tuple():
            return kind, tuple(exact(item) for item in value)
        case _:
            return kind, comparable(value)


def hashed(value: object) -> bytes:
    """What a hash exchange hashes: the same bytes for equivalent values, in every process."""
    match value:
        case None:
            return b""
        case str():
            return value.encode("utf-8", "surrogatepass")
        case bytes():
            return bytes(value)
        case Timestamp(seconds):
            return b"%d" % seconds
        case int() if not isinstance(value, bool):
            return b"%d" % value
        case bool() | float() | Decimal() | Sequence() | Mapping():
            return repr(comparable(value)).encode()
        case _:
            raise AssertionError(f"{type(value).__name__} in a table")


def shown(value: Value) -> str:
    """As RabbitMQ prints a value in a reply text, which clients compare."""
    match value:
        case str():
            return shown_bytes(value.encode("utf-8", "surrogatepass"))
        case bytes():
            return shown_bytes(value)
        case bool():
            return "true" if value else "false"
        case None:
            return "undefined"
        case int() | float():
            return repr(value + 0)
        case Timestamp(seconds):
            return str(seconds)
        case _:
            return repr(value)


def shown_bytes(data: bytes) -> str:
    text = _text(data)
    if isinstance(text, bytes) or not text.isprintable():
        return f"<<{','.join(map(str, data))}>>"
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    if not data:
        return "<<>>"
    return f'<<"{quoted}">>' if text.isascii() else f'<<"{quoted}"/utf8>>'


def _text(data: bytes) -> str | bytes:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return bytes(data)
