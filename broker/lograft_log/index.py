"""OffsetIndex and TimeIndex: files of fixed entries beside a segment's .log, and their health.

An index is a hint that can always be made again. What is read from a file is believed only as far
as its header names the same .log, its size is whole entries, and every entry is intact, in order
and inside the log (`hot.search`). Entries are made by `hot.indexer`; `writer` appends them here in
batches, `segment` loads them for sealed segments.
"""

from dataclasses import dataclass

from lograft_log import damage, files, layout
from lograft_log.env import Disk, File
from lograft_log.hot import search
from lograft_wire.errors import StorageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    ending: str
    magic: bytes
    entry_bytes: int


OFFSETS = Form(ending=layout.INDEX, magic=layout.MAGIC_INDEX, entry_bytes=layout.OFFSET_ENTRY.size)
TIMES = Form(ending=layout.TIMEINDEX, magic=layout.MAGIC_TIME, entry_bytes=layout.TIME_ENTRY.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexHealth:
    """How an offset index does. `density` is entries per KiB of log."""

    entry_count: int
    index_bytes: int
    log_bytes: int
    rebuild_count: int

    @property
    def density(self) -> float:
        return self.entry_count * 1024 / self.log_bytes if self.log_bytes else 0.0


class IndexFile:
    """One index file of the active segment: read, extended in whole batches, cut.

    `header` is what it must begin with; a file that says otherwise starts empty.
    """

    def __init__(self, disk: Disk, folder: str, header: layout.FileHeader, form: Form) -> None:
        self.path = f"{folder}/{layout.name(header.base_offset, form.ending)}"
        self._disk = disk
        self._form = form
        self._header = header.encode()
        self._file: File = disk.open(self.path, create=True)
        self._view = memoryview(b"")  # entries mapped so far
        self.count = 0  # entries in the file; the readers' limit
        self.fresh = False  # it was missing, or held something else than entries of this .log
        try:
            size = self._file.size()
            if size and _belongs(self._file, header, form):
                self.count = (size - layout.FILE_HEADER_BYTES) // form.entry_bytes
                return
            self.fresh = True
            self._file.truncate(0)
            self._file.write_at(0, [self._header])
        except BaseException:
            self._file.close()
            raise

    def append(self, entries: bytes) -> None:
        assert len(entries) % self._form.entry_bytes == 0, len(entries)
        if entries:
            self._file.write_at(self._end(), [entries])
            self.count += len(entries) // self._form.entry_bytes

    def entries(self) -> memoryview:
        """All entries of the file. Mapped again only when it has grown."""
        wanted = self.count * self._form.entry_bytes
        view = self._view
        if len(view) < wanted:
            view = self._view = self._map(wanted)
        return view[:wanted]

    def cut(self, count: int) -> bool:
        """Keep the first `count` entries, durably: an entry of bytes that are gone must never come
        back. Only at opening, before anybody has mapped the file for longer. True if it was cut."""
        self._view = memoryview(b"")
        self.count = count
        if self._file.size() == self._end():
            return False
        self._file.truncate(self._end())
        self._file.sync()
        return True

    def _map(self, wanted: int) -> memoryview:
        """Through a handle of its own: the writer may close the other one at any moment."""
        try:
            file = self._disk.open(self.path, writable=False)
        except FileNotFoundError as error:
            raise damage.ChangedError(self.path) from error
        try:
            if file.read_at(0, layout.FILE_HEADER_BYTES) != self._header:
                raise damage.ChangedError(self.path)
            return file.map(layout.FILE_HEADER_BYTES + wanted)[layout.FILE_HEADER_BYTES :]
        finally:
            file.close()

    def sync(self) -> None:
        self._file.sync()

    def close(self) -> None:
        self._file.close()

    def _end(self) -> int:
        return layout.FILE_HEADER_BYTES + self.count * self._form.entry_bytes


def load(disk: Disk, folder: str, header: layout.FileHeader, form: Form) -> memoryview | None:
    """The entries of a sealed segment's index, unverified; None when missing, of another .log, of
    another interval or misaligned."""
    path = f"{folder}/{layout.name(header.base_offset, form.ending)}"
    try:
        file = disk.open(path, writable=False)
    except FileNotFoundError:
        return None
    try:
        size = file.size()
        if not _belongs(file, header, form):
            return None
        if (size - layout.FILE_HEADER_BYTES) % form.entry_bytes:
            return None
        return file.map(size)[layout.FILE_HEADER_BYTES :]
    finally:
        file.close()


def save(
    disk: Disk,
    folder: str,
    header: layout.FileHeader,
    form: Form,
    entries: memoryview,
    *,
    rename: bool,
) -> None:
    """Write an index made anew, as `.new` or in place of the old one. The caller syncs the
    folder."""
    path = f"{folder}/{layout.name(header.base_offset, form.ending)}"
    files.write_new(disk, path, [header.encode(), entries])
    if rename:
        disk.rename(path + layout.NEW, path)


def usable(entries: memoryview, *, log_bytes: int, dense: bool) -> bool:
    """Whether every offset entry of a sealed segment is intact and in place."""
    count = len(entries) // layout.OFFSET_ENTRY.size
    start = layout.FILE_HEADER_BYTES
    if log_bytes > start and not count:
        return False
    return search.check(entries, log_start=start, log_end=log_bytes, dense=dense) == count


def _belongs(file: File, header: layout.FileHeader, form: Form) -> bool:
    try:
        found = layout.decode_header(
            file.read_at(0, layout.FILE_HEADER_BYTES), magic=form.magic, path=file.path
        )
    except StorageError:
        return False  # whatever it is, it is made again from the .log
    return found.same_log(header) and found.parameter == header.parameter
