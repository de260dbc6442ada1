"""The compiled entry builder and reader against their slow twin."""

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from lograft_broker.hot import entry
from lograft_log.hot import record
from oracle import entry as oracle
from oracle.entry import Add, Spread

U64 = st.integers(0, (1 << 64) - 1)
U32 = st.integers(0, (1 << 32) - 1)
PAIRS = st.lists(st.tuples(U64, U64), max_size=4)
ENVELOPE = st.binary(min_size=4, max_size=40)
BODY = st.binary(max_size=20)
ADD = st.builds(Add, st.integers(0, 2), st.integers(0, 3), ENVELOPE, BODY)
SPREAD = st.builds(
    Spread, st.lists(st.tuples(U64, U64), min_size=1, max_size=4), U64, U32, ENVELOPE, BODY
)
OTHER = st.one_of(
    SPREAD,
    st.tuples(st.just("settle"), U64, PAIRS),
    st.tuples(st.just("return"), U64, PAIRS),
    st.tuples(st.just("mark"), U64, U64),
    st.tuples(st.just("control"), st.integers(0x40, 0xFF), st.binary(max_size=30)),
)
STAMP = 1_700_000_000_123


def build(builder: entry.EntryBuilder, step: object) -> list[tuple[object, ...]]:
    """Do one step; the items it makes, of a run of records that cannot be joined."""
    match step:
        case Add():
            builder.add(
                step.stream,
                step.offset,
                envelope=step.envelope,
                body=step.body,
                timestamp_ms=STAMP,
            )
        case Spread():
            builder.add_spread(
                step.targets,
                due_ms=step.due_ms,
                priority=step.priority,
                envelope=step.envelope,
                body=step.body,
                timestamp_ms=STAMP,
            )
            frame = oracle.frame(step.targets[0][1], STAMP, step.envelope, step.body)
            return [("spread", step.due_ms, step.priority, step.targets, frame)]
        case ("settle", int(stream), list(pairs)):
            builder.settle(stream, pairs)
        case ("return", int(stream), list(pairs)):
            builder.returned(stream, pairs)
        case ("mark", int(stream), int(offset)):
            builder.mark(stream, offset)
        case ("control", int(kind), bytes(payload)):
            builder.control(kind, payload)
    return [step] if isinstance(step, tuple) else []


@given(st.lists(st.one_of(st.lists(ADD, max_size=6), OTHER), max_size=6), st.integers(0, 2))
def test_built_entry_is_the_same_and_reads_back(steps: list[object], repeats: int) -> None:
    builder = entry.EntryBuilder()
    for _ in range(repeats + 1):  # the builder is used again
        items: list[tuple[object, ...]] = []
        waiting: list[Add] = []
        for step in steps:
            if isinstance(step, list):
                waiting += step
                for add in step:
                    build(builder, add)
            else:
                items += oracle.runs(waiting, STAMP) + build(builder, step)
                waiting = []
        items += oracle.runs(waiting, STAMP)
        assert builder.item_count == len(items)
        built = builder.finish(STAMP)
        assert built == oracle.encode(STAMP, items)
        assert entry.decode(built) == (STAMP, items)


@given(
    st.lists(OTHER, min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=3),
    st.integers(0, 300),
)
def test_damaged_entry_is_refused_or_read_within_its_bounds(
    steps: list[object], changes: list[tuple[int, int]], cut: int
) -> None:
    builder = entry.EntryBuilder()
    for step in steps:
        build(builder, step)
    data = bytearray(builder.finish(STAMP))
    for position, value in changes:
        data[position % len(data)] = value
    damaged = bytes(data[: max(0, len(data) - cut)])
    with contextlib.suppress(ValueError):
        _, items = entry.decode(damaged)
        assert sum(len(part) for item in items for part in item if isinstance(part, bytes)) <= len(
            damaged
        )


def test_entry_grows_beyond_its_first_buffer() -> None:
    builder = entry.EntryBuilder()
    for offset in range(100):
        builder.add(
            1, offset, envelope=b"\0\0\0\0", body=bytes([offset]) * 9_000, timestamp_ms=STAMP
        )
    _, items = entry.decode(builder.finish(STAMP))
    ((_, stream, first, count, frames),) = items
    assert (stream, first, count) == (1, 0, 100)
    assert isinstance(frames, bytes)
    bodies = [found.body for found in record.decode(frames)]
    assert bodies == [bytes([offset]) * 9_000 for offset in range(100)]
