"""The frame decoder takes a frame that fits exactly and refuses, naming the field, any other."""

import re
import struct

import pytest

from lograft_log.hot import crc
from lograft_replication import codec
from lograft_replication.messages import (
    Append,
    Appended,
    Chunk,
    Heartbeat,
    HeartbeatOk,
    Offer,
    PreVote,
    PreVoteRequest,
    Pull,
    Stale,
    TimeoutNow,
    Vote,
    VoteRequest,
)
from lograft_wire.errors import PeerError

GROUP = 7
EVERY_KIND: list[tuple[int, codec.Message]] = [
    (GROUP, Append(3, 9, 10, 2, ((b"one", 11, 2), (b"", 12, 3), (b"three", 13, 3)))),
    (GROUP, Append(3, 9, 10, 2, ())),
    (GROUP, Appended(3, 14, False, True)),
    (GROUP, VoteRequest(4, 13, 3, True)),
    (GROUP, Vote(4, 3, 250, True)),
    (GROUP, PreVoteRequest(5, 13, 3)),
    (GROUP, PreVote(5)),
    (GROUP, Stale(6)),
    (GROUP, TimeoutNow(6)),
    (GROUP, Offer(6, 13, 12, 3, 4096, 0xDEADBEEF)),
    (codec.NODE_GROUP, Heartbeat(1, 123456, ((1, 4), (2, 5)))),
    (codec.NODE_GROUP, Heartbeat(1, 123456, ())),
    (codec.NODE_GROUP, Heartbeat(1, 123456, None)),
    (codec.NODE_GROUP, HeartbeatOk(1, 123456, True, ((2, 9),))),
    (codec.NODE_GROUP, Pull(1, 2, 3, 4, 5, 6)),
    (codec.NODE_GROUP, Chunk(1, "", b"bytes")),
    (codec.NODE_GROUP, Chunk(1, "no such checkpoint", b"")),
]


def frame_of(group: int, message: codec.Message) -> bytearray:
    return bytearray().join(codec.encode(group, message))


def sealed(frame: bytearray) -> memoryview:
    """The frame with its length and CRC made right again after a change."""
    struct.pack_into("<I", frame, 0, len(frame))
    struct.pack_into("<I", frame, 4, crc.checksum(frame[8:]))
    return memoryview(frame)


def refuse(frame: memoryview, field: str, *, limits: codec.Limits = codec.LIMITS) -> None:
    with pytest.raises(PeerError, match=re.escape(field)):
        codec.decode(frame, limits=limits)


def append_frame() -> bytearray:
    return frame_of(*EVERY_KIND[0])


@pytest.mark.parametrize(("group", "message"), EVERY_KIND, ids=lambda x: type(x).__name__)
def test_every_message_survives_the_way_there_and_back(group: int, message: codec.Message) -> None:
    assert codec.decode(memoryview(frame_of(group, message))) == (group, message)


@pytest.mark.parametrize(("group", "message"), EVERY_KIND, ids=lambda x: type(x).__name__)
def test_every_shorter_or_longer_body_is_refused(group: int, message: codec.Message) -> None:
    whole = frame_of(group, message)
    for size in range(len(whole)):
        with pytest.raises(PeerError):
            codec.decode(memoryview(whole)[:size])
        if size >= codec.HEADER.size:
            with pytest.raises(PeerError):
                codec.decode(sealed(whole[:size]))
    with pytest.raises(PeerError):
        codec.decode(sealed(whole + b"\0"))


