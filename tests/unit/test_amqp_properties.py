"""Content headers and property lists: their bytes, what is refused, and changing one property."""

import dataclasses

import pytest

from lograft_wire.amqp import codes, framing, properties, tables
from lograft_wire.amqp.properties import ContentHeader, Properties
from lograft_wire.errors import PeerError

FULL = Properties(
    content_type="a/b",
    content_encoding="gz",
    headers={"k": 1},
    delivery_mode=2,
    priority=3,
    correlation_id="c",
    reply_to="r",
    expiration="500",
    message_id="m",
    timestamp=258,
    type="t",
    user_id="u",
    app_id="a",
    cluster_id="cl",
)
# Each property with its flag and its bytes, in the order of the wire.
PARTS: list[tuple[str, int, bytes]] = [
    ("content_type", 0x8000, b"\x03a/b"),
    ("content_encoding", 0x4000, b"\x02gz"),
    ("headers", 0x2000, b"\0\0\0\x07\x01kI\0\0\0\x01"),
    ("delivery_mode", 0x1000, b"\x02"),
    ("priority", 0x0800, b"\x03"),
    ("correlation_id", 0x0400, b"\x01c"),
    ("reply_to", 0x0200, b"\x01r"),
    ("expiration", 0x0100, b"\x03500"),
    ("message_id", 0x0080, b"\x01m"),
    ("timestamp", 0x0040, b"\0\0\0\0\0\0\x01\x02"),
    ("type", 0x0020, b"\x01t"),
    ("user_id", 0x0010, b"\x01u"),
    ("app_id", 0x0008, b"\x01a"),
    ("cluster_id", 0x0004, b"\x02cl"),
]
FULL_BYTES = b"\xff\xfc" + b"".join(part for _, _, part in PARTS)


def without(*names: str) -> bytes:
    """FULL_BYTES as if these had not been given."""
    kept = [(flag, part) for name, flag, part in PARTS if name not in names]
    return sum(flag for flag, _ in kept).to_bytes(2) + b"".join(part for _, part in kept)


def refused(data: bytes) -> str:
    with pytest.raises(PeerError) as caught:
        properties.decode(data)
    assert caught.value.reply_code == codes.SYNTAX_ERROR
    assert caught.value.closes_connection
    return str(caught.value)


def test_all_properties_have_the_published_bytes() -> None:
    assert properties.encode(FULL) == FULL_BYTES
    assert properties.decode(FULL_BYTES) == FULL


@pytest.mark.parametrize(("name", "flag", "part"), PARTS, ids=[name for name, *_ in PARTS])
def test_each_property_alone(name: str, flag: int, part: bytes) -> None:
    alone = dataclasses.replace(Properties(), **{name: getattr(FULL, name)})
    assert properties.encode(alone) == flag.to_bytes(2) + part
    assert properties.decode(flag.to_bytes(2) + part) == alone


def test_empty_is_not_the_same_as_absent() -> None:
    given = Properties(headers={}, expiration="", priority=0)
    assert properties.encode(given) == b"\x29\x00" + b"\0\0\0\0" + b"\0" + b"\0"
    assert properties.decode(properties.encode(given)) == given
    assert properties.encode(Properties()) == properties.EMPTY == b"\0\0"
    assert properties.decode(b"\0\0") == Properties()


def test_strings_of_any_bytes_are_kept() -> None:
    data = b"\x04\x00\x03\xff\x00\xfe"
    found = properties.decode(data)
    assert found.correlation_id is not None
    assert found.correlation_id.encode("utf-8", "surrogateescape") == b"\xff\0\xfe"
    assert properties.encode(found) == data


def test_missing_and_trailing_bytes_are_refused() -> None:
    for size in range(len(FULL_BYTES)):
        assert refused(FULL_BYTES[:size]).startswith("properties: ")
    assert refused(FULL_BYTES + b"\0") == "properties: 1 bytes behind the last argument"
    assert refused(b"\x04\x00\x05ab").startswith("properties: correlation_id: needs 5 bytes")


def test_unknown_flags_are_refused() -> None:
    for data in (b"\0\x01", b"\0\x02", b"\0\x01\0\0", b"\xff\xff" + FULL_BYTES[2:]):
        assert "have bits outside 0xfffc" in refused(data)
        with pytest.raises(PeerError, match="have bits outside"):
            properties.with_headers(data, None)


