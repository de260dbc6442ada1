"""A short run of the frame fuzzer with a fixed seed, and proof that it can fail."""

import hmac
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz import fuzz_frames


def test_damaged_frames_and_handshakes_are_refused() -> None:
    rounds, failed = fuzz_frames.fuzz(seconds=2.0, seed=20_240_607)
    assert not failed
    assert rounds > 10


def test_the_command_reports_its_seed() -> None:
    file = Path(fuzz_frames.__file__)
    done = subprocess.run(
        [sys.executable, file, "--seconds", "0.1", "--seed", "5"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("fuzz_frames seed=5 rounds=")


def test_a_handshake_without_proof_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hmac, "compare_digest", lambda *_: True)
    _, failed = fuzz_frames.fuzz(seconds=20.0, seed=1)
    assert failed
