"""Run a piece of work with a crash at each of its disk operations, then a power cut."""

import random
from collections.abc import Callable, Iterator

from sim.disk import SimDisk, SimVolume
from sim.inode import Survival
from sim.loop import SimCrash


def new_disk(seed: int) -> SimDisk:
    return SimDisk(SimVolume(random.Random(seed)), on_crash=lambda: None)


def reboot(disk: SimDisk, survival: Survival = Survival.MIXED) -> SimDisk:
    disk.volume.power_cut(survival)
    return SimDisk(disk.volume, on_crash=lambda: None)


def crashes(
    prepare: Callable[[SimDisk], None], work: Callable[[SimDisk], None], *, seeds: int
) -> Iterator[tuple[SimDisk, bool]]:
    """For every crash point of `work` and several ways to lose what was not synced: the disk after
    the power came back, and whether `work` had ended before it went."""
    for seed in range(seeds):
        point, finished = 0, False
        while not finished:
            point += 1
            disk = new_disk(seed * 10_007 + point)
            prepare(disk)
            disk.volume.crash_at(point)
            try:
                work(disk)
                finished = True
            except SimCrash:
                finished = False
            # Half of the cuts scatter, the kind that shows a missing sync best.
            yield reboot(disk, Survival.RANDOM if seed % 2 else Survival.MIXED), finished
        assert point > 1, "the work changed nothing"
