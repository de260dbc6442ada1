"""The real carrier of frames: one authenticated TCP link per pair of nodes, for all their groups.

LinkNetwork is a `network.PeerNetwork` on asyncio (uvloop or plain). It listens, dials for ever the
peers with larger names, and tells the host which links are up, down, or gone for good. It leaves
the proof of identity to `handshake`, bytes to `link_protocol`, and the order of events to `peers`.
The composition root makes one per node; the Raft host attaches to it.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Mapping, Sequence
from typing import assert_never

from typing_extensions import Buffer

from lograft_log.env import Clock, Rng
from lograft_replication import handshake, link_socket, peers
from lograft_replication.handshake import Handshake, Identity, Role
from lograft_replication.link_protocol import Limits, Link
from lograft_replication.network import NetworkEvents
from lograft_replication.trouble_log import TroubleLog
from lograft_wire.errors import ConfigError

logger = logging.getLogger(__name__)

Address = tuple[str, int]
SECRET_BYTES_MIN = 16


class LinkNetwork:
    """`addresses` gives host and port per peer name; names are resolved at every dial, because
    pods move. After `close` has begun no more events are told. Close it only when this node has
    stopped serving: peers take the closed port as a proof that it is dead."""

    def __init__(
        self,
        me: Identity,
        *,
        secret: bytes,
        listen: Address,
        addresses: Mapping[str, Address],
        rng: Rng,
        clock: Clock,
        limits: Limits,
        server_tls: ssl.SSLContext | None = None,
        client_tls: ssl.SSLContext | None = None,
    ) -> None:
        _check_settings(secret, server_tls, client_tls)
        self._me = me
        self._secret = secret
        self._listen = listen
        self._addresses = {name: at for name, at in addresses.items() if name != me.name}
        self._rng = rng
        self._clock = clock
        self._limits = limits
        self._server_tls = server_tls
        self._client_tls = client_tls
        self._events: NetworkEvents | None = None
        self._closing = False  # no more events are told
        self._peers: peers.Peers[Link] = peers.Peers(me, self._addresses)
        self._links: set[Link] = set()  # all with a transport, greeted or not
        self._by_id: dict[str, Link] = {}  # established; the newest per name
        self._reached: dict[str, tuple[link_socket.Target, Identity]] = {}  # last dialled with luck
        self._dialling: dict[str, asyncio.Task[None]] = {}
        self._greeting: dict[asyncio.Task[None], None] = {}  # strangers, oldest first
        self._log = TroubleLog(
            logger, clock, interval_s=limits.log_s_min, key_count_max=limits.log_key_count_max
        )
        self._socket: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: asyncio.TaskGroup | None = None  # owns every task; None when not running
        self._runner: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"LinkNetwork({self._me.node_id}, links={sorted(self._by_id)})"

    @property
    def address(self) -> Address:
        assert self._socket is not None, "not started"
        host, port = self._socket.getsockname()[:2]
        return host, port

    def attach(self, events: NetworkEvents) -> None:
        assert self._runner is None, "attach before start"
        self._events = events

    async def start(self) -> None:
        assert self._events is not None, "attach before start"
        self._loop = asyncio.get_running_loop()
        self._socket = await link_socket.listen(self._listen, self._limits.socket_buffer_bytes)
        running: asyncio.Future[None] = self._loop.create_future()
        self._runner = asyncio.create_task(self._run(running), name=f"links of {self._me.name}")
        await running

    async def close(self) -> None:
        if self._runner is None:
            return
        self._closing = True
        self._runner.cancel()
        await asyncio.wait([self._runner])
        if not self._runner.cancelled():
            self._runner.result()  # raises if closing itself went wrong

    def set_addresses(self, addresses: Mapping[str, Address]) -> None:
        """Peers may come, go and move. A link that stands is kept as long as its name is there."""
        self._addresses = {name: at for name, at in addresses.items() if name != self._me.name}
        self._peers.set_names(self._addresses)
        for name in list(self._dialling):
            if name not in self._addresses:
                self._dialling.pop(name).cancel()
        for one in list(self._by_id.values()):
            if one.peer is not None and one.peer.name not in self._addresses:
                one.close("no longer a peer")
        self._start_dialling()

    def send(self, peer: str, frame: Sequence[Buffer]) -> bool:
        one = self._by_id.get(peer)
        return one is not None and one.send(frame)

    def backlog_bytes(self, peer: str) -> int:
        one = self._by_id.get(peer)
        return 0 if one is None else one.backlog_bytes()

    # What links tell

    def on_connected(self, link: Link) -> None:
        self._links.add(link)

    def on_established(self, link: Link) -> None:
        assert link.peer is not None
        logger.info("peer link up peer=%s address=%s", link.peer.node_id, link.remote[0])
        link.heard_at_s = self._clock.now_s()
        events, older = self._peers.up(link.peer, link)
        if older is not None:
            assert older.peer is not None
            self._by_id.pop(older.peer.node_id, None)
            older.abort("a newer link took its place")
        self._by_id[link.peer.node_id] = link
        self._tell(events)

    def on_lost(self, link: Link) -> None:
        self._links.discard(link)
        if link.peer is None:
            if link.reason:
                who = link.dialled or link.remote[0]
                self._log.say(f"handshake {who}", f"peer={who!r} reason={link.reason}")
            return
        events = self._peers.down(link)
        if not events:
            return  # replaced
        level = logging.INFO if self._closing else logging.WARNING
        reason = link.reason or "closed by the other side"
        logger.log(level, "peer link lost peer=%s reason=%s", link.peer.node_id, reason)
        del self._by_id[link.peer.node_id]
        self._tell(events)
        if not link.dialled and self._tasks is not None and not self._closing:
            self._tasks.create_task(self._probe(link.peer, link.remote[0]))

    def _tell(self, happened: list[peers.Event]) -> None:
        for event in happened:
            if self._closing:
                return
            assert self._events is not None
            try:
                _tell_one(self._events, event)
            except Exception as error:
                # The host's own mistake: loud, but the other links go on.
                assert self._loop is not None
                message = f"telling {event} failed"
                self._loop.call_exception_handler({"message": message, "exception": error})

    # Tasks

    async def _run(self, running: asyncio.Future[None]) -> None:
        assert self._loop is not None
        assert self._socket is not None
        try:
            async with asyncio.TaskGroup() as self._tasks:
                self._tasks.create_task(self._accept_forever(self._socket))
                self._tasks.create_task(self._watch_silence())
                self._start_dialling()
                running.set_result(None)
        except Exception as error:
            # A task only ends by a mistake of ours: be loud, and leave no half of a network.
            message = f"{self!r} ended"
            self._loop.call_exception_handler({"message": message, "exception": error})
        finally:
            self._tasks = None
            self._socket.close()
            await self._close_links()

    async def _close_links(self) -> None:
        closing = list(self._links)
        for one in closing:
            one.close("this node is closing")
        if closing:
            waiting = [one.closed for one in closing]
            _, pending = await asyncio.wait(waiting, timeout=self._limits.close_s_max)
            for one in closing:
                one.abort("this node is closing")
            if pending:
                await asyncio.wait(pending, timeout=self._limits.close_s_max)

    def _start_dialling(self) -> None:
        if self._tasks is None:
            return
        for name in self._addresses:
            if self._peers.dials(name) and name not in self._dialling:
                self._dialling[name] = self._tasks.create_task(self._dial_forever(name))

    async def _dial_forever(self, name: str) -> None:
        failures = 0
        while True:
            lived_s = await self._dial(name)
            if lived_s >= self._limits.retry_s_max:
                failures = 0
                continue  # a link that stood and broke is redialled at once
            delay_s = min(self._limits.retry_s_min * 2**failures, self._limits.retry_s_max)
            failures = min(failures + 1, 30)
            await asyncio.sleep(delay_s * self._rng.uniform(0.5, 1.0))

    async def _dial(self, name: str) -> float:
        """Dial once, and stay as long as the link stands. Returns for how many seconds it stood."""
        link = self._make_link(Role.DIALLER, dialled=name)
        try:
            target = await self._connect(name, link)
            if target is None or link.peer is None:
                return 0.0
            self._reached[name] = (target, link.peer)
            started_s = self._clock.now_s()
            await asyncio.wait([link.closed])  # unlike await, leaves it whole when we are cancelled
            return self._clock.now_s() - started_s
        finally:
            link.close("no longer dialled")

    async def _connect(self, name: str, link: Link) -> link_socket.Target | None:
        """TCP to the first address that answers, TLS and handshake; None when that fails."""
        assert self._loop is not None
        host = self._addresses[name][0]
        for target in await self._targets(name):
            try:
                async with asyncio.timeout(self._limits.connect_s_max):
                    sock = await link_socket.connect(target, self._limits.socket_buffer_bytes)
            except (OSError, TimeoutError) as error:
                self._log.say(f"dial {name}", f"peer={name!r} address={target} reason={error!r}")
                if isinstance(error, ConnectionRefusedError):
                    self._on_refused(name, target)
                continue
            tls_name = host if self._client_tls else None
            try:
                async with asyncio.timeout(self._limits.handshake_s_max):
                    await self._loop.create_connection(
                        lambda: link, sock=sock, ssl=self._client_tls, server_hostname=tls_name
                    )
                    return target if await link.ready else None
            except (OSError, TimeoutError) as error:
                link.abort(f"{error!r} in the handshake")
                self._log.say(f"greet {name}", f"peer={name!r} address={target} reason={error!r}")
                return None
        return None

    async def _targets(self, name: str) -> list[link_socket.Target]:
        host, port = self._addresses[name]
        try:
            async with asyncio.timeout(self._limits.connect_s_max):
                return await link_socket.resolve(host, port)
        except (OSError, TimeoutError) as error:
            self._log.say(f"resolve {name}", f"peer={name!r} host={host!r} reason={error!r}")
            reached = self._reached.get(name)
            return [] if reached is None else [reached[0]]  # it may well be where it was

    def _on_refused(self, name: str, target: link_socket.Target) -> None:
        """A proof of death only where the peer was last reached; elsewhere it never was."""
        reached = self._reached.get(name)
        if reached is not None and reached[0] == target:
            self._tell(self._peers.refused(reached[1]))

    async def _probe(self, peer: Identity, seen_at: str) -> None:
        """The side that does not dial asks whether the lost peer's port is dead. More than once,
        because a dying process may close its link a moment before its port."""
        for delay_s in self._limits.probe_delays_s:
            await asyncio.sleep(delay_s)
            if self._peers.link_of(peer.name) is not None or peer.name not in self._addresses:
                return
            host, port = self._addresses[peer.name]
            try:
                async with asyncio.timeout(self._limits.connect_s_max):
                    refused = await link_socket.is_refused(host, port, seen_at=seen_at)
            except (OSError, TimeoutError):
                continue  # proves nothing
            if refused:
                self._tell(self._peers.refused(peer))
                return

    async def _accept_forever(self, listening: socket.socket) -> None:
        assert self._loop is not None
        assert self._tasks is not None
        while True:
            try:
                sock, address = await self._loop.sock_accept(listening)
            except OSError as error:  # out of descriptors, most likely
                self._log.say("accept", f"reason={error!r}")
                await asyncio.sleep(self._limits.retry_s_max)
                continue
            if len(self._greeting) >= self._limits.handshake_count_max:
                # An honest peer needs milliseconds: whoever has waited longest goes.
                oldest = next(iter(self._greeting))
                del self._greeting[oldest]
                oldest.cancel()
            task = self._tasks.create_task(self._greet(sock, address[0]))
            self._greeting[task] = None
            task.add_done_callback(lambda done: self._greeting.pop(done, None))

    async def _greet(self, sock: socket.socket, host: str) -> None:
        """TLS and handshake with whoever has connected."""
        assert self._loop is not None
        link = self._make_link(Role.LISTENER, dialled="")
        try:
            async with asyncio.timeout(self._limits.handshake_s_max):
                await self._loop.connect_accepted_socket(lambda: link, sock, ssl=self._server_tls)
                await link.ready
        except (OSError, TimeoutError) as error:
            link.abort(f"{error!r} in the handshake")
            if not isinstance(error, ConnectionError):  # who just hangs up may be a probe
                self._log.say(f"greet {host}", f"address={host} reason={error!r}")
        finally:
            if link.peer is None:
                link.close("not greeted in time")

    async def _watch_silence(self) -> None:
        limit_s = self._limits.silent_s_max
        while True:
            await asyncio.sleep(limit_s / 4)
            now_s = self._clock.now_s()
            for one in list(self._links):
                if one.heard:
                    one.heard = False
                    one.heard_at_s = now_s
                elif one.peer is not None and now_s - one.heard_at_s >= limit_s:
                    one.abort(f"silent for {limit_s} s")

    # Helpers

    def _make_link(self, role: Role, *, dialled: str) -> Link:
        assert self._loop is not None
        assert self._events is not None
        shake = Handshake(
            role,
            self._me,
            secret=self._secret,
            nonce=self._rng.token(handshake.NONCE_BYTES),
            judge=lambda peer: self._peers.judge(peer, dialled=dialled),
        )
        return Link(
            shake,
            dialled=dialled,
            owner=self,
            deliver=self._events.on_frame,
            limits=self._limits,
            loop=self._loop,
        )


def _tell_one(events: NetworkEvents, event: peers.Event) -> None:
    match event:
        case peers.Up():
            events.on_up(event.peer, event.boot)
        case peers.Down():
            events.on_down(event.peer)
        case peers.Gone():
            logger.warning("peer process is dead peer=%s", event.peer)
            events.on_gone(event.peer)
        case _:
            assert_never(event)


def _check_settings(
    secret: bytes, server_tls: ssl.SSLContext | None, client_tls: ssl.SSLContext | None
) -> None:
    if len(secret) < SECRET_BYTES_MIN:
        raise ConfigError(
            f"the cluster secret has {len(secret)} bytes; at least {SECRET_BYTES_MIN} random ones "
            "are needed, because whoever hears a handshake may try to guess it"
        )
    if (server_tls is None) != (client_tls is None):
        raise ConfigError("peer TLS needs both a server and a client context, or neither")
    for side, context in (("server", server_tls), ("client", client_tls)):
        if context is not None and context.verify_mode is not ssl.CERT_REQUIRED:
            raise ConfigError(f"peer TLS must be mutual: the {side} context does not verify")
