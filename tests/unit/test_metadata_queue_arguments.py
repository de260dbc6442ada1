"""Every argument of a queue, with values it can have and values it cannot, in RabbitMQ's words."""

import pytest

from lograft_broker.metadata import knobs
from lograft_broker.metadata.rows import Queue
from lograft_wire.amqp.fields import Int8, Int32, Int64, LongStr, Timestamp, Value
from support.metadata_desk import ME, Desk, declare_queue, made, table

NOT_A_NUMBER = '"expected integer, got longstr"'


def said(name: str, mistake: str) -> tuple[int, str]:
    return 406, f"invalid arg '{name}' for queue 'q' in vhost '/': {mistake}"


@pytest.mark.parametrize(
    ("name", "value", "mistake"),
    [
        ("x-message-ttl", Int32(-1), "{value_negative,-1}"),
        ("x-message-ttl", "10", NOT_A_NUMBER),
        ("x-message-ttl", 10.0, '"expected integer, got double"'),
        ("x-message-ttl", True, '"expected integer, got bool"'),
        ("x-message-ttl", Timestamp(10), '"expected integer, got timestamp"'),
        ("x-message-ttl", None, '"expected integer, got void"'),
        ("x-expires", Int32(0), "{value_zero,0}"),
        ("x-expires", Int8(-3), "{value_negative,-3}"),
        ("x-expires", "10", NOT_A_NUMBER),
        ("x-max-length", Int32(-1), "{value_negative,-1}"),
        ("x-max-length", [], '"expected integer, got array"'),
        ("x-max-length-bytes", Int32(-1), "{value_negative,-1}"),
        ("x-max-length-bytes", {}, '"expected integer, got table"'),
        ("x-max-in-memory-length", "1", NOT_A_NUMBER),
        ("x-max-in-memory-bytes", "1", NOT_A_NUMBER),
        ("x-max-priority", Int32(256), "{max_value_exceeded,256}"),
        ("x-max-priority", Int32(-1), "{value_negative,-1}"),
        ("x-max-priority", "5", NOT_A_NUMBER),
        ("x-overflow", "drop", "invalid_overflow"),
        ("x-overflow", Int32(1), "{unacceptable_type,signedint}"),
        ("x-dead-letter-routing-key", "k", "routing_key_but_no_dlx_defined"),
        ("x-dead-letter-routing-key", Int32(1), "{unacceptable_type,signedint}"),
        ("x-dead-letter-strategy", "sometimes", "invalid_dlx_strategy"),
        ("x-dead-letter-strategy", True, "{unacceptable_type,bool}"),
        ("x-single-active-consumer", "true", "{unacceptable_type,longstr}"),
        ("x-single-active-consumer", Int32(1), "{unacceptable_type,signedint}"),
        ("x-delivery-limit", "3", NOT_A_NUMBER),
        ("x-delayed-retry-type", "often", "invalid_delayed_retry_type"),
        ("x-delayed-retry-min", Int32(-1), "{value_negative,-1}"),
        ("x-delayed-retry-max", "1", NOT_A_NUMBER),
        ("x-consumer-timeout", Int32(-1), "{value_negative,-1}"),
        ("x-queue-type", "lazy", "\"unsupported queue type 'lazy'\""),
        ("x-queue-type", Int32(1), "{unacceptable_type,signedint}"),
        ("x-queue-type", LongStr(b"\xff"), "{unacceptable_type,longstr}"),
        ("x-queue-mode", "eager", "\"unsupported queue mode 'eager'\""),
        ("x-queue-version", Int32(3), "\"unsupported queue version '3'\""),
        ("x-queue-leader-locator", "here", "invalid_queue_locator_arg"),
        ("x-quorum-initial-group-size", Int32(0), "{value_zero,0}"),
        ("x-quorum-target-group-size", "3", NOT_A_NUMBER),
        ("x-retention-age", "7", "invalid_max_age"),
        ("x-retention-age", Int32(7), "{unacceptable_type,signedint}"),
        ("x-retention-bytes", Int32(-1), "{value_negative,-1}"),
        ("x-write-mode", "never", "invalid_write_mode"),
        ("x-cache-share", Int32(101), "{max_value_exceeded,101}"),
        ("x-batch-delay", Int32(60_001), "{max_value_exceeded,60001}"),
        ("x-batch-size", Int32(0), "{value_zero,0}"),
        ("x-prefetch", Int32(-1), "{value_negative,-1}"),
    ],
)
def test_a_bad_value_is_refused(name: str, value: Value, mistake: str) -> None:
    desk = Desk()
    command = declare_queue("q", ME, table(**{name: value}), durable=True)
    assert desk.refused(command) == said(name, mistake)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-message-ttl", Int32(0)),
        ("x-message-ttl", Int64(2**63 - 1)),
        ("x-expires", Int8(1)),
        ("x-max-length", Int32(0)),
        ("x-max-length-bytes", Int32(0)),
        ("x-max-priority", Int32(255)),
        ("x-max-priority", Int32(0)),
        ("x-overflow", "reject-publish-dlx"),
        ("x-dead-letter-exchange", ""),
        ("x-dead-letter-strategy", "at-least-once"),
        ("x-single-active-consumer", True),
        ("x-delivery-limit", Int32(-1)),
        ("x-delayed-retry-type", "failed"),
        ("x-queue-type", "quorum"),
        ("x-queue-mode", "lazy"),
        ("x-queue-version", Int32(2)),
        ("x-queue-leader-locator", "balanced"),
        ("x-queue-master-locator", "min-masters"),
        ("x-retention-age", "7D"),
        ("x-write-mode", "async"),
        ("x-cache-share", Int32(100)),
        ("x-batch-delay", Int32(0)),
        ("x-prefetch", Int32(0)),
    ],
)
def test_a_good_value_is_kept_with_its_type(name: str, value: Value) -> None:
    desk = Desk()
    row = made(desk.do(declare_queue("q", ME, table(**{name: value}), durable=True)), Queue)
    assert row.arguments[name] == value
    assert type(row.arguments[name]) is type(value)


