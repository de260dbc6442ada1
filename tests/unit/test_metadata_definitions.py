"""Definitions out and in: everything in one document, ours or RabbitMQ's."""

import json

import pytest

from lograft_broker.metadata import commands, imports, passwords
from lograft_broker.metadata.commands import Bind, DeclareExchange, DeclareQueue, SetPolicy
from lograft_broker.metadata.refusal import Refusal
from lograft_broker.metadata.rows import ApplyTo, Kind, QueueType
from lograft_broker.metadata.values import Json
from lograft_wire.amqp.fields import Decimal, Int16, Int64, LongStr, Timestamp
from lograft_wire.errors import RefusedError
from support.metadata_desk import (
    ME,
    Desk,
    bind,
    declare_exchange,
    declare_queue,
    table,
)

SHA256 = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"
RABBITMQ = {
    "rabbit_version": "3.13.0",
    "users": [
        {
            "name": "admin",
            "password_hash": SHA256,
            "hashing_algorithm": "rabbit_password_hashing_sha256",
            "tags": "administrator,monitoring",
            "limits": {"max-connections": 5},
        },
        {"name": "old", "password_hash": SHA256, "tags": []},
    ],
    "vhosts": [
        {"name": "/"},
        {"name": "v", "default_queue_type": "quorum", "metadata": {"description": ""}},
        {"name": "w", "default_queue_type": "undefined", "description": None},
    ],
    "permissions": [
        {"user": "admin", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}
    ],
    "topic_permissions": [
        {"user": "admin", "vhost": "/", "exchange": "x", "write": "a", "read": "b"}
    ],
    "parameters": [
        {"vhost": "v", "component": "vhost-limits", "name": "limits", "value": {"max-queues": 9}},
        {
            "vhost": "/",
            "component": "operator_policy",
            "name": "op",
            "value": {
                "pattern": "^q",
                "apply-to": "queues",
                "definition": {"max-length": 3},
                "priority": 2,
            },
        },
        {"vhost": "/", "component": "shovel", "name": "s", "value": {"src-uri": "amqp://"}},
    ],
    "global_parameters": [{"name": "cluster_name", "value": "rabbit"}],
    "policies": [
        {
            "vhost": "/",
            "name": "ha",
            "pattern": ".*",
            "apply-to": "classic_queues",
            "definition": {"ha-mode": "all", "max-length": 10},
            "priority": 0,
        },
        {"vhost": "/", "name": "plain", "pattern": "", "definition": {"expires": 5}},
    ],
    "exchanges": [
        {
            "name": "x",
            "vhost": "/",
            "type": "topic",
            "durable": True,
            "auto_delete": False,
            "internal": False,
            "arguments": {"alternate-exchange": "y"},
        }
    ],
    "queues": [
        {
            "name": "q",
            "vhost": "/",
            "durable": True,
            "auto_delete": False,
            "arguments": {"x-max-length": 5, "x-queue-type": "quorum"},
        }
    ],
    "bindings": [
        {
            "source": "x",
            "vhost": "/",
            "destination": "q",
            "destination_type": "queue",
            "routing_key": "a.#",
            "arguments": {"n": 1.5},
        },
        {
            "source": "x",
            "vhost": "/",
            "destination": "amq.fanout",
            "destination_type": "exchange",
            "routing_key": "",
            "arguments": {},
        },
    ],
}


def load(desk: Desk, document: object) -> None:
    for command in imports.commands(document, by=ME):
        assert desk.machine.settled(command) is None or not isinstance(
            desk.machine.settled(command), Refusal
        )
        assert not isinstance(desk.do(command), Refusal)


def test_definitions_of_rabbitmq_are_taken() -> None:
    desk = Desk()
    load(desk, RABBITMQ)
    state = desk.state
    user = state.users.get("admin")
    assert user is not None
    assert (user.tags, user.max_connections) == (("administrator", "monitoring"), 5)
    assert passwords.verify(user.password_hash, "test12")
    vhost = state.vhosts.get("v")
    assert vhost is not None
    assert (vhost.default_queue_type, vhost.max_queues) == (QueueType.QUORUM, 9)
    (operator,) = state.operator_policies
    assert (operator.name, operator.apply_to, operator.priority) == ("op", ApplyTo.QUEUES, 2)
    assert [row.name for row in state.policies] == ["ha", "plain"]
    queue = state.queue("/", "q")
    assert queue is not None
    assert queue.type is QueueType.QUORUM
    assert isinstance(queue.arguments["x-max-length"], Int64)
    assert [row.kind for row in state.bindings] == [Kind.QUEUE, Kind.EXCHANGE]


def test_what_was_exported_is_imported_to_the_same() -> None:
    desk = Desk()
    load(desk, RABBITMQ)
    document = json.loads(json.dumps(desk.machine.export()))
    again = Desk()
    load(again, document)
    exported = again.machine.export()
    for key in document:
        if key not in ("version", "queues"):
            assert exported[key] == document[key], key
    assert [queue["name"] for queue in exported["queues"]] == ["q"]  # type: ignore[index,union-attr,call-overload]


