"""One link fed by hand, without sockets: pieces of every size give the same frames."""

import asyncio
from collections.abc import Iterable

import pytest

from lograft_replication import codec
from lograft_replication.handshake import Role
from lograft_replication.link_protocol import HANDSHAKE_READ_BYTES, Limits, Link
from lograft_replication.messages import Append, Stale
from lograft_wire.errors import PeerError
from support.link_nodes import identity, shake

SMALL = b"".join(codec.encode(1, Stale(1)))
BUFFER_BYTES = HANDSHAKE_READ_BYTES


def append_of(size: int) -> bytes:
    command = bytes(1 + at % 255 for at in range(size))
    return b"".join(codec.encode(1, Append(1, 1, 1, 1, ((command, 2, 1),))))


class Wire(asyncio.Transport):
    """Keeps what was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None:
        self.aborted = True


class Story:
    """Owner and host of one link, and the honest dialler at its other end."""

    def __init__(self) -> None:
        self.wire = Wire()
        self.frames: list[bytes] = []
        self.established = 0
        self.link = Link(
            shake(Role.LISTENER, identity("b")),
            dialled="",
            owner=self,
            deliver=lambda _, frame: self.frames.append(bytes(frame)),
            limits=Limits(receive_buffer_bytes=BUFFER_BYTES),
            loop=asyncio.get_running_loop(),
        )
        self.link.connection_made(self.wire)

    def on_connected(self, link: Link) -> None:
        assert link.peer is None

    def on_established(self, link: Link) -> None:
        assert link.peer is not None
        self.established += 1

    def on_lost(self, link: Link) -> None:
        raise AssertionError(link)

    def feed(self, pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            while piece:
                room = self.link.get_buffer(-1)
                size = min(len(room), len(piece))
                assert size > 0
                room[:size] = piece[:size]
                self.link.buffer_updated(size)
                piece = piece[size:]

    def greet(self, *, step: int, behind: bytes = b"") -> None:
        """The whole handshake; `behind` follows the proof at once."""
        dialler = shake(Role.DIALLER, identity("a"))
        self.feed(cut(dialler.start(), step))
        self.feed(cut(dialler.receive(self.wire.written) + behind, step))
        assert self.established == 1


def cut(data: bytes, step: int) -> list[bytes]:
    return [data[at : at + step] for at in range(0, len(data), step)]


@pytest.mark.parametrize("step", [1, 2, 3, 7, 100, 2047, 2048, 2049, 1 << 20])
async def test_pieces_of_every_size_give_the_same_frames(step: int) -> None:
    story = Story()
    sizes = (0, 1976, 1977, 1, 5000, 1975, 1975, 700, 700, 700, 700, 20_000, 0)
    frames = [append_of(size) for size in sizes] + [SMALL] * 200
    story.greet(step=step, behind=b"".join(frames))
    assert story.frames == frames


async def test_a_frame_that_is_not_whole_is_not_delivered() -> None:
    for whole in (SMALL, append_of(BUFFER_BYTES), append_of(3 * BUFFER_BYTES)):
        story = Story()
        story.greet(step=100)
        story.feed([whole[:-1]])
        assert story.frames == []
        story.feed([whole[-1:] + SMALL[:3]])
        assert story.frames == [whole]


async def test_nothing_is_delivered_behind_a_bad_frame() -> None:
    story = Story()
    story.greet(step=100)
    story.feed([SMALL + b"\xff" * 30 + SMALL])
    assert story.frames == [SMALL]
    assert story.wire.aborted
    assert story.link.reason == f"frame: length {0xFFFFFFFF} is not allowed"
    assert not story.link.send([SMALL])


async def test_a_frame_may_not_be_kept_beyond_the_call() -> None:
    story = Story()
    kept: list[memoryview] = []
    story.link._deliver = lambda _, frame: kept.append(frame)
    story.greet(step=100, behind=SMALL + append_of(3 * BUFFER_BYTES))
    assert len(kept) == 2
    for frame in kept:
        with pytest.raises(ValueError, match="released"):
            bytes(frame)


async def test_a_refused_frame_ends_the_link_with_its_reason() -> None:
    story = Story()

    def refuse(_: str, frame: memoryview) -> None:
        raise PeerError(f"no frame of {len(frame)} bytes")

    story.link._deliver = refuse
    story.greet(step=100, behind=SMALL)
    assert story.wire.aborted
    assert story.link.reason == f"no frame of {len(SMALL)} bytes"


async def test_a_stranger_owns_a_small_buffer() -> None:
    story = Story()
    assert len(story.link.get_buffer(1 << 20)) == HANDSHAKE_READ_BYTES
