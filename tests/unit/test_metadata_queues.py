"""Queues: declared, declared again, used by others, deleted; in RabbitMQ's words."""

import pytest

from lograft_broker.metadata import commands, queue_checks
from lograft_broker.metadata.commands import DeleteQueue, PutVhost, SetVhostLimit
from lograft_broker.metadata.limits import MetadataLimits
from lograft_broker.metadata.refusal import Refusal
from lograft_broker.metadata.results import Absent, Deleted, Existing
from lograft_broker.metadata.rows import Boot, ConnectionId, Queue, QueueType
from lograft_wire.amqp.fields import Int8, Int16, Int32, Int64, Long64, UInt32, Value
from support.metadata_desk import BOOT, ME, NODE, OTHER, Desk, declare_queue, made, table

LOCKED = (
    405,
    "cannot obtain exclusive access to locked queue 'q' in vhost '/'. It could be originally "
    "declared on another connection or the exclusive property value does not match that of the "
    "original declaration.",
)


@pytest.fixture
def desk() -> Desk:
    return Desk()


def delete(name: str, by: ConnectionId | None = ME, number: int = 0) -> DeleteQueue:
    return DeleteQueue(vhost="/", name=name, by=by, id=number)


def test_a_durable_queue_has_a_shard_and_the_index_of_its_command(desk: Desk) -> None:
    row = desk.queue("q", durable=True)
    assert row.id == desk.index
    assert row.shard in range(4)
    assert (row.home, row.owner, row.durable, row.type) == (None, None, True, QueueType.CLASSIC)
    assert desk.state.queue_by_id[row.id] is row


def test_transient_and_exclusive_queues_live_on_the_node_of_their_connection(desk: Desk) -> None:
    transient = desk.queue("t")
    exclusive = desk.queue("e", exclusive=True, durable=True)
    home = Boot(NODE, BOOT)
    assert (transient.home, transient.shard, transient.owner) == (home, None, None)
    assert (exclusive.home, exclusive.shard, exclusive.owner) == (home, None, ME)
    assert not exclusive.durable


def test_an_equal_declaration_finds_the_queue_and_changes_nothing(desk: Desk) -> None:
    row = desk.queue("q", durable=True)
    version = desk.machine.version
    again = declare_queue("q", OTHER, durable=True)
    assert desk.machine.settled(again) == Existing(row)
    assert desk.do(again) == Existing(row)
    assert desk.machine.version == version


def test_an_exclusive_queue_is_durable_or_not_alike(desk: Desk) -> None:
    row = desk.queue("q", exclusive=True, durable=True)
    assert desk.do(declare_queue("q", exclusive=True)) == Existing(row)


@pytest.mark.parametrize(
    ("again", "said"),
    [
        (
            declare_queue("q", durable=True),
            "inequivalent arg 'durable' for queue 'q' in vhost '/': "
            "received 'true' but current is 'false'",
        ),
        (
            declare_queue("q", auto_delete=True),
            "inequivalent arg 'auto_delete' for queue 'q' in vhost '/': "
            "received 'true' but current is 'false'",
        ),
    ],
)
def test_other_properties_are_refused(desk: Desk, again: commands.DeclareQueue, said: str) -> None:
    desk.queue("q")
    assert desk.refused(again) == (406, said)


def test_the_exclusive_property_must_be_the_same(desk: Desk) -> None:
    desk.queue("q", exclusive=True)
    assert desk.refused(declare_queue("q", ME)) == LOCKED
    assert desk.refused(declare_queue("q", OTHER, exclusive=True)) == LOCKED
    desk.queue("shared")
    assert desk.refused(declare_queue("shared", exclusive=True))[0] == 405


@pytest.mark.parametrize(
    ("name", "first", "second", "received", "current"),
    [
        ("x-message-ttl", Int32(10), Int32(20), "'20'", "'10'"),
        ("x-message-ttl", Int32(10), 10.0, "'10.0'", "'10'"),
        ("x-message-ttl", Int32(10), "10", "'10'", "'10'"),
        ("x-single-active-consumer", True, False, "'false'", "'true'"),
        ("x-dead-letter-exchange", "a", "b", "'b'", "'a'"),
        ("x-queue-type", "quorum", "classic", "'classic'", "'quorum'"),
    ],
)
def test_other_values_of_known_arguments_are_refused(
    desk: Desk, name: str, first: Value, second: Value, received: str, current: str
) -> None:
    desk.do(declare_queue("q", ME, table(**{name: first}), durable=True))
    again = declare_queue("q", ME, table(**{name: second}), durable=True)
    assert desk.refused(again) == (
        406,
        f"inequivalent arg '{name}' for queue 'q' in vhost '/': "
        f"received {received} but current is {current}",
    )


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Int32(10), "the value '10' of type 'signedint'"),
        (Int64(10), "the value '10' of type 'long'"),
        (Int8(10), "the value '10' of type 'byte'"),
        ("10", "the value '10' of type 'longstr'"),
    ],
)
def test_an_argument_against_none_is_refused_with_its_type(
    desk: Desk, value: Value, said: str
) -> None:
    desk.queue("q")
    text = "inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': "
    assert desk.refused(declare_queue("q", ME, table(x_message_ttl=value))) == (
        406,
        f"{text}received {said} but current is none",
    )
    desk.do(declare_queue("r", ME, table(x_message_ttl=Int32(10))))
    assert desk.refused(declare_queue("r")) == (
        406,
        "inequivalent arg 'x-message-ttl' for queue 'r' in vhost '/': "
        "received none but current is the value '10' of type 'signedint'",
    )


