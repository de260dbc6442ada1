"""Consistent hash and modulus hash: shares, stability, what is hashed, what is refused."""

from collections import Counter
from types import SimpleNamespace

import pytest

from lograft_broker.routing import kinds
from lograft_broker.routing.hashing import ConsistentHash, ModulusHash
from lograft_broker.routing.matcher import Binding
from lograft_wire.amqp import fields
from lograft_wire.amqp.fields import Table, Value

KEYS = [b"customer.%d" % number for number in range(4000)]


def bound(queue: str, weight: bytes = b"1") -> Binding[str]:
    label = b"queue/" + queue.encode()
    return Binding(destination=queue, label=label, key=weight, arguments={})


def exchange(*bindings: Binding[str], arguments: Table | None = None) -> ConsistentHash[str]:
    result = ConsistentHash[str](arguments or {})
    for binding in bindings:
        result.add(binding)
    return result


def chosen(matcher: ConsistentHash[str] | ModulusHash[str], key: bytes) -> str:
    (queue,) = matcher.match(key, None, None)
    return queue


def test_shares_follow_the_weights() -> None:
    matcher = exchange(bound("a", b"1"), bound("b", b"2"), bound("c", b"5"))
    counts = Counter(chosen(matcher, key) for key in KEYS)
    for queue, share in (("a", 1 / 8), ("b", 2 / 8), ("c", 5 / 8)):
        assert counts[queue] == pytest.approx(share * len(KEYS), rel=0.15)


def test_a_new_queue_only_takes_keys_and_takes_its_share() -> None:
    before = exchange(*(bound(f"q{number}") for number in range(9)))
    after = exchange(*(bound(f"q{number}") for number in range(10)))
    moved = [key for key in KEYS if chosen(before, key) != chosen(after, key)]
    assert {chosen(after, key) for key in moved} == {"q9"}
    assert len(moved) == pytest.approx(len(KEYS) / 10, rel=0.2)


def test_a_queue_that_goes_moves_only_its_own_keys() -> None:
    bindings = [bound(f"q{number}") for number in range(10)]
    matcher = exchange(*bindings)
    before = {key: chosen(matcher, key) for key in KEYS}
    matcher.remove(bindings[3])
    for key in KEYS:
        if before[key] != "q3":
            assert chosen(matcher, key) == before[key]
    assert "q3" not in {chosen(matcher, key) for key in KEYS}


def test_the_order_of_binding_does_not_matter() -> None:
    one = exchange(bound("a"), bound("b", b"3"), bound("c"))
    two = exchange(bound("c"), bound("a"), bound("gone"), bound("b", b"3"))
    two.remove(next(binding for binding in two._bindings if binding.destination == "gone"))
    assert [chosen(one, key) for key in KEYS] == [chosen(two, key) for key in KEYS]


def test_choices_stay_as_they_were_released() -> None:
    """Another hash would send keys elsewhere after an upgrade, and between nodes during one."""
    matcher = exchange(bound("a"), bound("b"), bound("c", b"4"))
    found = "".join(chosen(matcher, b"key.%d" % number) for number in range(24))
    assert found == "accbcbccccccbcacccccabcc"


def test_bindings_of_one_queue_add_up() -> None:
    twice = exchange(bound("a", b"1"), bound("a", b"2"), bound("b", b"1"))
    once = exchange(bound("a", b"3"), bound("b", b"1"))
    assert [chosen(twice, key) for key in KEYS] == [chosen(once, key) for key in KEYS]


def test_without_bindings_nobody_is_chosen() -> None:
    matcher = exchange()
    assert matcher.match(b"key", None, None) == ()
    binding = bound("a")
    matcher.add(binding)
    assert matcher.match(b"key", None, None) == ("a",)
    matcher.remove(binding)
    assert matcher.match(b"key", None, None) == ()


def test_a_header_is_hashed_where_the_exchange_names_one() -> None:
    queues = [bound(f"q{number}") for number in range(50)]
    by_key = exchange(*queues)
    by_header = exchange(*queues, arguments={"hash-header": "tenant"})
    assert (by_key.needs.headers, by_header.needs.headers) == (False, True)
    for tenant in ("one", "two", "three"):
        for key in (b"a", b"b"):
            found = by_header.match(key, {"tenant": tenant}, None)
            assert found == by_key.match(tenant.encode(), None, None)
    missing = by_key.match(b"", None, None)
    assert by_header.match(b"a", None, None) == missing
    assert by_header.match(b"a", {"other": "one"}, None) == missing


