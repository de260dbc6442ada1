"""A node's blocking work in virtual time: one piece after the other, each after a while.

A piece runs whole at one moment (its disk writes take effect then, and a crash point of the disk
may strike in the middle of it); its result reaches the process another moment later. So a crash
finds work not begun, half done, or done and not yet known to be.
"""

import random
from collections import deque
from collections.abc import Callable

from sim.loop import NodeScheduler

Done = Callable[[object, BaseException | None], None]


class Pace:
    """How long a disk takes, shared by the workers of one node; faults make it slow."""

    def __init__(self, choices_s: tuple[float, ...] = (0.0002, 0.001, 0.005)) -> None:
        self.choices_s = choices_s
        self.slow_s = 0.0  # added to every piece of work while the disk is slow

    def draw(self, rng: random.Random) -> float:
        delay = rng.choice(self.choices_s) * rng.uniform(0.5, 1.5)
        return delay + self.slow_s * rng.random()


class SimBackground:
    def __init__(self, scheduler: NodeScheduler, *, rng: random.Random, pace: Pace) -> None:
        self._scheduler = scheduler
        self._rng = rng
        self._pace = pace
        self._waiting: deque[tuple[Callable[[], object], Done]] = deque()
        self._busy = False  # a piece is under way: its moment has been set
        self._told_at = 0.0  # results arrive in order, as from one thread
        self._closed = False

    def run(self, work: Callable[[], object], done: Done) -> None:
        assert not self._closed, "work given to a closed background"
        self._waiting.append((work, done))
        self._begin()

    def close(self) -> None:
        """Closing joins the thread: all that was given is done before it returns."""
        self._closed = True
        while self._waiting:
            self._work_one()

    def _begin(self) -> None:
        if not self._busy and self._waiting:
            self._busy = True
            self._scheduler.call_later(self._pace.draw(self._rng), self._finish)

    def _finish(self) -> None:
        self._busy = False
        if self._waiting:
            self._work_one()
        self._begin()

    def _work_one(self) -> None:
        work, done = self._waiting.popleft()
        result: object = None
        error: BaseException | None = None
        try:
            result = work()
        except Exception as caught:  # reported to the owner, as the real thread does
            error = caught
        told_in = self._rng.choice((0.0, 0.0001, 0.001))
        self._told_at = max(self._told_at, self._scheduler.loop.now + told_in)
        self._scheduler.call_at(self._told_at, done, result, error)
