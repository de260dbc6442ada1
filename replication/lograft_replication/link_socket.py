"""Plain TCP sockets for links: resolving, listening, connecting, and asking whether a port is dead.

Knows nothing of peers or frames. Called by `link` on its event loop; raises OSError, which `link`
translates, except where a listening address cannot be had: that is a setting that cannot work.
"""

import asyncio
import socket
from dataclasses import dataclass

from lograft_wire.errors import ConfigError

BACKLOG_COUNT = 128
_MAPPED = "::ffff:"  # an IPv4 address as a socket for both families shows it


@dataclass(frozen=True, slots=True)
class Target:
    """One address of a host."""

    family: int
    host: str
    address: tuple[object, ...]  # as the socket module wants it

    def __str__(self) -> str:
        return f"{self.host}:{self.address[1]}"


async def resolve(host: str, port: int) -> list[Target]:
    """All stream addresses of a host, in the system's order of preference."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [Target(family, str(at[0]), tuple(at)) for family, _, _, _, at in found]


async def listen(at: tuple[str, int], buffer_bytes: int) -> socket.socket:
    """A listening socket; accepted ones inherit its options."""
    host, port = at
    sock: socket.socket | None = None
    try:
        target = (await resolve(host or "0.0.0.0", port))[0]
        sock = _make(target.family, buffer_bytes)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if target.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(target.address)
        sock.listen(BACKLOG_COUNT)
    except OSError as error:
        if sock is not None:
            sock.close()
        raise ConfigError(f"peer address {host}:{port} cannot be listened on: {error}") from error
    return sock


async def connect(target: Target, buffer_bytes: int) -> socket.socket:
    sock = _make(target.family, buffer_bytes)
    try:
        await asyncio.get_running_loop().sock_connect(sock, target.address)
    except BaseException:
        sock.close()
        raise
    return sock


async def is_refused(host: str, port: int, *, seen_at: str) -> bool:
    """Whether nobody listens at `port` of the very machine that was seen at `seen_at`.

    Where the name no longer leads there (a moved pod, a proxy in between) nothing is proven."""
    seen_host = seen_at.removeprefix(_MAPPED)
    for target in await resolve(host, port):
        if target.host == seen_host:
            try:
                (await connect(target, 0)).close()
            except ConnectionRefusedError:
                return True
    return False


def _make(family: int, buffer_bytes: int) -> socket.socket:
    """Options are set before connecting, when the window scale is still open."""
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if buffer_bytes:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer_bytes)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
    return sock
