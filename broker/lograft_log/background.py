"""Work that blocks (sync, compression, checkpoints) done off the event loop, one piece at a time.

A Background runs pieces in the order they were given and reports each result back on the loop.
Whoever gives work keeps no lock: a piece may touch only what it was handed.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Protocol


class Handle(Protocol):
    def cancel(self) -> None: ...


class Scheduler(Protocol):
    """The part of an event loop that machines need; every asyncio loop is one."""

    def call_soon(self, callback: Callable[..., object], *args: object) -> Handle: ...

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: object
    ) -> Handle: ...


class Background(Protocol):
    def run(
        self, work: Callable[[], object], done: Callable[[object, BaseException | None], None]
    ) -> None:
        """Do `work()` off the loop; later, on the loop, call `done(result, error)`."""

    def close(self) -> None:
        """Finish what was given, then end. Results may be dropped."""


class ThreadBackground:
    """One daemon thread; results return through the loop that was running when it was made."""

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._work: queue.SimpleQueue[
            tuple[Callable[[], object], Callable[[object, BaseException | None], None]] | None
        ] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()

    def run(
        self, work: Callable[[], object], done: Callable[[object, BaseException | None], None]
    ) -> None:
        self._work.put((work, done))

    def close(self) -> None:
        self._work.put(None)
        self._thread.join()

    def _main(self) -> None:
        while (item := self._work.get()) is not None:
            work, done = item
            result: object = None
            error: BaseException | None = None
            try:
                result = work()
            except BaseException as caught:  # reported to the owner on the loop, never lost
                error = caught
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(done, result, error)
