"""The compiled record module against its specification, on good and on damaged bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lograft_log.hot import record
from oracle import record as oracle
from support import log_records

FIELDS = (
    "start",
    "end",
    "record_count",
    "frame_count",
    "batch_count",
    "offset_first",
    "offset_last",
    "timestamp_ms_max",
    "fault",
)


@given(log_records.rows())
def test_encode_agrees_with_oracle(rows: list[oracle.Row]) -> None:
    items = [log_records.make(row) for row in rows]
    data = record.encode(items, 0, [row[0] for row in rows])
    assert data == oracle.encode(rows)
    assert [log_records.split(item) for item in record.decode(data)] == rows
    assert oracle.decode(data) == rows


@given(log_records.rows(), st.integers(0, 1 << 40), st.integers(1, 1 << 40))
def test_offsets_and_missing_timestamps_are_filled_in(
    rows: list[oracle.Row], base_offset: int, now_ms: int
) -> None:
    items = [log_records.make(row) for row in rows]
    expected = [
        (base_offset + number, row[1] or now_ms, *row[2:]) for number, row in enumerate(rows)
    ]
    assert record.encode(items, base_offset, timestamp_ms=now_ms) == oracle.encode(expected)


@given(log_records.rows(), st.integers(0, 1 << 40))
def test_assign_numbers_frames_anew(rows: list[oracle.Row], base_offset: int) -> None:
    data = bytearray(oracle.encode(rows))
    behind = record.assign(data, base_offset)
    assert behind == base_offset + len(rows)
    expected = [(base_offset + number, *row[1:]) for number, row in enumerate(rows)]
    assert data == oracle.encode(expected)


@given(
    log_records.damaged(log_records.frames()),
    st.sampled_from((0, 1, 16, 33)),
    st.integers(0, 1 << 41),
    st.sampled_from((0, 1, 100, 1 << 40)),
    st.sampled_from((20, 100, 1 << 27)),
    st.booleans(),
)
def test_scan_agrees_with_oracle(
    data: bytes, start: int, offset_from: int, bytes_max: int, payload_max: int, verify: bool
) -> None:
    start = min(start, len(data))
    for end in (len(data), max(start, len(data) - 5)):
        arguments = {
            "offset_min": 0,
            "payload_max": payload_max,
            "offset_from": offset_from,
            "bytes_max": bytes_max,
        }
        found = record.scan(data, start, end, verify=verify, **arguments)
        expected = oracle.scan(data, start, end, verify=verify, **arguments)
        for field in FIELDS:
            assert getattr(found, field) == getattr(expected, field), field


@given(log_records.damaged(log_records.frames()))
def test_decode_of_damaged_bytes_stays_inside_them(data: bytes) -> None:
    span = record.scan(data, 0, len(data), offset_min=0, payload_max=1 << 27)
    if span.end < len(data):
        # What was not verified may be refused, or by chance look like frames; never worse.
        try:
            record.frames(data)
            record.decode(data)
        except ValueError:
            return
    if not span.batch_count and not span.fault:
        assert [log_records.split(item) for item in record.decode(data)] == oracle.decode(data)


def test_a_frame_whose_key_would_reach_beyond_it_is_not_decoded() -> None:
    payload = oracle.PLAIN.pack(1, oracle.HAS_KEY, 40, 0, 5) + b"short"
    data = oracle.frame(1, payload)
    assert record.scan(data, 0, len(data), offset_min=0, payload_max=99).fault == oracle.LAYOUT
    with pytest.raises(ValueError, match="no frame at 0"):
        record.decode(data)


def test_a_newer_format_is_told_from_damage() -> None:
    data = oracle.frame(1, oracle.PLAIN.pack(2, 0, 0, 0, 5))
    span = record.scan(data, 0, len(data), offset_min=0, payload_max=99)
    assert record.FAULTS[span.fault] == "unknown record format"


def test_records_that_cannot_be_stored_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 65535"):
        record.Record(b"", key=bytes(65536))
    with pytest.raises(ValueError, match="2 offsets for 1 records"):
        record.encode([record.Record(b"")], 0, [1, 2])


def test_zeros_are_no_frame() -> None:
    span = record.scan(bytes(64), 0, 64, offset_min=0, payload_max=99)
    assert (span.end, span.fault) == (0, oracle.LENGTH)
