"""A short run of the frame fuzzer with a fixed seed, and proof that it can fail."""

import hmac

import pytest

from fuzz import fuzz_frames
from support import fuzzing


def test_damaged_frames_and_handshakes_are_refused() -> None:
    rounds, failed = fuzzing.run(fuzz_frames.fuzz_round, seconds=2.0, seed=20_240_607)
    assert not failed
    assert rounds > 10


def test_a_handshake_without_proof_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hmac, "compare_digest", lambda *_: True)
    _, failed = fuzzing.run(fuzz_frames.fuzz_round, seconds=20.0, seed=1)
    assert failed