@pytest.mark.parametrize(("group", "message"), EVERY_KIND, ids=lambda x: type(x).__name__)
def test_every_flipped_bit_is_refused(group: int, message: codec.Message) -> None:
    whole = frame_of(group, message)
    for place in range(len(whole) * 8):
        whole[place // 8] ^= 1 << place % 8
        with pytest.raises(PeerError):
            codec.decode(memoryview(whole))
        whole[place // 8] ^= 1 << place % 8


@pytest.mark.parametrize(("group", "message"), EVERY_KIND, ids=lambda x: type(x).__name__)
def test_unknown_flags_are_refused(group: int, message: codec.Message) -> None:
    frame = frame_of(group, message)
    frame[11] |= 0x80
    refuse(sealed(frame), "flags")


def test_unknown_version_and_kind_are_refused() -> None:
    frame = append_frame()
    frame[8] = 2
    refuse(sealed(frame), "version 2")
    frame = append_frame()
    frame[9] = 99
    refuse(sealed(frame), "kind 99")


def test_group_must_suit_the_kind() -> None:
    frame = append_frame()
    struct.pack_into("<I", frame, 12, codec.NODE_GROUP)
    refuse(sealed(frame), "group")
    frame = frame_of(codec.NODE_GROUP, Pull(1, 2, 3, 4, 5, 6))
    struct.pack_into("<I", frame, 12, 1)
    refuse(sealed(frame), "group")


def test_entry_count_beyond_the_frame_allocates_nothing() -> None:
    frame = append_frame()
    struct.pack_into("<I", frame, 16 + 32, 0xFFFFFFFF)
    refuse(sealed(frame), "entry_count 4294967295")


def test_entry_indexes_must_follow_one_another() -> None:
    for row, wrong in ((0, 10), (0, 12), (1, 11), (2, 99)):
        frame = append_frame()
        struct.pack_into("<Q", frame, 16 + 36 + row * 20, wrong)
        refuse(sealed(frame), f"entry index {wrong}")


def test_entry_length_beyond_the_frame_is_refused() -> None:
    frame = append_frame()
    struct.pack_into("<I", frame, 16 + 36 + 16, 0x7FFFFFFF)
    refuse(sealed(frame), "entry length")


def test_pair_count_beyond_the_frame_is_refused() -> None:
    frame = frame_of(codec.NODE_GROUP, Heartbeat(1, 2, ((1, 4),)))
    struct.pack_into("<I", frame, 32, 0xFFFFFFFF)
    refuse(sealed(frame), "pair_count")


def test_pairs_without_the_table_flag_are_refused() -> None:
    frame = frame_of(codec.NODE_GROUP, Heartbeat(1, 2, ((1, 4),)))
    frame[10] = 0
    refuse(sealed(frame), "pair_count 1 without")


def test_chunk_error_must_be_text() -> None:
    frame = frame_of(codec.NODE_GROUP, Chunk(1, "abc", b""))
    frame[-1] = 0xFF
    refuse(sealed(frame), "error is not UTF-8")


def test_limits_hold_for_what_arrives() -> None:
    append = memoryview(append_frame())
    refuse(append, "length", limits=codec.Limits(frame_bytes_max=len(append) - 1))
    refuse(append, "entry length 5", limits=codec.Limits(entry_bytes_max=4))
    refuse(append, "entry_count 3", limits=codec.Limits(entry_count_max=2))
    pairs = memoryview(frame_of(codec.NODE_GROUP, HeartbeatOk(1, 2, False, ((1, 4), (2, 5)))))
    refuse(pairs, "pair_count 2", limits=codec.Limits(pair_count_max=1))
    chunk = memoryview(frame_of(codec.NODE_GROUP, Chunk(1, "why", b"data")))
    refuse(chunk, "data_bytes 4", limits=codec.Limits(chunk_bytes_max=3))
    refuse(chunk, "error_bytes 3", limits=codec.Limits(error_bytes_max=2))


def test_our_own_oversize_messages_are_bugs_not_frames() -> None:
    append = EVERY_KIND[0][1]
    for limits in (
        codec.Limits(entry_bytes_max=4),
        codec.Limits(entry_count_max=2),
        codec.Limits(frame_bytes_max=100),
    ):
        with pytest.raises(AssertionError):
            codec.encode(GROUP, append, limits=limits)
    with pytest.raises(AssertionError):
        codec.encode(codec.NODE_GROUP, append)
    with pytest.raises(AssertionError):
        codec.encode(GROUP, Append(1, 1, 1, 1, ((b"", 3, 1),)))


def test_a_long_error_is_cut_at_a_whole_character() -> None:
    limits = codec.Limits(error_bytes_max=4)
    parts = codec.encode(codec.NODE_GROUP, Chunk(1, "abcé", b""), limits=limits)
    _, message = codec.decode(memoryview(b"".join(parts)), limits=limits)
    assert isinstance(message, Chunk)
    assert message.error == "abc"


def test_encode_shares_the_commands_and_decode_copies_them() -> None:
    command = bytes(range(256)) * 16
    parts = codec.encode(GROUP, Append(1, 1, 1, 1, ((command, 2, 1),)))
    assert parts[1] is command
    frame = bytearray().join(parts)
    _, message = codec.decode(memoryview(frame))
    frame[:] = bytes(len(frame))
    assert isinstance(message, Append)
    assert message.entries[0][0] == command


def test_the_bytes_of_a_frame_are_as_documented() -> None:
    frame = frame_of(0x01020304, Appended(5, 6, True, True))
    assert frame[8:].hex() == "01020300" + "04030201" + "0500000000000000" + "0600000000000000"
    assert frame[:4].hex() == "20000000"
    assert struct.unpack_from("<I", frame, 4)[0] == crc.checksum(frame[8:])
