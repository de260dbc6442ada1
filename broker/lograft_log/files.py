"""Small deeds on the files of one segment: seal, move aside, remove.

Each leaves the folder's sync to its caller, who knows how many of them belong together.
"""

from collections.abc import Sequence

from typing_extensions import Buffer

from lograft_log import layout
from lograft_log.env import Disk

ENDINGS = (
    layout.LOG,
    layout.DAMAGED,
    layout.INDEX,
    layout.TIMEINDEX,
    layout.HASHINDEX,
    layout.SEAL_NAME,
)


def read_seal(disk: Disk, folder: str, base_offset: int) -> layout.Seal | None:
    path = f"{folder}/{layout.name(base_offset, layout.SEAL_NAME)}"
    if not disk.exists(path):
        return None
    file = disk.open(path, writable=False)
    try:
        return layout.decode_seal(file.read_at(0, layout.SEAL.size + 1), path=path)
    finally:
        file.close()


def write_seal(disk: Disk, folder: str, seal: layout.Seal, *, ending: str = "") -> None:
    """A torn seal is no seal: the segment is scanned again. So it may be written in place."""
    name = layout.name(seal.base_offset, layout.SEAL_NAME) + ending
    file = disk.open(f"{folder}/{name}", create=True)
    try:
        file.write_at(0, [seal.encode()])
        file.sync()
    finally:
        file.close()


def write_new(disk: Disk, path: str, parts: Sequence[Buffer]) -> None:
    """A whole file beside `path`, synced, to be renamed over it."""
    file = disk.open(path + layout.NEW, create=True)
    try:
        file.truncate(0)
        file.write_at(0, parts)
        file.sync()
    finally:
        file.close()


def move_aside(disk: Disk, folder: str, base_offset: int) -> None:
    """Keep the bytes of a damaged segment for whoever wants to look, out of the log's way."""
    path = f"{folder}/{layout.name(base_offset, layout.LOG)}"
    if disk.exists(path):
        disk.rename(path, f"{folder}/{layout.name(base_offset, layout.DAMAGED)}")
    remove(disk, folder, base_offset, keep=(layout.DAMAGED,))


def remove(disk: Disk, folder: str, base_offset: int, *, keep: tuple[str, ...] = ()) -> None:
    """The .log goes first: without it the others are garbage that opening sweeps away."""
    for ending in ENDINGS:
        if ending not in keep:
            remove_ending(disk, folder, base_offset, ending)


def remove_ending(disk: Disk, folder: str, base_offset: int, ending: str) -> None:
    path = f"{folder}/{layout.name(base_offset, ending)}"
    if disk.exists(path):
        disk.remove(path)


def make_folder(disk: Disk, folder: str) -> None:
    """With its parents, durably: each new name is synced in the folder that holds it."""
    missing = []
    path = folder
    while path not in ("", "/", ".") and not disk.exists(path):
        missing.append(path)
        path = _parent(path)
    if missing:
        disk.make_folder(folder)
    for path in reversed(missing):
        disk.sync_folder(_parent(path))


def _parent(path: str) -> str:
    folder, slash, _ = path.rpartition("/")
    return folder or ("/" if slash else ".")
