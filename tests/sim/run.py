"""Run the simulation from the command line: one seed, or many on several processes.

    python tests/sim/run.py --seed 17            one run, with its trace when it breaks
    python tests/sim/run.py --seeds 200          seeds 1 to 200
    python tests/sim/run.py --seeds 5000 --first 1000 --jobs 2 --faults kill,pause

    python tests/sim/run.py --seeds 60 --mutation ack_before_disk   until it is noticed

Ends with 1 when a rule was broken, and names the seeds. The order in which Python walks a set of
strings differs from process to process unless PYTHONHASHSEED is set. Nothing should depend on it,
but a seed must repeat even where something does: so this starts itself again with a fixed one.
"""

import argparse
import concurrent.futures
import logging
import os
import re
import sys
import time
from dataclasses import replace
from pathlib import Path

HASH_SEED = "0"


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    faults = None if options.faults is None else tuple(options.faults.split(","))
    logging.disable(logging.CRITICAL)  # nodes that fail on purpose would log a lot
    if options.seed is not None:
        broken, text = run_one(options.seed, faults)
        _say(text)
        return int(broken)
    seeds = range(options.first, options.first + options.seeds)
    if options.mutation is not None:
        return _run_mutated(seeds, options.mutation)
    return _run_many(seeds, faults, jobs=options.jobs)


def run_one(seed: int, faults: tuple[str, ...] | None) -> tuple[bool, str]:
    from sim import profile, world  # here, for the path is set up below

    chosen = profile.draw(seed)
    if faults is not None:
        chosen = replace(chosen, faults=faults)
    report = world.World(seed, chosen).run()
    lines = [str(report)]
    if report.broken is not None:
        lines += [f"  {line}" for line in report.trace]
        chosen_faults = "" if faults is None else f" --faults {','.join(faults)}"
        lines.append(f"again: python tests/sim/run.py --seed {seed}{chosen_faults}")
    return report.broken is not None, "\n".join(lines)


def _run_mutated(seeds: range, name: str) -> int:
    from sim import mutations, profile, world

    mutation = mutations.MUTATIONS[name]
    mutation.switch_off()
    others: list[str] = []  # violations that the missing safeguard does not explain
    for seed in seeds:
        report = world.World(seed, mutation.profile(profile.draw(seed))).run()
        if report.broken is not None and re.search(mutation.shows, report.broken):
            _say(f"{name} is noticed: {report}")
            return 1
        if report.broken is not None:
            others.append(str(report))
    _say(f"{name} is not noticed in {len(seeds)} seeds: {mutation.safeguard}")
    _say(f"{len(others)} broke in another way{': ' + others[0] if others else ''}")
    return 0


def _run_many(seeds: range, faults: tuple[str, ...] | None, *, jobs: int) -> int:
    began = time.monotonic()
    failing: list[int] = []
    with concurrent.futures.ProcessPoolExecutor(max_workers=jobs) as pool:
        runs = {pool.submit(run_one, seed, faults): seed for seed in seeds}
        for count, run in enumerate(concurrent.futures.as_completed(runs), start=1):
            broken, text = run.result()
            if broken:
                failing.append(runs[run])
                _say(text)
            if count % 50 == 0:
                _say(f"{count} of {len(seeds)} seeds, {len(failing)} broken")
    spent = time.monotonic() - began
    names = f": {' '.join(map(str, sorted(failing)))}" if failing else ""
    _say(f"{len(seeds)} seeds in {spent:.0f} s, {len(failing)} broken{names}")
    return int(bool(failing))


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="deterministic simulation of a cluster")
    parser.add_argument("--seed", type=int, help="run this one and show its trace")
    parser.add_argument("--seeds", type=int, default=100, help="how many to run")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--faults", help="only these kinds, with commas between")
    parser.add_argument("--mutation", help="switch this safeguard off, end at the first break")
    return parser.parse_args(arguments)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != HASH_SEED:
        os.environ["PYTHONHASHSEED"] = HASH_SEED
        os.execv(sys.executable, [sys.executable, *sys.argv])
    sys.path.insert(0, str(Path(__file__).parents[1]))
    sys.exit(main(sys.argv[1:]))
