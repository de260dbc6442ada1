"""Messages between Raft members and their nodes as frames of bytes, and back.

Pure and strict: whatever does not fit its layout exactly is a PeerError that names the field; a
frame is taken whole or not at all. Commands and chunks are never copied on the way out (a frame is
a list of parts for one gathered write) and once on the way in. Leaves carrying frames to `link`
and judging what they say to the Raft group.

Called by the Raft host for every message. `docs/FORMATS` draws the same bytes for strangers.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

from typing_extensions import Buffer

from lograft_log.hot import crc
from lograft_replication import messages
from lograft_replication.messages import Entry, GroupMessage, NodeMessage
from lograft_wire.errors import PeerError

VERSION = 1
NODE_GROUP = 0xFFFFFFFF  # the group field of messages that belong to the pair of nodes

# All numbers are little-endian. `length` counts the whole frame, this header included; the CRC-32C
# covers everything behind itself.
# length u32 | crc32c u32 | version u8 | kind u8 | flags u16 | group u32
HEADER = struct.Struct("<IIBBHI")
assert HEADER.size == 16
LENGTH = struct.Struct("<I")
_CRC = struct.Struct("<I")
_CRC_POSITION = 4
_CRC_START = 8  # first byte that the CRC covers

# Append: term u64 | commit u64 | prev_index u64 | prev_term u64 | entry_count u32, then a table row
# per entry, then the commands one behind the other.
_APPEND = struct.Struct("<QQQQI")
assert _APPEND.size == 36
# index u64 | term u64 | length u32
_ENTRY = struct.Struct("<QQI")
assert _ENTRY.size == 20

# Heartbeat and HeartbeatOk: version u64 | sent_at_us u64 | pair_count u32, then the pairs.
_HEARTBEAT = struct.Struct("<QQI")
assert _HEARTBEAT.size == 20
# group u32 | term u64
_PAIR = struct.Struct("<IQ")
assert _PAIR.size == 12

# Chunk: request u64 | data_bytes u32 | error_bytes u16, then the error in UTF-8, then the data.
_CHUNK = struct.Struct("<QIH")
assert _CHUNK.size == 14

KIND_APPEND = 1
KIND_HEARTBEAT = 16
KIND_HEARTBEAT_OK = 17
KIND_PULL = 18
KIND_CHUNK = 19
FLAG_TABLE = 1  # Heartbeat: a table follows, even if empty
FLAG_UNKNOWN = 1  # HeartbeatOk.unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The same at all nodes of a cluster: a larger frame is refused by its receiver."""

    frame_bytes_max: int = 64 << 20
    entry_bytes_max: int = 2 << 20
    entry_count_max: int = 1 << 16
    pair_count_max: int = 1 << 16
    chunk_bytes_max: int = 4 << 20
    error_bytes_max: int = 1024


LIMITS = Limits()

Message = GroupMessage | NodeMessage
_Encoder = Callable[[int, Message, Limits], list[Buffer]]
_Decoder = Callable[[memoryview, int, Limits], Message]


def encode(group: int, message: Message, *, limits: Limits = LIMITS) -> list[Buffer]:
    """One frame as parts. The parts share the message's buffers, which may not change."""
    return _ENCODERS[type(message)](group, message, limits)


def decode(frame: memoryview, *, limits: Limits = LIMITS) -> tuple[int, Message]:
    """The group and message of exactly one frame. Nothing returned refers to `frame`."""
    size = len(frame)
    if not HEADER.size <= size <= limits.frame_bytes_max:
        raise PeerError(f"frame: length {size} outside {HEADER.size}..{limits.frame_bytes_max}")
    length, checksum, version, kind, flags, group = HEADER.unpack_from(frame)
    if length != size:
        raise PeerError(f"frame: length {length} in a frame of {size} bytes")
    if version != VERSION:
        raise PeerError(f"frame: version {version} is not {VERSION}")
    found = crc.checksum(frame[_CRC_START:])
    if found != checksum:
        raise PeerError(f"frame: crc32c {checksum:08x} over {size} bytes that give {found:08x}")
    decoder = _DECODERS.get(kind)
    if decoder is None:
        raise PeerError(f"frame: kind {kind} is unknown")
    if (group == NODE_GROUP) != (kind >= KIND_HEARTBEAT):
        raise PeerError(f"frame: group {group:#x} does not suit kind {kind}")
    return group, decoder(frame, flags, limits)


