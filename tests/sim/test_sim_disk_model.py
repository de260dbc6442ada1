"""The simulated disk against a model so plain that it can be seen to be right.

The model keeps, for a handful of files, the bytes seen now and every content each sector could
have on the medium; and for each name every file it could mean there. A power cut must leave
something the model allows, and exactly the present content where everything was synced.
"""

import random
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from sim.disk import SimDisk, SimVolume
from sim.inode import SECTOR_BYTES, Survival

NAMES = ("f/a", "f/b", "f/c")
SIZE_MAX = 4 * SECTOR_BYTES

names = st.sampled_from(NAMES)
operations = st.one_of(
    st.tuples(st.just("write"), names, st.integers(0, SIZE_MAX), st.integers(1, 1200)),
    st.tuples(st.just("truncate"), names, st.integers(0, SIZE_MAX), st.just(0)),
    st.tuples(st.just("sync"), names, st.just(0), st.just(0)),
    st.tuples(st.just("remove"), names, st.just(0), st.just(0)),
    st.tuples(st.just("rename"), names, st.integers(0, 2), st.just(0)),
    st.tuples(st.just("sync_folder"), names, st.just(0), st.just(0)),
    st.tuples(st.just("kill"), names, st.just(0), st.just(0)),
    st.tuples(st.just("cut"), names, st.integers(0, 4), st.just(0)),
)


@dataclass
class Bytes:
    """One file: the present content and every content since the last sync, the synced one first."""

    now: bytes = b""
    since: list[bytes] = field(default_factory=lambda: [b""])

    def set(self, content: bytes) -> None:
        self.now = content
        self.since.append(content)

    def allows(self, found: bytes) -> bool:
        sizes = [len(one) for one in self.since]
        if len(self.since) == 1:
            return found == self.now
        if not min(sizes) <= len(found) <= max(sizes):
            return False
        for at in range(0, len(found), SECTOR_BYTES):
            sector = found[at : at + SECTOR_BYTES]
            could = {padded(one, at, len(sector)) for one in self.since}
            if sector not in could:
                return False
        return True


def padded(content: bytes, at: int, size: int) -> bytes:
    return content[at : at + size].ljust(size, b"\0")


class Model:
    def __init__(self) -> None:
        self.now: dict[str, Bytes] = {}
        self.could: dict[str, list[Bytes | None]] = {name: [None] for name in NAMES}

    def point(self, name: str, target: Bytes | None) -> None:
        if target is None:
            self.now.pop(name, None)
        else:
            self.now[name] = target
        self.could[name].append(target)

    def sync_folder(self) -> None:
        self.could = {name: [self.now.get(name)] for name in NAMES}


def apply(disk: SimDisk, model: Model, operation: tuple[str, str, int, int], step: int) -> None:
    kind, name, number, size = operation
    if kind == "write":
        if name not in model.now:
            model.point(name, Bytes())
        content = bytes([step % 255 + 1]) * size
        assert disk.open(name, create=True).write_at(number, [content]) == size
        before = model.now[name].now.ljust(number, b"\0")
        model.now[name].set(before[:number] + content + before[number + size :])
    elif kind == "sync_folder":
        disk.sync_folder("f")
        model.sync_folder()
    elif name in model.now:
        target = model.now[name]
        if kind == "truncate":
            disk.open(name).truncate(number)
            target.set(target.now[:number].ljust(number, b"\0"))
        elif kind == "sync":
            disk.open(name).sync()
            target.since = [target.now]
        elif kind == "remove":
            disk.remove(name)
            model.point(name, None)
        elif kind == "rename" and NAMES[number] != name:
            disk.rename(name, NAMES[number])
            model.point(name, None)
            model.point(NAMES[number], target)


def survivors(disk: SimDisk, model: Model) -> Model:
    """Check what a power cut left, and go on from it."""
    after = Model()
    for name in NAMES:
        found = content(disk, name)
        could = model.could[name]
        if found is None:
            assert None in could, name
            continue
        assert any(one is not None and one.allows(found) for one in could), (name, found)
        after.now[name] = Bytes(now=found, since=[found])
    after.sync_folder()
    return after


def content(disk: SimDisk, name: str) -> bytes | None:
    if not disk.exists(name):
        return None
    file = disk.open(name, writable=False)
    return file.read_at(0, file.size())


@settings(max_examples=300, deadline=None)
@given(st.lists(operations, max_size=40), st.integers(0, 2**32))
def test_disk_agrees_with_model(steps: list[tuple[str, str, int, int]], seed: int) -> None:
    volume = SimVolume(random.Random(seed))
    disk = SimDisk(volume, on_crash=lambda: None)
    disk.make_folder("f")
    disk.sync_folder("")
    model = Model()
    for step, operation in enumerate(steps):
        if operation[0] == "cut":
            volume.power_cut(tuple(Survival)[operation[2]])
            disk = SimDisk(volume, on_crash=lambda: None)
            model = survivors(disk, model)
        elif operation[0] == "kill":
            volume.process_died(forget_cache=True)
            disk = SimDisk(volume, on_crash=lambda: None)
        else:
            apply(disk, model, operation, step)
        for name in NAMES:
            expected = model.now.get(name)
            assert content(disk, name) == (None if expected is None else expected.now)
        used = sum(inode.allocated for _, inode in volume.files())
        assert volume.used_bytes == used
