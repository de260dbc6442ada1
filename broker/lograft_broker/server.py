"""One run of a node process: settings in, exit code out.

Reads the settings, locks the data folder, answers health checks, starts the node, says so on
standard output in one line of JSON, and stops it when a signal asks. The node itself is handed in
by `main`, as a function of the settings.

Exit codes: 0 stopped as asked; 2 a setting cannot work; 3 the disk or what is on it failed; 128 + n
a second signal n did not wait for the drain. That is safe at any moment: whatever was confirmed is
on disk already, and the next start reads it.
"""

import asyncio
import errno
import json
import logging
import os
import signal
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, NoReturn, Protocol, TextIO

import uvloop

from lograft_broker import logs, memory
from lograft_broker.admin import Admin, NodeStatus, port_error
from lograft_broker.folder import FolderLock
from lograft_wire import config
from lograft_wire.config import Settings
from lograft_wire.errors import ConfigError, StorageError

EXIT_CONFIG = 2
EXIT_STORAGE = 3
EXIT_SIGNAL_BASE = 128

log = logging.getLogger(__name__)


class ServedNode(NodeStatus, Protocol):
    """What a run needs of a node; `node.Node` is the real one."""

    failed: asyncio.Future[StorageError]  # done when this node's disk can no longer be trusted

    async def start(self) -> None: ...

    def ready_line(self) -> Mapping[str, object]:
        """Node name and the addresses it listens on, all but HTTP."""

    async def stop(self, *, grace_s: float) -> None:
        """Drain for at most `grace_s`, then close. Legal after a start that failed or was cut."""


MakeNode = Callable[[Settings], ServedNode]


def run(argv: list[str], make_node: MakeNode, *, out: TextIO, errors: TextIO) -> int:
    """Everything but the choice of the node; errors end as one line and an exit code."""
    try:
        settings = config.load(argv, os.environ, read_file=_read_file)
        logs.set_up(level=settings.log_level, format=settings.log_format, stream=errors)
        memory.keep_freed_batches()
        lock = FolderLock(settings.data)
        try:
            return uvloop.run(Server(settings, make_node, out=out).run())
        finally:
            lock.close()
    except ConfigError as error:
        errors.write(f"lograft serve: {error}\n")
        return EXIT_CONFIG
    except StorageError as error:
        errors.write(f"lograft serve: {error}\n")
        return EXIT_STORAGE


class Server:
    """One run of a node, from its start to its end."""

    def __init__(self, settings: Settings, make_node: MakeNode, *, out: TextIO) -> None:
        self._settings = settings
        self._make_node = make_node
        self._out = out
        self._asked = asyncio.Event()  # set by the first signal

    async def run(self) -> int:
        self._watch_signals()
        node = self._make_node(self._settings)
        admin = Admin(node, name=self._settings.node)
        http = await admin.start(host=self._settings.host, port=self._settings.http_port)
        grace_s = 0.0  # only an orderly end drains
        try:
            if await self._unless_asked(self._start(node), node):
                self._say_ready(node, admin, http)
                await self._unless_asked(asyncio.Event().wait(), node)
            grace_s = self._settings.stop_grace_s
        finally:
            log.info("node_stopping grace_s=%s", grace_s)
            await node.stop(grace_s=grace_s)
            await admin.stop()
        log.info("node_stopped")
        return 0

    async def _unless_asked(self, work: Coroutine[Any, Any, object], node: ServedNode) -> bool:
        """Whether `work` ended before a signal. Raises what ended the work, or the node itself."""
        working = asyncio.ensure_future(work)
        asked = asyncio.ensure_future(self._asked.wait())
        try:
            ends: set[asyncio.Future[Any]] = {working, asked, node.failed}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if node.failed.done():
                raise node.failed.result()
            if working.done():
                working.result()
                return True
            return False
        finally:
            for task in (working, asked):
                task.cancel()
            await asyncio.gather(working, asked, return_exceptions=True)

    async def _start(self, node: ServedNode) -> None:
        try:
            await node.start()
        except OSError as error:
            raise self._start_error(error) from error

    def _start_error(self, error: OSError) -> ConfigError | StorageError:
        """The last translation of what the system refused while starting."""
        if error.errno in (errno.EADDRINUSE, errno.EACCES, errno.EADDRNOTAVAIL):
            for name in ("amqp_port", "feed_port", "peer_port"):
                port = getattr(self._settings, name)
                if port and str(port) in str(error):
                    option = "--" + name.replace("_", "-")
                    return port_error(error, option=option, host=self._settings.host, port=port)
        return StorageError(f"the node cannot start: {error}", path=str(error.filename or ""))

    def _say_ready(self, node: ServedNode, admin: Admin, http: str) -> None:
        admin.mark_started()
        ready = {"event": "ready", **node.ready_line(), "http": http}
        self._out.write(json.dumps(ready) + "\n")
        self._out.flush()
        log.info("node_ready node=%s http=%s", self._settings.node, http)

    def _watch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal, number)

    def _on_signal(self, number: signal.Signals) -> None:
        if self._asked.is_set():
            _leave_at_once(number)
        log.info("signal_received signal=%s", number.name)
        self._asked.set()


def _leave_at_once(number: signal.Signals) -> NoReturn:
    """No unwinding: a thread may be inside an fdatasync that never returns."""
    log.warning("node_stopped_at_once signal=%s", number.name)
    logging.shutdown()
    os._exit(EXIT_SIGNAL_BASE + number)


def _read_file(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")
