"""The content header of a message: its body size and its fourteen properties.

A header frame's payload is class_id u16 | weight u16 | body_bytes u64, then the *property list*:

    flags u16 | the value of each property whose flag is set, in the order of `Properties`

The flag of the first property is the highest bit. The two lowest bits stand for no property of
class basic (the very lowest announces more flags), so a list that sets them is refused. Short
strings in a property list are raw: they need not be UTF-8.

A property list is what is kept with a message and handed on unchanged. To look into one, `decode`
it; to change one property, use `with_headers` and `with_expiration`, which leave all other bytes as
they are. Used by the router's rare paths, dead-lettering, the HTTP API and the client; publish and
deliver pass lists along without coming here.
"""

import dataclasses
import struct
from dataclasses import dataclass
from typing import Any

from lograft_wire.amqp import codes, primitives, tables
from lograft_wire.amqp.fields import Table
from lograft_wire.amqp.primitives import Kind, Reader
from lograft_wire.errors import PeerError

CLASS_ID = 60  # basic, the only class with content

HEADER = struct.Struct(">HHQ")
assert HEADER.size == 12
FLAGS = struct.Struct(">H")
assert FLAGS.size == 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Properties:
    """None means not given, which is not the same as empty."""

    content_type: str | None = None
    content_encoding: str | None = None
    headers: Table | None = None
    delivery_mode: int | None = None  # 1 transient, 2 persistent
    priority: int | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    expiration: str | None = None  # milliseconds, in digits
    message_id: str | None = None
    timestamp: int | None = None  # seconds since 1970
    type: str | None = None
    user_id: str | None = None
    app_id: str | None = None
    cluster_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentHeader:
    body_bytes: int
    properties: bytes  # the property list


@dataclass(frozen=True, slots=True, kw_only=True)
class _Property:
    name: str
    flag: int
    kind: Kind[Any]


_NAMES = [property_.name for property_ in dataclasses.fields(Properties)]
_KINDS: dict[str, Kind[Any]] = {
    "headers": primitives.TABLE,
    "delivery_mode": primitives.OCTET,
    "priority": primitives.OCTET,
    "timestamp": primitives.LONGLONG,
}  # all others are strings
_PROPERTIES = tuple(
    _Property(name=name, flag=0x8000 >> place, kind=_KINDS.get(name, primitives.RAW_STRING))
    for place, name in enumerate(_NAMES)
)
_BY_NAME = {property_.name: property_ for property_ in _PROPERTIES}
_KNOWN_FLAGS = sum(property_.flag for property_ in _PROPERTIES)
assert _KNOWN_FLAGS == 0xFFFC

EMPTY = FLAGS.pack(0)  # the property list without properties


def decode_header(payload: bytes) -> ContentHeader:
    """A header frame's payload, its property list not yet looked at. PeerError 502 or 505."""
    if len(payload) < HEADER.size + FLAGS.size:
        raise codes.error(codes.SYNTAX_ERROR, f"content header of {len(payload)} bytes")
    class_id, weight, body_bytes = HEADER.unpack_from(payload)
    if class_id != CLASS_ID:
        raise _unexpected(f"got one for class {class_id} instead")
    if weight != 0:
        raise _unexpected(f"got one of weight {weight} instead")
    return ContentHeader(body_bytes=body_bytes, properties=payload[HEADER.size :])


def encode_header(header: ContentHeader) -> bytes:
    return HEADER.pack(CLASS_ID, 0, header.body_bytes) + header.properties


def decode(properties: bytes, *, limits: tables.Limits = tables.LIMITS) -> Properties:
    """What stands in a property list. PeerError 502 if it is none."""
    reader, flags = _open(properties, limits)
    values: dict[str, Any] = {}
    for property_ in _PROPERTIES:
        if flags & property_.flag:
            reader.argument = property_.name
            values[property_.name] = property_.kind.read(reader)
    reader.finish()
    return Properties(**values)


def encode(properties: Properties) -> bytes:
    """The property list. ValueError if a value does not fit its type."""
    flags = 0
    out = bytearray(FLAGS.size)
    for property_ in _PROPERTIES:
        value = getattr(properties, property_.name)
        if value is not None:
            flags |= property_.flag
            out += _encoded(property_, value)
    FLAGS.pack_into(out, 0, flags)
    return bytes(out)


def with_headers(properties: bytes, headers: Table | None) -> bytes:
    """The property list with these headers in place of its own, or with none at all."""
    return _with(properties, _BY_NAME["headers"], headers)


def with_expiration(properties: bytes, expiration: str | None) -> bytes:
    """The property list with this expiration in place of its own, or with none at all."""
    return _with(properties, _BY_NAME["expiration"], expiration)


def _with(properties: bytes, changed: _Property, value: object) -> bytes:
    reader, flags = _open(properties, tables.LIMITS)
    start = end = 0
    for property_ in _PROPERTIES:
        if property_ is changed:
            start = reader.position
        if flags & property_.flag:
            _skip(reader, property_)
        if property_ is changed:
            end = reader.position
    reader.finish()
    flags &= ~changed.flag
    new = b""
    if value is not None:
        flags |= changed.flag
        new = _encoded(changed, value)
    return FLAGS.pack(flags) + properties[FLAGS.size : start] + new + properties[end:]


def _unexpected(text: str) -> PeerError:
    return codes.error(
        codes.UNEXPECTED_FRAME, f"expected content header for class {CLASS_ID}, {text}"
    )


def _open(properties: bytes, limits: tables.Limits) -> tuple[Reader, int]:
    """A reader behind the flags, and the flags."""
    reader = Reader(properties, what="properties", limits=limits)
    flags = reader.short()
    if flags & ~_KNOWN_FLAGS:
        raise reader.fail(f"flags {flags:#06x} have bits outside {_KNOWN_FLAGS:#06x}")
    return reader, flags


def _skip(reader: Reader, property_: _Property) -> None:
    reader.argument = property_.name
    match property_.kind:
        case primitives.RAW_STRING:
            reader.skip(reader.octet())
        case primitives.TABLE:
            reader.skip(reader.long())
        case kind:
            kind.read(reader)


def _encoded(property_: _Property, value: object) -> bytes:
    out = bytearray()
    try:
        property_.kind.write(out, value)
    except ValueError as error:
        raise ValueError(f"properties: {property_.name}: {error}") from error
    return bytes(out)
