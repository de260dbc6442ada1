"""Small files that are replaced whole and survive a power cut, and readable text with a checksum.

The order of syncs lives here once: bytes before the name, the name before whatever relies on it.
Leaves what the files mean to `identity` and `checkpoint`. Everything here blocks.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from lograft_log.env import Disk
from lograft_log.hot import crc
from lograft_wire.errors import DamagedError, StorageError

TEMPORARY = ".tmp"  # suffix of a file that is not yet renamed into place
TEXT_BYTES_MAX = 16 * 1024

# A text file: "lograft <kind> <version>", lines of "<key> <value>", last "crc32c <8 hex digits>"
# over every byte before that last line. Lines end with a newline; keys keep their order.
_SEAL = "crc32c "
_SEAL_BYTES = len(_SEAL) + 8 + 1


def parent(path: str) -> str:
    folder, slash, _ = path.rpartition("/")
    return folder or ("/" if slash else ".")


def make_folder(disk: Disk, path: str) -> None:
    """Make a folder whose parent exists, and make its name durable."""
    disk.make_folder(path)
    disk.sync_folder(parent(path))


def write_file(disk: Disk, path: str, data: bytes) -> None:
    """The bytes are durable on return; the name is so after a sync of its folder."""
    file = disk.open(path, create=True)
    try:
        file.truncate(0)
        file.write_at(0, [data])
        file.sync()
    finally:
        file.close()


def replace_file(disk: Disk, path: str, data: bytes) -> None:
    """After a crash at any moment the file is whole: as before or as now."""
    write_file(disk, path + TEMPORARY, data)
    disk.rename(path + TEMPORARY, path)
    disk.sync_folder(parent(path))


def read_file(disk: Disk, path: str, *, bytes_max: int) -> bytes:
    file = disk.open(path, writable=False)
    try:
        size = file.size()
        if size > bytes_max:
            raise DamagedError(
                f"{path} has {size} bytes, at most {bytes_max} make sense", path=path
            )
        return file.read_at(0, size)
    finally:
        file.close()


def encode_text(kind: str, version: int, fields: Mapping[str, str]) -> bytes:
    lines = [f"lograft {kind} {version}"]
    for key, value in fields.items():
        assert " " not in key, key
        assert "\n" not in key + value, (key, value)
        lines.append(f"{key} {value}")
    body = ("\n".join(lines) + "\n").encode()
    return body + f"{_SEAL}{crc.checksum(body):08x}\n".encode()


def decode_text(data: bytes, kind: str, version: int, *, path: str) -> dict[str, str]:
    body, seal = data[:-_SEAL_BYTES], data[-_SEAL_BYTES:]
    if seal != f"{_SEAL}{crc.checksum(body):08x}\n".encode():
        raise DamagedError(f"{path} does not pass its checksum", path=path)
    try:
        head, *lines = body.decode().split("\n")[:-1]
    except ValueError as error:  # also UnicodeDecodeError
        raise DamagedError(f"{path} is not a text of lines", path=path) from error
    if head != f"lograft {kind} {version}":
        raise StorageError(
            f"{path} begins with {head!r}; this version reads 'lograft {kind} {version}'", path=path
        )
    return dict(_field(line) for line in lines)


def _field(line: str) -> tuple[str, str]:
    key, _, value = line.partition(" ")
    return key, value


@contextmanager
def disk_errors(doing: str, path: str) -> Iterator[None]:
    """The one place where this layer turns an OSError into ours."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{doing} {path}: {error}", path=path) from error
