"""A process killed in the middle of a checkpoint, started again, and only then a power cut.

What the second process finds may exist in the system's cache alone: it may remove nothing older
before it has made durable what it found.
"""

from lograft_replication.checkpoint import CheckpointStore
from lograft_replication.manifest import Manifest
from lograft_replication.membership import Config
from sim.disk import SimDisk
from sim.inode import Survival
from sim.loop import SimCrash
from support.crash_disk import new_disk, reboot

POINTS_MAX = 100  # more changes than one checkpoint makes
SEEDS = 30


def open_store(disk: SimDisk) -> CheckpointStore:
    store = CheckpointStore(disk, "/data/groups", 3)
    store.open()
    return store


def made(index: int) -> Manifest:
    return Manifest(group=3, index=index, term=1, config=Config(("a@1",)))


def killed_at(point: int, seed: int) -> tuple[SimDisk, bool]:
    """The disk after a kill at some change of the second checkpoint, and whether it came to it."""
    disk = new_disk(seed * 101 + point)
    disk.make_folder("/data")
    disk.sync_folder("/")
    store = open_store(disk)
    store.write(made(10))
    disk.volume.crash_at(point)
    try:
        store.write(made(20))
    except SimCrash:
        disk.volume.process_died(forget_cache=False)
        return SimDisk(disk.volume, on_crash=lambda: None), True
    return disk, False


def test_checkpoint_found_after_a_kill_survives_a_power_cut() -> None:
    for seed in range(SEEDS):
        for point in range(1, POINTS_MAX):
            disk, struck = killed_at(point, seed)
            if not struck:
                break
            found = open_store(disk).current
            assert found in (made(10), made(20))
            assert open_store(reboot(disk, Survival.RANDOM)).current == found
        assert 1 < point < POINTS_MAX
