"""Throws damaged frames and handshakes at their decoders for a bounded time.

`python tests/fuzz/fuzz_frames.py --seconds 30 --seed 7`. A round is decided by the seed and its
number alone; when one fails, both are printed and the exit status is 1.

What must hold: the frame decoder returns a message whose frame is exactly the bytes it was given,
or raises PeerError; a handshake never raises, and never ends well unless every byte it took was
said by an honest peer in this very conversation.
"""

import random
import struct
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lograft_log.hot import crc
from lograft_replication import codec, handshake, messages
from lograft_replication.handshake import Handshake, Identity, Role
from lograft_wire.errors import PeerError
from support import fuzzing

SECRET = b"the secret of the fuzzed cluster"
EDGES = (0, 1, 2, 15, 16, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1)


def fuzz_round(rng: random.Random) -> None:
    for _ in range(20):
        check_frame(rng)
    check_handshake(rng)


# Frames


def check_frame(rng: random.Random) -> None:
    frame = bytearray().join(codec.encode(*random_message(rng)))
    codec.decode(memoryview(frame))
    for _ in range(rng.randrange(4)):
        damage(rng, frame)
    if len(frame) >= 8 and rng.random() < 0.9:  # else the CRC would stop nearly all damage
        struct.pack_into("<I", frame, 0, len(frame))
        struct.pack_into("<I", frame, 4, crc.checksum(frame[8:]))
    try:
        group, message = codec.decode(memoryview(frame))
    except PeerError:
        return
    assert b"".join(codec.encode(group, message)) == frame, message


def damage(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data) + 1)
    match rng.randrange(6):
        case 0 if at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        case 1:
            del data[at:]
        case 2:
            data[at:at] = rng.randbytes(rng.randrange(1, 24))
        case 3:
            del data[at : at + rng.randrange(1, 24)]
        case 4 if at + 4 <= len(data):
            struct.pack_into("<I", data, at, rng.choice(EDGES))
        case 5 if at + 2 <= len(data):
            struct.pack_into("<H", data, at, rng.choice(EDGES) & 0xFFFF)


def random_message(rng: random.Random) -> tuple[int, codec.Message]:
    def u64() -> int:
        return rng.choice((rng.getrandbits(64), rng.randrange(300)))

    def pairs() -> tuple[tuple[int, int], ...]:
        return tuple((rng.getrandbits(32), u64()) for _ in range(rng.randrange(4)))

    def append() -> codec.Message:
        prev = rng.randrange(2**40)
        sizes = [rng.randrange(30) for _ in range(rng.randrange(5))]
        entries = tuple((rng.randbytes(s), prev + 1 + i, u64()) for i, s in enumerate(sizes))
        return messages.Append(u64(), u64(), prev, u64(), entries)

    def flag() -> bool:
        return rng.random() < 0.5

    u32 = rng.getrandbits(32)
    group = rng.randrange(codec.NODE_GROUP)
    error = rng.choice(("", "no such file", "é"))
    choices: list[tuple[int, codec.Message]] = [
        (group, append()),
        (group, messages.Appended(u64(), u64(), flag(), flag())),
        (group, messages.VoteRequest(u64(), u64(), u64(), flag())),
        (group, messages.Vote(u64(), u64(), u32, flag())),
        (group, messages.PreVoteRequest(u64(), u64(), u64())),
        (group, messages.Offer(u64(), u64(), u64(), u64(), u64(), u32)),
        (codec.NODE_GROUP, messages.Heartbeat(u64(), u64(), pairs() if flag() else None)),
        (codec.NODE_GROUP, messages.HeartbeatOk(u64(), u64(), flag(), pairs())),
        (codec.NODE_GROUP, messages.Pull(u64(), group, u64(), u32, u64(), u32)),
        (codec.NODE_GROUP, messages.Chunk(u64(), error, rng.randbytes(rng.randrange(40)))),
    ]
    return rng.choice(choices)


# Handshakes


def check_handshake(rng: random.Random) -> None:
    """Two honest sides; somebody between them damages, cuts up and repeats what they say."""
    sides = {role: new_side(rng, role) for role in Role}
    said = dict.fromkeys(Role, b"")  # by honest sides, in full
    heard = dict.fromkeys(Role, b"")  # what each was given
    to_hear = {Role.DIALLER: b"", Role.LISTENER: sides[Role.DIALLER].start()}
    said[Role.DIALLER] = to_hear[Role.LISTENER]
    for _ in range(8):
        for role, other in ((Role.LISTENER, Role.DIALLER), (Role.DIALLER, Role.LISTENER)):
            data = bytearray(to_hear[role])
            to_hear[role] = b""
            if rng.random() < 0.15:
                damage(rng, data)
            if rng.random() < 0.05:
                data += said[rng.choice(list(Role))]
            reply, taken = feed(rng, sides[role], bytes(data))
            heard[role] += taken
            said[role] += reply
            to_hear[other] += reply
    for role, other in ((Role.LISTENER, Role.DIALLER), (Role.DIALLER, Role.LISTENER)):
        if sides[role].done:
            taken = heard[role].removesuffix(sides[role].rest)
            assert said[other].startswith(taken), "a damaged handshake ended well"


def new_side(rng: random.Random, role: Role) -> Handshake:
    name = "a" if role is Role.DIALLER else "b"
    me = Identity(name=name, incarnation=rng.randbytes(16), boot=rng.randbytes(16), cluster="c")
    nonce = rng.randbytes(handshake.NONCE_BYTES)
    return Handshake(role, me, secret=SECRET, nonce=nonce, judge=lambda _: "")


def feed(rng: random.Random, side: Handshake, data: bytes) -> tuple[bytes, bytes]:
    """Give `data` in pieces of any size; the replies, and what was given before it ended."""
    reply = taken = b""
    at = 0
    while at < len(data) and not (side.done or side.failed):
        piece = data[at : at + rng.choice((1, 3, 50, 2048))]
        reply += side.receive(piece)
        taken += piece
        at += len(piece)
    return reply, taken


if __name__ == "__main__":
    sys.exit(fuzzing.main("fuzz_frames", fuzz_round))
