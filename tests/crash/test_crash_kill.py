"""kill -9 at random points under load, on real files: nothing that was confirmed is missing.

A kill leaves the page cache alone, so this proves recovery and the order of confirms, not the
syncs; those are proven on the simulated disk (tests/sim), which loses what was not synced.
"""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

WRITER = Path(__file__).parent / "writer.py"
SEED = int(os.environ.get("CRASH_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)


def test_few_kills_lose_nothing_confirmed(tmp_path: Path) -> None:
    run_rounds(tmp_path, rounds=3, seed=SEED)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_hundred_kills_lose_nothing_confirmed(tmp_path: Path) -> None:
    run_rounds(tmp_path, rounds=100, seed=SEED)


def run_rounds(folder: Path, *, rounds: int, seed: int) -> None:
    rng = random.Random(seed)
    confirmed: dict[tuple[str, str], str] = {}  # (stream, offset) -> checksum
    for number in range(rounds):
        new = write_until_killed(folder / "data", delay_s=rng.uniform(0.05, 1.2))
        for place, checksum in new.items():
            assert confirmed.get(place, checksum) == checksum, f"{place} twice, seed {seed}"
        confirmed.update(new)
        found = read_all(folder / "data")
        missing = [place for place in confirmed if place not in found]
        assert not missing, f"round {number}: {len(missing)} missing, {missing[:3]}, seed {seed}"
        wrong = [place for place, checksum in confirmed.items() if found[place] != checksum]
        assert not wrong, f"round {number}: {len(wrong)} wrong, {wrong[:3]}, seed {seed}"
    assert confirmed, "the writer was always killed before its first confirm"


def write_until_killed(data: Path, *, delay_s: float) -> dict[tuple[str, str], str]:
    command = [sys.executable, str(WRITER), str(data), "write"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0)
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    parts = [os.read(pipe, 1 << 16)]  # it is under load from here on
    deadline = time.monotonic() + delay_s
    while time.monotonic() < deadline:
        parts.append(os.read(pipe, 1 << 16))
    process.kill()
    while part := os.read(pipe, 1 << 16):
        parts.append(part)
    process.stdout.close()
    process.wait()
    return parse(b"".join(parts).decode())


def read_all(data: Path) -> dict[tuple[str, str], str]:
    done = subprocess.run(
        [sys.executable, str(WRITER), str(data), "read"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.endswith("end\n"), done.stderr
    return parse(done.stdout.removesuffix("end\n"))


def parse(text: str) -> dict[tuple[str, str], str]:
    """Whole lines only: the last one may have been cut by the kill."""
    lines = text.split("\n")[:-1]
    return {(stream, offset): crc for offset, stream, crc in (line.split() for line in lines)}
