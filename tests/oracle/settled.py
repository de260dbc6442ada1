"""What `lograft_broker.hot.settled` must do: a set of numbers."""


class Settled:
    def __init__(self, next_offset: int = 0) -> None:
        self.next_offset = next_offset
        self._live: set[int] = set()

    @property
    def low(self) -> int:
        return min(self._live, default=self.next_offset)

    @property
    def live_count(self) -> int:
        return len(self._live)

    def __contains__(self, offset: int) -> bool:
        return offset not in self._live

    def add(self, count: int) -> None:
        self._live |= set(range(self.next_offset, self.next_offset + count))
        self.next_offset += count

    def add_gap(self, count: int) -> None:
        self.next_offset += count

    def done(self, first: int, count: int) -> int:
        gone = self._live & set(range(first, first + count))
        self._live -= gone
        return len(gone)

    def first_live(self, offset: int) -> int:
        return min((one for one in self._live if one >= offset), default=self.next_offset)

    def live(self) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for offset in sorted(self._live):
            if found and sum(found[-1]) == offset:
                found[-1] = (found[-1][0], found[-1][1] + 1)
            else:
                found.append((offset, 1))
        return found
