"""Where one group keeps its checkpoints and the state folder of its machine.

    <groups>/<group, 8 digits>/CURRENT                        the pointer: index and state number
    <groups>/<group>/checkpoints/<index, 20 digits>/manifest  see `manifest`
    <groups>/<group>/state-<number, at least 4 digits>/       the machine's own files

The pointer is renamed last and older things go after it, so after a crash at any moment one whole
checkpoint is found: the old or the new. The pointer is also the first file a group ever writes
(index "none": no checkpoint yet), so a missing one beside other files is damage and no first start.

Leaves pulling a checkpoint from another node to `bulk`. The group calls `open` at start and the
blocking rest in its Background, one piece at a time; the properties may be read on the loop.
"""

from dataclasses import dataclass

from lograft_log.env import Disk, File
from lograft_replication import durable, manifest
from lograft_replication.machine import Capture
from lograft_replication.manifest import Manifest
from lograft_replication.membership import Config
from lograft_replication.messages import Offer
from lograft_wire.errors import DamagedError, RefusedError

POINTER = "CURRENT"
CHECKPOINTS = "checkpoints"
MANIFEST = "manifest"
STATE = "state-"
NO_INDEX = "none"  # in the pointer of a group that has no checkpoint yet
VERSION = 1


@dataclass(frozen=True, slots=True)
class Placed:
    """What the pointer says. One value, so that a reader on the loop never sees half a change."""

    manifest: Manifest | None
    state: int  # number of the state folder
    manifest_bytes: int = 0
    manifest_crc: int = 0


@dataclass(frozen=True, slots=True)
class IncomingState:
    """A state folder being filled from another node. Nothing points to it yet."""

    disk: Disk
    folder: str
    state: int
    manifest: Manifest

    def open_file(self, number: int) -> File:
        """The file at place `number` of the manifest's list, made when it is not there."""
        path = f"{self.folder}/{self.manifest.files[number].path}"
        self.disk.make_folder(durable.parent(path))
        return self.disk.open(path, create=True)


