"""The simulated disk: what reads see, what a power cut leaves, and every fault."""

import errno
import random

import pytest

from sim.disk import SimDisk, SimVolume
from sim.inode import SECTOR_BYTES, Survival
from sim.loop import SimCrash

OLD = b"o" * SECTOR_BYTES
NEW = b"n" * SECTOR_BYTES
SEEDS = range(200)


def make(seed: int = 1) -> tuple[SimVolume, SimDisk]:
    volume = SimVolume(random.Random(seed))
    disk = SimDisk(volume, on_crash=lambda: None)
    disk.make_folder("data")
    disk.sync_folder("")
    return volume, disk


def put(disk: SimDisk, path: str, content: bytes) -> None:
    """A file whose bytes and name are durable."""
    file = disk.open(path, create=True)
    file.write_at(0, [content])
    file.sync()
    disk.sync_folder(path.rpartition("/")[0])


def get(disk: SimDisk, path: str) -> bytes:
    file = disk.open(path, writable=False)
    return file.read_at(0, file.size())


def after_cut(volume: SimVolume, survival: Survival = Survival.RANDOM) -> SimDisk:
    volume.power_cut(survival)
    return SimDisk(volume, on_crash=lambda: None)


def test_reads_see_what_was_written_before_any_sync() -> None:
    _, disk = make()
    file = disk.open("data/a", create=True)
    assert file.write_at(3, [b"ab", bytearray(b"cd"), memoryview(b"e")]) == 5
    assert file.read_at(0, 100) == b"\0\0\0abcde"
    assert file.read_at(4, 2) == b"bc"
    assert file.read_at(100, 5) == b""
    assert bytes(file.map(8)) == b"\0\0\0abcde"


def test_map_is_a_snapshot_that_outlives_the_file() -> None:
    _, disk = make()
    file = disk.open("data/a", create=True)
    file.write_at(0, [b"first"])
    view = file.map(5)
    file.write_at(0, [b"later bytes"])
    file.close()
    disk.remove("data/a")
    assert bytes(view) == b"first"
    assert view.readonly


def test_synced_bytes_under_a_synced_name_survive_every_power_cut() -> None:
    for seed in SEEDS:
        volume, disk = make(seed)
        put(disk, "data/a", OLD * 3 + b"tail")
        assert get(after_cut(volume, Survival.MIXED), "data/a") == OLD * 3 + b"tail"


def test_each_unsynced_sector_is_old_or_new_on_its_own() -> None:
    seen = set()
    for seed in SEEDS:
        volume, disk = make(seed)
        put(disk, "data/a", OLD * 2)
        disk.open("data/a").write_at(0, [NEW * 2])
        seen.add(get(after_cut(volume), "data/a"))
    assert seen == {OLD + OLD, OLD + NEW, NEW + OLD, NEW + NEW}


def test_unsynced_growth_is_missing_zero_or_there() -> None:
    seen = set()
    for seed in SEEDS:
        volume, disk = make(seed)
        put(disk, "data/a", OLD)
        disk.open("data/a").write_at(SECTOR_BYTES, [NEW])
        seen.add(get(after_cut(volume), "data/a")[SECTOR_BYTES:])
    assert {b"", bytes(SECTOR_BYTES), NEW} <= seen
    assert all(NEW.startswith(tail) or not any(tail) for tail in seen)
    assert any(0 < len(tail) < SECTOR_BYTES for tail in seen), "never caught on its way"


def test_unsynced_truncation_is_lost_whole_or_done() -> None:
    seen = set()
    for seed in SEEDS:
        volume, disk = make(seed)
        put(disk, "data/a", OLD * 3)
        disk.open("data/a").truncate(700)
        seen.add(get(after_cut(volume), "data/a"))
    assert seen == {OLD * 3, (OLD * 3)[:700]}


def test_lose_keeps_nothing_and_keep_loses_nothing() -> None:
    for survival, expected in ((Survival.LOSE, OLD), (Survival.KEEP, NEW + NEW)):
        volume, disk = make()
        put(disk, "data/a", OLD)
        disk.open("data/a").write_at(0, [NEW * 2])
        disk.open("data/b", create=True)
        after = after_cut(volume, survival)
        assert get(after, "data/a") == expected
        assert after.exists("data/b") == (survival is Survival.KEEP)


def test_prefix_keeps_the_sectors_written_first() -> None:
    for seed in SEEDS:
        volume, disk = make(seed)
        put(disk, "data/a", OLD * 4)
        file = disk.open("data/a")
        for sector in (2, 0, 3, 1):
            file.write_at(sector * SECTOR_BYTES, [NEW])
        content = get(after_cut(volume, Survival.PREFIX), "data/a")
        new = [content[at * SECTOR_BYTES] == ord("n") for at in (2, 0, 3, 1)]
        assert new == sorted(new, reverse=True)


