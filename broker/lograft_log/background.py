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


class DeferredScheduler:
    """Takes calls from any one thread and makes none of them before `open`, on the loop.

    Recovery reads for as long as it takes, in a thread, so that the loop can answer health checks;
    what it wants done on the loop waits until it has ended."""

    def __init__(self, loop: Scheduler) -> None:
        self._loop = loop
        self._waiting: list[_Deferred] | None = []

    def call_soon(self, callback: Callable[..., object], *args: object) -> Handle:
        if self._waiting is None:
            return self._loop.call_soon(callback, *args)
        return self._defer(None, callback, args)

    def call_later(self, delay: float, callback: Callable[..., object], *args: object) -> Handle:
        if self._waiting is None:
            return self._loop.call_later(delay, callback, *args)
        return self._defer(delay, callback, args)

    def open(self) -> None:
        waiting, self._waiting = self._waiting, None
        for call in waiting or ():
            call.make(self._loop)

    def _defer(
        self, delay: float | None, callback: Callable[..., object], args: tuple[object, ...]
    ) -> "_Deferred":
        assert self._waiting is not None
        call = _Deferred(delay, callback, args)
        self._waiting.append(call)
        return call


class _Deferred:
    def __init__(
        self, delay: float | None, callback: Callable[..., object], args: tuple[object, ...]
    ) -> None:
        self._delay = delay
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._made: Handle | None = None

    def make(self, loop: Scheduler) -> None:
        if self._cancelled:
            return
        if self._delay is None:
            self._made = loop.call_soon(self._callback, *self._args)
        else:
            self._made = loop.call_later(self._delay, self._callback, *self._args)

    def cancel(self) -> None:
        self._cancelled = True
        if self._made is not None:
            self._made.cancel()


class ThreadBackground:
    """One daemon thread; results return through the given loop. With `hold`, pieces wait until
    `start`: so nothing comes back while recovery still runs in a thread of its own."""

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop, *, hold: bool = False) -> None:
        self._loop = loop
        self._work: queue.SimpleQueue[
            tuple[Callable[[], object], Callable[[object, BaseException | None], None]] | None
        ] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._started = False
        if not hold:
            self.start()

    def start(self) -> None:
        assert not self._started
        self._started = True
        self._thread.start()

    def run(
        self, work: Callable[[], object], done: Callable[[object, BaseException | None], None]
    ) -> None:
        self._work.put((work, done))

    def close(self) -> None:
        if self._started:
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
