"""Every method has the ids and the bytes that AMQP 0-9-1 and RabbitMQ's extensions give it."""

import dataclasses

import pytest

from lograft_wire.amqp import codes, layouts, methods, tables
from lograft_wire.errors import PeerError

# class id, method id, the method, its arguments in a frame
WITH_ARGUMENTS: list[tuple[int, int, methods.Method, bytes]] = [
    (
        10,
        10,
        methods.ConnectionStart(server_properties={"k": "v"}, mechanisms=b"PLAIN AMQPLAIN"),
        b"\x00\x09\x00\x00\x00\x08\x01kS\x00\x00\x00\x01v"
        b"\x00\x00\x00\x0ePLAIN AMQPLAIN\x00\x00\x00\x05en_US",
    ),
    (
        10,
        11,
        methods.ConnectionStartOk(client_properties={"k": True}, response=b"\0guest\0pw"),
        b"\x00\x00\x00\x04\x01kt\x01\x05PLAIN\x00\x00\x00\x09\x00guest\x00pw\x05en_US",
    ),
    (10, 20, methods.ConnectionSecure(challenge=b"?"), b"\x00\x00\x00\x01?"),
    (10, 21, methods.ConnectionSecureOk(response=b"!"), b"\x00\x00\x00\x01!"),
    (
        10,
        30,
        methods.ConnectionTune(channel_max=2047, frame_max=131072, heartbeat=60),
        b"\x07\xff\x00\x02\x00\x00\x00<",
    ),
    (
        10,
        31,
        methods.ConnectionTuneOk(channel_max=1, frame_max=4096, heartbeat=5),
        b"\x00\x01\x00\x00\x10\x00\x00\x05",
    ),
    (10, 40, methods.ConnectionOpen(virtual_host="/"), b"\x01/\x00\x00"),
    (10, 41, methods.ConnectionOpenOk(), b"\x00"),
    (
        10,
        50,
        methods.ConnectionClose(reply_code=320, reply_text="bye", class_id=50, method_id=10),
        b"\x01@\x03bye\x002\x00\x0a",
    ),
    (10, 60, methods.ConnectionBlocked(reason="low on disk"), b"\x0blow on disk"),
    (
        10,
        70,
        methods.ConnectionUpdateSecret(new_secret=b"new", reason="old"),
        b"\x00\x00\x00\x03new\x03old",
    ),
    (20, 10, methods.ChannelOpen(), b"\x00"),
    (20, 11, methods.ChannelOpenOk(), b"\x00\x00\x00\x00"),
    (20, 20, methods.ChannelFlow(active=True), b"\x01"),
    (20, 21, methods.ChannelFlowOk(active=False), b"\x00"),
    (
        20,
        40,
        methods.ChannelClose(reply_code=404, reply_text="gone", class_id=60, method_id=40),
        b"\x01\x94\x04gone\x00<\x00(",
    ),
    (30, 10, methods.AccessRequest(), b"\x05/data\x1e"),
    (30, 11, methods.AccessRequestOk(), b"\x00\x01"),
    (
        40,
        10,
        methods.ExchangeDeclare(
            exchange="x", type="topic", durable=True, no_wait=True, arguments={"k": "v"}
        ),
        b"\x00\x00\x01x\x05topic\x12\x00\x00\x00\x08\x01kS\x00\x00\x00\x01v",
    ),
    (40, 20, methods.ExchangeDelete(exchange="x", if_unused=True), b"\x00\x00\x01x\x01"),
    (
        40,
        30,
        methods.ExchangeBind(
            destination="to", source="from", routing_key="key", arguments={"k": 1}
        ),
        b"\x00\x00\x02to\x04from\x03key\x00\x00\x00\x00\x07\x01kI\x00\x00\x00\x01",
    ),
    (
        40,
        40,
        methods.ExchangeUnbind(destination="to", source="from", routing_key="key", no_wait=True),
        b"\x00\x00\x02to\x04from\x03key\x01\x00\x00\x00\x00",
    ),
    (
        50,
        10,
        methods.QueueDeclare(queue="q", passive=True, exclusive=True, no_wait=True),
        b"\x00\x00\x01q\x15\x00\x00\x00\x00",
    ),
    (
        50,
        11,
        methods.QueueDeclareOk(queue="q", message_count=258, consumer_count=3),
        b"\x01q\x00\x00\x01\x02\x00\x00\x00\x03",
    ),
    (
        50,
        20,
        methods.QueueBind(queue="q", exchange="x", routing_key="é", no_wait=True),
        b"\x00\x00\x01q\x01x\x02\xc3\xa9\x01\x00\x00\x00\x00",
    ),
    (50, 30, methods.QueuePurge(queue="q", no_wait=True), b"\x00\x00\x01q\x01"),
    (50, 31, methods.QueuePurgeOk(message_count=7), b"\x00\x00\x00\x07"),
    (50, 40, methods.QueueDelete(queue="q", if_empty=True, no_wait=True), b"\x00\x00\x01q\x06"),
    (50, 41, methods.QueueDeleteOk(message_count=2**32 - 1), b"\xff\xff\xff\xff"),
    (
        50,
        50,
        methods.QueueUnbind(queue="q", exchange="x", routing_key="key", arguments={"k": None}),
        b"\x00\x00\x01q\x01x\x03key\x00\x00\x00\x03\x01kV",
    ),
    (
        60,
        10,
        methods.BasicQos(prefetch_size=1, prefetch_count=258, global_=True),
        b"\x00\x00\x00\x01\x01\x02\x01",
    ),
    (
        60,
        20,
        methods.BasicConsume(queue="q", consumer_tag="tag", no_ack=True, no_wait=True),
        b"\x00\x00\x01q\x03tag\x0a\x00\x00\x00\x00",
    ),
    (60, 21, methods.BasicConsumeOk(consumer_tag="tag"), b"\x03tag"),
    (60, 30, methods.BasicCancel(consumer_tag="tag", no_wait=True), b"\x03tag\x01"),
    (60, 31, methods.BasicCancelOk(consumer_tag="tag"), b"\x03tag"),
    (
        60,
        40,
        methods.BasicPublish(exchange="x", routing_key="key", mandatory=True),
        b"\x00\x00\x01x\x03key\x01",
    ),
    (
        60,
        50,
        methods.BasicReturn(reply_code=312, reply_text="NO_ROUTE", exchange="x", routing_key="key"),
        b"\x018\x08NO_ROUTE\x01x\x03key",
    ),
    (
        60,
        60,
        methods.BasicDeliver(
            consumer_tag="tag", delivery_tag=258, redelivered=True, exchange="x", routing_key="k"
        ),
        b"\x03tag\x00\x00\x00\x00\x00\x00\x01\x02\x01\x01x\x01k",
    ),
    (60, 70, methods.BasicGet(queue="q", no_ack=True), b"\x00\x00\x01q\x01"),
    (
        60,
        71,
        methods.BasicGetOk(delivery_tag=1, exchange="", routing_key="q", message_count=9),
        b"\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x01q\x00\x00\x00\x09",
    ),
    (60, 72, methods.BasicGetEmpty(), b"\x00"),
    (
        60,
        80,
        methods.BasicAck(delivery_tag=2**64 - 1, multiple=True),
        b"\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    ),
    (60, 90, methods.BasicReject(delivery_tag=5), b"\x00\x00\x00\x00\x00\x00\x00\x05\x01"),
    (60, 100, methods.BasicRecoverAsync(requeue=True), b"\x01"),
    (60, 110, methods.BasicRecover(requeue=True), b"\x01"),
    (
        60,
        120,
        methods.BasicNack(delivery_tag=5, multiple=True),
        b"\x00\x00\x00\x00\x00\x00\x00\x05\x03",
    ),
    (85, 10, methods.ConfirmSelect(no_wait=True), b"\x01"),
]
WITHOUT_ARGUMENTS: list[tuple[int, int, type[methods.Method]]] = [
    (10, 51, methods.ConnectionCloseOk),
    (10, 61, methods.ConnectionUnblocked),
    (10, 71, methods.ConnectionUpdateSecretOk),
    (20, 41, methods.ChannelCloseOk),
    (40, 11, methods.ExchangeDeclareOk),
    (40, 21, methods.ExchangeDeleteOk),
    (40, 31, methods.ExchangeBindOk),
    (40, 51, methods.ExchangeUnbindOk),
    (50, 21, methods.QueueBindOk),
    (50, 51, methods.QueueUnbindOk),
    (60, 11, methods.BasicQosOk),
    (60, 111, methods.BasicRecoverOk),
    (85, 11, methods.ConfirmSelectOk),
    (90, 10, methods.TxSelect),
    (90, 11, methods.TxSelectOk),
    (90, 20, methods.TxCommit),
    (90, 21, methods.TxCommitOk),
    (90, 30, methods.TxRollback),
    (90, 31, methods.TxRollbackOk),
]
EVERY = WITH_ARGUMENTS + [
    (class_id, method_id, make(), b"") for class_id, method_id, make in WITHOUT_ARGUMENTS
]
BY_NAME = [pytest.param(*row, id=row[2].NAME) for row in EVERY]


def refused(class_id: int, method_id: int, arguments: bytes) -> PeerError:
    with pytest.raises(PeerError) as caught:
        methods.decode(class_id, method_id, arguments)
    assert caught.value.closes_connection
    return caught.value


def test_every_method_is_listed_here() -> None:
    assert sorted(row[:2] for row in EVERY) == sorted(layouts.LAYOUTS)


@pytest.mark.parametrize(("class_id", "method_id", "method", "arguments"), BY_NAME)
def test_bytes_are_the_published_ones(
    class_id: int, method_id: int, method: methods.Method, arguments: bytes
) -> None:
    payload = class_id.to_bytes(2) + method_id.to_bytes(2) + arguments
    assert methods.encode(method) == payload
    assert methods.decode(class_id, method_id, arguments) == method
    assert methods.decode_payload(payload) == method


@pytest.mark.parametrize(("class_id", "method_id", "method", "arguments"), BY_NAME)
def test_missing_and_trailing_bytes_are_syntax_errors_that_name_the_method(
    class_id: int, method_id: int, method: methods.Method, arguments: bytes
) -> None:
    for wrong in [arguments[:size] for size in range(len(arguments))] + [arguments + b"\0"]:
        error = refused(class_id, method_id, wrong)
        assert error.reply_code == codes.SYNTAX_ERROR
        assert str(error).startswith(f"{method.NAME}: ")


def test_unknown_methods_are_invalid_commands() -> None:
    for class_id, method_id in ((50, 99), (77, 10), (0, 0), (65535, 65535)):
        error = refused(class_id, method_id, b"")
        assert error.reply_code == codes.COMMAND_INVALID
        assert f"class {class_id}, method {method_id}" in str(error)


def test_a_payload_too_short_for_ids_is_a_frame_error() -> None:
    for payload in (b"", b"\x00\x32\x00"):
        with pytest.raises(PeerError) as caught:
            methods.decode_payload(payload)
        assert caught.value.reply_code == codes.FRAME_ERROR
        assert caught.value.closes_connection


def test_a_name_outside_utf8_is_refused_and_named() -> None:
    error = refused(50, 10, b"\0\0\x02q\xff\0\0\0\0\0")
    assert error.reply_code == codes.SYNTAX_ERROR
    assert str(error) == "queue.declare: queue: malformed UTF-8 at byte 1"


def test_a_bad_table_is_refused_with_its_method_and_argument() -> None:
    error = refused(50, 10, b"\0\0\x01q\0\0\0\0\x03\x01kq")
    assert error.reply_code == codes.SYNTAX_ERROR
    assert str(error) == "queue.declare: arguments: table: 'k' has the unknown type b'q'"


def test_a_table_size_beyond_the_arguments_is_refused() -> None:
    error = refused(50, 10, b"\0\0\x01q\0\xff\xff\xff\xff")
    assert str(error) == "queue.declare: arguments: needs 4294967295 bytes where 0 are left"


def test_table_limits_hold_inside_of_methods() -> None:
    payload = methods.encode(methods.QueueDeclare(arguments={"a": 1, "b": 2}))
    assert methods.decode_payload(payload, limits=tables.Limits(entry_count_max=2))
    with pytest.raises(PeerError, match="more than 1 entries"):
        methods.decode_payload(payload, limits=tables.Limits(entry_count_max=1))


def test_a_routing_key_of_any_bytes_is_kept() -> None:
    arguments = b"\0\0\x01x\x02k\xff\x00"
    method = methods.decode(60, 40, arguments)
    assert isinstance(method, methods.BasicPublish)
    assert method.routing_key.encode("utf-8", "surrogateescape") == b"k\xff"
    assert methods.encode(method) == b"\x00\x3c\x00\x28" + arguments


def test_unused_bits_are_ignored() -> None:
    method = methods.decode(60, 30, b"\x03tag\xfe")
    assert method == methods.BasicCancel(consumer_tag="tag", no_wait=False)


def test_more_than_eight_bits_go_on_in_the_next_octet() -> None:
    """No method of AMQP has that many; the rule is the specification's."""

    class Wide(methods.Method):
        a: layouts.Bit = False
        b: layouts.Bit = False
        c: layouts.Bit = False
        d: layouts.Bit = False
        e: layouts.Bit = False
        f: layouts.Bit = False
        g: layouts.Bit = False
        h: layouts.Bit = True
        i: layouts.Bit = True
        number: layouts.Octet = 7
        j: layouts.Bit = True

    Wide.CLASS_ID, Wide.METHOD_ID, Wide.NAME = 1, 2, "wide"
    layout = layouts.Layout(dataclasses.dataclass(Wide))
    assert layout.encode(Wide()) == b"\0\x01\0\x02" + b"\x80\x01\x07\x01"
    assert layout.decode(b"\x80\x01\x07\x01", tables.LIMITS) == Wide()


def test_arguments_that_do_not_fit_are_value_errors_that_name_them() -> None:
    wrong = {
        "basic.qos: prefetch_count: 65536 does not": methods.BasicQos(prefetch_count=65536),
        "basic.ack: delivery_tag: -1 does not": methods.BasicAck(delivery_tag=-1),
        "queue.purge: queue: 256 bytes": methods.QueuePurge(queue="é" * 128),
        "queue.declare: arguments: table: 'k'": methods.QueueDeclare(arguments={"k": 2**64}),
        "queue.delete: queue: 'utf-8' codec": methods.QueueDelete(queue="\udcff"),
    }
    for text, method in wrong.items():
        with pytest.raises(ValueError, match=text):
            methods.encode(method)


def test_the_longest_short_string_fits() -> None:
    name = "é" * 127 + "x"
    method = methods.QueueDeclareOk(queue=name, message_count=0, consumer_count=0)
    payload = methods.encode(method)
    assert payload[4] == 255
    assert methods.decode_payload(payload) == method


def test_a_frame_is_type_channel_size_payload_and_end() -> None:
    frame = methods.frame(258, methods.BasicCancelOk(consumer_tag="t"))
    assert frame == b"\x01\x01\x02\0\0\0\x06" + b"\0\x3c\0\x1f\x01t" + b"\xce"


def test_methods_with_content_say_so() -> None:
    names = {row[2].NAME for row in EVERY if row[2].HAS_CONTENT}
    assert names == {"basic.publish", "basic.return", "basic.deliver", "basic.get-ok"}


def test_methods_are_values_that_do_not_change() -> None:
    assert [row[2].NAME for row in EVERY if hasattr(row[2], "__dict__")] == []
    for argument in dataclasses.fields(methods.QueuePurge):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(methods.QueuePurge(), argument.name, "other")


def test_secrets_are_not_shown() -> None:
    secret = b"hidden"
    shown = [
        repr(methods.ConnectionStartOk(response=secret)),
        repr(methods.ConnectionSecureOk(response=secret)),
        repr(methods.ConnectionUpdateSecret(new_secret=secret)),
    ]
    assert [text for text in shown if "hidden" in text] == []
