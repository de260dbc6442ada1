"""Who this node is: its name, the incarnation of its data, and its cluster.

The incarnation is drawn once with the data folder. A node that lost its data comes back under
another id, so a vote or an ack can never be given twice with nothing remembered in between.
Whoever composes a node calls `load_or_create` before anything else opens the data folder, and
`quarantine` when durable data turned out to be damaged. Both block.
"""

from dataclasses import dataclass

from lograft_log.env import Disk, Rng
from lograft_replication import durable
from lograft_wire.errors import ConfigError, DamagedError, StorageError

FILE = "identity"
PENDING = "quarantine.pending"  # present while a quarantine is under way
QUARANTINE = "quarantine-"  # the folders: quarantine-1, quarantine-2 ...
REASON = "reason"
DATA = ("journal", "groups")  # what belongs to an incarnation besides the identity itself
VERSION = 1
INCARNATION_BYTES = 16
NAME_CHARS_MAX = 253
REASON_CHARS_MAX = 2000
_NAME_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


@dataclass(frozen=True, slots=True)
class Identity:
    name: str
    incarnation: bytes
    cluster_id: str

    @property
    def id(self) -> str:
        return f"{self.name}@{self.incarnation.hex()}"


def load_or_create(disk: Disk, folder: str, name: str, cluster_id: str, rng: Rng) -> Identity:
    _check_word("node name", name)
    _check_word("cluster id", cluster_id)
    with durable.disk_errors("opening the data folder", folder):
        if disk.exists(f"{folder}/{PENDING}"):
            _finish_quarantine(disk, folder)
        if disk.exists(f"{folder}/{FILE}"):
            return _load(disk, folder, name, cluster_id)
        present = [data for data in DATA if disk.exists(f"{folder}/{data}")]
        if present:
            raise DamagedError(
                f"{folder}/{FILE} is missing but {' and '.join(present)} exist: put the file back"
                " from the volume it was on, or start with an empty data folder (as a new member)",
                path=f"{folder}/{FILE}",
            )
        return _create(disk, folder, name, cluster_id, rng)


def quarantine(disk: Disk, folder: str, reason: str, *, at_ms: int) -> str:
    """Set all data of this incarnation aside and return the folder it went to. Nothing may have
    the data open. A crash in the middle is finished by the next `load_or_create`."""
    with durable.disk_errors("quarantining", folder):
        if not disk.exists(f"{folder}/{PENDING}"):
            fields = {
                "number": str(_next_number(disk, folder)),
                "at_ms": str(at_ms),
                "reason": " ".join(reason.split())[:REASON_CHARS_MAX],
            }
            text = durable.encode_text("quarantine", VERSION, fields)
            durable.replace_file(disk, f"{folder}/{PENDING}", text)
        return _finish_quarantine(disk, folder)


def _create(disk: Disk, folder: str, name: str, cluster_id: str, rng: Rng) -> Identity:
    durable.make_folder(disk, folder)
    made = Identity(name, rng.token(INCARNATION_BYTES), cluster_id)
    fields = {"name": name, "incarnation": made.incarnation.hex(), "cluster": cluster_id}
    text = durable.encode_text("identity", VERSION, fields)
    durable.replace_file(disk, f"{folder}/{FILE}", text)
    return made


def _load(disk: Disk, folder: str, name: str, cluster_id: str) -> Identity:
    path = f"{folder}/{FILE}"
    try:
        data = durable.read_file(disk, path, bytes_max=durable.TEXT_BYTES_MAX)
        fields = durable.decode_text(data, "identity", VERSION, path=path)
        found = Identity(fields["name"], bytes.fromhex(fields["incarnation"]), fields["cluster"])
    except (DamagedError, KeyError, ValueError) as error:
        raise DamagedError(
            f"{path} is damaged ({error}): quarantine the data folder; the node then joins again as"
            " a new member",
            path=path,
        ) from error
    if found.name != name:
        raise ConfigError(
            f"{folder} belongs to node {found.name!r}, not {name!r}: start it under its own name or"
            " give this node another data folder"
        )
    if found.cluster_id != cluster_id:
        raise ConfigError(
            f"{folder} belongs to cluster {found.cluster_id!r}, not {cluster_id!r}: correct the"
            " cluster id or give this node another data folder"
        )
    return found


def _finish_quarantine(disk: Disk, folder: str) -> str:
    """Runs again from the start after a crash. The pending file goes last: until then a start
    comes here first, so no part of the old data is ever seen beside a new identity."""
    path = f"{folder}/{PENDING}"
    data = durable.read_file(disk, path, bytes_max=durable.TEXT_BYTES_MAX)
    fields = durable.decode_text(data, "quarantine", VERSION, path=path)
    target = f"{folder}/{QUARANTINE}{fields['number']}"
    durable.make_folder(disk, target)
    reason = f"at_ms: {fields['at_ms']}\nreason: {fields['reason']}\n"
    durable.replace_file(disk, f"{target}/{REASON}", reason.encode())
    for name in (FILE, *DATA):
        if disk.exists(f"{folder}/{name}"):
            if disk.exists(f"{target}/{name}"):
                raise StorageError(
                    f"{target}/{name} and {folder}/{name} both exist; remove one of them",
                    path=f"{target}/{name}",
                )
            disk.rename(f"{folder}/{name}", f"{target}/{name}")
    # Both sides must be on disk before the pending file may go: the new name, and that the old
    # one is gone. Otherwise the old journal could come back under the new identity.
    disk.sync_folder(target)
    disk.sync_folder(folder)
    disk.remove(path)
    disk.sync_folder(folder)
    return target


def _next_number(disk: Disk, folder: str) -> int:
    folders = [name for name in disk.names(folder) if name.startswith(QUARANTINE)]
    taken = [name.removeprefix(QUARANTINE) for name in folders]
    return max((int(text) for text in taken if text.isdecimal()), default=0) + 1


def _check_word(what: str, word: str) -> None:
    if not 0 < len(word) <= NAME_CHARS_MAX or not set(word) <= _NAME_CHARS:
        raise ConfigError(
            f"the {what} {word!r} must have 1 to {NAME_CHARS_MAX} letters, digits, dots, dashes or"
            " underscores"
        )
