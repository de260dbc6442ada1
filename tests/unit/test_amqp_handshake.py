"""The beginning of a connection, fed with methods and without a socket."""

import pytest

from lograft_broker.amqp import sasl
from lograft_broker.amqp.handshake import (
    Agreed,
    CheckLogin,
    Drop,
    Handshake,
    Offer,
    OpenVhost,
    Send,
    SendHeader,
)
from lograft_wire.amqp import framing, methods, tables
from lograft_wire.amqp.fields import Table
from lograft_wire.errors import PeerError

OFFER = Offer(server_properties={"product": "Lograft"})
PLAIN = b"\0guest\0secret"


def started(*, properties: Table | None = None) -> Handshake:
    one = Handshake(OFFER)
    one.header(framing.PROTOCOL_HEADER)
    one.receive(methods.ConnectionStartOk(client_properties=properties or {}, response=PLAIN))
    return one


def tuned(**asked: int) -> Agreed:
    one = started()
    one.logged_in()
    (agreed,) = one.receive(methods.ConnectionTuneOk(**asked))
    assert isinstance(agreed, Agreed)
    return agreed


def test_whole_handshake() -> None:
    one = Handshake(OFFER)
    (start,) = one.header(framing.PROTOCOL_HEADER)
    assert isinstance(start, Send)
    assert isinstance(start.method, methods.ConnectionStart)
    assert start.method.mechanisms == b"PLAIN AMQPLAIN"
    assert start.method.server_properties == {"product": "Lograft"}
    (check,) = one.receive(methods.ConnectionStartOk(response=PLAIN))
    assert check == CheckLogin("guest", b"secret", "PLAIN")
    assert one.logged_in() == [
        Send(methods.ConnectionTune(channel_max=2047, frame_max=131_072, heartbeat=60))
    ]
    tune_ok = methods.ConnectionTuneOk(channel_max=10, frame_max=8192, heartbeat=5)
    assert one.receive(tune_ok) == [Agreed(channel_max=10, frame_bytes_max=8192, heartbeat_s=5)]
    assert one.receive(methods.ConnectionOpen(virtual_host="/")) == [OpenVhost("/")]
    assert not one.is_over
    assert one.opened() == [Send(methods.ConnectionOpenOk())]
    assert one.is_over


@pytest.mark.parametrize("header", [b"AMQP\0\1\0\0", b"GET / HT", b"AMQP\1\1\0\x09"])
def test_other_protocol_gets_our_header(header: bytes) -> None:
    one = Handshake(OFFER)
    assert one.header(header) == [SendHeader()]
    assert one.is_over


def test_wrong_login_is_told_to_clients_that_know_the_word_for_it() -> None:
    one = started(properties={"capabilities": {"authentication_failure_close": True}})
    with pytest.raises(PeerError, match=r"Login was refused using .* PLAIN") as caught:
        one.refused()
    assert caught.value.reply_code == 403
    assert caught.value.closes_connection


def test_wrong_login_of_other_clients_ends_the_socket() -> None:
    (drop,) = started().refused()
    assert isinstance(drop, Drop)


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"channel_max": 0, "frame_max": 4096}, r"channel_max = 0 \(no limit\) is higher"),
        ({"channel_max": 2048, "frame_max": 4096}, r"channel_max = 2048 is higher .* \(2047\)"),
        ({"channel_max": 1, "frame_max": 131_073}, "frame_max = 131073 is higher"),
        ({"channel_max": 1, "frame_max": 4095}, r"frame_max = 4095 is lower .* \(4096\)"),
    ],
)
def test_tune_beyond_the_offer_is_refused(asked: dict[str, int], text: str) -> None:
    with pytest.raises(PeerError, match=text) as caught:
        tuned(**asked)
    assert caught.value.reply_code == 530


def test_heartbeats_may_be_turned_off() -> None:
    assert tuned(channel_max=1, frame_max=4096, heartbeat=0).heartbeat_s == 0


def test_method_out_of_order_is_refused() -> None:
    one = Handshake(OFFER)
    one.header(framing.PROTOCOL_HEADER)
    with pytest.raises(PeerError, match=r"connection\.open is not expected now") as caught:
        one.receive(methods.ConnectionOpen(virtual_host="/"))
    assert caught.value.reply_code == 503


def test_unknown_mechanism_is_refused() -> None:
    one = Handshake(OFFER)
    one.header(framing.PROTOCOL_HEADER)
    with pytest.raises(PeerError, match="unknown authentication mechanism 'MAGIC'") as caught:
        one.receive(methods.ConnectionStartOk(mechanism="MAGIC"))
    assert caught.value.reply_code == 503


def test_amqplain_is_a_table_without_its_length() -> None:
    response = tables.encode({"LOGIN": "guest", "PASSWORD": "secret"})
    assert sasl.read("AMQPLAIN", response) == sasl.Login("guest", b"secret")


@pytest.mark.parametrize(
    ("mechanism", "response"),
    [
        ("PLAIN", b""),
        ("PLAIN", b"guest\0secret"),
        ("PLAIN", b"\0guest\0se\0cret"),
        ("PLAIN", b"\0\xff\0x"),
        ("AMQPLAIN", b"\x05LOGIN"),
        ("AMQPLAIN", tables.encode({"LOGIN": "guest"})),
        ("AMQPLAIN", tables.encode({"LOGIN": 1, "PASSWORD": "x"})),
    ],
)
def test_malformed_login_is_a_syntax_error(mechanism: str, response: bytes) -> None:
    with pytest.raises(PeerError) as caught:
        sasl.read(mechanism, response)
    assert caught.value.reply_code == 502


def test_password_is_not_shown() -> None:
    assert "secret" not in repr(CheckLogin("guest", b"secret", "PLAIN"))
    assert "secret" not in repr(sasl.Login("guest", b"secret"))
