"""Frozen dataclasses as bytes and back: the fields one behind the other, as they are declared.

    bool       u8, 0 or 1                     int        i64
    str        length u32, UTF-8 (1)          bytes      length u32, the bytes
    enum       its value as str               optional   u8 0, or u8 1 and the value
    tuple      count u32, the values          dataclass  its fields

(1) octets outside of UTF-8, as a routing key may have, are Python's surrogate escapes.
Little-endian. `values.Arguments` go as bytes, `values.Json` as str. The declaration of a dataclass
is its layout, so whoever changes one changes a format: the tests pin the bytes. Used for commands
and for the rows of a checkpoint. Bytes that were damaged raise DamagedError, whatever is in them.
"""

import dataclasses
import struct
import types
import typing
from collections.abc import Callable
from enum import Enum
from sys import intern
from typing import Any, Generic, TypeVar

from lograft_broker.metadata.values import Arguments, Json, decode_arguments
from lograft_wire.errors import DamagedError, RefusedError

T = TypeVar("T")
Write = Callable[[bytearray, Any], None]
Read = Callable[[bytes, int], tuple[Any, int]]  # the value and the position behind it

_LENGTH = struct.Struct("<I")
assert _LENGTH.size == 4
_INT = struct.Struct("<q")
assert _INT.size == 8
INT_MIN, INT_MAX = -(1 << 63), (1 << 63) - 1


class Packer(Generic[T]):
    """How one dataclass is written."""

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        self._write, self._read = _of_dataclass(kind)

    def pack(self, value: T) -> bytes:
        out = bytearray()
        self.pack_into(out, value)
        return bytes(out)

    def pack_into(self, out: bytearray, value: T) -> None:
        try:
            self._write(out, value)
        except UnicodeEncodeError as error:
            raise RefusedError(f"{self._kind.__name__}: not valid Unicode: {error}") from error
        except struct.error as error:
            raise RefusedError(f"{self._kind.__name__}: a number out of range") from error

    def unpack(self, data: bytes) -> T:
        value, position = self.read(data, 0)
        if position != len(data):
            raise DamagedError(f"{self._kind.__name__} ends at {position}, not at {len(data)}")
        return value

    def read(self, data: bytes, position: int) -> tuple[T, int]:
        """The value that begins at `position`, and the position behind it."""
        try:
            return typing.cast(tuple[T, int], self._read(data, position))
        except (struct.error, ValueError) as error:  # UnicodeDecodeError is a ValueError
            raise DamagedError(f"{self._kind.__name__} at {position}: {error}") from error


def write_bytes(out: bytearray, value: bytes) -> None:
    out += _LENGTH.pack(len(value))
    out += value


def read_bytes(data: bytes, position: int) -> tuple[bytes, int]:
    (size,) = _LENGTH.unpack_from(data, position)
    start = position + _LENGTH.size
    end = start + size
    if end > len(data):
        raise ValueError(f"{size} bytes announced, {len(data) - start} left")
    return data[start:end], end


def _write_str(out: bytearray, value: str) -> None:
    write_bytes(out, value.encode("utf-8", "surrogateescape"))


def _read_str(data: bytes, position: int) -> tuple[str, int]:
    """The same name stands in many rows: they share it."""
    (size,) = _LENGTH.unpack_from(data, position)
    start = position + _LENGTH.size
    end = start + size
    if end > len(data):
        raise ValueError(f"{size} bytes announced, {len(data) - start} left")
    return intern(data[start:end].decode("utf-8", "surrogateescape")), end


def _write_bool(out: bytearray, value: bool) -> None:
    out.append(1 if value else 0)


def _read_bool(data: bytes, position: int) -> tuple[bool, int]:
    if position >= len(data):
        raise ValueError("the end comes too early")
    if data[position] > 1:
        raise ValueError(f"{data[position]} is neither true nor false")
    return data[position] == 1, position + 1


def _write_int(out: bytearray, value: int) -> None:
    out += _INT.pack(value)


def _read_int(data: bytes, position: int) -> tuple[int, int]:
    (value,) = _INT.unpack_from(data, position)
    return value, position + _INT.size


def _write_arguments(out: bytearray, value: Arguments) -> None:
    write_bytes(out, value.encoded)


def _read_arguments(data: bytes, position: int) -> tuple[Arguments, int]:
    encoded, position = read_bytes(data, position)
    return decode_arguments(encoded), position


def _write_json(out: bytearray, value: Json) -> None:
    _write_str(out, value.text)


def _read_json(data: bytes, position: int) -> tuple[Json, int]:
    text, position = _read_str(data, position)
    return Json.parse(text), position


_LEAVES: dict[object, tuple[Write, Read]] = {
    bool: (_write_bool, _read_bool),
    int: (_write_int, _read_int),
    str: (_write_str, _read_str),
    bytes: (write_bytes, read_bytes),
    Arguments: (_write_arguments, _read_arguments),
    Json: (_write_json, _read_json),
}


def _of(annotation: object) -> tuple[Write, Read]:
    if annotation in _LEAVES:
        return _LEAVES[annotation]
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is types.UnionType:
        (present,) = (kind for kind in inner if kind is not type(None))
        return _of_optional(*_of(present))
    if origin is tuple:
        assert inner[1:] == (...,), annotation
        return _of_tuple(*_of(inner[0]))
    assert isinstance(annotation, type), annotation
    if issubclass(annotation, Enum):
        return _of_enum(annotation)
    return _of_dataclass(annotation)


def _of_optional(write_one: Write, read_one: Read) -> tuple[Write, Read]:
    def write(out: bytearray, value: object) -> None:
        _write_bool(out, value is not None)
        if value is not None:
            write_one(out, value)

    def read(data: bytes, position: int) -> tuple[Any, int]:
        present, position = _read_bool(data, position)
        return read_one(data, position) if present else (None, position)

    return write, read


def _of_tuple(write_one: Write, read_one: Read) -> tuple[Write, Read]:
    def write(out: bytearray, values: tuple[object, ...]) -> None:
        out += _LENGTH.pack(len(values))
        for value in values:
            write_one(out, value)

    def read(data: bytes, position: int) -> tuple[Any, int]:
        (count,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size
        values: list[object] = []
        for _ in range(count):
            value, position = read_one(data, position)
            values.append(value)
        return tuple(values), position

    return write, read


def _of_enum(kind: type[Enum]) -> tuple[Write, Read]:
    members = {member.value: member for member in kind}

    def write(out: bytearray, value: Enum) -> None:
        _write_str(out, value.value)

    def read(data: bytes, position: int) -> tuple[Any, int]:
        text, position = _read_str(data, position)
        if text not in members:
            raise ValueError(f"{text!r} is no {kind.__name__}")
        return members[text], position

    return write, read


def _of_dataclass(kind: type[Any]) -> tuple[Write, Read]:
    hints = typing.get_type_hints(kind)
    names = tuple(field.name for field in dataclasses.fields(kind))
    writes = tuple((name, _of(hints[name])[0]) for name in names)
    reads = tuple((name, _of(hints[name])[1]) for name in names)

    def write(out: bytearray, value: object) -> None:
        assert isinstance(value, kind), (kind, value)
        for name, write_one in writes:
            write_one(out, getattr(value, name))

    def read(data: bytes, position: int) -> tuple[Any, int]:
        values: dict[str, object] = {}
        for name, read_one in reads:
            values[name], position = read_one(data, position)
        return kind(**values), position

    return write, read
