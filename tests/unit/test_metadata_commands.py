"""Commands as bytes: pinned, because a journal written today is read for years."""

import dataclasses

import pytest

from lograft_broker.metadata import commands, values
from lograft_broker.metadata.commands import (
    TYPES,
    Bind,
    Command,
    ConnectionClosed,
    DeclareExchange,
    DeclareQueue,
    NodeBooted,
    PutVhost,
    SetPolicy,
    SetVhostLimit,
)
from lograft_broker.metadata.rows import ApplyTo, ConnectionId, Kind, QueueType
from lograft_broker.metadata.values import Arguments, Json, JsonValue
from lograft_replication.group import COMMAND_BYTE_MIN
from lograft_wire.amqp.fields import Int8, Timestamp
from lograft_wire.errors import DamagedError, RefusedError

BY = ConnectionId("n", b"\1\2", 7)
PINNED: list[tuple[Command, str]] = [
    (NodeBooted(node="n", boot=b"\1\2"), "2101 010000006e 020000000102"),
    (ConnectionClosed(connection=BY), "2301 010000006e 020000000102 0700000000000000"),
    (
        PutVhost(name="v", tags=("a", "b"), default_queue_type=QueueType.QUORUM),
        "2801 0100000076 00000000 02000000 0100000061 0100000062 01 0600000071756f72756d",
    ),
    (
        SetVhostLimit(vhost="/", limit="m", value=-2),
        "2a01 010000002f 010000006d 01 feffffffffffffff",
    ),
    (SetVhostLimit(vhost="/", limit="m", value=None), "2a01 010000002f 010000006d 00"),
    (
        SetPolicy(
            vhost="/",
            name="p",
            pattern="^",
            apply_to=ApplyTo.ALL,
            priority=1,
            definition=Json({"b": 1, "a": True}),
            operator=True,
        ),
        "3801 010000002f 0100000070 010000005e 03000000616c6c 0100000000000000"
        " 10000000 7b2261223a747275652c2262223a317d 01",
    ),
    (
        DeclareExchange(vhost="/", name="x", type="t", durable=True, internal=True),
        "4001 010000002f 0100000078 0100000074 01 00 01 00000000",
    ),
    (
        DeclareQueue(
            vhost="/", name="q", by=BY, exclusive=True, arguments=Arguments({"k": Int8(5)})
        ),
        "4201 010000002f 0100000071 010000006e 020000000102 0700000000000000"
        " 00 01 00 00 04000000 016b6205",
    ),
    (
        Bind(vhost="/", source="s", kind=Kind.QUEUE, destination="d", by=BY, routing_key="\udcff"),
        "4401 010000002f 0100000073 050000007175657565 0100000064 010000006e 020000000102"
        " 0700000000000000 01000000ff 00000000",
    ),
]


@pytest.mark.parametrize(("command", "pinned"), PINNED)
def test_bytes_stay_as_they_are(command: Command, pinned: str) -> None:
    assert commands.encode(command).hex() == pinned.replace(" ", "")
    assert commands.decode(bytes.fromhex(pinned)) == command


@pytest.mark.parametrize(("command", "_pinned"), PINNED)
def test_every_cut_and_every_addition_is_damage(command: Command, _pinned: str) -> None:
    data = commands.encode(command)
    for size in range(len(data)):
        with pytest.raises(DamagedError):
            commands.decode(data[:size])
    with pytest.raises(DamagedError):
        commands.decode(data + b"\0")


def test_types_are_not_those_of_the_raft_group_and_stay_what_they_are() -> None:
    assert min(TYPES) >= COMMAND_BYTE_MIN
    assert {number: kind.__name__ for number, kind in TYPES.items()} == {
        0x20: "FirstStart",
        0x21: "NodeBooted",
        0x22: "NodeGone",
        0x23: "ConnectionClosed",
        0x28: "PutVhost",
        0x29: "DeleteVhost",
        0x2A: "SetVhostLimit",
        0x2B: "PutUser",
        0x2C: "DeleteUser",
        0x2D: "SetUserLimit",
        0x2E: "SetPermission",
        0x2F: "ClearPermission",
        0x30: "SetTopicPermission",
        0x31: "ClearTopicPermission",
        0x38: "SetPolicy",
        0x39: "ClearPolicy",
        0x3A: "SetParameter",
        0x3B: "ClearParameter",
        0x3C: "SetGlobalParameter",
        0x3D: "ClearGlobalParameter",
        0x40: "DeclareExchange",
        0x41: "DeleteExchange",
        0x42: "DeclareQueue",
        0x43: "DeleteQueue",
        0x44: "Bind",
        0x45: "Unbind",
    }


