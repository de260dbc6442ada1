"""Field tables: the bytes of every type, what is refused, and what survives being read."""

import pytest

from lograft_wire.amqp import codes, fields, tables
from lograft_wire.amqp.fields import (
    Decimal,
    Float32,
    Int8,
    Int16,
    Int32,
    Int64,
    Long64,
    LongStr,
    Table,
    Timestamp,
    UInt8,
    UInt16,
    UInt32,
    Value,
)
from lograft_wire.errors import PeerError

# A value and its bytes, the tag included.
EVERY_TYPE: list[tuple[Value, bytes]] = [
    (True, b"t\x01"),
    (False, b"t\x00"),
    (Int8(-5), b"b\xfb"),
    (UInt8(250), b"B\xfa"),
    (Int16(-2), b"s\xff\xfe"),
    (UInt16(65534), b"u\xff\xfe"),
    (Int32(-2), b"I\xff\xff\xff\xfe"),
    (UInt32(2**32 - 2), b"i\xff\xff\xff\xfe"),
    (Int64(-2), b"l\xff\xff\xff\xff\xff\xff\xff\xfe"),
    (Long64(258), b"L\x00\x00\x00\x00\x00\x00\x01\x02"),
    (Float32(1.5), b"f\x3f\xc0\x00\x00"),
    (1.5, b"d\x3f\xf8\x00\x00\x00\x00\x00\x00"),
    (Decimal(scale=2, value=314), b"D\x02\x00\x00\x01\x3a"),
    (Decimal(scale=255, value=2**32 - 1), b"D\xff\xff\xff\xff\xff"),
    ("é", b"S\x00\x00\x00\x02\xc3\xa9"),
    ("", b"S\x00\x00\x00\x00"),
    (LongStr(b"\xff"), b"S\x00\x00\x00\x01\xff"),
    (b"\xffx", b"x\x00\x00\x00\x02\xffx"),
    ([], b"A\x00\x00\x00\x00"),
    ([True, None, ["a"]], b"A\x00\x00\x00\x0et\x01VA\x00\x00\x00\x06S\x00\x00\x00\x01a"),
    ({}, b"F\x00\x00\x00\x00"),
    ({"a": None, "b": {"c": True}}, b"F\x00\x00\x00\x0e\x01aV\x01bF\x00\x00\x00\x04\x01ct\x01"),
    (Timestamp(2**63 + 1), b"T\x80\x00\x00\x00\x00\x00\x00\x01"),
    (None, b"V"),
]
BY_TAG = [pytest.param(*row, id=f"{row[1][:1].decode()}-{row[0]}") for row in EVERY_TYPE]


def refused(entries: bytes, *, limits: tables.Limits = tables.LIMITS) -> str:
    with pytest.raises(PeerError) as caught:
        tables.decode(entries, limits=limits)
    assert caught.value.reply_code == codes.SYNTAX_ERROR
    assert caught.value.closes_connection
    return str(caught.value)


def nested(depth: int) -> Table:
    """A table of that depth, tables and arrays by turns."""
    value: Value = {}
    for level in range(depth - 1):
        value = {"t": value} if level % 2 or level == depth - 2 else [value]
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize(("value", "encoded"), BY_TAG)
def test_every_type_has_the_published_bytes(value: Value, encoded: bytes) -> None:
    assert tables.encode({"key": value}) == b"\x03key" + encoded
    decoded = tables.decode(b"\x03key" + encoded)
    assert list(decoded) == ["key"]
    assert fields.equal(decoded["key"], value)
    assert type(decoded["key"]) is type(value)
    assert tables.encode(decoded) == b"\x03key" + encoded


@pytest.mark.parametrize(("value", "encoded"), BY_TAG)
def test_every_cut_value_is_refused_by_name(value: Value, encoded: bytes) -> None:
    for size in range(len(encoded)):
        assert refused(b"\x03key" + encoded[:size]).startswith("table: 'key'")


def test_every_type_is_covered() -> None:
    assert {encoded[:1].decode() for _, encoded in EVERY_TYPE} == set(fields.TYPE_NAMES)


def test_plain_integers_become_32_or_64_bits() -> None:
    assert tables.encode({"a": 5}) == b"\x01aI\0\0\0\x05"
    assert tables.encode({"a": 2**31}) == b"\x01al\0\0\0\0\x80\0\0\0"
    assert tables.encode({"a": (1,)}) == b"\x01aA\0\0\0\x05I\0\0\0\x01"


def test_entries_keep_their_order() -> None:
    entries = b"\x01zV\x01at\x01\x00V"
    table = tables.decode(entries)
    assert list(table.items()) == [("z", None), ("a", True), ("", None)]
    assert tables.encode(table) == entries


def test_the_empty_table_is_no_bytes() -> None:
    assert tables.decode(b"") == {}
    assert tables.encode({}) == b""


def test_any_nonzero_octet_is_true_and_written_as_one() -> None:
    table = tables.decode(b"\x01at\x07")
    assert table == {"a": True}
    assert tables.encode(table) == b"\x01at\x01"


def test_of_entries_with_one_name_the_first_counts() -> None:
    assert tables.decode(b"\x01aI\0\0\0\x01\x01aI\0\0\0\x02") == {"a": 1}


def test_a_name_outside_utf8_is_kept() -> None:
    entries = b"\x02k\xffV"
    table = tables.decode(entries)
    assert table == {"k\udcff": None}
    assert tables.encode(table) == entries


