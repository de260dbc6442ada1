"""Nodes that know only their links, on loopback, and a host that writes down what it is told."""

import asyncio
import logging
import os
import ssl
from collections.abc import Callable, Mapping

from lograft_log.env import RealClock, RealRng
from lograft_replication import handshake, link
from lograft_replication.handshake import Handshake, Identity, Role
from lograft_replication.link import Address, LinkNetwork
from lograft_replication.link_protocol import Limits

SECRET = b"a secret of the whole test cluster"
CLUSTER = "test-cluster"
WAIT_S_MAX = 20.0
NOWHERE: Address = ("127.0.0.1", 1)  # where nobody listens; replaced by set_addresses

# Short where a test waits for it, long where it must not happen.
LIMITS = Limits(
    retry_s_min=0.01, retry_s_max=0.05, handshake_s_max=10.0, silent_s_max=60.0, log_s_min=0.0
)


class Recorder:
    """A host that only listens. Events are ("up", id), ("down", id) and ("gone", id)."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []
        self.boots: list[bytes] = []
        self.frames: list[tuple[str, bytes]] = []
        self.fault: Exception | None = None  # raised by the next frame
        self.react: Callable[[str, memoryview], object] = lambda _peer, _frame: None
        self._changed = asyncio.Event()

    def on_up(self, peer: str, boot: bytes) -> None:
        self.boots.append(boot)
        self._note("up", peer)

    def on_down(self, peer: str) -> None:
        self._note("down", peer)

    def on_gone(self, peer: str) -> None:
        self._note("gone", peer)

    def on_frame(self, peer: str, frame: memoryview) -> None:
        if self.fault is not None:
            fault, self.fault = self.fault, None
            raise fault
        self.react(peer, frame)
        self.frames.append((peer, bytes(frame)))
        self._changed.set()

    def _note(self, what: str, peer: str) -> None:
        self.events.append((what, peer))
        self._changed.set()

    async def until(self, reached: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_S_MAX):
            while not reached():
                self._changed.clear()
                await self._changed.wait()

    async def until_events(self, *names: str) -> None:
        """Wait until exactly these kinds of events were told, in this order."""
        await self.until(lambda: len(self.events) >= len(names))
        assert tuple(kind for kind, _ in self.events) == names


def identity(
    name: str, *, incarnation: bytes = b"", boot: bytes = b"", cluster: str = CLUSTER
) -> Identity:
    return Identity(
        name=name,
        incarnation=incarnation or name.encode().ljust(16, b"."),
        boot=boot or os.urandom(16),
        cluster=cluster,
    )


class Node:
    def __init__(
        self,
        me: Identity,
        *,
        secret: bytes = SECRET,
        port: int = 0,
        addresses: Mapping[str, Address],
        limits: Limits = LIMITS,
        server_tls: ssl.SSLContext | None = None,
        client_tls: ssl.SSLContext | None = None,
    ) -> None:
        self.me = me
        self.host = Recorder()
        self.network = LinkNetwork(
            me,
            secret=secret,
            listen=("127.0.0.1", port),
            addresses=addresses,
            rng=RealRng(),
            clock=RealClock(),
            limits=limits,
            server_tls=server_tls,
            client_tls=client_tls,
        )
        self.network.attach(self.host)

    @property
    def id(self) -> str:
        return self.me.node_id

    async def __aenter__(self) -> "Node":
        await self.network.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.network.close()


class LogWatch(logging.Handler):
    """Waits for words in the log of links."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self._changed = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.text += record.getMessage() + "\n"
        self._changed.set()

    def __enter__(self) -> "LogWatch":
        logging.getLogger(link.__name__).addHandler(self)
        return self

    def __exit__(self, *error: object) -> None:
        logging.getLogger(link.__name__).removeHandler(self)

    async def until(self, words: str) -> None:
        async with asyncio.timeout(WAIT_S_MAX):
            while words not in self.text:
                self._changed.clear()
                await self._changed.wait()


def introduce(*nodes: Node) -> None:
    """Tell all nodes the addresses of all."""
    addresses = {node.me.name: node.network.address for node in nodes}
    for node in nodes:
        node.network.set_addresses(addresses)


def shake(role: Role, me: Identity, *, secret: bytes = SECRET) -> Handshake:
    """One side of a handshake that welcomes everybody."""
    nonce = os.urandom(handshake.NONCE_BYTES)
    return Handshake(role, me, secret=secret, nonce=nonce, judge=lambda _: "")


class RawPeer:
    """A dialler made of a bare socket, for saying what no honest node would say."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.sent = b""  # all bytes of the handshake as they went out

    @classmethod
    async def connect(cls, node: Node) -> "RawPeer":
        return cls(*await asyncio.open_connection(*node.network.address))

    async def __aenter__(self) -> "RawPeer":
        return self

    async def __aexit__(self, *error: object) -> None:
        self.writer.transport.abort()

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def greet(self, hands: Handshake, *, byte_by_byte: bool = False) -> Handshake:
        """Shake hands until it is done or failed, or the other side closes."""
        await self._say(hands.start())
        async with asyncio.timeout(WAIT_S_MAX):
            while not (hands.done or hands.failed):
                data = await self.reader.read(1 if byte_by_byte else 4096)
                if not data:
                    break
                await self._say(hands.receive(data))
        return hands

    async def _say(self, data: bytes) -> None:
        self.sent += data
        await self.send(data)

    async def until_closed(self) -> bytes:
        """Everything the node still says before it closes."""
        async with asyncio.timeout(WAIT_S_MAX):
            try:
                return await self.reader.read(-1)
            except ConnectionResetError:
                return b""
