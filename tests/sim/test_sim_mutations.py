"""Each safeguard switched off is noticed by the simulation, and nothing is noticed with all on."""

import subprocess
import sys
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from sim.mutations import MUTATIONS, PARTS, POWER

RUN = Path(__file__).with_name("run.py")
SEEDS = 200  # most are noticed within three


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: a mutation cannot be taken back, and hashes must be fixed."""
    return subprocess.run(
        [sys.executable, str(RUN), *arguments], capture_output=True, text=True, check=False
    )


def named() -> list[ParameterSet]:
    """The rare ones need more seeds than the fast tier has time for."""
    return [
        pytest.param(name, marks=[pytest.mark.slow] if mutation.is_rare else [])
        for name, mutation in sorted(MUTATIONS.items())
    ]


@pytest.mark.parametrize("name", named())
def test_missing_safeguard_is_noticed(name: str) -> None:
    done = run("--seeds", str(SEEDS), "--mutation", name)
    assert (done.returncode, "is noticed" in done.stdout) == (1, True), done.stdout + done.stderr


@pytest.mark.parametrize("faults", [POWER, PARTS], ids=["power", "parts"])
def test_same_faults_break_nothing_while_all_safeguards_are_on(faults: tuple[str, ...]) -> None:
    done = run("--seeds", "3", "--jobs", "1", "--faults", ",".join(faults))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 seeds" in done.stdout
