"""Any message comes back equal from its frame, and no bytes make the decoder do anything else than
return a message whose frame they are, or raise PeerError."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from lograft_log.hot import crc
from lograft_replication import codec, messages
from lograft_wire.errors import PeerError

U32 = st.integers(0, 2**32 - 1)
U64 = st.integers(0, 2**64 - 1)
GROUP = st.integers(0, 2**32 - 2)
PAIRS = st.lists(st.tuples(U32, U64), max_size=8).map(tuple)


@st.composite
def appends(draw: st.DrawFn) -> messages.Append:
    prev = draw(st.integers(0, 2**63))
    commands = draw(st.lists(st.binary(max_size=40), max_size=6))
    entries = tuple((data, prev + 1 + i, draw(U64)) for i, data in enumerate(commands))
    return messages.Append(draw(U64), draw(U64), prev, draw(U64), entries)


GROUP_MESSAGES = st.one_of(
    appends(),
    st.builds(messages.Appended, U64, U64, st.booleans(), st.booleans()),
    st.builds(messages.VoteRequest, U64, U64, U64, st.booleans()),
    st.builds(messages.Vote, U64, U64, U32, st.booleans()),
    st.builds(messages.PreVoteRequest, U64, U64, U64),
    st.builds(messages.PreVote, U64),
    st.builds(messages.Stale, U64),
    st.builds(messages.TimeoutNow, U64),
    st.builds(messages.Offer, U64, U64, U64, U64, U64, U32),
)
NODE_MESSAGES = st.one_of(
    st.builds(messages.Heartbeat, U64, U64, st.none() | PAIRS),
    st.builds(messages.HeartbeatOk, U64, U64, st.booleans(), PAIRS),
    st.builds(messages.Pull, U64, U32, U64, U32, U64, U32),
    st.builds(messages.Chunk, U64, st.text(max_size=40), st.binary(max_size=60)),
)
ADDRESSED = st.tuples(GROUP, GROUP_MESSAGES) | st.tuples(st.just(codec.NODE_GROUP), NODE_MESSAGES)


@given(ADDRESSED)
def test_decode_inverts_encode(addressed: tuple[int, codec.Message]) -> None:
    frame = b"".join(codec.encode(*addressed))
    assert codec.decode(memoryview(frame)) == addressed


@given(st.integers(0, 24), st.integers(0, 3), GROUP | st.just(codec.NODE_GROUP), st.binary())
def test_a_valid_header_before_any_body_is_refused_or_is_that_very_frame(
    kind: int, flags: int, group: int, body: bytes
) -> None:
    rest = struct.pack("<BBHI", codec.VERSION, kind, flags, group) + body
    frame = struct.pack("<II", 8 + len(rest), crc.checksum(rest)) + rest
    try:
        addressed = codec.decode(memoryview(frame))
    except PeerError:
        return
    assert b"".join(codec.encode(*addressed)) == frame