def test_dead_letter_exchange_must_be_a_string() -> None:
    desk = Desk()
    assert desk.refused(declare_queue("q", ME, table(x_dead_letter_exchange=Int32(5)))) == (
        406,
        "invalid type 'signedint' for arg 'x-dead-letter-exchange' in queue 'q' in vhost '/'",
    )


def test_a_routing_key_with_its_exchange() -> None:
    desk = Desk()
    arguments = table(x_dead_letter_exchange="x", x_dead_letter_routing_key="k")
    assert made(desk.do(declare_queue("q", ME, arguments)), Queue)


@pytest.mark.parametrize(
    "name",
    [
        "x-message-ttl",
        "x-expires",
        "x-max-length",
        "x-max-priority",
        "x-delivery-limit",
        "x-retention-bytes",
    ],
)
def test_streams_have_no_such_argument(name: str) -> None:
    desk = Desk()
    arguments = table(x_queue_type="stream", **{name: Int32(5)})
    assert desk.refused(declare_queue("q", ME, arguments, durable=True)) == (
        406,
        f"invalid arg '{name}' for queue 'q' in vhost '/' of queue type rabbit_stream_queue",
    )


@pytest.mark.parametrize(
    ("name", "value", "mistake"),
    [
        ("x-max-age", "7", "invalid_max_age"),
        ("x-max-age", "0D", "invalid_max_age"),
        ("x-max-age", "-1D", "invalid_max_age"),
        ("x-max-age", "9999999999999Y", "invalid_max_age"),
        ("x-max-age", Int32(1), "{unacceptable_type,signedint}"),
        ("x-stream-max-segment-size-bytes", Int32(-1), "{value_negative,-1}"),
        ("x-stream-filter-size-bytes", "1", NOT_A_NUMBER),
        ("x-initial-cluster-size", Int32(0), "{value_zero,0}"),
    ],
)
def test_bad_arguments_of_streams(name: str, value: Value, mistake: str) -> None:
    desk = Desk()
    arguments = table(x_queue_type="stream", **{name: value})
    assert desk.refused(declare_queue("q", ME, arguments, durable=True)) == said(name, mistake)


def test_queues_have_no_arguments_of_streams() -> None:
    desk = Desk()
    assert desk.refused(declare_queue("q", ME, table(x_max_age="1D"), durable=True)) == (
        406,
        "invalid arg 'x-max-age' for queue 'q' in vhost '/' of queue type rabbit_classic_queue",
    )


@pytest.mark.parametrize(
    ("text", "age_ms"),
    [
        ("1s", 1_000),
        ("2m", 120_000),
        ("1h", 3_600_000),
        ("1D", 86_400_000),
        ("1M", 2_592_000_000),
        ("1Y", 31_536_000_000),
        ("1d", None),
        ("1 D", None),
        ("D", None),
        ("", None),
        ("١D", None),
    ],
)
def test_ages(text: str, age_ms: int | None) -> None:
    assert knobs.parse_age_ms(text) == age_ms


def test_a_redeclaration_is_compared_and_not_judged() -> None:
    """As RabbitMQ does: the existing queue is looked at first."""
    desk = Desk()
    desk.queue("q")
    code, text = desk.refused(declare_queue("q", ME, table(x_message_ttl="ten")))
    assert (code, text.partition(":")[0]) == (
        406,
        "inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/'",
    )
