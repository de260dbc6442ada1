"""The compiled set of settled offsets against a plain set."""

from hypothesis import given, settings
from hypothesis import strategies as st

from lograft_broker.hot import settled
from oracle import settled as oracle

COUNT = st.one_of(st.integers(0, 5), st.integers(0, 300), st.sampled_from([4095, 4096, 4097, 9000]))
STEP = st.one_of(
    st.tuples(st.just("add"), COUNT),
    st.tuples(st.just("gap"), COUNT),
    st.tuples(st.just("done"), st.floats(0, 1), COUNT),
    st.tuples(st.just("low"), COUNT),
)


def agree(real: settled.Settled, model: oracle.Settled) -> None:
    assert (real.next_offset, real.live_count) == (model.next_offset, model.live_count)
    assert real.low == model.low
    live = model.live()
    assert real.live() == live
    edges = {0, model.next_offset, model.low}
    edges |= {
        edge + by for first, count in live[:20] for edge in (first, first + count) for by in (-1, 0)
    }
    for edge in edges:
        if 0 <= edge < model.next_offset:
            assert (edge in real) == (edge in model)
            assert real.first_live(edge) == model.first_live(edge)


@settings(max_examples=150)
@given(st.integers(0, 5000), st.lists(STEP, max_size=25))
def test_any_order_of_steps(start: int, steps: list[tuple[str, float, int]]) -> None:
    real, model = settled.Settled(start), oracle.Settled(start)
    for step in steps:
        match step:
            case ("add", int(count)):
                real.add(count)
                model.add(count)
            case ("gap", int(count)):
                real.add_gap(count)
                model.add_gap(count)
            case ("low", int(count)):
                assert real.done(real.low, count) == model.done(model.low, count)
            case ("done", float(place), int(count)):
                first = start + int(place * (model.next_offset - start))
                assert real.done(first, count) == model.done(first, count)
        agree(real, model)
    agree(settled.from_live(real.next_offset, real.live()), model)


def test_backlog_acknowledged_in_order_needs_no_bits() -> None:
    one = settled.Settled()
    one.add(1_000_000)
    for first in range(0, 1_000_000, 100):
        one.done(first, 100)
    assert (one.low, one.live_count, one.memory_bytes) == (1_000_000, 0, 0)


def test_one_record_that_stays_costs_little() -> None:
    one = settled.Settled()
    one.add(10_000_000)
    one.done(1, 9_999_999)
    assert one.live() == [(0, 1)]
    assert one.memory_bytes < 100_000
