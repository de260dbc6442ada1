"""A short run of the record fuzzer with a fixed seed, and proof that it can fail."""

import functools

import pytest

from fuzz import fuzz_record
from lograft_log import segment
from lograft_log.hot import record
from support import fuzzing


def test_damaged_logs_are_cut_quarantined_or_refused() -> None:
    rounds, failed = fuzzing.run(fuzz_record.fuzz_round, seconds=2.0, seed=20_240_607)
    assert not failed
    assert rounds > 10


def test_a_log_that_believes_bad_frames_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers that take any frame they can measure, whatever its CRC says."""

    class Trusting:
        FAULTS = record.FAULTS
        FRAME_HEADER_BYTES = record.FRAME_HEADER_BYTES
        Span = record.Span
        scan = staticmethod(functools.partial(record.scan, verify=False))

    monkeypatch.setattr(segment, "record", Trusting)
    _, failed = fuzzing.run(fuzz_record.fuzz_round, seconds=20.0, seed=1)
    assert failed
