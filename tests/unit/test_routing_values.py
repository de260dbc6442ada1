"""Values looked up by equality are just those that the wire's comparison calls equivalent."""

import itertools

import pytest

from lograft_broker.routing import values
from lograft_wire.amqp import fields
from lograft_wire.amqp.fields import Value

SCALARS: list[Value] = [
    None, False, True, 0, 1, 2**40, fields.Int8(1), fields.UInt8(0), fields.Int16(1),
    fields.UInt16(1), fields.Int32(1), fields.UInt32(1), fields.Int64(1), fields.Long64(1),
    0.0, -0.0, 1.0, 0.5, float("nan"), float("inf"), fields.Float32(0.5), fields.Float32("nan"),
    "", "1", "a", "é", "\ud800", b"", b"1", b"a", "é".encode(), b"\xed\xa0\x80", b"\xff",
    fields.LongStr(b"\xff"), fields.LongStr(b"a"), fields.Timestamp(1), fields.Timestamp(0),
    fields.Decimal(scale=0, value=1), fields.Decimal(scale=1, value=10),
]  # fmt: skip
NESTED: list[Value] = [
    [], (), {}, [[]], [{}], {"": {}}, [1, "a"], ["a", 1], (1, "a"), {"a": 1, "b": 2},
    {"b": 2, "a": 1}, {"a": [None]},
]  # fmt: skip
ALL: list[Value] = [
    *SCALARS,
    *NESTED,
    *([value] for value in SCALARS),
    *({"a": value} for value in SCALARS),
]
PAIRS = list(itertools.product(ALL, ALL))


def test_comparable_is_equal_just_for_equivalent_values() -> None:
    for a, b in PAIRS:
        equal = values.comparable(a) == values.comparable(b)
        assert equal == fields.equivalent(a, b), (a, b)
        assert not equal or hash(values.comparable(a)) == hash(values.comparable(b)), (a, b)


def test_exact_is_equal_just_for_equal_values() -> None:
    for a, b in PAIRS:
        equal = values.exact(a) == values.exact(b)
        assert equal == fields.equal(a, b), (a, b)
        assert not equal or hash(values.exact(a)) == hash(values.exact(b)), (a, b)


def test_equivalent_values_hash_to_the_same_bytes() -> None:
    for a, b in PAIRS:
        if fields.equivalent(a, b):
            assert values.hashed(a) == values.hashed(b), (a, b)


def test_different_values_mostly_hash_to_different_bytes() -> None:
    assert len({values.hashed(value) for value in ALL}) > 0.4 * len(ALL)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text", '<<"text">>'),
        ("", "<<>>"),
        ("a\nb", "<<97,10,98>>"),
        (b"\xff\x00", "<<255,0>>"),
        (True, "true"),
        (None, "undefined"),
        (fields.Int8(-5), "-5"),
        (0.5, "0.5"),
        (fields.Timestamp(9), "9"),
    ],
)
def test_values_are_shown_as_rabbitmq_shows_them(value: Value, expected: str) -> None:
    assert values.shown(value) == expected


def test_every_value_can_be_shown() -> None:
    for value in ALL:
        assert values.shown(value)