def test_the_document_says_everything_and_its_version() -> None:
    desk = Desk()
    desk.do(declare_queue("q", ME, table(x_max_length=Int16(5)), durable=True))
    desk.queue("e", exclusive=True)
    desk.bind("amq.direct", "q", "k")
    found = desk.machine.export()
    assert (found["version"], found["shard_count"]) == (desk.machine.version, 4)
    assert found["nodes"] == [{"name": "one", "boot": b"boot-one".hex()}]
    durable, exclusive = desk.state.queues
    assert found["queues"] == [
        {
            "name": "q",
            "vhost": "/",
            "type": "classic",
            "durable": True,
            "auto_delete": False,
            "exclusive": False,
            "arguments": {"x-max-length": 5},
            "id": durable.id,
            "shard": durable.shard,
            "node": None,
        },
        {
            "name": "e",
            "vhost": "/",
            "type": "classic",
            "durable": False,
            "auto_delete": False,
            "exclusive": True,
            "arguments": {},
            "id": exclusive.id,
            "shard": None,
            "node": "one",
        },
    ]
    assert found["bindings"] == [
        {
            "source": "amq.direct",
            "vhost": "/",
            "destination": "q",
            "destination_type": "queue",
            "routing_key": "k",
            "arguments": {},
            "properties_key": "k",
        }
    ]
    assert len(found["exchanges"]) == 6  # type: ignore[arg-type]


def test_any_argument_can_be_shown_as_json() -> None:
    desk = Desk()
    desk.queue("q")
    arguments = table(
        a=None,
        b=True,
        c=Decimal(scale=2, value=150),
        d=Timestamp(7),
        e=b"\xff",
        f=LongStr(b"\xff"),
        g=float("nan"),
        h=[1, {"i": "x"}],
    )
    desk.do(bind("amq.direct", "q", "\udcff", arguments))
    (binding,) = json.loads(json.dumps(desk.machine.export(), allow_nan=False))["bindings"]
    assert binding["arguments"] == {
        "a": None,
        "b": True,
        "c": 1.5,
        "d": 7,
        "e": "\ufffd",
        "f": "\ufffd",
        "g": None,
        "h": [1, {"i": "x"}],
    }
    assert binding["routing_key"] == "?"
    assert binding["properties_key"].startswith("%FF~")


def test_what_cannot_be_defined_is_left_out() -> None:
    desk = Desk()
    desk.queue("e", exclusive=True)
    desk.queue("amq.gen-1", server_named=True)
    desk.bind("amq.direct", "e")
    desk.bind("amq.direct", "amq.gen-1")
    found = imports.commands(desk.machine.export(), by=ME)
    assert [command.name for command in found if isinstance(command, DeclareQueue)] == ["amq.gen-1"]
    assert [c.destination for c in found if isinstance(c, Bind)] == ["amq.gen-1"]
    assert not any(isinstance(command, DeclareExchange) for command in found)
    implicit = {
        "bindings": [{"source": "", "vhost": "/", "destination": "q", "destination_type": "queue"}]
    }
    assert imports.commands(implicit, by=ME) == []


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "definitions: an object is needed"),
        ({"users": {}}, "users: a list is needed"),
        ({"users": [5]}, r"users\[0\]: an object is needed"),
        ({"users": [{}]}, r"users\[0\].name: a string is needed"),
        (
            {"users": [{"name": "u", "password_hash": "x", "hashing_algorithm": "y"}]},
            r"users\[0\]: a password hash of 'y' cannot be used",
        ),
        ({"users": [{"name": "u", "tags": 5}]}, "a list of strings is needed"),
        (
            {"users": [{"name": "u", "limits": {"max-channels": "x"}}]},
            r"users\[0\].limits.max-channels: a number is needed",
        ),
        (
            {"vhosts": [{"name": "v", "default_queue_type": "x"}]},
            "unsupported queue type 'x'",
        ),
        (
            {"queues": [{"name": "q", "vhost": "/", "durable": "yes"}]},
            r"queues\[0\].durable: true or false is needed",
        ),
        (
            {"queues": [{"name": "q", "vhost": "/", "arguments": [1]}]},
            r"queues\[0\].arguments: an object is needed",
        ),
        (
            {"queues": [{"name": "q", "vhost": "/", "arguments": {"a": 1 << 70}}]},
            "does not fit into 64 bits",
        ),
        (
            {"policies": [{"vhost": "/", "name": "p", "pattern": "", "apply-to": "x"}]},
            "apply-to 'x' unrecognised; should be one of: 'all', 'queues'",
        ),
        (
            {"policies": [{"vhost": "/", "name": "p", "pattern": ""}]},
            r"policies\[0\].definition is missing",
        ),
        (
            {"bindings": [{"source": "x", "vhost": "/", "destination_type": "x"}]},
            "queue or exchange is needed",
        ),
    ],
)
def test_a_document_that_is_not_understood_is_refused_by_its_place(
    document: object, said: str
) -> None:
    with pytest.raises(RefusedError, match=said):
        imports.commands(document, by=ME)


def test_names_are_cleaned_on_the_way_in() -> None:
    document = {
        "exchanges": [{"name": "a\r\nb", "vhost": "/", "type": "direct"}],
        "queues": [{"name": "q\n", "vhost": "/"}],
    }
    found = imports.commands(document, by=ME)
    assert [getattr(command, "name", "") for command in found] == ["ab", "q"]
    desk = Desk()
    assert desk.do(declare_exchange("ab")) is not None


def test_operator_policies_and_limits_travel_as_parameters() -> None:
    desk = Desk()
    desk.do(commands.SetVhostLimit(vhost="/", limit="max-connections", value=4))
    policy = SetPolicy(
        vhost="/",
        name="op",
        pattern="x",
        apply_to=ApplyTo.STREAMS,
        priority=1,
        definition=Json({"max-length-bytes": 7}),
        operator=True,
    )
    desk.do(policy)
    found = imports.commands(desk.machine.export(), by=ME)
    assert policy in found
    assert commands.SetVhostLimit(vhost="/", limit="max-connections", value=4) in found
