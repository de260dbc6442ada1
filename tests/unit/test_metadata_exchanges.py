"""Exchanges and bindings: what is made, what is refused and in which words."""

import pytest

from lograft_broker.metadata import commands, exchange_checks, exchange_types, words
from lograft_broker.metadata.commands import DeleteExchange
from lograft_broker.metadata.limits import MetadataLimits
from lograft_broker.metadata.results import Absent, Created, Deleted, Existing
from lograft_broker.metadata.rows import Binding, Exchange, Kind
from lograft_wire.amqp.fields import Decimal, Int8, Int32, Int64, Timestamp, UInt8, Value
from support.metadata_desk import (
    ME,
    OTHER,
    Desk,
    bind,
    declare_exchange,
    declare_queue,
    made,
    table,
    unbind,
)

TEXTS = {
    "default": (403, "operation not permitted on the default exchange"),
}


@pytest.fixture
def desk() -> Desk:
    return Desk()


def delete(name: str, *, if_unused: bool = False) -> DeleteExchange:
    return DeleteExchange(vhost="/", name=name, if_unused=if_unused)


def test_a_declared_exchange_has_what_it_was_declared_with(desk: Desk) -> None:
    arguments = table(alternate_exchange="other", unknown=Int8(1))
    row = made(desk.do(declare_exchange("x", "topic", arguments, durable=True)), Exchange)
    assert row == Exchange(
        vhost="/",
        name="x",
        type="topic",
        durable=True,
        auto_delete=False,
        internal=False,
        arguments=arguments,
    )
    assert desk.state.exchange("/", "x") is row


def test_an_equal_declaration_finds_the_exchange_and_changes_nothing(desk: Desk) -> None:
    row = desk.exchange("x", durable=True)
    version = desk.machine.version
    assert desk.do(declare_exchange("x", durable=True)) == Existing(row)
    assert desk.machine.settled(declare_exchange("x", durable=True)) == Existing(row)
    assert desk.machine.version == version


@pytest.mark.parametrize(
    ("again", "said"),
    [
        (
            declare_exchange("x", "fanout", durable=True),
            "inequivalent arg 'type' for exchange 'x' in vhost '/': "
            "received 'fanout' but current is 'direct'",
        ),
        (
            declare_exchange("x"),
            "inequivalent arg 'durable' for exchange 'x' in vhost '/': "
            "received 'false' but current is 'true'",
        ),
        (
            declare_exchange("x", durable=True, auto_delete=True),
            "inequivalent arg 'auto_delete' for exchange 'x' in vhost '/': "
            "received 'true' but current is 'false'",
        ),
        (
            declare_exchange("x", durable=True, internal=True),
            "inequivalent arg 'internal' for exchange 'x' in vhost '/': "
            "received 'true' but current is 'false'",
        ),
        (
            declare_exchange("x", "direct", table(alternate_exchange="y"), durable=True),
            "inequivalent arg 'alternate-exchange' for exchange 'x' in vhost '/': "
            "received the value 'y' of type 'longstr' but current is none",
        ),
    ],
)
def test_another_declaration_is_refused(
    desk: Desk, again: commands.DeclareExchange, said: str
) -> None:
    desk.exchange("x", durable=True)
    assert desk.refused(again) == (406, said)


def test_unknown_arguments_do_not_count(desk: Desk) -> None:
    row = made(desk.do(declare_exchange("x", "direct", table(x_mine="a"))), Exchange)
    assert desk.do(declare_exchange("x", "direct", table(x_yours="b"))) == Existing(row)


def test_names_that_are_reserved(desk: Desk) -> None:
    assert desk.refused(declare_exchange("")) == TEXTS["default"]
    assert desk.refused(declare_exchange("amq.mine")) == (
        403,
        "exchange name 'amq.mine' contains reserved prefix 'amq.*'",
    )
    found = desk.do(declare_exchange("amq.topic", "topic", durable=True))
    assert isinstance(found, Existing)
    assert made(desk.do(declare_exchange("amqp")), Exchange)


def test_predeclared_exchanges_are_in_every_vhost(desk: Desk) -> None:
    desk.do(commands.PutVhost(name="two"))
    for vhost in ("/", "two"):
        found = {row.name: row.type for row in desk.state.exchanges_in[vhost].values()}
        assert found == exchange_types.PREDECLARED
        assert all(row.durable for row in desk.state.exchanges_in[vhost].values())


