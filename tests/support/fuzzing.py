"""The frame of every fuzzer: rounds for a bounded time, each decided by the seed and its number.

A failing round prints both, so that `--seed N --round M` plays it again; the exit status is 1.
"""

import argparse
import random
import sys
import time
import traceback
from collections.abc import Callable

Round = Callable[[random.Random], None]


def main(name: str, fuzz_round: Round) -> int:
    parser = argparse.ArgumentParser(description=f"{name}: damaged input for a bounded time")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--round", type=int, default=None, help="only this round")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().getrandbits(32)
    rounds, failed = run(fuzz_round, seconds=options.seconds, seed=seed, only=options.round)
    sys.stdout.write(f"{name} seed={seed} rounds={rounds} failed={failed}\n")
    return 1 if failed else 0


def run(
    fuzz_round: Round, *, seconds: float, seed: int, only: int | None = None
) -> tuple[int, bool]:
    """The number of rounds done, and whether the last one failed."""
    deadline_s = time.monotonic() + seconds
    number = 0 if only is None else only
    while True:
        try:
            fuzz_round(random.Random(f"{seed} {number}"))
        except Exception:
            sys.stdout.write(f"failed: --seed {seed} --round {number}\n{traceback.format_exc()}")
            return number, True
        number += 1
        if only is not None or time.monotonic() >= deadline_s:
            return number, False
