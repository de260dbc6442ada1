"""One connection between two nodes: first the handshake, then frames both ways.

The thin asyncio edge around `handshake` and the frame length. Frames are handed out as views of the
receive buffer, so nothing is copied; one that is larger than the buffer gets a buffer of exactly
its size. What is sent within one turn of the loop is written at once. Leaves to `link` who dials,
deadlines and what a lost link means. Until the handshake is done a connection owns a small buffer.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from typing_extensions import Buffer

from lograft_replication import codec
from lograft_replication.handshake import Handshake, Identity
from lograft_wire.errors import PeerError

HANDSHAKE_READ_BYTES = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    frames: codec.Limits = codec.LIMITS
    receive_buffer_bytes: int = 4 << 20
    socket_buffer_bytes: int = 4 << 20
    write_bytes_max: int = 64 << 20  # waiting to be written to one peer; a frame more is not taken
    silent_s_max: float = 10.0  # a link on which nothing arrives for so long is closed
    connect_s_max: float = 3.0  # for one address
    handshake_s_max: float = 5.0  # TLS included
    handshake_count_max: int = 64  # at once with strangers; one more ends the oldest
    retry_s_min: float = 0.05
    retry_s_max: float = 2.0
    probe_delays_s: tuple[float, ...] = (0.0, 0.05, 0.2)
    close_s_max: float = 1.0  # for what is still to be written when the network closes
    log_s_min: float = 10.0  # between two log lines about the same trouble
    log_key_count_max: int = 256


class LinkOwner(Protocol):
    def on_connected(self, link: "Link") -> None: ...

    def on_established(self, link: "Link") -> None: ...

    def on_lost(self, link: "Link") -> None: ...


class Link(asyncio.BufferedProtocol):
    """`deliver(peer id, frame)` gets every frame. `dialled` is the name dialled, or ""."""

    def __init__(
        self,
        handshake: Handshake,
        *,
        dialled: str,
        owner: LinkOwner,
        deliver: Callable[[str, memoryview], None],
        limits: Limits,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.dialled = dialled
        self.peer: Identity | None = None  # set when the handshake is done
        self.remote: tuple[str, int] = ("", 0)
        self.reason = ""  # why this side closed it, for the log
        self.heard = False  # something arrived since the owner last looked
        self.heard_at_s = 0.0  # kept by the owner
        self.ready: asyncio.Future[bool] = loop.create_future()  # False: it never came up
        self.closed: asyncio.Future[None] = loop.create_future()
        self._peer_id = ""
        self._handshake = handshake
        self._owner = owner
        self._deliver = deliver
        self._limits = limits
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._ended = False  # no more frames in or out
        self._buffer = memoryview(bytearray(HANDSHAKE_READ_BYTES))
        self._start = 0  # unread bytes are _buffer[_start:_end]
        self._end = 0
        self._large: memoryview | None = None  # a frame larger than the buffer, under way
        self._large_end = 0
        self._outbox: list[Buffer] = []
        self._outbox_bytes = 0

    def __repr__(self) -> str:
        return f"Link({self._peer_id or self.dialled or '?'}, {self.remote[0]}:{self.remote[1]})"

    # What the owner may ask

    def send(self, frame: Sequence[Buffer]) -> bool:
        if self._ended:
            return False
        size = 0
        for part in frame:
            size += memoryview(part).nbytes
        backlog = self.backlog_bytes()
        if backlog and backlog + size > self._limits.write_bytes_max:
            return False
        if not self._outbox:
            self._loop.call_soon(self._flush)
        self._outbox.extend(frame)
        self._outbox_bytes += size
        return True

    def backlog_bytes(self) -> int:
        if self._transport is None or self._ended:
            return 0
        return self._outbox_bytes + self._transport.get_write_buffer_size()

    def abort(self, reason: str) -> None:
        """Close now and drop what is not yet written."""
        self._end_with(reason)
        if self._transport is not None:
            self._transport.abort()

    def close(self, reason: str) -> None:
        """Close when what was sent is written."""
        self._flush()
        self._end_with(reason)
        if self._transport is not None:
            self._transport.close()

    def _end_with(self, reason: str) -> None:
        self.reason = self.reason or reason
        self._ended = True
        self._outbox = []
        self._outbox_bytes = 0

    def _flush(self) -> None:
        if self._outbox and self._transport is not None:
            parts, self._outbox = self._outbox, []
            self._outbox_bytes = 0
            self._transport.writelines(parts)  # type: ignore[arg-type]

    # What the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peername = transport.get_extra_info("peername") or ("", 0)
        self.remote = (peername[0], peername[1])
        self._owner.on_connected(self)
        if self._ended:
            self._transport.abort()
        elif hello := self._handshake.start():
            self._transport.write(hello)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_with("" if exc is None else str(exc))
        self._transport = None  # a closed one may not even be aborted
        self._large = None
        if not self.ready.done():
            self.ready.set_result(False)
        if not self.closed.done():
            self.closed.set_result(None)
        self._owner.on_lost(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        if self._large is not None:
            return self._large[self._large_end :]
        return self._buffer[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        self.heard = True
        if self._ended:
            return
        try:
            if self.peer is None:
                self._shake_hands(bytes(self._buffer[:nbytes]))
            elif self._large is not None:
                self._take_large(self._large, nbytes)
            else:
                self._end += nbytes
                self._take_frames()
        except PeerError as error:
            self.abort(str(error))
        except Exception as error:
            # Our own mistake: the loop's handler logs it with its traceback, and may do more.
            self.abort(f"our own error: {error!r}")
            message = f"taking a frame from {self._peer_id} failed"
            self._loop.call_exception_handler({"message": message, "exception": error})

    # Receiving

    def _shake_hands(self, data: bytes) -> None:
        assert self._transport is not None
        handshake = self._handshake
        reply = handshake.receive(data)
        if reply:
            self._transport.write(reply)
        if handshake.failed:
            self.close(handshake.failure)
        elif handshake.done:
            self._establish()

    def _establish(self) -> None:
        """From small buffer to large; what came behind the handshake are the first frames."""
        rest = self._handshake.rest
        size = max(self._limits.receive_buffer_bytes, HANDSHAKE_READ_BYTES)
        self._buffer = memoryview(bytearray(size))
        self._buffer[: len(rest)] = rest
        self._end = len(rest)
        self.peer = self._handshake.peer
        assert self.peer is not None
        self._peer_id = self.peer.node_id
        self._owner.on_established(self)
        if not self.ready.done():
            self.ready.set_result(True)
        self._take_frames()

    def _take_frames(self) -> None:
        """Hand out all whole frames, then make room for the rest of the one that is not whole."""
        while not self._ended and self._end - self._start >= codec.LENGTH.size:
            (length,) = codec.LENGTH.unpack_from(self._buffer, self._start)
            if not codec.HEADER.size <= length <= self._limits.frames.frame_bytes_max:
                raise PeerError(f"frame: length {length} is not allowed")
            frame_end = self._start + length
            if frame_end > self._end:
                self._make_room(length)
                return
            with self._buffer[self._start : frame_end] as frame:
                self._start = frame_end
                self._deliver(self._peer_id, frame)
        if self._start == self._end:
            self._start = self._end = 0
        else:
            self._make_room(codec.LENGTH.size)

    def _make_room(self, length: int) -> None:
        size = len(self._buffer)
        if length > size:
            self._large = memoryview(bytearray(length))
            self._large_end = self._end - self._start
            self._large[: self._large_end] = self._buffer[self._start : self._end]
            self._start = self._end = 0
        elif self._start + length > size:
            unread = self._end - self._start
            self._buffer[:unread] = self._buffer[self._start : self._end]
            self._start, self._end = 0, unread

    def _take_large(self, large: memoryview, size: int) -> None:
        self._large_end += size
        if self._large_end == len(large):
            self._large = None
            with large:
                self._deliver(self._peer_id, large)