@pytest.mark.parametrize(
    ("value", "same"),
    [
        (fields.Int8(7), fields.Int64(7)),
        (7, fields.Timestamp(7)),
        ("text", b"text"),
        ([1, 2], (1, 2)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (fields.Float32(0.5), 0.5),
    ],
)
def test_equivalent_header_values_go_the_same_way(value: Value, same: Value) -> None:
    matcher = exchange(
        *(bound(f"q{number}") for number in range(1000)), arguments={"hash-header": "h"}
    )
    assert matcher.match(b"", {"h": value}, None) == matcher.match(b"", {"h": same}, None)
    assert matcher.match(b"", {"h": value}, None) != matcher.match(b"", {"h": "another"}, None)


@pytest.mark.parametrize("name", ["message_id", "correlation_id", "timestamp"])
def test_a_property_is_hashed_where_the_exchange_names_one(name: str) -> None:
    queues = [bound(f"q{number}") for number in range(50)]
    by_key = exchange(*queues)
    by_property = exchange(*queues, arguments={"hash-property": name})
    assert by_property.needs.properties
    assert not by_property.needs.headers
    given = SimpleNamespace(message_id="m-1", correlation_id="c-1", timestamp=1700000000)
    hashed = {"message_id": b"m-1", "correlation_id": b"c-1", "timestamp": b"1700000000"}[name]
    assert by_property.match(b"a", None, given) == by_key.match(hashed, None, None)
    empty = SimpleNamespace(message_id=None, correlation_id=None, timestamp=None)
    assert by_property.match(b"a", None, empty) == by_key.match(b"", None, None)
    assert by_property.match(b"a", None, None) == by_key.match(b"", None, None)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"1", None),
        (b"10", None),
        (b"+3", None),
        (b"007", None),
        (b"16777216", None),
        (b"0", "The binding key must be greater than 0"),
        (b"-1", "The binding key must be greater than 0"),
        (b"", "The binding key must be an integer: <<>>"),
        (b"abc", 'The binding key must be an integer: <<"abc">>'),
        (b"1.5", 'The binding key must be an integer: <<"1.5">>'),
        (b"1_000", 'The binding key must be an integer: <<"1_000">>'),
        (b" 1", 'The binding key must be an integer: <<" 1">>'),
        (b'"\\', 'The binding key must be an integer: <<"\\"\\\\">>'),
        (b"\xff", "The binding key must be an integer: <<255>>"),
        ("é".encode(), 'The binding key must be an integer: <<"é"/utf8>>'),
        (b"16777217", "The binding key must not be greater than 16777216"),
    ],
)
def test_weights_are_positive_integers(key: bytes, expected: str | None) -> None:
    assert kinds.binding_refusal("x-consistent-hash", {}, key=key, arguments={}) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, None),
        ({"hash-header": "tenant"}, None),
        ({"hash-property": "message_id"}, None),
        ({"hash-property": "user_id"}, "Unsupported property: user_id"),
        (
            {"hash-property": "message_id", "hash-header": "tenant"},
            "hash-header and hash-property are mutually exclusive",
        ),
        ({"hash-header": 5}, "hash-header must be a string"),
        ({"hash-property": None}, "hash-property must be a string"),
    ],
)
def test_what_a_consistent_hash_exchange_may_hash(arguments: Table, expected: str | None) -> None:
    assert kinds.exchange_refusal("x-consistent-hash", arguments) == expected


def test_modulus_hash_chooses_one_by_name_and_counts_bindings() -> None:
    def build(order: list[str]) -> ModulusHash[str]:
        matcher = ModulusHash[str]()
        for number, queue in enumerate(order):
            matcher.add(bound(queue, b"%d" % number))
        return matcher

    one, two = build(["a", "b", "b", "b"]), build(["b", "b", "a", "b"])
    assert [chosen(one, key) for key in KEYS] == [chosen(two, key) for key in KEYS]
    counts = Counter(chosen(one, key) for key in KEYS)
    assert counts["b"] == pytest.approx(0.75 * len(KEYS), rel=0.1)


def test_modulus_hash_without_bindings_chooses_nobody() -> None:
    matcher = ModulusHash[str]()
    binding = bound("a")
    matcher.add(binding)
    assert matcher.match(b"key", None, None) == ("a",)
    matcher.remove(binding)
    assert matcher.match(b"key", None, None) == ()
