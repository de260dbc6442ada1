"""A node's identity is written once and guards its data folder."""

from pathlib import Path

import pytest

from lograft_log.env import RealDisk, RealRng
from lograft_replication import durable, identity
from lograft_wire.errors import ConfigError, DamagedError, StorageError
from sim.disk import SimDisk
from support.crash_disk import crashes, new_disk

DISK = RealDisk()


def load(folder: Path, name: str = "n1", cluster_id: str = "c1") -> identity.Identity:
    return identity.load_or_create(DISK, str(folder / "data"), name, cluster_id, RealRng())


def test_identity_is_drawn_once_and_found_again(tmp_path: Path) -> None:
    first = load(tmp_path)
    assert first.id == f"n1@{first.incarnation.hex()}"
    assert len(first.incarnation) == 16
    assert load(tmp_path) == first


def test_two_folders_get_two_incarnations(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert load(tmp_path / "a").incarnation != load(tmp_path / "b").incarnation


def test_identity_file_can_be_read_by_people(tmp_path: Path) -> None:
    found = load(tmp_path)
    lines = (tmp_path / "data" / "identity").read_text().splitlines()
    assert lines[:4] == [
        "lograft identity 1",
        "name n1",
        f"incarnation {found.incarnation.hex()}",
        "cluster c1",
    ]


def test_another_name_is_refused_and_both_are_told(tmp_path: Path) -> None:
    load(tmp_path)
    with pytest.raises(ConfigError, match="belongs to node 'n1', not 'n2'"):
        load(tmp_path, name="n2")


def test_another_cluster_is_refused(tmp_path: Path) -> None:
    load(tmp_path)
    with pytest.raises(ConfigError, match="belongs to cluster 'c1', not 'c2'"):
        load(tmp_path, cluster_id="c2")


@pytest.mark.parametrize("name", ["", "a b", "a@b", "a/b", "x" * 254])
def test_names_that_cannot_be_an_id_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="node name"):
        load(tmp_path, name=name)


@pytest.mark.parametrize("data", ["journal", "groups"])
def test_data_without_identity_is_not_taken_over(tmp_path: Path, data: str) -> None:
    (tmp_path / "data" / data).mkdir(parents=True)
    with pytest.raises(DamagedError, match=f"identity is missing but {data}"):
        load(tmp_path)
    assert not (tmp_path / "data" / "identity").exists()


def test_a_fresh_volume_with_lost_and_found_is_empty(tmp_path: Path) -> None:
    (tmp_path / "data" / "lost+found").mkdir(parents=True)
    assert load(tmp_path).name == "n1"


def test_every_damaged_byte_is_noticed(tmp_path: Path) -> None:
    load(tmp_path)
    path = tmp_path / "data" / "identity"
    whole = path.read_bytes()
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x20]) + whole[position + 1 :])
        with pytest.raises(DamagedError, match="quarantine the data folder"):
            load(tmp_path)
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(DamagedError):
            load(tmp_path)


def test_crash_at_every_operation_of_the_first_start_leaves_one_identity_or_none() -> None:
    made: list[identity.Identity] = []

    def start(disk: SimDisk) -> None:
        made.append(identity.load_or_create(disk, "/data", "n1", "c1", RealRng()))

    for disk, finished in crashes(lambda disk: None, start, seeds=10):
        after = identity.load_or_create(disk, "/data", "n1", "c1", RealRng())
        if finished:
            assert after == made[-1]
        assert identity.load_or_create(disk, "/data", "n1", "c1", RealRng()) == after


def test_a_newer_format_is_not_called_damage() -> None:
    disk = new_disk(1)
    identity.load_or_create(disk, "/data", "n1", "c1", RealRng())
    durable.replace_file(disk, "/data/identity", durable.encode_text("identity", 2, {}))
    with pytest.raises(StorageError, match="begins with 'lograft identity 2'") as caught:
        identity.load_or_create(disk, "/data", "n1", "c1", RealRng())
    assert not isinstance(caught.value, DamagedError)
