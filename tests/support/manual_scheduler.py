"""A Scheduler whose turns and seconds pass only when a test says so."""

import heapq
from collections.abc import Callable


class ManualHandle:
    def __init__(self, callback: Callable[..., object], args: tuple[object, ...]) -> None:
        self.callback: Callable[..., object] | None = callback
        self.args = args

    def cancel(self) -> None:
        self.callback = None

    def run(self) -> None:
        if self.callback is not None:
            self.callback(*self.args)


class ManualScheduler:
    def __init__(self) -> None:
        self.now_s = 0.0
        self._soon: list[ManualHandle] = []
        self._later: list[tuple[float, int, ManualHandle]] = []
        self._made = 0

    def call_soon(self, callback: Callable[..., object], *args: object) -> ManualHandle:
        handle = ManualHandle(callback, args)
        self._soon.append(handle)
        return handle

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: object
    ) -> ManualHandle:
        handle = ManualHandle(callback, args)
        self._made += 1
        heapq.heappush(self._later, (self.now_s + delay, self._made, handle))
        return handle

    def turn(self) -> bool:
        """One loop turn: what was called soon before it began. False when there was nothing."""
        soon, self._soon = self._soon, []
        for handle in soon:
            handle.run()
        return bool(soon)

    def advance(self, seconds: float) -> None:
        self.now_s += seconds
        while self._later and self._later[0][0] <= self.now_s:
            heapq.heappop(self._later)[2].run()