def test_syncing_a_new_file_does_not_make_its_name_durable() -> None:
    seen = set()
    for seed in SEEDS:
        volume, disk = make(seed)
        file = disk.open("data/a", create=True)
        file.write_at(0, [NEW])
        file.sync()
        after = after_cut(volume)
        seen.add(get(after, "data/a") if after.exists("data/a") else None)
    assert seen == {None, NEW}


def test_unsynced_rename_happens_whole_or_not_at_all() -> None:
    seen = set()
    for seed in SEEDS:
        volume, disk = make(seed)
        put(disk, "data/old", NEW)
        put(disk, "data/new", OLD)
        disk.rename("data/old", "data/new")
        assert get(disk, "data/new") == NEW
        after = after_cut(volume)
        seen.add((after.exists("data/old"), get(after, "data/new")))
    assert seen == {(True, OLD), (False, NEW)}


def test_rename_of_unsynced_bytes_may_survive_without_them() -> None:
    seen = set()
    for seed in SEEDS:
        volume, disk = make(seed)
        disk.open("data/tmp", create=True).write_at(0, [NEW])
        disk.rename("data/tmp", "data/a")
        disk.sync_folder("data")
        seen.add(get(after_cut(volume), "data/a"))
    assert bytes(SECTOR_BYTES) in seen
    assert b"" in seen
    assert NEW in seen


def test_lost_removal_brings_the_file_back() -> None:
    seen = set()
    for seed in SEEDS:
        volume, disk = make(seed)
        put(disk, "data/a", OLD)
        disk.remove("data/a")
        assert not disk.exists("data/a")
        after = after_cut(volume)
        seen.add(get(after, "data/a") if after.exists("data/a") else None)
    assert seen == {None, OLD}


def test_changes_of_one_name_survive_in_order_only() -> None:
    for seed in SEEDS:
        volume, disk = make(seed)
        put(disk, "data/a", b"1")
        disk.remove("data/a")
        file = disk.open("data/a", create=True)
        file.write_at(0, [b"2"])
        file.sync()
        disk.rename("data/a", "data/b")
        after = after_cut(volume)
        present = (after.exists("data/a"), after.exists("data/b"))
        assert present in {(True, False), (False, False), (False, True)}
        if present[1]:
            assert get(after, "data/b") == b"2"


def test_folder_whose_own_name_was_not_synced_may_be_lost_with_its_files() -> None:
    seen = set()
    for seed in SEEDS:
        volume, disk = make(seed)
        disk.make_folder("data/deep/er")
        put(disk, "data/deep/er/a", NEW)
        after = after_cut(volume)
        seen.add(after.exists("data/deep/er/a"))
        volume, disk = make(seed)
        disk.make_folder("data/deep/er")
        put(disk, "data/deep/er/a", NEW)
        disk.sync_folder("data/deep")
        disk.sync_folder("data")
        assert get(after_cut(volume), "data/deep/er/a") == NEW
    assert seen == {True, False}


def test_removed_folder_is_gone_after_syncing_its_parent() -> None:
    for seed in SEEDS:
        volume, disk = make(seed)
        disk.make_folder("data/deep")
        put(disk, "data/deep/a", OLD)
        disk.sync_folder("data")
        disk.remove_folder("data/deep")
        disk.remove_folder("data/deep")
        assert disk.names("data") == []
        disk.sync_folder("data")
        assert not after_cut(volume).exists("data/deep")


def test_killed_process_loses_nothing_that_was_written() -> None:
    volume, disk = make()
    disk.open("data/a", create=True).write_at(0, [NEW])
    volume.process_died(forget_cache=True)
    assert get(SimDisk(volume, on_crash=lambda: None), "data/a") == NEW


def test_pages_of_a_failed_sync_are_never_written_again() -> None:
    for seed in SEEDS:
        volume, disk = make(seed)
        put(disk, "data/a", OLD * 2)
        file = disk.open("data/a")
        file.write_at(0, [NEW])
        file.write_at(2 * SECTOR_BYTES, [NEW])
        volume.sync_errors = 1
        with pytest.raises(OSError, match="EIO"):
            file.sync()
        file.write_at(SECTOR_BYTES, [NEW])
        file.sync()
        assert get(disk, "data/a") == NEW * 3, "the cache still shows what is not on the medium"
        assert get(after_cut(volume), "data/a") == OLD + NEW + bytes(SECTOR_BYTES)


