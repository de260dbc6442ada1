"""Small logs for tests: tiny segments, a clock that stands still, and a way to read all of one."""

from lograft_log.env import Disk
from lograft_log.hot.record import Record
from lograft_log.log import Log, open_log
from lograft_log.positions import Positions
from lograft_log.settings import IndexKind, LogLimits, LogSettings

FOLDER = "logs/one"
SMALL = LogLimits(segment_bytes_max=1200, index_pending_bytes_max=100, map_step_bytes=600)


class StillClock:
    def __init__(self, now_ms: int = 1_000_000) -> None:
        self.now_ms = now_ms

    def now_s(self) -> float:
        return self.now_ms / 1000

    def wall_ms(self) -> int:
        return self.now_ms


def settings(index: IndexKind = IndexKind.SPARSE, interval_bytes: int = 128) -> LogSettings:
    return LogSettings(
        index=index,
        index_interval_bytes=interval_bytes,
        time_interval_bytes=200,
        limits=SMALL,
    )


def open_small(
    disk: Disk,
    *,
    folder: str = FOLDER,
    settings: LogSettings | None = None,
    durable: Positions | None = None,
    clock: StillClock | None = None,
) -> Log:
    return open_log(
        folder,
        disk=disk,
        clock=clock or StillClock(),
        settings=settings or LogSettings(limits=SMALL, index_interval_bytes=128),
        durable=durable,
    )


def record_of(number: int, *, size: int = 40) -> Record:
    """Its body says which one it is."""
    return Record(b"%d;" % number + b"." * (number * 7 % size), timestamp_ms=1000 + number)


def fill(log: Log, count: int, *, batch: int = 3) -> None:
    """Append records whose bodies name their offsets."""
    while count > 0:
        first = log.next_offset
        log.append([record_of(first + number) for number in range(min(batch, count))])
        count -= batch


def read_all(log: Log, *, bytes_max: int = 300) -> list[Record]:
    reader = log.reader_at(log.first_offset)
    result: list[Record] = []
    offset = reader.offset
    while len(chunk := reader.next(bytes_max)):
        result += chunk.records(offset)
        offset = reader.offset
    return result


def numbers(items: list[Record]) -> list[int]:
    """Offsets of records made by `record_of`, each checked against its body."""
    for item in items:
        assert item.body == record_of(item.offset).body, item
    return [item.offset for item in items]