def test_bad_headers_are_refused_with_their_place() -> None:
    message = refused(b"\x20\x00\0\0\0\x03\x01kq")
    assert message == "properties: headers: table: 'k' has the unknown type b'q'"
    with pytest.raises(PeerError, match="more than 0 entries"):
        properties.decode(FULL_BYTES, limits=tables.Limits(entry_count_max=0))


def test_values_that_do_not_fit_are_value_errors_that_name_them() -> None:
    for wrong, text in (
        (Properties(priority=256), "properties: priority: 256"),
        (Properties(timestamp=-1), "properties: timestamp: -1"),
        (Properties(message_id="x" * 256), "properties: message_id: 256 bytes"),
        (Properties(headers={"k": 2**64}), "properties: headers: table: 'k'"),
    ):
        with pytest.raises(ValueError, match=text):
            properties.encode(wrong)


def test_a_content_header_is_class_weight_size_and_properties() -> None:
    header = ContentHeader(body_bytes=77, properties=b"\x10\x00\x02")
    payload = b"\0\x3c\0\0\0\0\0\0\0\0\0\x4d" + b"\x10\x00\x02"
    assert properties.encode_header(header) == payload
    assert properties.decode_header(payload) == header
    frame = framing.frame(framing.HEADER, 1, payload)
    assert frame == b"\x02\0\x01\0\0\0\x0f" + payload + b"\xce"


def test_the_largest_body_size_is_kept() -> None:
    header = ContentHeader(body_bytes=2**64 - 1, properties=properties.EMPTY)
    assert properties.decode_header(properties.encode_header(header)) == header


@pytest.mark.parametrize(
    ("payload", "code", "text"),
    [
        (b"", 502, "content header of 0 bytes"),
        (b"\0\x3c\0\0" + bytes(9), 502, "content header of 13 bytes"),
        (b"\0\x32\0\0" + bytes(10), 505, "got one for class 50 instead"),
        (b"\0\x3c\0\x01" + bytes(10), 505, "got one of weight 1 instead"),
    ],
)
def test_other_content_headers_are_refused(payload: bytes, code: int, text: str) -> None:
    with pytest.raises(PeerError, match=text) as caught:
        properties.decode_header(payload)
    assert caught.value.reply_code == code
    assert caught.value.closes_connection


def test_headers_are_replaced_added_and_removed_alone() -> None:
    new = b"\0\0\0\x04\x01dt\x01"
    replaced = FULL_BYTES.replace(PARTS[2][2], new)
    assert properties.with_headers(FULL_BYTES, {"d": True}) == replaced
    assert properties.with_headers(without("headers"), {"d": True}) == replaced
    assert properties.with_headers(FULL_BYTES, None) == without("headers")
    assert properties.with_headers(without("headers"), None) == without("headers")
    assert properties.with_headers(properties.EMPTY, {"d": True}) == b"\x20\x00" + new


def test_expiration_is_replaced_added_and_removed_alone() -> None:
    replaced = FULL_BYTES.replace(b"\x03500", b"\x0212")
    assert properties.with_expiration(FULL_BYTES, "12") == replaced
    assert properties.with_expiration(without("expiration"), "12") == replaced
    assert properties.with_expiration(FULL_BYTES, None) == without("expiration")
    assert properties.with_expiration(without("expiration"), None) == without("expiration")
    assert properties.with_expiration(without("headers", "expiration"), "12") == (
        properties.with_headers(replaced, None)
    )


def test_a_change_leaves_other_bytes_even_where_reading_would_not() -> None:
    """Octet 7 for true and an unreadable table: kept, because nobody looked."""
    odd = b"\x21\x00\0\0\0\x04\x01at\x07\x0250"
    assert properties.with_expiration(odd, None) == b"\x20\x00\0\0\0\x04\x01at\x07"
    unreadable = b"\x21\x00\0\0\0\x03\x01aq\x0250"
    assert properties.with_expiration(unreadable, None) == b"\x20\x00\0\0\0\x03\x01aq"


def test_changing_a_damaged_list_is_refused() -> None:
    for size in range(len(FULL_BYTES)):
        with pytest.raises(PeerError):
            properties.with_headers(FULL_BYTES[:size], {})
        with pytest.raises(PeerError):
            properties.with_expiration(FULL_BYTES[:size], None)
    with pytest.raises(PeerError):
        properties.with_expiration(FULL_BYTES + b"\0", None)
