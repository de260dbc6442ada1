"""Two kinds of values that rows carry: typed AMQP tables and opaque JSON.

Both know their one written form, so that equality is exact (3 and 3.0 differ, and so do numbers of
different width), they can be keys, and every replica writes the same bytes.
"""

import functools
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from lograft_wire.amqp import fields, tables
from lograft_wire.amqp.fields import Table, Value
from lograft_wire.errors import DamagedError, PeerError, RefusedError

SHARED_COUNT_MAX = 1024
# Well below where Python's own parser gives up, which depends on who calls it.
JSON_DEPTH_MAX = 64
JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"


class Arguments(Mapping[str, Value]):
    """A field table that does not change, with its entries in the order of their names: RabbitMQ
    sorts them too, so the order in which a client sent them tells nothing apart."""

    __slots__ = ("_table", "encoded")

    def __init__(self, table: Table) -> None:
        self._table = {name: table[name] for name in sorted(table)}
        try:
            self.encoded = tables.encode(self._table)
        except ValueError as error:
            raise RefusedError(str(error)) from error

    def __getitem__(self, name: str) -> Value:
        return self._table[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def __contains__(self, name: object) -> bool:
        return name in self._table

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Arguments) and self.encoded == other.encoded

    def __hash__(self) -> int:
        return hash(self.encoded)

    def __repr__(self) -> str:
        return f"Arguments({self._table!r})"

    def with_entry(self, name: str, value: Value) -> "Arguments":
        return Arguments({**self._table, name: value})


EMPTY = Arguments({})


@functools.lru_cache(maxsize=SHARED_COUNT_MAX)
def decode_arguments(encoded: bytes) -> Arguments:
    """Queues are often declared alike: they share their arguments."""
    if not encoded:
        return EMPTY
    try:
        found = Arguments(tables.decode(encoded))
    except (PeerError, RefusedError) as error:
        raise DamagedError(f"arguments of {len(encoded)} bytes: {error}") from error
    if found.encoded != encoded:
        raise DamagedError(f"arguments of {len(encoded)} bytes are not in their one form")
    return found


class Json:
    """`value` is never changed by anybody."""

    __slots__ = ("text", "value")

    def __init__(self, value: JsonValue) -> None:
        if _deeper_than(value, JSON_DEPTH_MAX):
            raise RefusedError(f"JSON is nested more than {JSON_DEPTH_MAX} deep")
        try:
            self.text = json.dumps(
                value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True
            )
        except (ValueError, TypeError) as error:
            raise RefusedError(f"not a JSON value: {error}") from error
        self.value: JsonValue = json.loads(self.text)  # our own copy, keys in order

    @classmethod
    def parse(cls, text: str) -> "Json":
        try:
            found = cls(json.loads(text))
        except (ValueError, RecursionError, RefusedError) as error:
            raise DamagedError(f"JSON of {len(text)} characters: {error}") from error
        if found.text != text:
            raise DamagedError(f"JSON of {len(text)} characters is not in its one form")
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Json) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Json({self.text})"


def _deeper_than(value: JsonValue, depth_max: int) -> bool:
    level = [value]
    for _ in range(depth_max + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True


def to_json(value: Value) -> JsonValue:
    """A field value as RabbitMQ's admin API shows it: types are lost, numbers stay numbers."""
    match value:
        case None | bool():
            return value
        case int():
            return int(value)
        case float():
            return float(value) if math.isfinite(value) else None
        case str():
            return value.encode("utf-8", "replace").decode()
        case bytes():
            return value.decode("utf-8", "replace")
        case fields.Timestamp(seconds):
            return seconds
        case fields.Decimal():
            return float(value.value) / 10.0**value.scale
        case Mapping():
            return {name: to_json(item) for name, item in value.items()}
        case _:
            return [to_json(item) for item in value]


def from_json(value: JsonValue) -> Value:
    """The other way: RabbitMQ takes every integer for a long."""
    match value:
        case bool() | None | float() | str():
            return value
        case int():
            if not fields.INT64_MIN <= value <= fields.INT64_MAX:
                raise RefusedError("a number does not fit into 64 bits")
            return fields.Int64(value)
        case dict():
            return {name: from_json(item) for name, item in value.items()}
        case _:
            return [from_json(item) for item in value]


def arguments_from_json(value: Mapping[str, Any]) -> Arguments:
    return Arguments({name: from_json(item) for name, item in value.items()})