def _finish(
    kind: int,
    flags: int,
    group: int,
    head: bytearray,
    tail: Sequence[bytes | memoryview],
    limits: Limits,
) -> list[Buffer]:
    """Fill in the header at the start of `head`, which the tail's buffers follow untouched."""
    assert (group == NODE_GROUP) == (kind >= KIND_HEARTBEAT), (group, kind)
    length = len(head) + sum(map(len, tail))
    assert length <= limits.frame_bytes_max, (kind, length, limits.frame_bytes_max)
    HEADER.pack_into(head, 0, length, 0, VERSION, kind, flags, group)
    checksum = crc.checksum(memoryview(head)[_CRC_START:])
    for part in tail:
        checksum = crc.checksum(part, checksum)
    _CRC.pack_into(head, _CRC_POSITION, checksum)
    return [head, *tail]


def _check_flags(name: str, flags: int, known: int) -> None:
    if flags & ~known:
        raise PeerError(f"{name}: flags {flags:#x} has bits outside {known:#x}")


def _check_size(name: str, frame: memoryview, size: int) -> None:
    if len(frame) != size:
        raise PeerError(
            f"{name}: body of {len(frame) - HEADER.size} bytes, not {size - HEADER.size}"
        )


def _check_room(name: str, frame: memoryview, size: int) -> None:
    if len(frame) < size:
        raise PeerError(f"{name}: frame of {len(frame)} bytes where {size} is the least")


# Append


def _encode_append(group: int, message: Message, limits: Limits) -> list[Buffer]:
    assert isinstance(message, messages.Append)
    entries = message.entries
    count = len(entries)
    assert count <= limits.entry_count_max, (count, limits.entry_count_max)
    position = HEADER.size + _APPEND.size
    head = bytearray(position + count * _ENTRY.size)
    _APPEND.pack_into(
        head,
        HEADER.size,
        message.term,
        message.commit,
        message.prev_index,
        message.prev_term,
        count,
    )
    expected = message.prev_index
    for command, index, term in entries:
        expected += 1
        assert index == expected, (index, expected)
        assert len(command) <= limits.entry_bytes_max, (index, len(command))
        _ENTRY.pack_into(head, position, index, term, len(command))
        position += _ENTRY.size
    tail = [entry[0] for entry in entries if entry[0]]
    return _finish(KIND_APPEND, 0, group, head, tail, limits)


def _decode_append(frame: memoryview, flags: int, limits: Limits) -> messages.Append:
    _check_flags("append", flags, 0)
    table = HEADER.size + _APPEND.size
    _check_room("append", frame, table)
    term, commit, prev_index, prev_term, count = _APPEND.unpack_from(frame, HEADER.size)
    position = table + count * _ENTRY.size
    if count > limits.entry_count_max or position > len(frame):
        raise PeerError(f"append: entry_count {count} does not fit in {len(frame)} bytes")
    entries: list[Entry] = []
    index = prev_index
    for entry_index, entry_term, length in _ENTRY.iter_unpack(frame[table:position]):
        index += 1
        if entry_index != index:
            raise PeerError(f"append: entry index {entry_index} where {index} must follow")
        end = position + length
        if length > limits.entry_bytes_max or end > len(frame):
            raise PeerError(f"append: entry length {length} at index {index} does not fit")
        entries.append((frame[position:end].tobytes(), entry_index, entry_term))
        position = end
    _check_size("append", frame, position)
    return messages.Append(term, commit, prev_index, prev_term, tuple(entries))


# Heartbeat and its answer

_Pairs = tuple[tuple[int, int], ...]


