"""The records of a queue in memory and in a real log, against a dictionary."""

import shutil
import tempfile

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lograft_broker.hot import store
from lograft_log.env import RealClock, RealDisk
from lograft_log.hot import record
from lograft_log.log import open_log
from lograft_log.settings import IndexKind, LogSettings
from oracle import entry as entry_oracle
from oracle import store as oracle

SETTINGS = LogSettings(index=IndexKind.DENSE)


class StoreMachine(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="lograft-store-")
        self.log = open_log(self.folder, disk=RealDisk(), clock=RealClock(), settings=SETTINGS)
        self.real = store.Store(7, log=self.log, window_bytes=200)
        self.model = oracle.Store()
        self.serial = 0

    def teardown(self) -> None:
        self.log.close()
        shutil.rmtree(self.folder)

    def frame(self, offset: int, size: int) -> bytes:
        self.serial += 1
        body = (b"%d " % self.serial).ljust(size, b".")
        return entry_oracle.frame(offset, 1000 + self.serial, b"\0\0\0\0", body)

    @rule(gap=st.sampled_from([0, 0, 0, 1, 5]), sizes=st.lists(st.integers(0, 90), min_size=1))
    def add_run(self, gap: int, sizes: list[int]) -> None:
        offset = self.model.settled.next_offset + gap
        frames = [self.frame(at, size) for at, size in enumerate(sizes, offset)]
        entry = b"before" + b"".join(frames) + b"behind"
        self.real.append(entry, 6, len(entry) - 6, offset, len(frames))
        self.model.add(offset, frames)

    @rule(size=st.integers(0, 50), due=st.integers(0, 3), priority=st.integers(0, 3))
    def add_shared(self, size: int, due: int, priority: int) -> None:
        """The frame carries the offset it has in another queue."""
        offset = self.model.settled.next_offset
        frame = self.frame(offset + 1000, size)
        self.real.append_shared(frame, 0, len(frame), offset)
        self.model.add(offset, [frame])
        if due or priority:
            self.real.set_note(offset, due, priority)
            self.model.notes[offset] = (due, priority)

    @rule(place=st.floats(0, 1), count=st.integers(0, 40))
    def settle(self, place: float, count: int) -> None:
        first = int(place * self.model.settled.next_offset)
        assert self.real.done(first, count) == self.model.done(first, count)

    @rule(count=st.integers(1, 10))
    def settle_first(self, count: int) -> None:
        low = self.model.settled.low
        assert self.real.done(low, count) == self.model.done(low, count)

    @rule(bytes_max=st.integers(1, 3000))
    def spill(self, bytes_max: int) -> None:
        for frames in self.real.take_unspilled(bytes_max):
            self.log.append_frames(frames)

    @rule(bytes_max=st.integers(0, 2000), keep=st.integers(0, 10))
    def let_go(self, bytes_max: int, keep: int) -> None:
        before = self.real.memory_bytes
        gone = self.real.let_go_spilled(bytes_max, self.model.settled.low + keep)
        assert before - gone == self.real.memory_bytes

    @precondition(lambda self: self.model.frames)
    @rule(place=st.floats(0, 1), forward=st.integers(1, 8))
    def read(self, place: float, forward: int) -> None:
        offsets = sorted(self.model.frames)
        start = int(place * (len(offsets) - 1))
        for offset in offsets[start : start + forward]:
            self.same_record(offset)

    def same_record(self, offset: int) -> None:
        (found,) = record.decode(self.real.frame(offset))
        (wanted,) = record.decode(self.model.frames[offset])
        assert (found.body, found.timestamp_ms) == (wanted.body, wanted.timestamp_ms)
        assert self.real.get_note(offset) == self.model.notes.get(offset, (0, 0))

    @invariant()
    def counts_agree(self) -> None:
        if hasattr(self, "real"):
            assert self.real.settled.live() == self.model.settled.live()
            assert self.real.settled.next_offset == self.model.settled.next_offset
            assert self.real.unspilled_bytes <= self.real.memory_bytes

    @rule()
    def restart(self) -> None:
        """Everything live is spilled, and another store begins with the log."""
        while frames := self.real.take_unspilled(1 << 20):
            for part in frames:
                self.log.append_frames(part)
        assert self.real.unspilled_bytes == 0
        notes = {offset: self.real.get_note(offset) for offset in self.model.frames}
        settled = self.real.settled
        self.real = store.Store(7, log=self.log, window_bytes=200)
        self.real.restore(settled.next_offset, settled.live(), 0)
        for offset, note in sorted(notes.items()):
            if any(note):
                self.real.set_note(offset, *note)


TestStore = StoreMachine.TestCase
TestStore.settings = settings(max_examples=60, stateful_step_count=40)


def test_store_without_live_records_holds_no_memory() -> None:
    one = store.Store(1)
    frame = entry_oracle.frame(0, 1, b"\0\0\0\0", b"x" * 100)
    for offset in range(1000):
        one.append(frame, 0, len(frame), offset, 1)
    one.done(1, 999)
    assert one.memory_bytes == len(frame)
    one.done(0, 1)
    assert (one.memory_bytes, one.unspilled_bytes, one.chunk_count) == (0, 0, 0)
