"""Virtual time: one event loop for a whole cluster, and what each process sees of it.

SimLoop orders events by time, then by the order in which they were made; nothing else decides, so
a run repeats exactly. A NodeScheduler is one boot of one process: killed, its callbacks never run
again; paused (SIGSTOP), they wait until it resumes while its clock goes on. A callback that raises
SimCrash ends the process on the spot.

Used by `world`; `disk` raises SimCrash and `network` delivers through NodeScheduler.run.
"""

import heapq
import random
from collections import Counter, deque
from collections.abc import Callable

EVENTS_PER_SECOND_MAX = 100_000  # of virtual time; more is a storm of messages or timers
EVENTS_TRACED = 400  # how many of the last callbacks a storm report counts


class SimCrash(BaseException):
    """The process ends here: no handler of the code under test may catch it and live on."""


class Storm(AssertionError):
    """Too many events in one virtual second: something feeds itself."""


class SimHandle:
    __slots__ = ("args", "callback", "owner")

    def __init__(
        self,
        owner: "NodeScheduler | None",
        callback: Callable[..., object],
        args: tuple[object, ...],
    ) -> None:
        self.owner = owner
        self.callback: Callable[..., object] | None = callback
        self.args = args

    def cancel(self) -> None:
        self.callback = None
        self.args = ()


class SimLoop:
    """A Scheduler over virtual seconds."""

    def __init__(self, *, start_s: float = 1000.0) -> None:
        self.now = start_s
        self.event_count = 0
        self._heap: list[tuple[float, int, SimHandle]] = []
        self._made = 0
        self._recent: deque[Callable[..., object]] = deque(maxlen=EVENTS_TRACED)
        self._second_ends = start_s + 1.0
        self._second_count = 0

    def call_soon(self, callback: Callable[..., object], *args: object) -> SimHandle:
        return self.push(self.now, SimHandle(None, callback, args))

    def call_later(self, delay: float, callback: Callable[..., object], *args: object) -> SimHandle:
        return self.push(self.now + delay, SimHandle(None, callback, args))

    def call_at(self, when: float, callback: Callable[..., object], *args: object) -> SimHandle:
        return self.push(when, SimHandle(None, callback, args))

    def push(self, when: float, handle: SimHandle) -> SimHandle:
        self._made += 1
        heapq.heappush(self._heap, (max(when, self.now), self._made, handle))
        return handle

    def step(self) -> bool:
        """Run the next event; False when there is none."""
        if self._next_at() is None:
            return False
        self.now, _, handle = heapq.heappop(self._heap)
        callback = handle.callback
        assert callback is not None
        self._count(callback)
        if handle.owner is None:
            callback(*handle.args)
        else:
            handle.owner.fire(handle)
        return True

    def run_until(self, when: float) -> None:
        """Run every event up to and including `when`, which is then the present."""
        while (next_at := self._next_at()) is not None and next_at <= when:
            self.step()
        self.now = max(self.now, when)

    def run_until_true(self, condition: Callable[[], bool], *, limit_s: float) -> bool:
        """Run until the condition holds after an event; False when `limit_s` went by first."""
        end = self.now + limit_s
        while not condition():
            next_at = self._next_at()
            if next_at is None or next_at > end:
                self.now = max(self.now, end)
                return condition()
            self.step()
        return True

    def _next_at(self) -> float | None:
        heap = self._heap
        while heap and heap[0][2].callback is None:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def _count(self, callback: Callable[..., object]) -> None:
        self.event_count += 1
        self._recent.append(callback)
        if self.now >= self._second_ends:
            self._second_ends = self.now + 1.0
            self._second_count = 0
        self._second_count += 1
        if self._second_count > EVENTS_PER_SECOND_MAX:
            names = Counter(getattr(one, "__qualname__", repr(one)) for one in self._recent)
            most = ", ".join(f"{name} x{count}" for name, count in names.most_common(5))
            raise Storm(f"{self._second_count} events within 1 s at {self.now:.3f}: {most}")


class NodeScheduler:
    """The event loop as one boot of one process sees it."""

    def __init__(
        self, loop: SimLoop, *, on_crash: Callable[[], None], after: Callable[[], None]
    ) -> None:
        self.loop = loop
        self.alive = True
        self.paused = False
        self._on_crash = on_crash  # the process died of SimCrash inside a callback
        self._after = after  # the process has just run something: look at it
        self._held: list[SimHandle] = []  # came due while paused, in order

    def call_soon(self, callback: Callable[..., object], *args: object) -> SimHandle:
        return self.loop.push(self.loop.now, SimHandle(self, callback, args))

    def call_later(self, delay: float, callback: Callable[..., object], *args: object) -> SimHandle:
        return self.loop.push(self.loop.now + delay, SimHandle(self, callback, args))

    def call_at(self, when: float, callback: Callable[..., object], *args: object) -> SimHandle:
        """At a moment of the loop's own time, not of the node's drifting clock."""
        return self.loop.push(when, SimHandle(self, callback, args))

    def run(self, callback: Callable[..., object], *args: object) -> None:
        """An event from outside reaches the process now, or once it runs again."""
        self.fire(SimHandle(self, callback, args))

    def fire(self, handle: SimHandle) -> None:
        if not self.alive or handle.callback is None:
            return
        if self.paused:
            self._held.append(handle)
            return
        try:
            handle.callback(*handle.args)
        except SimCrash:
            self._on_crash()
        if self.alive:
            self._after()

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False
        held, self._held = self._held, []
        for handle in held:
            self.loop.push(self.loop.now, handle)

    def kill(self) -> None:
        self.alive = False
        self._held.clear()


class SimClock:
    """A node's clocks: the monotonic one drifts by `rate`, the wall clock also jumps."""

    def __init__(self, loop: SimLoop, *, start_s: float, rate: float, wall_offset_ms: int) -> None:
        self._loop = loop
        self._origin = loop.now
        self._start_s = start_s
        self._rate = rate
        self.wall_offset_ms = wall_offset_ms

    def now_s(self) -> float:
        return self._start_s + (self._loop.now - self._origin) * self._rate

    def wall_ms(self) -> int:
        return int(self._loop.now * 1000) + self.wall_offset_ms

    def jump(self, by_ms: int) -> None:
        self.wall_offset_ms += by_ms


class SimRng:
    def __init__(self, source: random.Random) -> None:
        self._source = source

    def uniform(self, low: float, high: float) -> float:
        return self._source.uniform(low, high)

    def token(self, size: int) -> bytes:
        return self._source.randbytes(size)