def _encode_heartbeat(group: int, message: Message, limits: Limits) -> list[Buffer]:
    assert isinstance(message, messages.Heartbeat)
    flags = 0 if message.table is None else FLAG_TABLE
    head = _encode_pairs(message.version, message.sent_at_us, message.table or (), limits)
    return _finish(KIND_HEARTBEAT, flags, group, head, [], limits)


def _decode_heartbeat(frame: memoryview, flags: int, limits: Limits) -> messages.Heartbeat:
    _check_flags("heartbeat", flags, FLAG_TABLE)
    version, sent_at_us, pairs = _decode_pairs("heartbeat", frame, limits)
    if flags & FLAG_TABLE:
        return messages.Heartbeat(version, sent_at_us, pairs)
    if pairs:
        raise PeerError(f"heartbeat: pair_count {len(pairs)} without the table flag")
    return messages.Heartbeat(version, sent_at_us, None)


def _encode_heartbeat_ok(group: int, message: Message, limits: Limits) -> list[Buffer]:
    assert isinstance(message, messages.HeartbeatOk)
    flags = FLAG_UNKNOWN if message.unknown else 0
    head = _encode_pairs(message.version, message.sent_at_us, message.refused, limits)
    return _finish(KIND_HEARTBEAT_OK, flags, group, head, [], limits)


def _decode_heartbeat_ok(frame: memoryview, flags: int, limits: Limits) -> messages.HeartbeatOk:
    _check_flags("heartbeat_ok", flags, FLAG_UNKNOWN)
    version, sent_at_us, pairs = _decode_pairs("heartbeat_ok", frame, limits)
    return messages.HeartbeatOk(version, sent_at_us, bool(flags & FLAG_UNKNOWN), pairs)


def _encode_pairs(version: int, sent_at_us: int, pairs: _Pairs, limits: Limits) -> bytearray:
    assert len(pairs) <= limits.pair_count_max, (len(pairs), limits.pair_count_max)
    position = HEADER.size + _HEARTBEAT.size
    head = bytearray(position + len(pairs) * _PAIR.size)
    _HEARTBEAT.pack_into(head, HEADER.size, version, sent_at_us, len(pairs))
    for group, term in pairs:
        _PAIR.pack_into(head, position, group, term)
        position += _PAIR.size
    return head


def _decode_pairs(name: str, frame: memoryview, limits: Limits) -> tuple[int, int, _Pairs]:
    start = HEADER.size + _HEARTBEAT.size
    _check_room(name, frame, start)
    version, sent_at_us, count = _HEARTBEAT.unpack_from(frame, HEADER.size)
    if count > limits.pair_count_max or start + count * _PAIR.size > len(frame):
        raise PeerError(f"{name}: pair_count {count} does not fit in {len(frame)} bytes")
    _check_size(name, frame, start + count * _PAIR.size)
    return version, sent_at_us, tuple(_PAIR.iter_unpack(frame[start:]))


# Chunk


def _encode_chunk(group: int, message: Message, limits: Limits) -> list[Buffer]:
    assert isinstance(message, messages.Chunk)
    data = memoryview(message.data).cast("B")
    assert len(data) <= limits.chunk_bytes_max, (len(data), limits.chunk_bytes_max)
    # An explanation cut short is better than an answer that cannot be sent.
    error = message.error.encode("utf-8", "replace")[: limits.error_bytes_max]
    error = error.decode("utf-8", "ignore").encode()
    head = bytearray(HEADER.size + _CHUNK.size)
    _CHUNK.pack_into(head, HEADER.size, message.request, len(data), len(error))
    head += error
    return _finish(KIND_CHUNK, 0, group, head, [data] if data else [], limits)