def test_page_written_again_after_a_failed_sync_is_synced_again() -> None:
    volume, disk = make()
    put(disk, "data/a", OLD)
    file = disk.open("data/a")
    file.write_at(0, [NEW])
    volume.sync_errors = 1
    with pytest.raises(OSError, match="EIO"):
        file.sync()
    file.write_at(0, [NEW])
    file.sync()
    assert get(after_cut(volume), "data/a") == NEW


def test_cache_forgotten_after_a_failed_sync_shows_the_medium() -> None:
    volume, disk = make()
    put(disk, "data/a", OLD)
    file = disk.open("data/a")
    file.write_at(0, [NEW])
    volume.sync_errors = 1
    with pytest.raises(OSError, match="EIO"):
        file.sync()
    volume.process_died(forget_cache=True)
    assert get(SimDisk(volume, on_crash=lambda: None), "data/a") == OLD


def test_full_disk_takes_part_of_a_write_and_says_so() -> None:
    volume, disk = make()
    file = disk.open("data/a", create=True)
    volume.capacity_bytes = 1000
    file.write_at(0, [bytes(900)])
    with pytest.raises(OSError, match="ENOSPC") as caught:
        file.write_at(900, [b"x" * 300])
    assert caught.value.errno == errno.ENOSPC
    assert file.size() == 1000
    assert disk.free_bytes("data") == 0
    file.write_at(0, [b"y" * 1000])  # in place there is room
    with pytest.raises(OSError, match="ENOSPC"):
        disk.open("data/b", create=True)
    disk.remove("data/a")
    assert disk.free_bytes("data") == 1000


def test_flipped_bit_is_seen_and_survives() -> None:
    volume, disk = make()
    put(disk, "data/a", OLD)
    volume.flip_bit("data/a", 5, bit=1)
    expected = bytearray(OLD)
    expected[5] ^= 2
    assert get(disk, "data/a") == expected
    assert get(after_cut(volume), "data/a") == expected


def test_flip_under_a_dirty_page_damages_the_medium_only() -> None:
    volume, disk = make()
    put(disk, "data/a", OLD)
    disk.open("data/a").write_at(0, [NEW])
    assert volume.flip_random(lambda path, inode: inode.durable_size) is not None
    assert get(disk, "data/a") == NEW
    damaged = get(after_cut(volume, Survival.LOSE), "data/a")
    assert sum(one != two for one, two in zip(damaged, OLD, strict=True)) == 1


def save(disk: SimDisk, done: list[str]) -> None:
    file = disk.open("data/a", create=True)
    done.append("create")
    file.write_at(0, [NEW * 4])
    done.append("write")
    file.sync()
    done.append("sync")
    disk.rename("data/a", "data/b")
    done.append("rename")
    disk.sync_folder("data")


@pytest.mark.parametrize("point", range(1, 6))
def test_crash_point_strikes_the_chosen_change_and_nothing_runs_after_it(point: int) -> None:
    volume, _ = make()
    struck: list[bool] = []
    disk = SimDisk(volume, on_crash=lambda: struck.append(True))
    volume.crash_at(point)
    done: list[str] = []
    with pytest.raises(SimCrash):
        save(disk, done)
    assert len(done) == point - 1
    assert struck == [True]
    with pytest.raises(SimCrash):
        disk.names("data")
    with pytest.raises(SimCrash):
        disk.remove_folder("data")


def test_write_at_a_crash_point_may_be_torn() -> None:
    seen = set()
    for seed in SEEDS:
        volume, disk = make(seed)
        file = disk.open("data/a", create=True)
        volume.crash_at(1)
        with pytest.raises(SimCrash):
            file.write_at(0, [NEW * 2])
        volume.process_died(forget_cache=False)
        seen.add(get(SimDisk(volume, on_crash=lambda: None), "data/a"))
    assert seen == {b"", NEW, NEW + NEW}


@pytest.mark.parametrize(
    ("call", "number"),
    [
        (lambda disk: disk.open("data/none"), errno.ENOENT),
        (lambda disk: disk.open("none/a", create=True), errno.ENOENT),
        (lambda disk: disk.open("data"), errno.EISDIR),
        (lambda disk: disk.remove("data/none"), errno.ENOENT),
        (lambda disk: disk.rename("data/none", "data/a"), errno.ENOENT),
        (lambda disk: disk.sync_folder("none"), errno.ENOENT),
        (lambda disk: disk.open("data/there", writable=False).write_at(0, [b"x"]), errno.EBADF),
    ],
)
def test_errors_are_those_of_a_real_disk(call, number: int) -> None:  # type: ignore[no-untyped-def]
    _, disk = make()
    put(disk, "data/there", b"1")
    with pytest.raises(OSError, match=errno.errorcode[number]) as caught:
        call(disk)
    assert caught.value.errno == number
