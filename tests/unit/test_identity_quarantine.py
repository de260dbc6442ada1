"""Damaged data is set aside whole, and the node goes on as somebody else."""

from pathlib import Path

import pytest

from lograft_log.env import Disk, RealDisk, RealRng
from lograft_replication import durable, identity
from lograft_wire.errors import DamagedError, StorageError
from sim.disk import SimDisk
from support.crash_disk import crashes, new_disk, reboot

RNG = RealRng()


def load(disk: Disk, folder: str = "/data") -> identity.Identity:
    return identity.load_or_create(disk, folder, "n1", "c1", RNG)


def put(disk: Disk, path: str, data: bytes) -> None:
    disk.make_folder(durable.parent(path))
    durable.replace_file(disk, path, data)
    disk.sync_folder(durable.parent(durable.parent(path)))


def fill(disk: Disk, folder: str = "/data") -> identity.Identity:
    made = load(disk, folder)
    put(disk, f"{folder}/journal/1", b"old journal")
    put(disk, f"{folder}/groups/CURRENT", b"old group")
    return made


def test_everything_moves_with_a_readable_reason(tmp_path: Path) -> None:
    disk, folder = RealDisk(), str(tmp_path / "data")
    old = fill(disk, folder)
    target = Path(identity.quarantine(disk, folder, "journal/1:\n bad CRC at 17", at_ms=1234))
    assert target == tmp_path / "data" / "quarantine-1"
    assert (target / "reason").read_text() == "at_ms: 1234\nreason: journal/1: bad CRC at 17\n"
    assert (target / "journal" / "1").read_bytes() == b"old journal"
    assert (target / "groups" / "CURRENT").read_bytes() == b"old group"
    assert old.incarnation.hex() in (target / "identity").read_text()
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["quarantine-1"]
    assert load(disk, folder).incarnation != old.incarnation


def test_a_second_quarantine_takes_the_next_number(tmp_path: Path) -> None:
    disk, folder = RealDisk(), str(tmp_path / "data")
    fill(disk, folder)
    identity.quarantine(disk, folder, "one", at_ms=1)
    fill(disk, folder)
    assert identity.quarantine(disk, folder, "two", at_ms=2).endswith("/quarantine-2")


def test_a_damaged_identity_can_be_quarantined(tmp_path: Path) -> None:
    disk, folder = RealDisk(), str(tmp_path / "data")
    fill(disk, folder)
    (tmp_path / "data" / "identity").write_bytes(b"?")
    with pytest.raises(DamagedError):
        load(disk, folder)
    identity.quarantine(disk, folder, "identity damaged", at_ms=1)
    load(disk, folder)


def test_crash_at_every_operation_never_leaves_old_data_beside_a_new_identity() -> None:
    olds: list[identity.Identity] = []

    def prepare(disk: SimDisk) -> None:
        olds.append(fill(disk))

    def work(disk: SimDisk) -> None:
        identity.quarantine(disk, "/data", "a test", at_ms=1)
        load(disk)

    for disk, finished in crashes(prepare, work, seeds=60):
        now = load(disk)
        if now == olds[-1]:  # it never began: everything must still be there
            assert not finished
            assert disk.names("/data/journal") == ["1"]
            assert disk.names("/data/groups") == ["CURRENT"]
        else:
            assert disk.names("/data") == ["identity", "quarantine-1"]
            assert disk.names("/data/quarantine-1") == ["groups", "identity", "journal", "reason"]
            assert load(disk) == now


def test_a_second_power_cut_right_after_the_new_identity_brings_nothing_back() -> None:
    for seed in range(50):
        disk = new_disk(seed)
        fill(disk)
        identity.quarantine(disk, "/data", "a test", at_ms=1)
        now = load(disk)
        disk = reboot(disk)
        assert load(disk) == now
        assert not disk.exists("/data/journal")


def test_a_failing_sync_is_told_as_ours() -> None:
    disk = new_disk(1)
    fill(disk)
    disk.volume.sync_errors = 1
    with pytest.raises(StorageError, match="quarantining /data"):
        identity.quarantine(disk, "/data", "a test", at_ms=1)