@pytest.mark.parametrize("kind", ["", "dirrect", "x-other"])
def test_an_unknown_type_is_refused(desk: Desk, kind: str) -> None:
    assert desk.refused(declare_exchange("x", kind)) == (406, f"unknown exchange type '{kind}'")


def test_alternate_exchange_must_be_a_string_and_need_not_exist(desk: Desk) -> None:
    command = declare_exchange("x", "direct", table(alternate_exchange=Int32(1)))
    assert desk.refused(command) == (
        406,
        "invalid type 'signedint' for arg 'alternate-exchange' in exchange 'x' in vhost '/'",
    )
    assert made(
        desk.do(declare_exchange("x", "direct", table(alternate_exchange="nobody"))), Exchange
    )


def test_delayed_exchanges_need_the_type_they_route_as(desk: Desk) -> None:
    none = "Invalid argument, 'x-delayed-type' must be an existing exchange type"
    itself = "Invalid argument, 'x-delayed-message' can't be used for 'x-delayed-type'"
    for arguments, said in (
        (table(), none),
        (table(x_delayed_type=Int32(1)), none),
        (table(x_delayed_type="nothing"), "unknown exchange type 'nothing'"),
        (table(x_delayed_type="x-delayed-message"), itself),
    ):
        command = declare_exchange("d", "x-delayed-message", arguments)
        assert desk.refused(command) == (406, said)
    arguments = table(x_delayed_type="topic")
    row = made(desk.do(declare_exchange("d", "x-delayed-message", arguments)), Exchange)
    assert row.type == "x-delayed-message"
    again = declare_exchange("d", "x-delayed-message", table(x_delayed_type="direct"))
    assert desk.refused(again) == (
        406,
        "inequivalent arg 'x-delayed-type' for exchange 'd' in vhost '/': "
        "received 'direct' but current is 'topic'",
    )


def test_consistent_hash_arguments(desk: Desk) -> None:
    both = table(hash_header="a", hash_property="message_id")
    assert desk.refused(declare_exchange("h", "x-consistent-hash", both)) == (
        406,
        "hash-header and hash-property are mutually exclusive",
    )
    bad = table(hash_property="size")
    assert desk.refused(declare_exchange("h", "x-consistent-hash", bad)) == (
        406,
        "Unsupported property: size",
    )
    assert desk.refused(
        declare_exchange("h", "x-consistent-hash", table(hash_property=Int32(3)))
    ) == (406, "hash-property must be a string")
    good = table(hash_property="message_id")
    assert made(desk.do(declare_exchange("h", "x-consistent-hash", good)), Exchange)


def test_names_too_long_or_with_line_breaks_are_refused(desk: Desk) -> None:
    assert desk.refused(declare_exchange("x" * 256)) == (
        406,
        "exchange name has 256 bytes, at most 255 are allowed",
    )
    assert desk.refused(declare_exchange("é" * 128))[0] == 406
    assert desk.refused(declare_exchange("a\nb")) == (406, "exchange name contains a line break")
    assert made(desk.do(declare_exchange("x" * 255)), Exchange)


def test_declaring_in_a_vhost_that_is_gone(desk: Desk) -> None:
    assert desk.refused(declare_exchange("x", vhost="none")) == (404, "no vhost 'none'")


def test_passive_declaration(desk: Desk) -> None:
    row = desk.exchange("x", "fanout")
    assert exchange_checks.passive(desk.state, "/", "x") == Existing(row)
    missing = exchange_checks.passive(desk.state, "/", "y")
    assert (missing.code, missing.text) == (404, "no exchange 'y' in vhost '/'")  # type: ignore[union-attr]
    default = exchange_checks.passive(desk.state, "/", "")
    assert (default.code, default.text) == TEXTS["default"]  # type: ignore[union-attr]


def test_publishing_to_internal_and_missing_exchanges(desk: Desk) -> None:
    desk.exchange("x", internal=True)
    internal = exchange_checks.publish(desk.state, "/", "x")
    missing = exchange_checks.publish(desk.state, "/", "y")
    assert internal is not None
    assert missing is not None
    assert (internal.code, internal.text) == (
        403,
        "cannot publish to internal exchange 'x' in vhost '/'",
    )
    assert (missing.code, missing.text) == (404, "no exchange 'y' in vhost '/'")
    assert exchange_checks.publish(desk.state, "/", "") is None


