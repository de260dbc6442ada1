"""The checkpoint store on real files: layout, cleaning, damage."""

from pathlib import Path

import pytest

from lograft_log.env import RealDisk
from lograft_replication.checkpoint import CheckpointStore
from lograft_replication.machine import Capture, StateFile
from lograft_replication.manifest import Manifest
from lograft_replication.membership import Config
from lograft_wire.errors import DamagedError, RefusedError, StorageError

CONFIG = Config(("a@1", "b@1"))


def made(index: int, **more: bytes) -> Manifest:
    return Manifest(group=7, index=index, term=2, config=CONFIG, **more)  # type: ignore[arg-type]


def store_in(folder: Path) -> CheckpointStore:
    return CheckpointStore(RealDisk(), str(folder / "groups"), 7)


def tree(folder: Path) -> list[str]:
    root = folder / "groups" / "00000007"
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def test_a_new_group_has_no_checkpoint_and_an_empty_state_folder(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    assert store.open() is None
    assert store.current is None
    assert store.offer(term=1, commit=1) is None
    assert store.state_folder == str(tmp_path / "groups" / "00000007" / "state-0001")
    assert tree(tmp_path) == ["CURRENT", "checkpoints", "state-0001"]


def test_a_checkpoint_is_found_again_and_replaces_the_older(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.open()
    for index in (0, 10, 25):  # 0: the group's first members, before any entry
        store.write(made(index, payload=b"p%d" % index))
        assert store_in(tmp_path).open() == made(index, payload=b"p%d" % index) == store.current
    assert tree(tmp_path) == [
        "CURRENT",
        "checkpoints",
        "checkpoints/00000000000000000025",
        "checkpoints/00000000000000000025/manifest",
        "state-0001",
    ]


def test_an_older_or_equal_checkpoint_is_refused(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.open()
    store.write(made(10))
    for index in (9, 10):
        with pytest.raises(RefusedError, match="not above 10"):
            store.write(made(index))
    assert store_in(tmp_path).open() == made(10)


def test_state_without_any_checkpoint_is_thrown_away_at_open(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.open()
    Path(store.state_folder, "log").write_bytes(b"unsynced")
    store_in(tmp_path).open()
    assert tree(tmp_path) == ["CURRENT", "checkpoints", "state-0001"]


def test_state_below_a_checkpoint_stays_at_open(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.open()
    Path(store.state_folder, "log").write_bytes(b"kept")
    store.write(made(3))
    again = store_in(tmp_path)
    again.open()
    assert Path(again.state_folder, "log").read_bytes() == b"kept"


def test_open_removes_what_crashes_left(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.open()
    store.write(made(3))
    root = tmp_path / "groups" / "00000007"
    before = tree(tmp_path)
    (root / "CURRENT.tmp").write_bytes(b"?")
    (root / "checkpoints" / "00000000000000000009").mkdir()
    (root / "state-0002" / "deep").mkdir(parents=True)
    assert store_in(tmp_path).open() == made(3)
    assert tree(tmp_path) == before


def test_a_missing_pointer_beside_data_is_damage_and_nothing_is_removed(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.open()
    store.write(made(3))
    (tmp_path / "groups" / "00000007" / "CURRENT").unlink()
    before = tree(tmp_path)
    with pytest.raises(DamagedError, match="CURRENT is missing beside checkpoints, state-0001"):
        store_in(tmp_path).open()
    assert tree(tmp_path) == before


@pytest.mark.parametrize("name", ["CURRENT", "checkpoints/00000000000000000003/manifest"])
def test_every_damaged_byte_of_pointer_and_manifest_is_noticed(tmp_path: Path, name: str) -> None:
    store = store_in(tmp_path)
    store.open()
    store.write(made(3, payload=b"payload"))
    path = tmp_path / "groups" / "00000007" / name
    whole = path.read_bytes()
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        with pytest.raises(DamagedError) as caught:
            store_in(tmp_path).open()
        assert caught.value.path == str(path)
    path.write_bytes(b"")
    with pytest.raises(DamagedError):
        store_in(tmp_path).open()


def test_a_missing_manifest_or_state_folder_is_damage(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.open()
    store.write(made(3))
    Path(store.state_folder).rename(tmp_path / "aside")
    with pytest.raises(DamagedError, match="state-0001 is missing"):
        store_in(tmp_path).open()
    (tmp_path / "aside").rename(store.state_folder)
    (Path(store.folder) / "checkpoints" / "00000000000000000003" / "manifest").unlink()
    with pytest.raises(DamagedError, match="manifest is missing but CURRENT names it"):
        store_in(tmp_path).open()


def test_a_folder_of_another_group_is_refused(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.open()
    (tmp_path / "groups" / "00000007").rename(tmp_path / "groups" / "00000008")
    with pytest.raises(DamagedError, match="belongs to group 7"):
        CheckpointStore(RealDisk(), str(tmp_path / "groups"), 8).open()


def test_an_install_takes_a_new_state_folder_and_the_old_one_goes_with_clean(
    tmp_path: Path,
) -> None:
    store = store_in(tmp_path)
    store.open()
    store.write(made(3))
    Path(store.state_folder, "old").write_bytes(b"old")
    new = Manifest(
        group=7, index=9, term=3, config=CONFIG, files=(StateFile("s/1.log", 3), StateFile("e", 0))
    )
    incoming = store.begin_install(new)
    file = incoming.open_file(0)
    file.write_at(0, [b"new"])
    file.close()
    assert store.current == made(3)
    store.finish_install(new)
    assert store.current == new
    assert store.state_folder.endswith("state-0002")
    assert Path(store.state_folder, "s", "1.log").read_bytes() == b"new"
    assert Path(store.folder, "state-0001", "old").exists()
    store.clean()
    assert not Path(store.folder, "state-0001").exists()
    assert store_in(tmp_path).open() == new


def test_a_checkpoint_written_during_an_install_leaves_it_alone(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.open()
    new = Manifest(group=7, index=9, term=3, config=CONFIG, files=(StateFile("f", 1),))
    incoming = store.begin_install(new)
    incoming.open_file(0).write_at(0, [b"x"])
    store.write(made(4))
    store.finish_install(new)
    assert store_in(tmp_path).open() == new


def test_an_install_older_than_the_own_checkpoint_is_refused(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.open()
    store.begin_install(made(9))
    store.write(made(10))
    with pytest.raises(RefusedError, match="9 is not above 10"):
        store.finish_install(made(9))
    assert store_in(tmp_path).open() == made(10)


def test_an_abandoned_install_leaves_nothing_and_a_new_one_starts_empty(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.open()
    before = tree(tmp_path)
    new = Manifest(group=7, index=9, term=3, config=CONFIG, files=(StateFile("f", 1),))
    first = store.begin_install(new)
    first.open_file(0).write_at(0, [b"x"])
    second = store.begin_install(new)
    assert list(Path(second.folder).iterdir()) == []
    store.abandon_install(first)  # replaced already: must not touch the second
    assert Path(second.folder).exists()
    store.abandon_install(second)
    assert tree(tmp_path) == before


def test_the_offer_describes_the_manifest_on_disk(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.open()
    store.write(made(10, payload=b"x" * 100))
    again = store_in(tmp_path)
    again.open()
    offer = again.offer(term=5, commit=12)
    assert offer == store.offer(term=5, commit=12)
    assert offer is not None
    path = Path(store.folder, "checkpoints", "00000000000000000010", "manifest")
    assert (offer.index, offer.index_term) == (10, 2)
    assert offer.manifest_bytes == path.stat().st_size
    assert offer.manifest_crc == int.from_bytes(path.read_bytes()[-4:], "little")


def test_a_disk_that_refuses_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "groups").write_bytes(b"a file where a folder should be")
    with pytest.raises(StorageError, match="opening the checkpoints"):
        store_in(tmp_path).open()


def test_take_syncs_the_state_before_and_frees_old_state_after_the_pointer(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.open()
    seen: list[tuple[str, int]] = []

    def note(what: str) -> None:
        on_disk = store_in(tmp_path).open()
        seen.append((what, on_disk.index if on_disk is not None else -1))

    capture = Capture(
        b"pay", lambda: note("sync"), (StateFile("f", 1),), after=lambda: note("after")
    )
    taken = store.take(capture, index=4, term=2, config=CONFIG)
    assert seen == [("sync", -1), ("after", 4)]
    assert taken == store.current
    assert (taken.payload, taken.files, taken.term) == (b"pay", (StateFile("f", 1),), 2)


def test_a_state_that_cannot_be_synced_gets_no_checkpoint(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.open()

    def sync() -> None:
        raise OSError("no")

    with pytest.raises(StorageError, match="syncing the state"):
        store.take(Capture(b"", sync), index=4, term=2, config=CONFIG)
    assert store_in(tmp_path).open() is None
