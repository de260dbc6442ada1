"""What `lograft_broker.hot.store` must do: a dictionary of frames."""

from oracle import settled


class Store:
    def __init__(self) -> None:
        self.settled = settled.Settled()
        self.frames: dict[int, bytes] = {}
        self.notes: dict[int, tuple[int, int]] = {}

    def add(self, offset: int, frames: list[bytes]) -> None:
        self.settled.add_gap(offset - self.settled.next_offset)
        self.settled.add(len(frames))
        self.frames |= dict(enumerate(frames, offset))

    def done(self, first: int, count: int) -> int:
        for offset in range(first, first + count):
            self.frames.pop(offset, None)
        return self.settled.done(first, count)
