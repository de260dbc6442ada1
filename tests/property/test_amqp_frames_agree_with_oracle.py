"""The compiled frame scanner and encoder against their slow twin, on good and on damaged bytes."""

import struct

from hypothesis import example, given
from hypothesis import strategies as st

from lograft_broker.hot import frames
from oracle import frames as oracle

SHORT = st.binary(max_size=255).map(oracle.short)
PAYLOAD_MAX = 64
GOOD_FRAME = st.builds(
    oracle.frame, st.sampled_from([1, 2, 3, 8]), st.integers(0, 65535), st.binary(max_size=80)
)


@st.composite
def property_lists(draw: st.DrawFn) -> bytes:
    flags, values = 0, b""
    for number, kind in enumerate(oracle.KINDS):
        if draw(st.booleans()):
            flags |= 1 << (15 - number)
            if kind == "s":
                values += draw(SHORT)
            elif kind == "t":
                table = draw(st.binary(max_size=40))
                values += struct.pack(">I", len(table)) + table
            else:
                size = 1 if kind == "o" else 8
                values += draw(st.binary(min_size=size, max_size=size))
    return struct.pack(">H", flags) + values


@st.composite
def damaged(draw: st.DrawFn, source: st.SearchStrategy[bytes]) -> bytes:
    data = bytearray(draw(source))
    for _ in range(draw(st.integers(0, 2))):
        if data:
            data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))]) + draw(st.binary(max_size=3))


FRAMES = st.lists(GOOD_FRAME, max_size=6).map(b"".join)


@given(st.one_of(FRAMES, damaged(FRAMES), st.binary(max_size=60)), st.integers(0, 9))
@example(b"\x01\x00\x01\x00\x00\x00\x40", 0)
@example(b"\x01\x00\x01\x00\x00\x00\x41", 0)
def test_scan(data: bytes, start: int) -> None:
    assert frames.scan(data, start, PAYLOAD_MAX) == oracle.scan(data, start, PAYLOAD_MAX)


ARGUMENTS = st.builds(
    lambda exchange, key, flags: b"\0\0" + exchange + key + bytes([flags]),
    SHORT,
    SHORT,
    st.integers(0, 255),
)


@given(st.one_of(ARGUMENTS, damaged(ARGUMENTS), st.binary(max_size=20)))
def test_publish(arguments: bytes) -> None:
    assert frames.publish(arguments) == oracle.publish(arguments)


@given(st.one_of(property_lists(), damaged(property_lists()), st.binary(max_size=20)))
@example(b"\x00\x01")
@example(b"\x20\x00\xff\xff\xff\xff")
def test_properties(data: bytes) -> None:
    assert frames.properties(data) == oracle.properties(data)


@given(
    channel=st.integers(0, 65535),
    tag=st.binary(max_size=255),
    delivery_tag=st.integers(0, (1 << 64) - 1),
    redelivered=st.booleans(),
    names=st.builds(bytes.__add__, SHORT, SHORT),
    properties=property_lists(),
    body=st.binary(max_size=300),
    payload_max=st.integers(1, 200),
)
def test_delivery(
    channel: int,
    tag: bytes,
    delivery_tag: int,
    redelivered: bool,
    names: bytes,
    properties: bytes,
    body: bytes,
    payload_max: int,
) -> None:
    arguments = {
        "channel": channel,
        "tag": tag,
        "delivery_tag": delivery_tag,
        "redelivered": redelivered,
        "names": names,
        "properties": properties,
        "body": body,
        "payload_max": payload_max,
    }
    assert frames.delivery(**arguments) == oracle.delivery(**arguments)  # type: ignore[arg-type]
