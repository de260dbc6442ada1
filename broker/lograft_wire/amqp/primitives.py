"""The elementary types of method arguments and properties: reading them and writing them.

    octet u8 | short u16 | long u32 | longlong u64, all unsigned and big-endian
    short string   size u8 | UTF-8         long string   size u32 | bytes
    raw string     size u8 | bytes         table         size u32 | entries

A raw string is a short string that need not be UTF-8: what is not is kept by Python's surrogate
escapes. Names must be UTF-8; routing keys of messages and properties such as correlation ids come
with any bytes and go on as they came.

`layouts` and `properties` are made of these kinds. Whatever does not fit is a PeerError 502 that
names method and argument when it is read, a ValueError when it is written.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from lograft_wire.amqp import codes, tables
from lograft_wire.amqp.fields import Table
from lograft_wire.errors import PeerError

SHORT_BYTES = 2
LONG_BYTES = 4
LONGLONG_BYTES = 8
SHORT_STRING_BYTES_MAX = 255

T = TypeVar("T")


class Reader:
    """Takes one value after the other out of `data`. `argument` is set by the caller for errors."""

    __slots__ = ("_at", "_data", "_limits", "_what", "argument")

    def __init__(self, data: bytes, *, what: str, limits: tables.Limits) -> None:
        self._data = data
        self._at = 0
        self._what = what
        self._limits = limits
        self.argument = ""

    @property
    def position(self) -> int:
        return self._at

    def fail(self, text: str) -> PeerError:
        place = f"{self._what}: {self.argument}" if self.argument else self._what
        return codes.error(codes.SYNTAX_ERROR, f"{place}: {text}")

    def skip(self, size: int) -> int:
        """Pass over `size` bytes; where they start."""
        start = self._at
        if start + size > len(self._data):
            raise self.fail(f"needs {size} bytes where {len(self._data) - start} are left")
        self._at = start + size
        return start

    def finish(self) -> None:
        if self._at != len(self._data):
            self.argument = ""
            raise self.fail(f"{len(self._data) - self._at} bytes behind the last argument")

    def take(self, size: int) -> bytes:
        start = self.skip(size)
        return self._data[start : self._at]

    def octet(self) -> int:
        return self._data[self.skip(1)]

    def short(self) -> int:
        return int.from_bytes(self.take(SHORT_BYTES))

    def long(self) -> int:
        return int.from_bytes(self.take(LONG_BYTES))

    def longlong(self) -> int:
        return int.from_bytes(self.take(LONGLONG_BYTES))

    def short_string(self) -> str:
        octets = self.take(self.octet())
        try:
            return octets.decode()
        except UnicodeDecodeError as error:
            raise self.fail(f"malformed UTF-8 at byte {error.start}") from error

    def raw_string(self) -> str:
        return self.take(self.octet()).decode("utf-8", "surrogateescape")

    def long_string(self) -> bytes:
        return self.take(self.long())

    def table(self) -> Table:
        entries = self.take(self.long())
        try:
            return tables.decode(entries, limits=self._limits)
        except PeerError as error:
            raise self.fail(str(error)) from error


def _write_octet(out: bytearray, value: int) -> None:
    _write_number(out, value, 1)


def _write_short(out: bytearray, value: int) -> None:
    _write_number(out, value, SHORT_BYTES)


def _write_long(out: bytearray, value: int) -> None:
    _write_number(out, value, LONG_BYTES)


def _write_longlong(out: bytearray, value: int) -> None:
    _write_number(out, value, LONGLONG_BYTES)


def _write_number(out: bytearray, value: int, size: int) -> None:
    try:
        out += value.to_bytes(size)
    except OverflowError as error:
        raise ValueError(f"{value} does not fit into {size} unsigned bytes") from error


def _write_short_string(out: bytearray, value: str) -> None:
    _write_short_octets(out, value.encode())


def _write_raw_string(out: bytearray, value: str) -> None:
    _write_short_octets(out, value.encode("utf-8", "surrogateescape"))


def _write_short_octets(out: bytearray, octets: bytes) -> None:
    if len(octets) > SHORT_STRING_BYTES_MAX:
        raise ValueError(f"{len(octets)} bytes, more than {SHORT_STRING_BYTES_MAX}")
    out.append(len(octets))
    out += octets


def _write_long_string(out: bytearray, value: bytes) -> None:
    _write_long(out, len(value))
    out += value


def _write_table(out: bytearray, value: Table) -> None:
    _write_long_string(out, tables.encode(value))


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """One elementary type."""

    read: Callable[[Reader], T]
    write: Callable[[bytearray, T], None]


OCTET = Kind(Reader.octet, _write_octet)
SHORT = Kind(Reader.short, _write_short)
LONG = Kind(Reader.long, _write_long)
LONGLONG = Kind(Reader.longlong, _write_longlong)
SHORT_STRING = Kind(Reader.short_string, _write_short_string)
RAW_STRING = Kind(Reader.raw_string, _write_raw_string)
LONG_STRING = Kind(Reader.long_string, _write_long_string)
TABLE = Kind(Reader.table, _write_table)