def test_the_fields_of_commands_stay_what_they_are() -> None:
    """Their order is the layout: a new field needs a new version."""
    found = {
        kind.__name__: " ".join(field.name for field in dataclasses.fields(kind))
        for kind in TYPES.values()
    }
    assert found == {
        "FirstStart": "shard_count vhost user password_hash",
        "NodeBooted": "node boot",
        "NodeGone": "node boot",
        "ConnectionClosed": "connection",
        "PutVhost": "name description tags default_queue_type",
        "DeleteVhost": "name",
        "SetVhostLimit": "vhost limit value",
        "PutUser": "name password_hash tags",
        "DeleteUser": "name",
        "SetUserLimit": "user limit value",
        "SetPermission": "user vhost configure write read",
        "ClearPermission": "user vhost",
        "SetTopicPermission": "user vhost exchange write read",
        "ClearTopicPermission": "user vhost exchange",
        "SetPolicy": "vhost name pattern apply_to priority definition operator",
        "ClearPolicy": "vhost name operator",
        "SetParameter": "vhost component name value",
        "ClearParameter": "vhost component name",
        "SetGlobalParameter": "name value",
        "ClearGlobalParameter": "name",
        "DeclareExchange": "vhost name type durable auto_delete internal arguments",
        "DeleteExchange": "vhost name if_unused",
        "DeclareQueue": "vhost name by durable exclusive auto_delete server_named arguments",
        "DeleteQueue": "vhost name by id",
        "Bind": "vhost source kind destination by routing_key arguments",
        "Unbind": "vhost source kind destination by routing_key arguments",
    }


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("", "0 bytes"),
        ("21", "1 bytes"),
        ("1f01", "unknown type 0x1f"),
        ("2102 010000006e 0100000001", "version 2"),
        ("2101 ffffffff6e 0100000001", "announced"),
        ("4001 010000002f 0100000078 0100000074 02 00 01 00000000", "neither true nor false"),
        ("4001 010000002f 0100000078 0100000074 01 00 01 01000000 ff", "arguments of 1 bytes"),
        (  # two entries in the wrong order
            "4001 010000002f 0100000078 0100000074 01 00 01 06000000 016256 016156",
            "not in their one form",
        ),
        (
            "3c01 0100000067 05000000 7b2261223a",
            "JSON of 5 characters",
        ),
        ("3c01 0100000067 02000000 2031", "not in its one form"),
        ("3c01 0100000067 03000000 4e614e", "JSON of 3 characters"),
        ("4401 010000002f 0100000073 0100000071", "is no Kind"),
    ],
)
def test_damage_is_found_wherever_it_is(data: str, said: str) -> None:
    with pytest.raises(DamagedError, match=said):
        commands.decode(bytes.fromhex(data))


@pytest.mark.parametrize(
    "command",
    [
        SetVhostLimit(vhost="/", limit="m", value=1 << 63),
        NodeBooted(node="\ud800", boot=b""),
    ],
)
def test_what_cannot_be_written_is_refused(command: Command) -> None:
    with pytest.raises(RefusedError):
        commands.encode(command)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": object()}, [10**5000]])
def test_what_is_no_json_is_refused(value: JsonValue) -> None:
    with pytest.raises(RefusedError):
        Json(value)


def test_json_may_not_be_nested_too_deep() -> None:
    def nested(depth: int) -> JsonValue:
        value: JsonValue = 1
        for _ in range(depth):
            value = [value]
        return value

    assert Json(nested(values.JSON_DEPTH_MAX)).text.startswith("[" * values.JSON_DEPTH_MAX)
    for depth in (values.JSON_DEPTH_MAX + 1, 100_000):
        with pytest.raises(RefusedError, match="deep"):
            Json(nested(depth))


def test_arguments_are_equal_only_with_the_same_types() -> None:
    assert Arguments({"a": 1, "b": "x"}) == Arguments({"b": "x", "a": 1})
    assert hash(Arguments({"a": 1})) == hash(Arguments({"a": 1}))
    assert Arguments({"a": 1}) != Arguments({"a": Int8(1)})
    assert Arguments({"a": 1}) != Arguments({"a": Timestamp(1)})
    assert Json(1) != Json(1.0)
    assert Json(True) != Json(1)
    with pytest.raises(RefusedError):
        Arguments({"a": 1 << 70})


def test_json_is_a_copy_of_its_own() -> None:
    given: dict[str, JsonValue] = {"a": [1]}
    held = Json(given)
    given["a"] = 2
    assert held.value == {"a": [1]}
