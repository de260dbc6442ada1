"""A power cut at any operation leaves one whole checkpoint: the old one or the new one."""

import pytest

from lograft_replication.checkpoint import CheckpointStore
from lograft_replication.machine import StateFile
from lograft_replication.manifest import Manifest
from lograft_replication.membership import Config
from lograft_wire.errors import StorageError
from sim.disk import SimDisk
from support.crash_disk import crashes, new_disk

CONFIG = Config(("a@1",))
FILES = (StateFile("s1/0.log", 1500), StateFile("s1/deep/1.log", 700), StateFile("empty", 0))


def open_store(disk: SimDisk) -> CheckpointStore:
    store = CheckpointStore(disk, "/data/groups", 3)
    store.open()
    return store


def made(index: int, files: tuple[StateFile, ...] = ()) -> Manifest:
    payload = b"%d" % index * 800  # more than one sector
    return Manifest(group=3, index=index, term=1, config=CONFIG, files=files, payload=payload)


def state_byte(index: int) -> bytes:
    return b"%d" % (index % 10)


def fill(disk: SimDisk, folder: str, index: int) -> None:
    """As a machine does: its own files, durable before the checkpoint is written."""
    for file in FILES:
        path = f"{folder}/{file.path}"
        disk.make_folder(path.rpartition("/")[0])
        opened = disk.open(path, create=True)
        opened.write_at(0, [state_byte(index) * file.length])
        opened.sync()
    for name in (f"{folder}/s1/deep", f"{folder}/s1", folder):
        disk.sync_folder(name)


def checkpointed(disk: SimDisk) -> None:
    store = open_store(disk)
    fill(disk, store.state_folder, 10)
    store.write(made(10, FILES))


def state_is(disk: SimDisk, store: CheckpointStore, index: int) -> bool:
    return all(
        disk.open(f"{store.state_folder}/{file.path}").read_at(0, 9999)
        == state_byte(index) * file.length
        for file in FILES
    )


def test_crash_during_the_first_start() -> None:
    for disk, _ in crashes(lambda disk: disk.make_folder("/data"), _open_only, seeds=20):
        disk.make_folder("/data")
        assert open_store(disk).current is None


def _open_only(disk: SimDisk) -> None:
    open_store(disk)


def test_crash_during_the_first_checkpoint() -> None:
    def work(disk: SimDisk) -> None:
        open_store(disk).write(made(10))

    def prepare(disk: SimDisk) -> None:
        open_store(disk)
        disk.sync_folder("/")

    for disk, finished in crashes(prepare, work, seeds=20):
        assert open_store(disk).current in ((made(10),) if finished else (None, made(10)))


def test_crash_during_a_later_checkpoint() -> None:
    def work(disk: SimDisk) -> None:
        store = open_store(disk)
        store.write(made(20))
        store.write(made(30))

    def prepare(disk: SimDisk) -> None:
        checkpointed(disk)
        disk.sync_folder("/")

    for disk, finished in crashes(prepare, work, seeds=20):
        store = open_store(disk)
        found = store.current
        assert found in (made(10, FILES), made(20), made(30))
        assert not finished or found == made(30)
        assert found is not None
        assert disk.names(f"{store.folder}/checkpoints") == [f"{found.index:020d}"]


def test_crash_during_an_install_leaves_the_state_of_the_checkpoint_that_is_found() -> None:
    new = made(25, FILES)

    def work(disk: SimDisk) -> None:
        store = open_store(disk)
        incoming = store.begin_install(new)
        for number, wanted in enumerate(FILES):
            if wanted.length:
                file = incoming.open_file(number)
                file.write_at(0, [state_byte(25) * wanted.length])
                file.close()
        store.finish_install(new)
        store.clean()

    def prepare(disk: SimDisk) -> None:
        checkpointed(disk)
        disk.sync_folder("/")

    for disk, finished in crashes(prepare, work, seeds=60):
        store = open_store(disk)
        found = store.current
        assert found in (made(10, FILES), new)
        assert not finished or found == new
        assert found is not None
        assert state_is(disk, store, found.index)
        states = [name for name in disk.names(store.folder) if name.startswith("state-")]
        assert states == [store.state_folder.rpartition("/")[2]]


def test_a_crash_while_cleaning_up_after_a_crash_harms_nothing() -> None:
    def prepare(disk: SimDisk) -> None:
        checkpointed(disk)
        disk.sync_folder("/")
        root = "/data/groups/00000003"
        for leftover in ("checkpoints/00000000000000000099", "state-0002/x"):
            disk.make_folder(f"{root}/{leftover}")
        disk.open(f"{root}/CURRENT.tmp", create=True).write_at(0, [b"half"])

    for disk, _ in crashes(prepare, _open_only, seeds=20):
        store = open_store(disk)
        assert store.current == made(10, FILES)
        assert state_is(disk, store, 10)


def test_a_full_disk_or_a_failed_sync_keeps_the_old_checkpoint() -> None:
    for failing in range(1, 6):
        disk = new_disk(failing)
        checkpointed(disk)
        store = open_store(disk)
        if failing == 1:
            disk.volume.capacity_bytes = disk.volume.used_bytes + 600
        else:
            disk.volume.sync_errors = 1
        with pytest.raises(StorageError, match="writing a checkpoint"):
            store.write(made(20))
        assert store.current == made(10, FILES)
        disk.volume.capacity_bytes = 1 << 40
        assert open_store(disk).current == made(10, FILES)
