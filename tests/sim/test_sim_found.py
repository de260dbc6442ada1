"""Seeds that once broke a rule, under the name of what was wrong.

A seed stands for its run only as long as profiles and faults draw the same numbers; it is kept as
one more run that is likely to come near the same place.
"""

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).with_name("run.py")
FOUND = {
    "checkpoint_ahead_of_a_slow_journal_is_in_a_later_term": 145,
}


@pytest.mark.parametrize("name", sorted(FOUND))
def test_found_seed_stays_whole(name: str) -> None:
    arguments = [sys.executable, str(RUN), "--seed", str(FOUND[name])]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
