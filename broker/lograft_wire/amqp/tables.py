"""Field tables as bytes and back.

    table  entries, in methods and properties behind their size u32
    entry  name_bytes u8 | name | value
    value  tag u8, then by tag: nothing (V), a number, or size u32 | bytes (S x A F)

All numbers are big-endian. What was decoded is encoded again to the same bytes, with three
exceptions, none of which a sound client sends: true is written as 1 whatever octet it was, of
entries with one name the first is kept, a signalling NaN in single precision comes back quiet.
A name that is not UTF-8 is kept by Python's surrogate escapes, so that headers survive.

Pure. `primitives` calls it for methods and properties; AMQPLAIN and whoever stores arguments call
it directly. `fields` says which Python value stands for which type.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lograft_wire.amqp import codes, fields
from lograft_wire.amqp.fields import Table, Value
from lograft_wire.errors import PeerError

SIZE = struct.Struct(">I")
assert SIZE.size == 4

# Values of a fixed size, by tag, with what makes one of the unpacked numbers.
_FIXED: dict[str, tuple[struct.Struct, Callable[..., Value]]] = {
    "t": (struct.Struct(">?"), bool),
    "b": (struct.Struct(">b"), fields.Int8),
    "B": (struct.Struct(">B"), fields.UInt8),
    "s": (struct.Struct(">h"), fields.Int16),
    "u": (struct.Struct(">H"), fields.UInt16),
    "I": (struct.Struct(">i"), fields.Int32),
    "i": (struct.Struct(">I"), fields.UInt32),
    "l": (struct.Struct(">q"), fields.Int64),
    "L": (struct.Struct(">q"), fields.Long64),
    "f": (struct.Struct(">f"), fields.Float32),
    "d": (struct.Struct(">d"), float),
    "T": (struct.Struct(">Q"), fields.Timestamp),
    "D": (struct.Struct(">BI"), lambda scale, value: fields.Decimal(scale=scale, value=value)),
}
_FIXED_BY_OCTET = {ord(tag): fixed for tag, fixed in _FIXED.items()}
_SIZED_OCTETS = frozenset(b"SxAF")

NAME_BYTES_MAX = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """For one table with all that is nested in it."""

    table_bytes_max: int = 1 << 20
    entry_count_max: int = 1 << 14  # array elements included: an empty one costs a single byte
    depth_max: int = 32  # the outermost table is 1


LIMITS = Limits()


def decode(entries: bytes, *, limits: Limits = LIMITS) -> dict[str, Value]:
    """The table whose entries are exactly these bytes. PeerError 502 if they are none."""
    if len(entries) > limits.table_bytes_max:
        raise _bad(f"{len(entries)} bytes, more than {limits.table_bytes_max}")
    return _Walk(entries, limits).table(0, len(entries), depth=1)


def encode(table: Table, *, limits: Limits = LIMITS) -> bytes:
    """The entries of `table`. ValueError if a value has no wire form or a limit is passed."""
    try:
        entries = _entries(table, limits.depth_max)
    except ValueError as error:
        raise ValueError(f"table: {error}") from error
    if len(entries) > limits.table_bytes_max:
        raise ValueError(f"table: {len(entries)} bytes, more than {limits.table_bytes_max}")
    return entries


def _bad(text: str) -> PeerError:
    return codes.error(codes.SYNTAX_ERROR, f"table: {text}")


class _Walk:
    """One way through one table, counting what it meets."""

    __slots__ = ("_data", "_entries_left", "_limits")

    def __init__(self, data: bytes, limits: Limits) -> None:
        self._data = data
        self._limits = limits
        self._entries_left = limits.entry_count_max

    def table(self, at: int, end: int, *, depth: int) -> dict[str, Value]:
        self._check_depth(depth)
        found: dict[str, Value] = {}
        while at < end:
            start = at + 1
            at = start + self._data[at]
            if at > end:
                raise _bad(f"name of {at - start} bytes where {end - start} are left")
            name = self._data[start:at].decode("utf-8", "surrogateescape")
            value, at = self._value(at, end, name, depth)
            found.setdefault(name, value)
        return found

    def array(self, at: int, end: int, name: str, *, depth: int) -> list[Value]:
        self._check_depth(depth)
        found: list[Value] = []
        while at < end:
            value, at = self._value(at, end, name, depth)
            found.append(value)
        return found

    def _value(self, at: int, end: int, name: str, depth: int) -> tuple[Value, int]:
        """The value at `at` and the position behind it. `name` is for errors."""
        self._entries_left -= 1
        if self._entries_left < 0:
            raise _bad(f"more than {self._limits.entry_count_max} entries")
        if at >= end:
            raise _bad(f"{name!r} ends before its type")
        tag = self._data[at]
        start = at + 1
        if tag in _FIXED_BY_OCTET:
            layout, make = _FIXED_BY_OCTET[tag]
            after = start + layout.size
            if after > end:
                raise _bad(f"{name!r} of type {chr(tag)} needs {layout.size} bytes")
            return make(*layout.unpack_from(self._data, start)), after
        if tag == ord("V"):
            return None, start
        if tag in _SIZED_OCTETS:
            return self._sized(chr(tag), start, end, name, depth)
        raise _bad(f"{name!r} has the unknown type {bytes([tag])!r}")

    def _sized(self, tag: str, at: int, end: int, name: str, depth: int) -> tuple[Value, int]:
        start = at + SIZE.size
        if start > end:
            raise _bad(f"{name!r} of type {tag} ends in its size")
        (size,) = SIZE.unpack_from(self._data, at)
        after = start + size
        if after > end:
            raise _bad(f"{name!r} of type {tag} has {size} bytes where {end - start} are left")
        match tag:
            case "S":
                return _text(self._data[start:after]), after
            case "x":
                return self._data[start:after], after
            case "A":
                return self.array(start, after, name, depth=depth + 1), after
            case _:
                return self.table(start, after, depth=depth + 1), after

    def _check_depth(self, depth: int) -> None:
        if depth > self._limits.depth_max:
            raise _bad(f"nested more than {self._limits.depth_max} deep")


def _text(data: bytes) -> str | fields.LongStr:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return fields.LongStr(data)


def _entries(table: Table, depth_left: int) -> bytes:
    _check_room(depth_left)
    parts: list[bytes] = []
    for name, value in table.items():
        octets = name.encode("utf-8", "surrogateescape")
        if len(octets) > NAME_BYTES_MAX:
            raise ValueError(f"name of {len(octets)} bytes, more than {NAME_BYTES_MAX}")
        try:
            parts += (bytes([len(octets)]), octets, _tagged(value, depth_left))
        except (ValueError, OverflowError, struct.error) as error:
            raise ValueError(f"{name!r}: {error}") from error
    return b"".join(parts)


def _elements(values: Sequence[Value], depth_left: int) -> bytes:
    _check_room(depth_left)
    return b"".join([_tagged(value, depth_left) for value in values])


def _check_room(depth_left: int) -> None:
    if depth_left == 0:
        raise ValueError("nested too deep")


def _tagged(value: Value, depth_left: int) -> bytes:
    tag = fields.tag(value)
    match value:
        case None:
            content = b""
        case str():
            content = _sized(value.encode())
        case bytes():
            content = _sized(value)
        case Mapping():
            content = _sized(_entries(value, depth_left - 1))
        case list() | tuple():
            content = _sized(_elements(value, depth_left - 1))
        case fields.Timestamp(seconds):
            content = _FIXED[tag][0].pack(seconds)
        case fields.Decimal():
            content = _FIXED[tag][0].pack(value.scale, value.value)
        case _:
            content = _FIXED[tag][0].pack(value)
    return tag.encode() + content


def _sized(content: bytes) -> bytes:
    return SIZE.pack(len(content)) + content
