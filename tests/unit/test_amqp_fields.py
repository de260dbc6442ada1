"""Field values know their wire type; equality goes by type, equivalence by value."""

import math
from types import MappingProxyType

import pytest

from lograft_wire.amqp import fields
from lograft_wire.amqp.fields import (
    Decimal,
    Float32,
    Int8,
    Int32,
    Int64,
    Long64,
    LongStr,
    Timestamp,
    UInt8,
    UInt16,
    UInt32,
    Value,
)

NAN = math.nan
# One value of each type, all different under `equal`.
SPECIMENS: dict[str, Value] = {
    "t": True,
    "b": Int8(1),
    "B": UInt8(1),
    "s": fields.Int16(1),
    "u": UInt16(1),
    "I": Int32(1),
    "i": UInt32(1),
    "l": Int64(1),
    "f": Float32(1.0),
    "d": 1.0,
    "D": Decimal(scale=0, value=1),
    "S": "1",
    "x": b"1",
    "A": [1],
    "F": {"1": 1},
    "T": Timestamp(1),
    "V": None,
}


def test_each_value_has_its_tag() -> None:
    assert {tag: fields.tag(value) for tag, value in SPECIMENS.items()} == {
        tag: tag for tag in SPECIMENS
    }
    assert SPECIMENS.keys() | {"L"} == fields.TYPE_NAMES.keys()


def test_plain_integers_take_the_smallest_of_two_types() -> None:
    for value, tag in (
        (2**31 - 1, "I"),
        (-(2**31), "I"),
        (2**31, "l"),
        (-(2**31) - 1, "l"),
        (2**63 - 1, "l"),
        (-(2**63), "l"),
    ):
        assert fields.tag(value) == tag
    for value in (2**63, -(2**63) - 1):
        with pytest.raises(ValueError, match="64 bits"):
            fields.tag(value)


def test_any_mapping_and_tuples_have_a_tag() -> None:
    assert fields.tag(MappingProxyType({})) == "F"
    assert fields.tag(()) == "A"


def test_other_objects_have_none() -> None:
    for value in (object(), {1, 2}, 1j):
        with pytest.raises(ValueError, match="has no AMQP type"):
            fields.tag(value)  # type: ignore[arg-type]


def test_typed_integers_are_numbers_in_all_else() -> None:
    assert Int64(5) == 5
    assert {"a": Int8(3)} == {"a": 3}
    assert f"{Int64(5)}" == "5"
    assert repr(Int32(5)) == "5"


def test_integers_are_told_from_bools_and_timestamps() -> None:
    kinds = {tag for tag, value in SPECIMENS.items() if fields.is_integer(value)}
    assert kinds == set("bBsuIil")
    assert fields.is_integer(7)


def test_values_of_different_types_are_never_equal() -> None:
    for tag, value in SPECIMENS.items():
        equals = {other for other, one in SPECIMENS.items() if fields.equal(value, one)}
        assert equals == {tag}


def test_one_type_under_two_letters_is_equal() -> None:
    assert fields.equal(Long64(7), Int64(7))
    assert fields.equal(LongStr(b"abc"), "abc")
    assert fields.equal(7, Int32(7))
    assert fields.equal((1, 2), [1, 2])
    assert not fields.equal(7, Int64(7))


def test_equality_looks_into_tables_and_arrays() -> None:
    assert fields.equal({"a": 1, "b": [1, {"c": None}]}, {"b": [1, {"c": None}], "a": 1})
    for other in ({"a": Int64(1)}, {"a": 2}, {"b": 1}, {}, {"a": 1, "b": 1}, {"a": True}):
        assert not fields.equal({"a": 1}, other)
    for array in ([1], [2, 1], [1, 2, 3], [1, Int64(2)], []):
        assert not fields.equal([1, 2], array)


def test_a_number_that_is_none_equals_itself() -> None:
    assert fields.equal(NAN, float("nan"))
    assert fields.equal({"a": [NAN]}, {"a": [NAN]})
    assert not fields.equal(NAN, 1.0)
    assert not fields.equal(NAN, Float32("nan"))


def test_integers_of_all_widths_are_equivalent() -> None:
    integers = [SPECIMENS[tag] for tag in "bBsuIil"] + [1, Long64(1)]
    for a in integers:
        for b in integers:
            assert fields.equivalent(a, b)
    assert not fields.equivalent(Int8(1), Int64(2))


def test_equivalence_of_other_types() -> None:
    assert fields.equivalent("x", b"x")
    assert fields.equivalent(1.5, Float32(1.5))
    assert not fields.equivalent(10, 10.0)
    assert not fields.equivalent(1, True)
    assert not fields.equivalent("1", 1)
    assert not fields.equivalent(1, Decimal(scale=0, value=1))
    assert not fields.equivalent(None, 0)
    assert not fields.equivalent("x", "y")


def test_inside_of_tables_only_equal_values_are_equivalent() -> None:
    assert fields.equivalent({"a": [1]}, {"a": [1]})
    assert not fields.equivalent({"a": 1}, {"a": Int64(1)})
    assert not fields.equivalent([1], [Int8(1)])


def test_type_names_are_those_of_rabbitmq() -> None:
    assert fields.type_name(10.0) == "double"
    assert fields.type_name(Timestamp(0)) == "timestamp"
    assert fields.type_name(5) == "signedint"
    assert fields.type_name(Int64(5)) == "long"
    assert fields.type_name("text") == "longstr"