def _decode_chunk(frame: memoryview, flags: int, limits: Limits) -> messages.Chunk:
    _check_flags("chunk", flags, 0)
    position = HEADER.size + _CHUNK.size
    _check_room("chunk", frame, position)
    request, data_bytes, error_bytes = _CHUNK.unpack_from(frame, HEADER.size)
    if error_bytes > limits.error_bytes_max:
        raise PeerError(f"chunk: error_bytes {error_bytes} over {limits.error_bytes_max}")
    if data_bytes > limits.chunk_bytes_max:
        raise PeerError(f"chunk: data_bytes {data_bytes} over {limits.chunk_bytes_max}")
    _check_size("chunk", frame, position + error_bytes + data_bytes)
    data_start = position + error_bytes
    try:
        error = str(frame[position:data_start], "utf-8")
    except UnicodeDecodeError as caught:
        raise PeerError(f"chunk: error is not UTF-8 at byte {caught.start}") from caught
    return messages.Chunk(request, error, frame[data_start:].tobytes())


# Messages of fixed size: numbers as drawn, then the booleans as flag bits from the lowest up, both
# in the order of the message's fields.


def _fixed(kind: int, make: type[Message], layout: str, size: int) -> None:
    """Enter the encoder and decoder of one message of fixed size."""
    body = struct.Struct(layout)
    assert body.size == size, (make, body.size)
    names = [field.name for field in fields(make)]
    number_count = len(body.unpack(bytes(size)))
    # A field added to the message must be added to its layout too.
    types = [field.type for field in fields(make)]
    assert types == [int] * number_count + [bool] * (len(names) - number_count), make
    number_names = names[:number_count]
    bits = [(name, 1 << place) for place, name in enumerate(names[number_count:])]
    known = sum(bit for _, bit in bits)
    label = make.__name__.lower()
    build: Callable[..., Message] = make

    def encode_fixed(group: int, message: Message, limits: Limits) -> list[Buffer]:
        head = bytearray(HEADER.size + size)
        body.pack_into(head, HEADER.size, *[getattr(message, name) for name in number_names])
        flags = sum([bit for name, bit in bits if getattr(message, name)])
        return _finish(kind, flags, group, head, [], limits)

    def decode_fixed(frame: memoryview, flags: int, limits: Limits) -> Message:
        del limits  # none applies
        _check_flags(label, flags, known)
        _check_size(label, frame, HEADER.size + size)
        numbers = body.unpack_from(frame, HEADER.size)
        return build(*numbers, *[bool(flags & bit) for _, bit in bits])

    _ENCODERS[make] = encode_fixed
    _DECODERS[kind] = decode_fixed


_ENCODERS: dict[type[Message], _Encoder] = {
    messages.Append: _encode_append,
    messages.Heartbeat: _encode_heartbeat,
    messages.HeartbeatOk: _encode_heartbeat_ok,
    messages.Chunk: _encode_chunk,
}
_DECODERS: dict[int, _Decoder] = {
    KIND_APPEND: _decode_append,
    KIND_HEARTBEAT: _decode_heartbeat,
    KIND_HEARTBEAT_OK: _decode_heartbeat_ok,
    KIND_CHUNK: _decode_chunk,
}
# term u64 | next_index u64; flags reset, success
_fixed(2, messages.Appended, "<QQ", 16)
# term u64 | last_index u64 | last_term u64; flag transfer
_fixed(3, messages.VoteRequest, "<QQQ", 24)
# term u64 | contact_term u64 | lease_left_ms u32; flag stepped_down
_fixed(4, messages.Vote, "<QQI", 20)
# term u64 | last_index u64 | last_term u64
_fixed(5, messages.PreVoteRequest, "<QQQ", 24)
# term u64
_fixed(6, messages.PreVote, "<Q", 8)
_fixed(7, messages.Stale, "<Q", 8)
_fixed(8, messages.TimeoutNow, "<Q", 8)
# term u64 | commit u64 | index u64 | index_term u64 | manifest_bytes u64 | manifest_crc u32
_fixed(9, messages.Offer, "<QQQQQI", 44)
# request u64 | group u32 | checkpoint u64 | file u32 | position u64 | size u32
_fixed(KIND_PULL, messages.Pull, "<QIQIQI", 36)
