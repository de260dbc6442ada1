"""A writer process is killed at any moment under load: nothing it had synced is missing."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lograft_log.env import RealClock, RealDisk
from lograft_log.log import open_log
from lograft_log.settings import Codec, LogLimits, LogSettings
from support import log_desk

LIMITS = LogLimits(segment_bytes_max=20_000, index_pending_bytes_max=500)
WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from lograft_log.env import RealClock, RealDisk
from lograft_log.log import open_log
from support import log_desk
from unit import test_log_killed

log = open_log(sys.argv[2], disk=RealDisk(), clock=RealClock(), settings=test_log_killed.chosen())
while True:
    log_desk.fill(log, 40, batch=8)
    log.sync()
    print(log.next_offset, flush=True)
"""


def chosen() -> LogSettings:
    return LogSettings(index_interval_bytes=256, codec=Codec.LZ4, limits=LIMITS)


def one_life(folder: str, rng: random.Random) -> int:
    """Start the writer, kill it a little after some of its syncs; returns the last one heard of."""
    tests = Path(__file__).parent.parent
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tests), folder], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    last = 0
    for _ in range(rng.randrange(1, 12)):
        last = int(process.stdout.readline())
    for _ in range(rng.randrange(20_000)):  # somewhere inside the next round
        pass
    process.send_signal(signal.SIGKILL)
    heard = process.stdout.read().split()
    process.stdout.close()
    process.wait()
    return int(heard[-1]) if heard else last


def survive(folder: str, rounds: int) -> None:
    rng = random.Random(rounds)
    synced = 0
    for _ in range(rounds):
        synced = max(synced, one_life(folder, rng))
        log = open_log(folder, disk=RealDisk(), clock=RealClock(), settings=chosen())
        assert log.damages() == []
        assert log.next_offset >= synced
        assert log_desk.numbers(log_desk.read_all(log)) == list(
            range(log.first_offset, log.next_offset)
        )
        log.trim(log.next_offset - 3000)
        log.close()


def test_a_killed_writer_loses_nothing_it_had_synced(tmp_path: object) -> None:
    survive(f"{tmp_path}/log", rounds=3)


@pytest.mark.slow
def test_a_hundred_killed_writers_lose_nothing_they_had_synced(tmp_path: object) -> None:
    survive(f"{tmp_path}/log", rounds=100)
