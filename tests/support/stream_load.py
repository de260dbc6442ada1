"""Commands for a StreamMachine, and what its streams must hold after them."""

import random
from collections.abc import Sequence

from lograft_log.hot import record
from lograft_log.hot.record import Record
from lograft_replication import stream_commands
from lograft_replication.stream_commands import Batch, Close, Open, Records, Trim
from lograft_replication.streams import StreamMachine


def batch(stream: int, base_offset: int, bodies: Sequence[bytes]) -> Batch:
    records = [Record(body, timestamp_ms=1000) for body in bodies]
    return Batch(stream, base_offset, len(bodies), record.encode(records, base_offset))


def records(*batches: Batch) -> bytes:
    return stream_commands.encode(Records(1000, batches))


def opening(*streams: int) -> bytes:
    return stream_commands.encode(Open(1000, tuple((stream, 0) for stream in streams)))


def closing(*streams: int) -> bytes:
    return stream_commands.encode(Close(1000, streams))


def trimming(stream: int, offset: int) -> bytes:
    return stream_commands.encode(Trim(1000, ((stream, offset),)))


def bodies(machine: StreamMachine, stream: int) -> list[bytes]:
    """Every record that the applied entries gave the stream, in order, offsets checked. Less at
    the start when the log had been trimmed by entries that are yet to be applied again."""
    found = machine.stream(stream)
    assert found is not None
    items: list[Record] = []
    offset = found.log.first_offset
    while offset < found.next_offset:
        chunk = found.log.read(offset)
        items += chunk.records(offset)
        offset = chunk.offset_next
    first_offset = max(found.first_offset, found.log.first_offset)
    items = [item for item in items if first_offset <= item.offset < found.next_offset]
    expected = list(range(first_offset, found.next_offset))
    assert [item.offset for item in items] == expected, (found, found.log)
    return [item.body for item in items]


class Model:
    """The obvious machine: lists in memory."""

    def __init__(self) -> None:
        self.commands: list[bytes] = [b""]  # by index, from 1 on
        self.states: list[dict[int, tuple[int, list[bytes]]]] = [{}]  # after each index

    def random_command(self, rng: random.Random, *, body_bytes_max: int = 400) -> None:
        state = {s: (first, list(all_)) for s, (first, all_) in self.states[-1].items()}
        choice = rng.random()
        if not state or choice < 0.08:
            stream = rng.randrange(1, 6)
            state.setdefault(stream, (0, []))
            command = opening(stream)
        elif choice < 0.12:
            stream = rng.choice(sorted(state))
            del state[stream]
            command = closing(stream)
        elif choice < 0.2:
            stream = rng.choice(sorted(state))
            first, all_ = state[stream]
            cut = rng.randint(first, len(all_))
            state[stream] = (cut, all_)
            command = trimming(stream, cut)
        else:
            command = self._records(rng, state, body_bytes_max)
        self.commands.append(command)
        self.states.append(state)

    def _records(
        self, rng: random.Random, state: dict[int, tuple[int, list[bytes]]], body_bytes_max: int
    ) -> bytes:
        batches: list[Batch] = []
        for stream in rng.sample(sorted(state), rng.randint(1, len(state))):
            _, all_ = state[stream]
            new = [rng.randbytes(rng.randint(0, body_bytes_max)) for _ in range(rng.randint(1, 5))]
            batches.append(batch(stream, len(all_), new))
            all_ += new
        return records(*batches)

    def check(self, machine: StreamMachine, index: int, *, replaying: bool = False) -> None:
        state = self.states[index]
        assert sorted(machine.streams) == sorted(state)
        for stream, (first, all_) in state.items():
            found = machine.stream(stream)
            assert found is not None
            assert (found.first_offset, found.next_offset) == (first, len(all_))
            start = max(first, found.log.first_offset) if replaying else first
            assert bodies(machine, stream) == all_[start:], (index, found, found.log)
