"""Searching and judging index entries against the specification."""

from hypothesis import given
from hypothesis import strategies as st

from lograft_log.hot import indexer, record, search
from oracle import indexer as indexer_oracle
from oracle import record as record_oracle
from oracle import search as oracle
from support import log_records

numbers = st.integers(0, (1 << 64) - 1)
small = st.integers(0, 400)
lengths = st.integers(0, 40) | st.integers((1 << 32) - 20, (1 << 32) - 1)
entry_rows = st.lists(st.tuples(small, small, lengths), max_size=12)


@given(st.lists(numbers, max_size=30, unique=True), numbers)
def test_floor_agrees_with_oracle(values: list[int], value: int) -> None:
    values.sort()
    rows = [(one, 2 * number, 0) for number, one in enumerate(values)]
    data = oracle.pack(rows)
    for wanted in (value, *values[:2]):
        assert search.floor(data, wanted) == oracle.last_at_most(values, wanted)
    positions = [row[1] for row in rows]
    assert search.floor_position(data, 7) == oracle.last_at_most(positions, 7)


@given(st.lists(small, max_size=30), small)
def test_time_searches_agree_with_oracle(values: list[int], value: int) -> None:
    values.sort()
    data = oracle.pack([(one, 5 * n, n) for n, one in enumerate(values)], oracle.TIME_ENTRY)
    assert search.time_before(data, value) == oracle.last_at_most(values, value - 1)
    offsets = [5 * number for number in range(len(values))]
    assert search.time_floor(data, value) == oracle.last_at_most(offsets, value)


@given(st.lists(st.sampled_from((0, 3, 4, 9, (1 << 64) - 1)), max_size=20))
def test_hash_range_finds_all_equal_hashes(values: list[int]) -> None:
    values.sort()
    data = b"".join(oracle.HASH_ENTRY.pack(one, 0) for one in values)
    for wanted in (0, 3, 5, 9, (1 << 64) - 1):
        first, last = search.hash_range(data, wanted)
        expected = [number for number, one in enumerate(values) if one == wanted]
        assert list(range(first, last)) == expected


@given(st.binary(max_size=40))
def test_hash_agrees_with_oracle(term: bytes) -> None:
    assert search.hash_term(term) == oracle.hash_term(term)


@given(
    log_records.damaged(st.one_of(entry_rows, entry_rows.map(sorted)).map(oracle.pack)),
    st.booleans(),
    small,
)
def test_check_agrees_with_oracle(data: bytes, dense: bool, log_end: int) -> None:
    found = search.check(data, log_start=10, log_end=log_end, dense=dense)
    assert found == oracle.check(data, log_start=10, log_end=log_end, dense=dense)


@given(
    log_records.damaged(
        st.one_of(entry_rows, entry_rows.map(sorted)).map(
            lambda rows: oracle.pack(rows, oracle.TIME_ENTRY)
        )
    ),
    small,
)
def test_check_time_agrees_with_oracle(data: bytes, log_end: int) -> None:
    found = search.check_time(data, log_start=10, log_end=log_end)
    assert found == oracle.check_time(data, log_start=10, log_end=log_end)


@given(
    st.lists(log_records.rows(max_size=6), max_size=4),
    st.sampled_from((-1, 0, 1, 60, 100, 1024)),
    st.sampled_from((1, 90, 4096)),
    st.booleans(),
)
def test_indexer_agrees_with_oracle(
    batches: list[list[record_oracle.Row]], interval: int, time_interval: int, flush: bool
) -> None:
    made = indexer.Indexer(interval_bytes=interval, time_interval_bytes=time_interval)
    expected = indexer_oracle.Indexer(interval, time_interval)
    position, offsets, times = 48, b"", b""
    for rows in batches:
        data = record_oracle.encode(rows)
        made.feed(data, 0, len(data), position)
        expected.feed(data, position)
        position += len(data)
        if flush:
            some, others = made.offsets(), made.times()
            offsets, times = offsets + some, times + others
            made.drop(offsets_bytes=len(some), times_bytes=len(others))
    assert offsets + made.offsets() == expected.offsets()
    assert times + made.times() == expected.times()
    assert made.timestamp_ms_max == expected.timestamp_ms_max


@given(log_records.rows(max_size=12), st.sampled_from((0, 50, 200)), st.data())
def test_finder_finds_exactly_the_intact_records(
    rows: list[record_oracle.Row], interval: int, data: st.DataObject
) -> None:
    """Whatever is damaged, a Finder returns the right record or none."""
    log = bytearray(bytes(48) + record_oracle.encode(rows))
    made = indexer.Indexer(interval_bytes=interval, time_interval_bytes=4096)
    made.feed(log, 48, len(log), 48)
    entries = bytearray(made.offsets())
    hurt = data.draw(st.sampled_from(("nothing", "log", "entries")))
    target = {"nothing": bytearray(), "log": log, "entries": entries}[hurt]
    if target:
        at = data.draw(st.integers(0, len(target) - 1))
        target[at] ^= data.draw(st.integers(1, 255))
    base, behind = (rows[0][0], rows[-1][0] + 1) if rows else (0, 0)
    finder = search.Finder(
        [(base, behind, bytes(log), bytes(entries))], log_start=48, payload_max=1 << 20
    )
    for row in rows:
        found = finder.get(row[0])
        if hurt == "nothing":
            assert found is not None
        if found is not None:
            assert log_records.split(found) == row
            raw = finder.frame(row[0])
            assert raw is not None
            assert record.decode(raw) == [found]
    assert finder.get(behind) is None
