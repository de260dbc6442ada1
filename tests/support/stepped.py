"""Background work and time that move only when a test says so."""

from collections import deque
from collections.abc import Callable

Done = Callable[[object, BaseException | None], None]


class SteppedBackground:
    """Pieces wait until `step` or `drain`, in the order they were given."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[Callable[[], object], Done]] = deque()

    def run(self, work: Callable[[], object], done: Done) -> None:
        self.waiting.append((work, done))

    def step(self) -> None:
        work, done = self.waiting.popleft()
        result: object = None
        failure: BaseException | None = None
        try:
            result = work()
        except Exception as error:
            failure = error
        done(result, failure)

    def drain(self) -> None:
        while self.waiting:
            self.step()

    def close(self) -> None:
        self.drain()


class SteppedClock:
    def __init__(self) -> None:
        self.at_s = 100.0

    def now_s(self) -> float:
        return self.at_s

    def wall_ms(self) -> int:
        return int(self.at_s * 1000)
