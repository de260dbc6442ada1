"""Any table, method or property list comes back from its bytes with the same types and values, and
no bytes make a decoder do anything else than return such a value or raise PeerError."""

import dataclasses
from collections.abc import Callable
from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st

from lograft_wire.amqp import fields, layouts, methods, primitives, properties, tables
from lograft_wire.amqp.fields import Table, Value
from lograft_wire.amqp.properties import ContentHeader, Properties
from lograft_wire.errors import PeerError

NAMES = st.text(st.characters(codec="utf-8"), max_size=20)
RAW_STRINGS = st.binary(max_size=60).map(lambda data: data.decode("utf-8", "surrogateescape"))


def integers(make: Callable[[int], Value], low: int, high: int) -> st.SearchStrategy[Value]:
    return st.integers(low, high).map(make)


SCALARS: st.SearchStrategy[Value] = st.one_of(
    st.none(),
    st.booleans(),
    integers(fields.Int8, -(2**7), 2**7 - 1),
    integers(fields.UInt8, 0, 2**8 - 1),
    integers(fields.Int16, -(2**15), 2**15 - 1),
    integers(fields.UInt16, 0, 2**16 - 1),
    integers(fields.Int32, -(2**31), 2**31 - 1),
    integers(fields.UInt32, 0, 2**32 - 1),
    integers(fields.Int64, -(2**63), 2**63 - 1),
    integers(fields.Long64, -(2**63), 2**63 - 1),
    integers(int, -(2**63), 2**63 - 1),
    st.floats(width=32).map(fields.Float32),
    st.floats(),
    st.builds(fields.Decimal, scale=st.integers(0, 255), value=st.integers(0, 2**32 - 1)),
    st.builds(fields.Timestamp, st.integers(0, 2**64 - 1)),
    st.text(st.characters(codec="utf-8"), max_size=20),
    st.binary(max_size=20),
    st.binary(max_size=20).map(fields.LongStr),
)
VALUES: st.SearchStrategy[Value] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(RAW_STRINGS, inner, max_size=4),
    max_leaves=12,
)
TABLES: st.SearchStrategy[Table] = st.dictionaries(RAW_STRINGS, VALUES, max_size=5)

ARGUMENTS: dict[object, st.SearchStrategy[Any]] = {
    get_args(layouts.Bit)[1]: st.booleans(),
    primitives.OCTET: st.integers(0, 2**8 - 1),
    primitives.SHORT: st.integers(0, 2**16 - 1),
    primitives.LONG: st.integers(0, 2**32 - 1),
    primitives.LONGLONG: st.integers(0, 2**64 - 1),
    primitives.SHORT_STRING: NAMES,
    primitives.RAW_STRING: RAW_STRINGS,
    primitives.LONG_STRING: st.binary(max_size=40),
    primitives.TABLE: TABLES,
}
IDS = sorted(layouts.LAYOUTS)


@st.composite
def any_method(draw: st.DrawFn) -> methods.Method:
    make = layouts.LAYOUTS[draw(st.sampled_from(IDS))].make
    values = {
        argument.name: draw(ARGUMENTS[get_args(argument.type)[1]])
        for argument in dataclasses.fields(make)
    }
    method: methods.Method = make(**values)
    return method


PROPERTIES = st.builds(
    Properties,
    **{
        argument.name: st.none() | RAW_STRINGS
        for argument in dataclasses.fields(Properties)
        if argument.name not in ("headers", "delivery_mode", "priority", "timestamp")
    },
    headers=st.none() | TABLES,
    delivery_mode=st.none() | st.integers(0, 255),
    priority=st.none() | st.integers(0, 255),
    timestamp=st.none() | st.integers(0, 2**64 - 1),
)


def by_value(thing: object) -> dict[str, object]:
    """The fields of a method or of properties as one table, so that `equal` can look inside."""
    assert dataclasses.is_dataclass(thing)
    return {field.name: getattr(thing, field.name) for field in dataclasses.fields(thing)}


