"""Every fuzzer runs from the command line and reports its seed."""

import subprocess
import sys
from pathlib import Path

import pytest

FUZZERS = sorted(Path(__file__).parent.glob("fuzz_*.py"))


@pytest.mark.parametrize("file", FUZZERS, ids=lambda file: file.stem)
def test_the_command_reports_its_seed(file: Path) -> None:
    done = subprocess.run(
        [sys.executable, file, "--seconds", "0.1", "--seed", "5"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{file.stem} seed=5 rounds=" in done.stdout
