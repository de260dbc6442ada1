"""The kinds of exchange: which there are, and what they refuse."""

from collections import Counter

import pytest

from lograft_broker.routing import kinds
from lograft_broker.routing.chance import Random
from lograft_broker.routing.matcher import Bag, Binding, Matcher
from lograft_log.env import RealRng
from lograft_wire.amqp.fields import Table


@pytest.mark.parametrize("kind", kinds.KINDS)
def test_every_kind_can_be_declared_and_made(kind: str) -> None:
    arguments: Table = {"x-delayed-type": "topic"} if kind == kinds.DELAYED else {}
    assert kinds.exchange_refusal(kind, arguments) is None
    matcher: Matcher[str] = kinds.make(kind, arguments, RealRng())
    assert matcher.match(b"key", None, None) == ()


@pytest.mark.parametrize("kind", ["", "nosuch", "Direct", "x-recent-history"])
def test_unknown_kinds_are_refused(kind: str) -> None:
    assert kinds.exchange_refusal(kind, {}) == f"unknown exchange type '{kind}'"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, "Invalid argument, 'x-delayed-type' must be an existing exchange type"),
        (
            {"x-delayed-type": 5},
            "Invalid argument, 'x-delayed-type' must be an existing exchange type",
        ),
        (
            {"x-delayed-type": "x-delayed-message"},
            "Invalid argument, 'x-delayed-message' can't be used for 'x-delayed-type'",
        ),
        ({"x-delayed-type": "nosuch"}, "unknown exchange type 'nosuch'"),
        (
            {"x-delayed-type": "x-consistent-hash", "hash-property": "x"},
            "Unsupported property: x",
        ),
    ],
)
def test_a_delayed_exchange_needs_the_name_of_another_kind(arguments: Table, expected: str) -> None:
    assert kinds.exchange_refusal(kinds.DELAYED, arguments) == expected


def test_a_delayed_exchange_refuses_the_bindings_its_kind_refuses() -> None:
    hash_arguments: Table = {"x-delayed-type": "x-consistent-hash"}
    header_arguments: Table = {"x-delayed-type": "headers"}
    assert kinds.binding_refusal(kinds.DELAYED, hash_arguments, key=b"0", arguments={}) is not None
    assert kinds.binding_refusal(kinds.DELAYED, hash_arguments, key=b"1", arguments={}) is None
    bad: Table = {"x-match": "none"}
    assert kinds.binding_refusal(kinds.DELAYED, header_arguments, key=b"", arguments=bad)


@pytest.mark.parametrize("kind", ["direct", "fanout", "topic", "x-modulus-hash", "x-random"])
def test_other_kinds_take_any_key_and_arguments(kind: str) -> None:
    assert kinds.binding_refusal(kind, {}, key=b"any", arguments={"x-match": "none"}) is None


def test_random_takes_one_of_the_bindings_and_only_those() -> None:
    matcher = Random[str](RealRng())
    bindings = [
        Binding(destination=queue, label=queue.encode(), key=b"", arguments={})
        for queue in ("a", "b", "b", "c")
    ]
    for binding in bindings:
        matcher.add(binding)
    counts = Counter(matcher.match(b"", None, None) for _ in range(2000))
    assert set(counts) == {("a",), ("b",), ("c",)}
    assert counts[("b",)] > max(counts[("a",)], counts[("c",)])
    matcher.remove(bindings[0])
    matcher.remove(bindings[2])
    matcher.remove(bindings[1])
    assert {matcher.match(b"", None, None) for _ in range(50)} == {("c",)}


def test_random_survives_a_number_at_the_very_end_of_its_range() -> None:
    class AtTheEnd(RealRng):
        def uniform(self, low: float, high: float) -> float:
            return high

    matcher = Random[str](AtTheEnd())
    matcher.add(Binding(destination="a", label=b"a", key=b"", arguments={}))
    assert matcher.match(b"", None, None) == ("a",)


def test_a_bag_makes_its_tuple_once() -> None:
    bag = Bag[str]()
    for name in ("b", "a", "b"):
        bag.add(name)
    assert list(bag.members) == ["b", "a"]
    assert bag.members is bag.members
    bag.remove("b")
    assert list(bag.members) == ["b", "a"]
    bag.remove("b")
    assert list(bag.members) == ["a"]