class CheckpointStore:
    def __init__(
        self, disk: Disk, folder: str, group_id: int, limits: manifest.Limits | None = None
    ) -> None:
        """`folder` holds the folders of all groups, `<data>/groups`."""
        self._disk = disk
        self._limits = limits or manifest.Limits()
        self.group_id = group_id
        self.folder = f"{folder}/{group_id:08d}"
        self._placed = Placed(None, 0)
        self._incoming: IncomingState | None = None

    def __repr__(self) -> str:
        return f"CheckpointStore({self.folder!r}, {self._placed})"

    @property
    def current(self) -> Manifest | None:
        return self._placed.manifest

    @property
    def placed(self) -> Placed:
        return self._placed

    @property
    def state_folder(self) -> str:
        return self.state_folder_of(self._placed.state)

    def state_folder_of(self, state: int) -> str:
        assert state > 0, "open comes first"
        return f"{self.folder}/{STATE}{state:04d}"

    def offer(self, *, term: int, commit: int) -> Offer | None:
        """The current checkpoint as a leader offers it; None when there is none."""
        placed = self._placed
        if placed.manifest is None:
            return None
        return Offer(
            term=term,
            commit=commit,
            index=placed.manifest.index,
            index_term=placed.manifest.term,
            manifest_bytes=placed.manifest_bytes,
            manifest_crc=placed.manifest_crc,
        )

    def open(self) -> Manifest | None:
        """Find the checkpoint to start from, None for a machine before its first command, and
        remove what crashes left."""
        with durable.disk_errors("opening the checkpoints in", self.folder):
            if not self._disk.exists(f"{self.folder}/{POINTER}"):
                self._create()
            self._placed = self._read_pointer()
            # A process killed before it synced the pointer leaves it in the system's cache alone:
            # nothing older may go before it is on disk.
            self._disk.sync_folder(self.folder)
            self.clean()
            if self._placed.manifest is None:
                # No checkpoint vouches for what an earlier run wrote there; the journal has it all.
                self._disk.remove_folder(self.state_folder)
                self._disk.make_folder(self.state_folder)
                self._disk.make_folder(f"{self.folder}/{CHECKPOINTS}")
                self._disk.sync_folder(self.folder)
            elif not self._disk.exists(self.state_folder):
                raise DamagedError(f"{self.state_folder} is missing", path=self.state_folder)
            return self._placed.manifest

    def take(self, capture: Capture, *, index: int, term: int, config: Config) -> Manifest:
        """A whole checkpoint of a captured machine, in the only right order."""
        new = Manifest(
            group=self.group_id,
            index=index,
            term=term,
            config=config,
            files=capture.files,
            payload=capture.payload,
        )
        with durable.disk_errors("syncing the state in", self.state_folder):
            capture.sync()
        self.write(new)
        with durable.disk_errors("removing old state in", self.state_folder):
            capture.after()
        return new

    def write(self, new: Manifest) -> None:
        """Make `new` the checkpoint of the present state folder, whose files must be durable."""
        with durable.disk_errors("writing a checkpoint in", self.folder):
            self._place(new, self._placed.state)
            self.clean()

    def begin_install(self, new: Manifest) -> IncomingState:
        """Make an empty state folder for the files of `new`; an earlier unfinished one goes."""
        with durable.disk_errors("beginning an install in", self.folder):
            if self._incoming is not None:
                self.abandon_install(self._incoming)
            state = self._placed.state + 1
            folder = self.state_folder_of(state)
            self._disk.remove_folder(folder)
            self._disk.make_folder(folder)  # its name becomes durable in finish_install
            self._incoming = IncomingState(self._disk, folder, state, new)
            return self._incoming

    def finish_install(self, new: Manifest) -> None:
        """Make the incoming state the present one. The old machine must not be captured or written
        to disk from here on; its folder stays until `clean`, so its open files do no harm."""
        incoming = self._incoming
        assert incoming is not None, new
        assert incoming.manifest == new, (incoming, new)
        with durable.disk_errors("finishing an install in", self.folder):
            self._sync_incoming(incoming)
            self._place(new, incoming.state)
            self._incoming = None

    def abandon_install(self, incoming: IncomingState) -> None:
        """Remove what came so far; nothing to do when that install is finished or replaced."""
        if self._incoming is incoming:
            self._incoming = None
            with durable.disk_errors("removing", incoming.folder):
                self._disk.remove_folder(incoming.folder)

    def clean(self) -> None:
        """Remove every checkpoint and state folder that neither the pointer nor an install uses."""
        with durable.disk_errors("cleaning", self.folder):
            current = self._placed.manifest
            keep = f"{current.index:020d}" if current is not None else ""
            for name in self._disk.names(f"{self.folder}/{CHECKPOINTS}"):
                if name != keep:
                    self._disk.remove_folder(f"{self.folder}/{CHECKPOINTS}/{name}")
            used = {self.state_folder}
            if self._incoming is not None:
                used.add(self._incoming.folder)
            for name in self._disk.names(self.folder):
                path = f"{self.folder}/{name}"
                if name.startswith(STATE) and path not in used:
                    self._disk.remove_folder(path)
                elif name.endswith(durable.TEMPORARY):
                    self._disk.remove(path)

    def _create(self) -> None:
        others = [name for name in self._disk.names(self.folder) if name != _TEMPORARY_POINTER]
        if others:
            path = f"{self.folder}/{POINTER}"
            raise DamagedError(f"{path} is missing beside {', '.join(others)}", path=path)
        groups = durable.parent(self.folder)
        durable.make_folder(self._disk, groups)
        durable.make_folder(self._disk, self.folder)
        self._write_pointer(NO_INDEX, 1)

    def _place(self, new: Manifest, state: int) -> None:
        assert new.group == self.group_id, (new, self.group_id)
        current = self._placed.manifest
        if current is not None and new.index <= current.index:
            raise RefusedError(f"checkpoint {new.index} is not above {current.index}")
        data = manifest.encode(new)
        checkpoints = f"{self.folder}/{CHECKPOINTS}"
        folder = f"{checkpoints}/{new.index:020d}"
        self._disk.make_folder(folder)
        durable.write_file(self._disk, f"{folder}/{MANIFEST}", data)
        self._disk.sync_folder(folder)
        self._disk.sync_folder(checkpoints)
        self._write_pointer(str(new.index), state)
        self._placed = Placed(new, state, len(data), manifest.seal(data))

    def _sync_incoming(self, incoming: IncomingState) -> None:
        """Every file, then every folder from the deepest up, last the one that names the state."""
        folders = {incoming.folder}
        for number, wanted in enumerate(incoming.manifest.files):
            file = incoming.open_file(number)
            try:
                assert file.size() == wanted.length, (file, file.size(), wanted)
                file.sync()
            finally:
                file.close()
            folder = durable.parent(file.path)
            while folder not in folders:
                folders.add(folder)
                folder = durable.parent(folder)
        for folder in sorted(folders, key=len, reverse=True):
            self._disk.sync_folder(folder)
        self._disk.sync_folder(self.folder)

    def _write_pointer(self, index: str, state: int) -> None:
        fields = {"group": str(self.group_id), "index": index, "state": str(state)}
        text = durable.encode_text("checkpoint", VERSION, fields)
        durable.replace_file(self._disk, f"{self.folder}/{POINTER}", text)

    def _read_pointer(self) -> Placed:
        path = f"{self.folder}/{POINTER}"
        data = durable.read_file(self._disk, path, bytes_max=durable.TEXT_BYTES_MAX)
        fields = durable.decode_text(data, "checkpoint", VERSION, path=path)
        try:
            group, state = int(fields["group"]), int(fields["state"])
            index = -1 if fields["index"] == NO_INDEX else int(fields["index"])
        except (KeyError, ValueError) as error:
            raise DamagedError(f"{path} lacks a number: {error}", path=path) from error
        if group != self.group_id or state <= 0:
            raise DamagedError(f"{path} belongs to group {group}: {fields}", path=path)
        if index < 0:
            return Placed(None, state)
        return self._read_manifest(index, state)

    def _read_manifest(self, index: int, state: int) -> Placed:
        path = f"{self.folder}/{CHECKPOINTS}/{index:020d}/{MANIFEST}"
        if not self._disk.exists(path):
            raise DamagedError(f"{path} is missing but {POINTER} names it", path=path)
        data = durable.read_file(self._disk, path, bytes_max=self._limits.manifest_bytes_max)
        found = manifest.decode(data, path=path, limits=self._limits)
        if (found.group, found.index) != (self.group_id, index):
            raise DamagedError(
                f"{path} is of group {found.group} at {found.index}, not of {self.group_id} at"
                f" {index}",
                path=path,
            )
        return Placed(found, state, len(data), manifest.seal(data))


_TEMPORARY_POINTER = POINTER + durable.TEMPORARY
