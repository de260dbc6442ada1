"""The files of an open journal: the next one made ready ahead, the oldest taken out behind.

Runs on the event loop and gives what blocks to the helper. When to roll and what may go is the
journal's decision; this only does it.
"""

from collections.abc import Callable
from functools import partial
from typing import cast

from lograft_log import background, env
from lograft_replication import journal_file
from lograft_replication import journal_format as fmt
from lograft_replication.journal_file import JournalFile
from lograft_replication.journal_limits import JournalLimits


class JournalFiles:
    def __init__(
        self,
        *,
        disk: env.Disk,
        folder: str,
        limits: JournalLimits,
        rng: env.Rng,
        incarnation: bytes,
        helper: background.Background,
        on_ready: Callable[[], None],
        on_failed: Callable[[BaseException, str], None],
    ) -> None:
        """`on_ready`: a file was made ready or taken out. `on_failed(error, path)`: the end."""
        self.spares: list[str] = []  # paths
        self._disk = disk
        self._folder = folder
        self._limits = limits
        self._rng = rng
        self._incarnation = incarnation
        self._helper = helper
        self._on_ready = on_ready
        self._on_failed = on_failed
        self._files: dict[
            int, JournalFile
        ] = {}  # oldest first, without a gap; the last is the head
        self._next: JournalFile | None = None  # the one behind the head, ready or being made
        self._preparing = False  # one file at a time
        self._recycling = False
        self._stopped = False

    def __len__(self) -> int:
        return len(self._files) + (self._next is not None)

    def __repr__(self) -> str:
        return f"JournalFiles({self._folder!r}, {list(self._files)}, spares={self.spares})"

    def __getitem__(self, number: int) -> JournalFile:
        return self._files[number]

    @property
    def oldest(self) -> JournalFile:
        return self._files[next(iter(self._files))]

    @property
    def busy(self) -> bool:
        return self._preparing or self._recycling

    @property
    def recycling(self) -> bool:
        return self._recycling

    def adopt(self, files: list[JournalFile], spares: list[str]) -> None:
        """Begin with what recovery found, or make the first file. Blocks."""
        self.spares = spares
        self._files = {held.number: held for held in files}
        if not files:
            first = self._new_file(1)
            first.file = journal_file.prepare(
                self._disk, self._folder, self._header_of(first), spare=self._take_spare()
            )
            self._files[1] = first
        self.head = self._files[next(reversed(self._files))]

    def roll(self) -> JournalFile:
        """The next file becomes the head, ready or not; it may be laid out, not yet written."""
        held = self._next if self._next is not None else self._new_file(self.head.number + 1)
        self._next = None
        self._files[held.number] = self.head = held
        return held

    def prepare_ahead(self, head_position: int) -> None:
        """Have the file behind the head ready before it is needed: from the half of it on."""
        if self._preparing:
            return
        head = self.head
        if head.file is None:
            self._prepare(next(held for held in self._files.values() if held.file is None))
        elif self._next is None and not self._stopped and head_position > head.file_bytes // 2:
            self._next = self._new_file(head.number + 1)
            self._prepare(self._next)

    def recycle_oldest(self) -> None:
        """Nobody needs the oldest file: keep it as a spare, or remove it when there are enough."""
        assert not self._recycling, self
        held = self._files.pop(self.oldest.number)
        assert held.file is not None, held
        spare = journal_file.path_of(self._folder, held.number, journal_file.SPARE_SUFFIX)
        keep = (
            len(self.spares) < self._limits.spare_files_max
            and held.file_bytes == self._limits.file_bytes
            and spare not in self.spares  # of an earlier use of the same number
        )
        self._recycling = True
        self._helper.run(
            partial(
                journal_file.recycle, self._disk, self._folder, held.number, held.file, keep=keep
            ),
            partial(self._on_recycled, held.path, spare if keep else None),
        )

    def stop(self) -> None:
        """Make nothing ready ahead any more; files that are laid out still are."""
        self._stopped = True

    def close(self) -> None:
        assert not self.busy, self
        for held in [*self._files.values(), self._next]:
            if held is not None and held.file is not None:
                held.file.close()
                held.file = None

    def _new_file(self, number: int) -> JournalFile:
        path = journal_file.path_of(self._folder, number)
        epoch = int.from_bytes(self._rng.token(8), "little") or 1  # zeros must never be valid
        return JournalFile(number, path, self._limits.file_bytes, epoch)

    def _header_of(self, held: JournalFile) -> fmt.FileHeader:
        return fmt.FileHeader(held.number, held.epoch, held.file_bytes, self._incarnation)

    def _take_spare(self) -> str | None:
        return self.spares.pop() if self.spares else None

    def _prepare(self, held: JournalFile) -> None:
        self._preparing = True
        self._helper.run(
            partial(
                journal_file.prepare,
                self._disk,
                self._folder,
                self._header_of(held),
                spare=self._take_spare(),
            ),
            partial(self._on_prepared, held),
        )

    def _on_prepared(self, held: JournalFile, result: object, error: BaseException | None) -> None:
        self._preparing = False
        if error is not None:
            self._on_failed(error, held.path)
        else:
            held.file = cast("env.File", result)
        self._on_ready()

    def _on_recycled(
        self, path: str, spare: str | None, _result: object, error: BaseException | None
    ) -> None:
        self._recycling = False
        if error is not None:
            self._on_failed(error, path)
        elif spare is not None:
            self.spares.append(spare)
        self._on_ready()
