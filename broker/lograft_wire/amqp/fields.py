"""The values that stand in AMQP field tables, as Python values that remember their wire type.

    t  bool                 b B  Int8, UInt8          S  str; LongStr where it is not UTF-8
    V  None                 s u  Int16, UInt16        x  bytes
    d  float                I i  Int32, UInt32        T  Timestamp      D  Decimal
    f  Float32              l L  Int64, Long64        F  dict           A  list

This is RabbitMQ's reading of the types, not the specification's (`s` is a signed 16-bit number, `l`
and `L` are both signed 64). Plain Python values may stand in a table that goes out: an int becomes
I, or l where 32 bits do not hold it; tuples count as lists, any mapping as a dict.

Pure values and questions about them; `tables` has the bytes. Used by whoever looks into arguments
or headers: the channel, the metadata machine, the router, the client.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias


class Integer(int):
    """An integer that came with, or must go out with, one wire type. In all else it is an int."""

    __slots__ = ()
    tag: ClassVar[str]


class Int8(Integer):
    __slots__ = ()
    tag = "b"


class UInt8(Integer):
    __slots__ = ()
    tag = "B"


class Int16(Integer):
    __slots__ = ()
    tag = "s"


class UInt16(Integer):
    __slots__ = ()
    tag = "u"


class Int32(Integer):
    __slots__ = ()
    tag = "I"


class UInt32(Integer):
    __slots__ = ()
    tag = "i"


class Int64(Integer):
    __slots__ = ()
    tag = "l"


class Long64(Integer):
    """What py-amqp sends for numbers above 32 bits; the same type as Int64 under another letter."""

    __slots__ = ()
    tag = "L"


class Float32(float):
    """A number that travels in single precision; a plain float travels in double."""

    __slots__ = ()


class LongStr(bytes):
    """The bytes of a long string that is not UTF-8; plain bytes are a byte array."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Timestamp:
    """Not an int, so that nobody takes a moment for a number of milliseconds."""

    seconds: int  # since 1970, unsigned


@dataclass(frozen=True, slots=True, kw_only=True)
class Decimal:
    """`value` / 10 ** `scale`, both unsigned."""

    scale: int
    value: int


Value: TypeAlias = (
    "bool | int | float | str | bytes | Timestamp | Decimal"
    " | Sequence[Value] | Mapping[str, Value] | None"
)
Table: TypeAlias = Mapping[str, Value]

# Tag to RabbitMQ's word for the type, as in "expected integer, got double".
TYPE_NAMES = {
    "t": "bool",
    "b": "byte",
    "B": "unsignedbyte",
    "s": "short",
    "u": "unsignedshort",
    "I": "signedint",
    "i": "unsignedint",
    "l": "long",
    "L": "long",
    "f": "float",
    "d": "double",
    "D": "decimal",
    "S": "longstr",
    "x": "binary",
    "A": "array",
    "F": "table",
    "T": "timestamp",
    "V": "void",
}

# Types of one form hold the same values in another width or under another name.
_FORMS = (
    frozenset(TYPE_NAMES[letter] for letter in "bBsuIilLT"),
    frozenset(TYPE_NAMES[letter] for letter in "fd"),
    frozenset(TYPE_NAMES[letter] for letter in "Sx"),
)

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


def tag(value: Value) -> str:
    """The letter under which `value` travels. ValueError if it cannot."""
    match value:
        case None:
            return "V"
        case bool():  # before int, of which it is one
            return "t"
        case Integer():
            return value.tag
        case int():
            return _tag_of_plain_integer(value)
        case Float32():
            return "f"
        case float():
            return "d"
        case str() | LongStr():
            return "S"
        case bytes():
            return "x"
        case Timestamp():
            return "T"
        case Decimal():
            return "D"
        case Mapping():
            return "F"
        case list() | tuple():
            return "A"
        case _:
            raise ValueError(f"a {type(value).__name__} has no AMQP type")


def type_name(value: Value) -> str:
    return TYPE_NAMES[tag(value)]


def is_integer(value: object) -> bool:
    """Of one of the integer types: neither a bool, which Python counts as one, nor a Timestamp."""
    return isinstance(value, int) and not isinstance(value, bool)


def equal(a: Value, b: Value) -> bool:
    """The same type and the same value, all the way down; the order of table entries is free."""
    if type_name(a) != type_name(b):
        return False
    match a, b:
        case Mapping(), Mapping():
            return a.keys() == b.keys() and all(equal(a[name], b[name]) for name in a)
        case ((list() | tuple()), (list() | tuple())):
            return len(a) == len(b) and all(map(equal, a, b))
        case _:
            return _same(a, b)


def equivalent(a: Value, b: Value) -> bool:
    """RabbitMQ's rule for a redeclared argument: the value counts, its width does not.

    An integer equals the same integer of any width, a long string the byte array of the same bytes;
    10 and 10.0 differ, and inside of tables and arrays the types must be the same.
    """
    types = {type_name(a), type_name(b)}
    if len(types) == 1:
        return equal(a, b)
    return any(types <= form for form in _FORMS) and _same(a, b)


def _tag_of_plain_integer(value: int) -> str:
    if INT32_MIN <= value <= INT32_MAX:
        return "I"
    if INT64_MIN <= value <= INT64_MAX:
        return "l"
    raise ValueError(f"{value} does not fit into 64 bits")


def _same(a: Value, b: Value) -> bool:
    """Equal scalars of one form. A number that is none (NaN) is the same as another."""
    a, b = _plain(a), _plain(b)
    return a == b or (a != a and b != b)


def _plain(value: Value) -> Value:
    match value:
        case Timestamp(seconds):
            return seconds
        case str():
            return value.encode("utf-8", "surrogatepass")
        case _:
            return value