def test_numbers_that_are_none_and_infinities_are_kept() -> None:
    for encoded in (
        b"d\x7f\xf8\0\0\0\0\0\0",
        b"d\xff\xf0\0\0\0\0\0\0",
        b"f\x7f\xc0\0\0",
        b"f\xff\x80\0\0",
    ):
        assert tables.encode(tables.decode(b"\x01a" + encoded)) == b"\x01a" + encoded


def test_unknown_types_are_refused_and_named() -> None:
    known = {ord(tag) for tag in fields.TYPE_NAMES}
    for tag in set(range(256)) - known:
        message = refused(b"\x01a" + bytes([tag]) + bytes(16))
        assert message == f"table: 'a' has the unknown type {bytes([tag])!r}"


def test_a_name_beyond_the_table_is_refused() -> None:
    assert refused(b"\x09abc") == "table: name of 9 bytes where 3 are left"


def test_a_value_may_not_reach_beyond_the_table_around_it() -> None:
    message = refused(b"\x01aF\0\0\0\x06\x01bS\0\0\0\x05hello")
    assert message == "table: 'b' of type S ends in its size"
    message = refused(b"\x01aF\0\0\0\x09\x01bS\0\0\0\x05hello")
    assert message == "table: 'b' of type S has 5 bytes where 2 are left"
    assert refused(b"\x01aA\0\0\0\x03I\0\0\0\0") == "table: 'a' of type I needs 4 bytes"


def test_a_size_of_four_gigabytes_is_refused() -> None:
    for tag in b"SxAF":
        message = refused(b"\x01a" + bytes([tag]) + b"\xff\xff\xff\xff")
        assert message.endswith("has 4294967295 bytes where 0 are left")


def test_depth_is_limited_both_ways() -> None:
    limits = tables.Limits(depth_max=4)
    entries = tables.encode(nested(4), limits=limits)
    assert tables.decode(entries, limits=limits) == nested(4)
    deeper = tables.encode(nested(5))
    assert refused(deeper, limits=limits) == "table: nested more than 4 deep"
    with pytest.raises(ValueError, match="nested too deep"):
        tables.encode(nested(5), limits=limits)


def test_thousands_of_levels_are_refused_without_harm() -> None:
    inside_of_tables, inside_of_arrays = b"", b"V"
    for _ in range(5_000):
        inside_of_tables = b"\x00F" + len(inside_of_tables).to_bytes(4) + inside_of_tables
        inside_of_arrays = b"A" + len(inside_of_arrays).to_bytes(4) + inside_of_arrays
    assert refused(inside_of_tables) == "table: nested more than 32 deep"
    assert refused(b"\x00" + inside_of_arrays) == "table: nested more than 32 deep"


def test_a_table_that_holds_itself_is_refused() -> None:
    table: dict[str, Value] = {}
    table["self"] = [table]
    with pytest.raises(ValueError, match="nested too deep"):
        tables.encode(table)


def test_entries_are_counted_through_all_levels() -> None:
    limits = tables.Limits(entry_count_max=4)
    assert tables.decode(b"\x00V\x01aA\0\0\0\x02VV", limits=limits)
    for entries in (
        b"\x00V" * 5,
        b"\x01aA\0\0\0\x04VVVV",
        b"\x01aF\0\0\0\x08\x00V\x00V\x00V\x00V",
    ):
        assert refused(entries, limits=limits) == "table: more than 4 entries"


def test_an_array_of_nothing_costs_no_memory_beyond_the_limit() -> None:
    size = 1 << 17
    assert refused(b"\x00A" + size.to_bytes(4) + b"V" * size).startswith("table: more than 16384")


def test_bytes_are_limited_both_ways() -> None:
    limits = tables.Limits(table_bytes_max=9)
    assert tables.decode(b"\x01aS\0\0\0\x02hi", limits=limits) == {"a": "hi"}
    message = refused(b"\x01aS\0\0\0\x03hey", limits=limits)
    assert message == "table: 10 bytes, more than 9"
    with pytest.raises(ValueError, match="10 bytes, more than 9"):
        tables.encode({"a": "hey"}, limits=limits)


def test_what_has_no_wire_form_is_a_value_error_with_its_place() -> None:
    wrong: list[tuple[Table, str]] = [
        ({"n": Int8(128)}, "table: 'n': "),
        ({"n": UInt16(-1)}, "table: 'n': "),
        ({"n": 2**63}, "table: 'n': 9223372036854775808 does not fit"),
        ({"n": Float32(1e300)}, "table: 'n': "),
        ({"n": Timestamp(-1)}, "table: 'n': "),
        ({"n": Decimal(scale=256, value=0)}, "table: 'n': "),
        ({"n": "\ud800"}, "table: 'n': "),
        ({"a": [{"n": object()}]}, "table: 'a': 'n': a object has no AMQP type"),  # type: ignore[dict-item]
        ({"é" * 128: 1}, "table: name of 256 bytes"),
    ]
    for table, text in wrong:
        with pytest.raises(ValueError, match=text):
            tables.encode(table)


def test_the_longest_name_fits() -> None:
    name = "n" * 255
    entries = b"\xff" + name.encode() + b"V"
    assert tables.encode({name: None}) == entries
    assert tables.decode(entries) == {name: None}
