"""The headers exchange: modes, presence, names with x-, and values of different types."""

import pytest

from lograft_broker.routing import headers, kinds
from lograft_broker.routing.matcher import Binding
from lograft_wire.amqp import fields
from lograft_wire.amqp.fields import Table, Value


def takes(arguments: Table, given: Table | None) -> bool:
    matcher = headers.Headers[str]()
    matcher.add(Binding(destination="queue", label=b"", key=b"", arguments=arguments))
    found = matcher.match(b"key", given, None)
    assert found in ((), ("queue",))
    return bool(found)


@pytest.mark.parametrize(
    ("arguments", "given", "expected"),
    [
        ({"x-match": "all", "a": "1", "b": "2"}, {"a": "1", "b": "2", "c": "3"}, True),
        ({"x-match": "all", "a": "1", "b": "2"}, {"a": "1"}, False),
        ({"x-match": "all", "a": "1", "b": "2"}, {"a": "1", "b": "3"}, False),
        ({"x-match": "any", "a": "1", "b": "2"}, {"b": "2"}, True),
        ({"x-match": "any", "a": "1", "b": "2"}, {"a": "2", "b": "1"}, False),
        ({"a": "1", "b": "2"}, {"a": "1"}, False),  # without x-match: all
        ({"a": "1", "b": "2"}, {"b": "2", "a": "1"}, True),
    ],
)
def test_all_and_any(arguments: Table, given: Table, expected: bool) -> None:
    assert takes(arguments, given) is expected


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("all", True), ("any", False), ("all-with-x", True), ("any-with-x", False), (None, True)],
)
def test_nothing_asked_for_is_everything_for_all_and_nothing_for_any(
    mode: str | None, expected: bool
) -> None:
    arguments: Table = {} if mode is None else {"x-match": mode}
    assert takes(arguments, None) is expected
    assert takes(arguments, {}) is expected
    assert takes(arguments, {"a": "1"}) is expected


def test_arguments_with_x_count_only_in_the_modes_that_say_so() -> None:
    wanted: Table = {"a": "1", "x-b": "2"}
    assert takes({"x-match": "all", **wanted}, {"a": "1"})
    assert not takes({"x-match": "any", **wanted}, {"x-b": "2"})
    assert not takes({"x-match": "all-with-x", **wanted}, {"a": "1"})
    assert takes({"x-match": "all-with-x", **wanted}, {"a": "1", "x-b": "2"})
    assert takes({"x-match": "any-with-x", **wanted}, {"x-b": "2"})


def test_x_match_itself_is_never_asked_for() -> None:
    assert takes({"x-match": "all-with-x", "a": "1"}, {"a": "1"})
    assert not takes({"x-match": "any-with-x", "a": "1"}, {"x-match": "any-with-x"})


def test_an_argument_without_value_asks_for_presence() -> None:
    assert takes({"a": None}, {"a": "anything"})
    assert takes({"a": None}, {"a": None})
    assert not takes({"a": None}, {"b": "1"})
    assert takes({"x-match": "any", "a": None, "b": "1"}, {"a": [1, 2]})
    assert not takes({"a": None, "b": "1"}, {"a": "1"})
    assert not takes({"a": "1"}, {"a": None})


@pytest.mark.parametrize(
    ("wanted", "given", "expected"),
    [
        (fields.Int8(5), fields.Int64(5), True),
        (fields.UInt16(5), 5, True),
        (fields.Timestamp(5), fields.Int32(5), True),
        (fields.Float32(0.5), 0.5, True),
        ("text", b"text", True),
        (fields.LongStr(b"\xff"), b"\xff", True),
        (1, True, False),
        (0, False, False),
        (1, 1.0, False),
        (1, "1", False),
        ("text", "Text", False),
        (fields.Decimal(scale=1, value=10), fields.Decimal(scale=1, value=10), True),
        (fields.Decimal(scale=1, value=10), fields.Decimal(scale=0, value=1), False),
        ([1, "a"], [1, "a"], True),
        ([1, "a"], ["a", 1], False),
        ({"k": 1, "l": [2]}, {"l": [2], "k": 1}, True),
        ({"k": 1}, {"k": fields.Int64(1)}, False),
    ],
)
def test_values_compare_by_value_not_by_width(wanted: Value, given: Value, expected: bool) -> None:
    assert takes({"a": wanted}, {"a": given}) is expected
    assert takes({"x-match": "any", "a": wanted, "b": "no"}, {"a": given}) is expected


def test_a_destination_is_found_once_and_stays_while_one_binding_matches() -> None:
    matcher = headers.Headers[str]()
    bindings = [
        Binding(destination="queue", label=b"", key=b"", arguments=arguments)
        for arguments in ({"a": "1"}, {"x-match": "any", "a": "1", "b": "2"}, {"b": None}, {}, {})
    ]
    for binding in bindings:
        matcher.add(binding)
    for binding in bindings:
        assert matcher.match(b"", {"a": "1", "b": "2"}, None) == ("queue",)
        matcher.remove(binding)
    assert matcher.match(b"", {"a": "1", "b": "2"}, None) == ()


def test_only_bindings_that_may_match_are_looked_at() -> None:
    """Filed under the least crowded of its arguments, however many share another one."""
    matcher = headers.Headers[int]()
    for number in range(1000):
        wanted: Table = {"format": "pdf", "tenant": f"t{number}"}
        matcher.add(Binding(destination=number, label=b"", key=b"", arguments=wanted))
    assert matcher.match(b"", {"format": "pdf", "tenant": "t7"}, None) == (7,)
    assert max(len(filed) for filed in matcher._files.values()) == 1


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("all", None),
        ("any", None),
        ("all-with-x", None),
        ("any-with-x", None),
        (
            "some",
            'Invalid x-match field value <<"some">>; expected all, any, all-with-x, or any-with-x',
        ),
        (
            fields.LongStr(b"\xff\x01"),
            "Invalid x-match field value <<255,1>>; expected all, any, all-with-x, or any-with-x",
        ),
        (23, "Invalid x-match field type signedint (value 23); expected longstr"),
        (True, "Invalid x-match field type bool (value true); expected longstr"),
        (b"all", 'Invalid x-match field type binary (value <<"all">>); expected longstr'),
        (None, "Invalid x-match field type void (value undefined); expected longstr"),
        (0.5, "Invalid x-match field type double (value 0.5); expected longstr"),
    ],
)
def test_modes_that_are_none_are_refused(mode: Value, expected: str | None) -> None:
    assert kinds.binding_refusal("headers", {}, key=b"", arguments={"x-match": mode}) == expected


def test_a_binding_without_mode_is_not_refused() -> None:
    assert kinds.binding_refusal("headers", {}, key=b"", arguments={"a": 1}) is None