def test_delete(desk: Desk) -> None:
    row = desk.exchange("x")
    desk.queue("q")
    desk.bind("x", "q")
    assert desk.refused(delete("x", if_unused=True)) == (406, "exchange 'x' in vhost '/' in use")
    assert desk.do(delete("x")) == Deleted((row,))
    assert desk.do(delete("x")) == Absent()
    assert desk.do(delete("never", if_unused=True)) == Absent()
    assert list(desk.state.bindings) == []
    assert desk.queue_names() == ["q"]


def test_being_a_destination_is_not_being_used(desk: Desk) -> None:
    desk.exchange("x")
    desk.exchange("y")
    desk.bind_exchange("x", "y")
    assert isinstance(desk.do(delete("y", if_unused=True)), Deleted)
    assert list(desk.state.bindings) == []


def test_deleting_system_exchanges_is_refused(desk: Desk) -> None:
    assert desk.refused(delete("")) == TEXTS["default"]
    assert desk.refused(delete("amq.direct")) == (
        403,
        "deletion of system exchange 'amq.direct' in vhost '/' not allowed",
    )
    assert desk.refused(delete("amq.never"))[0] == 403


# Bindings


def test_a_binding_is_all_of_its_parts(desk: Desk) -> None:
    desk.exchange("x")
    desk.queue("q")
    first = desk.bind("x", "q", "k")
    assert desk.do(bind("x", "q", "k")) == Existing(first)
    for other in (
        bind("x", "q", "K"),
        bind("x", "q", "k", table(a=Int32(1))),
        bind("x", "q", "k", table(a=Int64(1))),
        bind("amq.direct", "q", "k"),
    ):
        assert isinstance(desk.do(other), Created)
    assert len(desk.state.bindings) == 5
    assert isinstance(desk.do(unbind("x", "q", "k", table(a=Int32(1)))), Deleted)
    assert len(desk.state.bindings) == 4


def test_the_order_of_arguments_does_not_tell_bindings_apart(desk: Desk) -> None:
    desk.queue("q")
    row = made(desk.do(bind("amq.headers", "q", "", table(a="1", b="2"))), Binding)
    assert desk.do(bind("amq.headers", "q", "", table(b="2", a="1"))) == Existing(row)


def test_binding_what_is_not_there(desk: Desk) -> None:
    desk.queue("q")
    desk.exchange("x")
    assert desk.refused(bind("none", "q")) == (404, "no exchange 'none' in vhost '/'")
    assert desk.refused(bind("x", "none")) == (404, "no queue 'none' in vhost '/'")
    assert desk.refused(bind("none", "none")) == (404, "no exchange 'none' in vhost '/'")
    assert desk.refused(bind("x", "none", kind=Kind.EXCHANGE)) == (
        404,
        "no exchange 'none' in vhost '/'",
    )


def test_the_default_exchange_is_not_bound(desk: Desk) -> None:
    desk.queue("q")
    desk.exchange("x")
    for command in (
        bind("", "q"),
        bind("x", "", kind=Kind.EXCHANGE),
        unbind("", "q"),
        unbind("x", "", kind=Kind.EXCHANGE),
    ):
        assert desk.refused(command) == TEXTS["default"]


def test_unbinding_what_is_not_bound_is_no_error(desk: Desk) -> None:
    desk.queue("q")
    desk.exchange("x")
    assert desk.do(unbind("x", "q")) == Absent()
    assert desk.do(unbind("none", "q")) == Absent()
    assert desk.do(unbind("x", "none")) == Absent()


def test_binding_somebody_elses_exclusive_queue_is_refused(desk: Desk) -> None:
    desk.queue("q", exclusive=True)
    desk.exchange("x")
    assert desk.refused(bind("x", "q", by=OTHER))[0] == 405
    desk.bind("x", "q", by=ME)
    assert desk.refused(unbind("x", "q", by=OTHER))[0] == 405
    assert desk.do(unbind("x", "q", "another key", by=OTHER)) == Absent()
    assert isinstance(desk.do(unbind("x", "q", by=ME)), Deleted)


@pytest.mark.parametrize(
    ("match", "said"),
    [
        (
            "some",
            'Invalid x-match field value <<"some">>; expected all, any, all-with-x, or any-with-x',
        ),
        (UInt8(1), "Invalid x-match field type unsignedbyte (value 1); expected longstr"),
        (Timestamp(7), "Invalid x-match field type timestamp (value 7); expected longstr"),
        (None, "Invalid x-match field type void (value undefined); expected longstr"),
        (b"\1\2", "Invalid x-match field type binary (value <<1,2>>); expected longstr"),
    ],
)
def test_headers_bindings_with_a_bad_match(desk: Desk, match: object, said: str) -> None:
    desk.queue("q")
    command = bind("amq.headers", "q", "", table(x_match=match))  # type: ignore[arg-type]
    assert desk.refused(command) == (406, said)


