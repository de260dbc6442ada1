"""Which frames get index entries: the specification of hot/indexer.pyx."""

from dataclasses import dataclass, field

from oracle import record, search


@dataclass
class Indexer:
    interval_bytes: int
    time_interval_bytes: int
    timestamp_ms_max: int = 0
    rows: list[search.Entry] = field(default_factory=list)
    time_rows: list[search.Entry] = field(default_factory=list)

    def feed(self, data: bytes, position: int) -> None:
        while data:
            frame = record.look(data, 1 << 32)
            assert isinstance(frame, record.Frame)
            self.timestamp_ms_max = max(self.timestamp_ms_max, frame.timestamp_ms)
            if self.interval_bytes >= 0 and (
                not self.rows or position - self.rows[-1][1] >= self.interval_bytes
            ):
                self.rows.append((frame.first, position, frame.size - 16))
            if not self.time_rows or position - self.time_rows[-1][2] >= self.time_interval_bytes:
                self.time_rows.append((self.timestamp_ms_max, frame.last, position))
            position += frame.size
            data = data[frame.size :]

    def offsets(self) -> bytes:
        return search.pack(self.rows)

    def times(self) -> bytes:
        return search.pack(self.time_rows, search.TIME_ENTRY)