@pytest.mark.parametrize("value", [Int8(10), Int16(10), Int64(10), Long64(10), UInt32(10), 10])
def test_the_width_of_a_number_does_not_count(desk: Desk, value: Value) -> None:
    row = made(desk.do(declare_queue("q", ME, table(x_expires=Int32(10)))), Queue)
    assert desk.do(declare_queue("q", ME, table(x_expires=value))) == Existing(row)
    assert isinstance(row.arguments["x-expires"], Int32)


def test_unknown_arguments_are_kept_and_do_not_count(desk: Desk) -> None:
    row = made(desk.do(declare_queue("q", ME, table(mine="a"))), Queue)
    assert dict(row.arguments) == {"mine": "a"}
    assert desk.do(declare_queue("q", ME, table(mine="b", yours=True))) == Existing(row)


def test_classic_is_the_same_as_no_type(desk: Desk) -> None:
    classic = table(x_queue_type="classic")
    row = desk.queue("q")
    assert desk.do(declare_queue("q", ME, classic)) == Existing(row)
    row = made(desk.do(declare_queue("r", ME, classic)), Queue)
    assert desk.do(declare_queue("r")) == Existing(row)
    assert desk.refused(declare_queue("q", ME, table(x_queue_type="quorum"))) == (
        406,
        "inequivalent arg 'x-queue-type' for queue 'q' in vhost '/': "
        "received the value 'quorum' of type 'longstr' but current is none",
    )


def test_reserved_names_are_for_the_broker(desk: Desk) -> None:
    assert desk.refused(declare_queue("amq.mine")) == (
        403,
        "queue name 'amq.mine' contains reserved prefix 'amq.*'",
    )
    row = desk.queue("amq.gen-1", server_named=True)
    assert desk.refused(declare_queue("amq.gen-1"))[0] == 403
    assert queue_checks.access(desk.state, "/", "amq.gen-1", OTHER) is row


def test_names_too_long_or_none_are_refused(desk: Desk) -> None:
    assert desk.refused(declare_queue("q" * 256)) == (
        406,
        "queue name has 256 bytes, at most 255 are allowed",
    )
    assert desk.refused(declare_queue("")) == (406, "queue name may not be empty")
    assert desk.refused(declare_queue("a\rb")) == (406, "queue name contains a line break")
    raw = b"\xff".decode("utf-8", "surrogateescape")
    assert desk.refused(declare_queue(raw)) == (406, "queue name is not valid Unicode")


def test_streams_are_durable_shared_and_named(desk: Desk) -> None:
    stream = table(x_queue_type="stream")
    owner = "queue 's' in vhost '/'"
    assert desk.refused(declare_queue("s", ME, stream)) == (
        406,
        f"invalid property 'non-durable' for {owner}",
    )
    assert desk.refused(declare_queue("s", ME, stream, durable=True, exclusive=True)) == (
        406,
        f"invalid property 'exclusive-owner' for {owner}",
    )
    assert desk.refused(declare_queue("s", ME, stream, durable=True, auto_delete=True)) == (
        406,
        f"invalid property 'auto-delete' for {owner}",
    )
    assert desk.refused(declare_queue("s", ME, stream, durable=True, server_named=True)) == (
        406,
        "Cannot declare a server-named queue for type rabbit_stream_queue",
    )
    row = made(desk.do(declare_queue("s", ME, stream, durable=True)), Queue)
    assert row.type is QueueType.STREAM


def test_quorum_queues_may_be_exclusive_auto_delete_and_server_named(desk: Desk) -> None:
    quorum = table(x_queue_type="quorum")
    assert desk.refused(declare_queue("q", ME, quorum)) == (
        406,
        "invalid property 'non-durable' for queue 'q' in vhost '/'",
    )
    for command in (
        declare_queue("e", ME, quorum, exclusive=True),
        declare_queue("a", ME, quorum, durable=True, auto_delete=True),
        declare_queue("amq.gen-1", ME, quorum, durable=True, server_named=True),
    ):
        assert made(desk.do(command), Queue).type is QueueType.QUORUM