@pytest.mark.parametrize("match", ["all", "any", "all-with-x", "any-with-x"])
def test_headers_bindings_with_a_good_match(desk: Desk, match: str) -> None:
    desk.queue("q")
    assert made(desk.do(bind("amq.headers", "q", "", table(x_match=match))), Binding)
    assert made(desk.do(bind("amq.match", "q")), Binding)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("", "The binding key must be an integer: <<>>"),
        ("ten", 'The binding key must be an integer: <<"ten">>'),
        ("-+1", 'The binding key must be an integer: <<"-+1">>'),
        ('"', 'The binding key must be an integer: <<"\\"">>'),
        ("٣", 'The binding key must be an integer: <<"٣"/utf8>>'),
        ("0", "The binding key must be greater than 0"),
        ("-5", "The binding key must be greater than 0"),
        ("9" * 5000, "routing key has 5000 bytes, at most 255 are allowed"),
    ],
)
def test_weights_of_consistent_hash_bindings(desk: Desk, key: str, said: str) -> None:
    desk.queue("q")
    desk.exchange("h", "x-consistent-hash")
    assert desk.refused(bind("h", "q", key)) == (406, said)
    assert made(desk.do(bind("h", "q", "+10")), Binding)


def test_a_delayed_exchange_takes_the_bindings_of_its_type(desk: Desk) -> None:
    desk.queue("q")
    arguments = table(x_delayed_type="x-consistent-hash")
    desk.do(declare_exchange("d", "x-delayed-message", arguments))
    assert desk.refused(bind("d", "q", "word"))[0] == 406
    assert made(desk.do(bind("d", "q", "3")), Binding)


def test_a_routing_key_may_have_any_octets_but_not_too_many(desk: Desk) -> None:
    desk.queue("q")
    raw = b"\xff\x00k".decode("utf-8", "surrogateescape")
    assert desk.bind("amq.direct", "q", raw).routing_key == raw
    assert desk.refused(bind("amq.direct", "q", "k" * 256))[0] == 406


@pytest.mark.parametrize(
    ("key", "arguments", "expected"),
    [
        ("", table(), "~"),
        ("key", table(), "key"),
        ("a b/c~d", table(), "a+b%2Fc%7Ed"),
    ],
)
def test_properties_key_without_arguments_is_the_quoted_routing_key(
    desk: Desk, key: str, arguments: object, expected: str
) -> None:
    desk.queue("q")
    assert desk.bind("amq.direct", "q", key).properties_key == expected


def test_properties_key_tells_arguments_apart(desk: Desk) -> None:
    desk.queue("q")
    keys = {
        made(desk.do(bind("amq.headers", "q", "k", arguments)), Binding).properties_key
        for arguments in (table(), table(a="1"), table(a="2"))
    }
    assert len(keys) == 3
    assert sum("~" in key for key in keys) == 2
    assert all(key.startswith("k") for key in keys)


def test_full_means_refused() -> None:
    limits = MetadataLimits(exchange_count_max=7, binding_count_max=1, arguments_bytes_max=20)
    desk = Desk(limits=limits)
    desk.queue("q")
    desk.exchange("x")
    assert desk.refused(declare_exchange("y")) == (
        406,
        "cannot declare exchange 'y' in vhost '/': exchange limit of 7 is reached",
    )
    assert desk.refused(bind("x", "q", "k", table(a="b" * 50)))[0] == 406
    desk.bind("x", "q")
    assert desk.refused(bind("x", "q", "other"))[0] == 406
    assert desk.refused(declare_queue("r", ME, table(a="b" * 50)))[0] == 406


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        ("", "<<>>"),
        ('a"b', '<<"a\\"b">>'),
        (True, "true"),
        (Int8(-3), "-3"),
        (10**30, "1" + "0" * 30),
        (1.5, "1.5"),
        (None, "undefined"),
        (b"\1\2", "<<1,2>>"),
        (Timestamp(7), "7"),
        (Decimal(scale=1, value=5), "{1,5}"),
        ([True, 1 << 70], f"[{{bool,true}},{{long,{1 << 70}}}]"),
        ({"a": 1.5}, '[{<<"a">>,double,1.5}]'),
    ],
)
def test_values_are_printed_as_erlang_does(value: Value, printed: str) -> None:
    assert words.term(value) == printed
