"""The HTTP edge: health for whoever runs the node, and its Raft groups as JSON.

Knows a node only as `NodeStatus`; decides nothing. Everything is answered in JSON, errors too, and
nothing here asks anyone else. Started by `server` before the node, so that a long recovery can be
told from a dead process.
"""

import errno
import importlib.metadata
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from aiohttp import web

from lograft_wire.errors import ConfigError

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    body_bytes_max: int = 64 * 1024
    stop_s_max: float = 1.0  # how long requests in progress may hold up a stop


class NodeStatus(Protocol):
    def health(self) -> Mapping[str, object]:
        """Callable from construction on. Keys: `live` and `ready` (bool), `reasons` (list of str:
        why it is not live or ready), `details` (a JSON object: groups and the journal)."""


class Admin:
    """The HTTP server of one node."""

    def __init__(self, node: NodeStatus, *, name: str, limits: Limits | None = None) -> None:
        self._node = node
        self._name = name
        self._limits = limits or Limits()
        self._started = False  # set once, when the node's start has returned
        self._runner = web.AppRunner(
            self._application(), access_log=None, shutdown_timeout=self._limits.stop_s_max
        )

    async def start(self, *, host: str, port: int) -> str:
        """Listen; returns "host:port" with the real port."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            raise port_error(error, option="--http-port", host=host, port=port) from error
        bound = self._runner.addresses[0]
        return address(bound[0], bound[1])

    def mark_started(self) -> None:
        self._started = True

    async def stop(self) -> None:
        await self._runner.cleanup()

    def _application(self) -> web.Application:
        app = web.Application(
            middlewares=[_errors_as_json], client_max_size=self._limits.body_bytes_max
        )
        app.add_routes(
            [
                web.get("/", self._about),
                web.get("/health/live", self._live),
                web.get("/health/ready", self._ready),
                web.get("/health/startup", self._startup),
                web.get("/api/lograft/groups", self._groups),
            ]
        )
        return app

    async def _about(self, request: web.Request) -> web.Response:
        paths = sorted(
            resource.canonical for resource in request.app.router.resources() if resource.canonical
        )
        return web.json_response(
            {
                "product": "lograft",
                "version": importlib.metadata.version("lograft"),
                "node": self._name,
                "paths": paths,
            }
        )

    async def _live(self, _request: web.Request) -> web.Response:
        health = self._node.health()
        return _verdict(bool(health["live"]), health["reasons"])

    async def _ready(self, _request: web.Request) -> web.Response:
        health = self._node.health()
        if not self._started:
            return _verdict(False, ["the node is still starting"])
        return _verdict(bool(health["ready"]), health["reasons"])

    async def _startup(self, _request: web.Request) -> web.Response:
        return _verdict(self._started, ["the node is still starting"])

    async def _groups(self, _request: web.Request) -> web.Response:
        return web.json_response(self._node.health()["details"])


def address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def port_error(error: OSError, *, option: str, host: str, port: int) -> ConfigError:
    """Why a port could not be opened, in terms of the option that chose it."""
    if error.errno == errno.EADDRINUSE:
        return ConfigError(
            f"{option} {port}: another process listens on {address(host, port)} already; "
            f"stop it, or choose another port (0 picks a free one)"
        )
    return ConfigError(f"{option} {port}: cannot listen on {address(host, port)}: {error}")


def _verdict(good: bool, reasons: object) -> web.Response:
    if good:
        return web.json_response({"status": "ok"})
    return web.json_response({"status": "failed", "reasons": reasons}, status=503)


@web.middleware
async def _errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as error:
        allow = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else None
        return web.json_response(
            {"error": error.reason, "path": request.path}, status=error.status, headers=allow
        )
    except Exception:  # the last edge before the peer: it is told, and we keep the traceback
        log.exception("http_failed method=%s path=%r", request.method, request.path)
        return web.json_response({"error": "Internal Server Error"}, status=500)
