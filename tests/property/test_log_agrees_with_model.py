"""Random work on a log against a list of records: every way of reading says the same."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from lograft_log import compaction, maintenance
from lograft_log.hot.record import Record
from lograft_log.log import Log
from lograft_log.secondary import KeyTerm
from lograft_log.settings import Codec, IndexKind, LogSettings
from sim.disk import SimDisk
from support import log_desk
from support.crash_disk import new_disk

STEPS = (
    "append", "append", "append", "gap", "replay", "roll", "trim", "truncate", "sync", "reopen",
    "lose index", "archive", "compact",
)  # fmt: skip


@dataclass
class Model:
    items: list[Record] = field(default_factory=list)
    first: int = 0
    next: int = 0

    def add(self, items: list[Record], offsets: list[int]) -> None:
        for item, offset in zip(items, offsets, strict=True):
            if offset >= self.next:
                self.items.append(
                    Record(item.body, key=item.key, timestamp_ms=item.timestamp_ms, offset=offset)
                )
                self.next = offset + 1

    def compact(self, below: int) -> None:
        latest = {item.key: item.offset for item in self.items if item.offset < below}
        self.items = [
            item
            for item in self.items
            if item.key is None or item.offset >= below or item.offset == latest[item.key]
        ]


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(list(IndexKind)), st.sampled_from(list(Codec)))
def test_log_agrees_with_model(data: st.DataObject, kind: IndexKind, codec: Codec) -> None:
    chosen = LogSettings(
        index=kind,
        index_interval_bytes=data.draw(st.sampled_from((1, 100, 1000))),
        time_interval_bytes=150,
        codec=codec,
        term=KeyTerm(),
        limits=log_desk.SMALL,
    )
    disk = new_disk(1)
    log = log_desk.open_small(disk, settings=chosen)
    model = Model()
    for step in data.draw(st.lists(st.sampled_from(STEPS), max_size=14)):
        log = take_step(step, log, model, disk, chosen, data)
        assert (log.first_offset, log.next_offset) == (model.first, model.next), step
    check(log, model, data)


def take_step(
    step: str, log: Log, model: Model, disk: SimDisk, chosen: LogSettings, data: st.DataObject
) -> Log:
    match step:
        case "append" | "gap" | "replay":
            append(step, log, model, data)
        case "roll":
            log.roll()
        case "trim":
            model.first = data.draw(st.integers(model.first, model.next))
            model.items = [item for item in model.items if item.offset >= model.first]
            log.trim(model.first)
        case "truncate":
            cut = data.draw(st.integers(model.first, model.next))
            model.items = [item for item in model.items if item.offset < cut]
            log.truncate(cut)
            model.next = log.next_offset  # a gap before the cut goes too
            assert model.next <= cut or model.next == model.first
        case "sync":
            log.sync()
        case "reopen":
            positions = log.sync()
            log.close()
            return log_desk.open_small(disk, settings=chosen, durable=positions)
        case "lose index":
            log = take_step("reopen", log, model, disk, chosen, data)
            positions = log.sync()
            log.close()
            for path, _ in list(disk.volume.files()):
                if "index" in path and data.draw(st.booleans()):
                    disk.remove(path.strip("/"))
            return log_desk.open_small(disk, settings=chosen, durable=positions)
        case "archive":
            log.sync()
            full = [s.base_offset for s in log.segments() if s.sealed]
            for base_offset in full[:1]:
                work = maintenance.pending_archive(log, base_offset, Codec.ZSTD)
                maintenance.adopt(log, work())
        case "compact":
            log.sync()
            if not maintenance.archived(log):
                done = maintenance.pending_compaction(log, compaction.CompactionLimits())()
                maintenance.adopt(log, done)
                model.compact(log.segments()[-1].base_offset)
    return log


def append(step: str, log: Log, model: Model, data: st.DataObject) -> None:
    items = [
        Record(
            b"%d" % (model.next + number) * data.draw(st.sampled_from((1, 9, 60))),
            key=data.draw(st.sampled_from((None, b"a", b"b"))),
            timestamp_ms=data.draw(st.integers(1, 50)),
        )
        for number in range(data.draw(st.integers(0, 6)))
    ]
    if step == "append":
        offsets = list(range(model.next, model.next + len(items)))
        log.append(items)
    elif step == "gap":
        offsets = [model.next + 1 + 3 * number for number in range(len(items))]
        log.append(items, offsets=offsets)
    else:
        start = max(model.first, model.next - 2)
        offsets = list(range(start, start + len(items)))
        log.append(items, offset=start, skip_existing=True)
    model.add(items, offsets)


def check(log: Log, model: Model, data: st.DataObject) -> None:
    assert log.damages() == []
    assert log_desk.read_all(log, bytes_max=data.draw(st.sampled_from((1, 200, 5000)))) == (
        model.items
    )
    assert log.tail(len(model.items) + 1) == model.items[::-1]
    known = {item.offset: item for item in model.items}
    for offset in range(model.first, model.next + 1):
        assert log.get(offset) == known.get(offset)
        chunk = log.read(offset)
        expected = [item for item in model.items if item.offset >= offset]
        items = chunk.records(offset)
        assert items == expected[: len(items)]
        assert bool(items) == bool(expected)
    for timestamp_ms in (0, 7, 25, 51):
        young = [item.offset for item in model.items if item.timestamp_ms >= timestamp_ms]
        assert log.offset_at(timestamp_ms) == (young[0] if young else model.next)
    for key in (b"a", b"c"):
        assert list(log.lookup(key)) == [item for item in model.items if item.key == key]