def assert_same(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    for name, value in by_value(a).items():
        other = getattr(b, name)
        same = fields.equal(value, other) if isinstance(value, dict) else value == other
        assert same, (name, value, other)


@given(TABLES)
def test_tables_come_back_with_their_types_and_order(table: Table) -> None:
    entries = tables.encode(table)
    back = tables.decode(entries)
    assert fields.equal(back, table)
    assert list(back) == list(table)
    assert tables.encode(back) == entries


@given(VALUES, VALUES)
def test_unequal_values_have_other_bytes_and_equal_ones_are_equivalent(a: Value, b: Value) -> None:
    assert fields.equal(a, a)
    assert fields.equal(a, b) == fields.equal(b, a)
    assert fields.equivalent(a, b) == fields.equivalent(b, a)
    if fields.equal(a, b):
        assert fields.equivalent(a, b)
    else:
        assert tables.encode({"": a}) != tables.encode({"": b})


@given(any_method())
def test_methods_come_back(method: methods.Method) -> None:
    payload = methods.encode(method)
    back = methods.decode_payload(payload)
    assert_same(back, method)
    assert methods.encode(back) == payload


@given(PROPERTIES, st.integers(0, 2**64 - 1))
def test_properties_come_back(given_properties: Properties, body_bytes: int) -> None:
    data = properties.encode(given_properties)
    back = properties.decode(data)
    assert_same(back, given_properties)
    assert properties.encode(back) == data
    header = ContentHeader(body_bytes=body_bytes, properties=data)
    assert properties.decode_header(properties.encode_header(header)) == header


@given(PROPERTIES, st.none() | TABLES, st.none() | RAW_STRINGS)
def test_a_changed_list_is_the_list_of_the_changed_properties(
    old: Properties, headers: Table | None, expiration: str | None
) -> None:
    data = properties.encode(old)
    assert properties.with_headers(data, headers) == properties.encode(
        dataclasses.replace(old, headers=headers)
    )
    assert properties.with_expiration(data, expiration) == properties.encode(
        dataclasses.replace(old, expiration=expiration)
    )


# Bytes that nobody encoded


@st.composite
def damaged(draw: st.DrawFn, source: st.SearchStrategy[bytes]) -> bytes:
    data = bytearray(draw(source))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        match draw(st.integers(0, 3)):
            case 0 if at < len(data):
                data[at] = draw(st.integers(0, 255))
            case 1:
                del data[at:]
            case 2:
                data[at:at] = draw(st.binary(max_size=6))
            case _:
                del data[at : at + draw(st.integers(1, 5))]
    return bytes(data)


@given(st.binary(max_size=80) | damaged(TABLES.map(tables.encode)))
def test_any_bytes_are_a_table_or_a_peer_error(entries: bytes) -> None:
    try:
        table = tables.decode(entries)
    except PeerError:
        return
    again = tables.decode(tables.encode(table))
    assert fields.equal(again, table)
    assert len(tables.encode(table)) <= len(entries)


@given(st.sampled_from(IDS), st.binary(max_size=60))
def test_any_arguments_are_a_method_or_a_peer_error(ids: tuple[int, int], data: bytes) -> None:
    try:
        method = methods.decode(*ids, data)
    except PeerError:
        return
    assert_same(methods.decode_payload(methods.encode(method)), method)


@given(st.binary(max_size=60) | damaged(any_method().map(methods.encode)))
def test_any_payload_is_a_method_or_a_peer_error(payload: bytes) -> None:
    try:
        method = methods.decode_payload(payload)
    except PeerError:
        return
    assert_same(methods.decode_payload(methods.encode(method)), method)


@given(st.binary(max_size=80) | damaged(PROPERTIES.map(properties.encode)))
def test_any_bytes_are_properties_or_a_peer_error(data: bytes) -> None:
    try:
        found = properties.decode(data)
    except PeerError:
        return
    assert_same(properties.decode(properties.encode(found)), found)
    assert properties.decode(properties.with_headers(data, None)).headers is None
