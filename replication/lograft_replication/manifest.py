"""The manifest of a checkpoint: one group's state at an applied index, as bytes.

Pure. `checkpoint` keeps it on disk, `bulk` carries it to another node. A manifest names the files
of the state folder that belong to the checkpoint; messages live there, not in the payload.
"""

import struct
from dataclasses import dataclass, field

from lograft_log.hot import crc
from lograft_replication import membership
from lograft_replication.machine import StateFile
from lograft_replication.membership import Config
from lograft_wire.errors import DamagedError

# magic 8 | version u16 | zero u16 | group u32 | index u64 | term u64 | config bytes u32
# | file count u32 | payload bytes u64 | crc32c u32 (over this header and the config)
# config | files | payload | crc32c u32 (over all before it)
_HEADER = struct.Struct("<8sHHIQQIIQ")
assert _HEADER.size == 48
# One file: length u64 | crc32c u32 (0: not computed) | path bytes u16 | path in UTF-8
_FILE = struct.Struct("<QIH")
assert _FILE.size == 14
_CRC = struct.Struct("<I")
assert _CRC.size == 4

MAGIC = b"LGRFTCHK"
VERSION = 1
BYTES_MIN = _HEADER.size + 2 * _CRC.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    manifest_bytes_max: int = 256 * 1024 * 1024
    path_bytes_max: int = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    group: int
    index: int  # every entry up to here is in this state, none above
    term: int  # of the entry `index`
    config: Config  # the last one at or below `index`
    files: tuple[StateFile, ...] = ()
    payload: bytes = field(default=b"", repr=False)

    @property
    def file_bytes(self) -> int:
        return sum(file.length for file in self.files)


def encode(manifest: Manifest) -> bytes:
    config = membership.encode(manifest.config)
    header = _HEADER.pack(
        *(MAGIC, VERSION, 0, manifest.group, manifest.index, manifest.term),
        *(len(config), len(manifest.files), len(manifest.payload)),
    )
    parts = [header, _CRC.pack(crc.checksum(config, crc.checksum(header))), config]
    for file in manifest.files:
        path = file.path.encode()
        assert path_is_safe(file.path), file
        parts += (_FILE.pack(file.length, file.crc, len(path)), path)
    body = b"".join((*parts, manifest.payload))
    return body + _CRC.pack(crc.checksum(body))


def seal(data: bytes) -> int:
    """The checksum that tells manifests apart. Not one over all bytes: with its own checksum at
    the end, that would be the same number for every manifest."""
    (value,) = _CRC.unpack_from(data, len(data) - _CRC.size)
    return int(value)


def decode(data: bytes, *, path: str, limits: Limits | None = None) -> Manifest:
    """Raises DamagedError naming `path` for anything that `encode` did not write."""
    limits = limits or Limits()
    if not BYTES_MIN <= len(data) <= limits.manifest_bytes_max:
        raise _damaged(path, f"has {len(data)} bytes")
    if data[: len(MAGIC)] != MAGIC:
        raise _damaged(path, "is no manifest")
    body = memoryview(data)[: -_CRC.size]
    if crc.checksum(body) != seal(data):
        raise _damaged(path, "does not pass its checksum")
    try:
        return _decode_body(body, path, limits)
    except (struct.error, UnicodeDecodeError) as error:
        raise _damaged(path, f"cannot be read: {error}") from error


def _decode_body(body: memoryview, path: str, limits: Limits) -> Manifest:
    header = _HEADER.unpack_from(body)
    _, version, zero, group, index, term, config_bytes, file_count, payload_bytes = header
    if version != VERSION or zero:
        raise _damaged(path, f"has version {version}, this one reads {VERSION}")
    position = _HEADER.size + _CRC.size
    config = bytes(body[position : position + config_bytes])
    (header_crc,) = _CRC.unpack_from(body, _HEADER.size)
    if crc.checksum(config, crc.checksum(body[: _HEADER.size])) != header_crc:
        raise _damaged(path, "has a header that does not pass its checksum")
    files, position = _decode_files(body, position + config_bytes, file_count, path, limits)
    if position + payload_bytes != len(body):
        raise _damaged(path, f"should end at {position + payload_bytes}, not at {len(body)}")
    return Manifest(
        group=group,
        index=index,
        term=term,
        config=membership.decode(config),
        files=tuple(files),
        payload=bytes(body[position:]),
    )


def _decode_files(
    body: memoryview, position: int, count: int, path: str, limits: Limits
) -> tuple[list[StateFile], int]:
    files: list[StateFile] = []
    for _ in range(count):
        length, file_crc, path_bytes = _FILE.unpack_from(body, position)
        position += _FILE.size
        name = bytes(body[position : position + path_bytes]).decode()
        position += path_bytes
        if path_bytes > limits.path_bytes_max or not path_is_safe(name):
            raise _damaged(path, f"names the file {name!r}, which may lie outside the state folder")
        files.append(StateFile(name, length, file_crc))
    if len({file.path for file in files}) != len(files):
        raise _damaged(path, "names a file twice")
    return files, position


def path_is_safe(path: str) -> bool:
    """Whether a path stays inside the folder it is joined to: another node may have written it."""
    return "\0" not in path and all(part not in ("", ".", "..") for part in path.split("/"))


def _damaged(path: str, what: str) -> DamagedError:
    return DamagedError(f"{path} {what}", path=path)