def test_the_default_type_of_a_vhost_is_written_into_the_arguments(desk: Desk) -> None:
    desk.do(PutVhost(name="/", default_queue_type=QueueType.QUORUM))
    row = desk.queue("q", durable=True)
    assert row.type is QueueType.QUORUM
    assert dict(row.arguments) == {"x-queue-type": "quorum"}
    assert desk.do(declare_queue("q", durable=True)) == Existing(row)
    for other in (
        desk.queue("transient"),
        desk.queue("exclusive", exclusive=True),
        desk.queue("auto", durable=True, auto_delete=True),
    ):
        assert other.type is QueueType.CLASSIC
    classic = table(x_queue_type="classic")
    own = made(desk.do(declare_queue("c", ME, classic, durable=True)), Queue)
    assert own.type is QueueType.CLASSIC
    desk.do(PutVhost(name="/", default_queue_type=QueueType.CLASSIC))
    assert dict(desk.queue("plain").arguments) == {"x-queue-type": "classic"}


def test_a_vhost_may_have_so_many_queues(desk: Desk) -> None:
    desk.do(SetVhostLimit(vhost="/", limit="max-queues", value=1))
    row = desk.queue("q")
    assert desk.refused(declare_queue("r")) == (
        406,
        "cannot declare queue 'r': queue limit in vhost '/' (1) is reached",
    )
    assert desk.do(declare_queue("q")) == Existing(row)
    desk.do(SetVhostLimit(vhost="/", limit="max-queues", value=None))
    desk.queue("r")


def test_a_cluster_may_have_so_many_queues() -> None:
    desk = Desk(limits=MetadataLimits(queue_count_max=1))
    desk.queue("q")
    assert desk.refused(declare_queue("r")) == (
        406,
        "cannot declare queue 'r': queue limit in cluster (1) is reached",
    )


def test_a_declaration_that_outlived_its_node_is_refused(desk: Desk) -> None:
    for late in (ConnectionId(NODE, b"earlier", 1), ConnectionId("unknown", BOOT, 1)):
        assert desk.refused(declare_queue("q", late)) == (
            406,
            f"cannot declare queue 'q': node '{late.node}' has ended or was started anew",
        )
        assert desk.refused(declare_queue("q", late, durable=True, exclusive=True))[0] == 406
        assert made(desk.do(declare_queue("d", late, durable=True)), Queue)


def test_nothing_durable_is_made_before_the_first_start() -> None:
    desk = Desk(started=False)
    desk.do(PutVhost(name="/"))
    assert desk.refused(declare_queue("q", durable=True)) == (406, "the cluster has no shards yet")
    assert desk.refused(declare_queue("q", vhost="none")) == (404, "no vhost 'none'")


def test_using_a_queue(desk: Desk) -> None:
    row = desk.queue("q", exclusive=True)
    assert queue_checks.access(desk.state, "/", "q", ME) is row
    locked = queue_checks.access(desk.state, "/", "q", OTHER)
    missing = queue_checks.access(desk.state, "/", "none", ME)
    assert isinstance(locked, Refusal)
    assert isinstance(missing, Refusal)
    assert (locked.code, locked.text) == LOCKED
    assert (missing.code, missing.text) == (404, "no queue 'none' in vhost '/'")


def test_delete(desk: Desk) -> None:
    row = desk.queue("q")
    desk.bind("amq.direct", "q")
    assert desk.do(delete("q")) == Deleted((row,))
    assert desk.do(delete("q")) == Absent()
    assert list(desk.state.bindings) == []


def test_delete_of_somebody_elses_exclusive_queue_is_refused(desk: Desk) -> None:
    row = desk.queue("q", exclusive=True)
    assert desk.refused(delete("q", OTHER)) == LOCKED
    assert desk.do(delete("q", None)) == Deleted((row,))


def test_delete_by_id_spares_a_later_queue_of_the_same_name(desk: Desk) -> None:
    first = desk.queue("q")
    desk.do(delete("q"))
    second = desk.queue("q")
    assert second.id > first.id
    assert desk.do(delete("q", None, first.id)) == Absent()
    assert desk.do(delete("q", None, second.id)) == Deleted((second,))


@pytest.mark.parametrize(
    ("if_unused", "if_empty", "consumers", "messages", "said"),
    [
        (True, False, 1, 0, "queue 'q' in vhost '/' in use"),
        (False, True, 0, 1, "queue 'q' in vhost '/' not empty"),
        (True, True, 1, 1, "queue 'q' in vhost '/' in use"),
        (False, False, 1, 1, None),
        (True, True, 0, 0, None),
    ],
)
def test_conditions_of_a_delete_are_for_the_owner_to_judge(
    desk: Desk, if_unused: bool, if_empty: bool, consumers: int, messages: int, said: str | None
) -> None:
    found = queue_checks.refuses_delete(
        desk.queue("q"),
        if_unused=if_unused,
        if_empty=if_empty,
        consumer_count=consumers,
        message_count=messages,
    )
    assert (found and (found.code, found.text)) == (said and (406, said))
