"""A manifest made by somebody else cannot name files outside the state folder."""

import pytest

from lograft_log.hot import crc
from lograft_replication import manifest
from lograft_replication.machine import StateFile
from lograft_replication.manifest import Manifest
from lograft_replication.membership import Config
from lograft_wire.errors import DamagedError


def test_a_foreign_path_with_a_right_checksum_is_refused() -> None:
    value = Manifest(
        group=1, index=2, term=3, config=Config(), files=(StateFile("aa/b", 1), StateFile("c", 2))
    )
    for old, new in ((b"aa/b", b"../b"), (b"aa/b", b"/a/b")):
        body = manifest.encode(value)[:-4].replace(old, new)
        data = body + crc.checksum(body).to_bytes(4, "little")
        with pytest.raises(DamagedError, match="outside the state folder"):
            manifest.decode(data, path="x")


def test_a_file_named_twice_is_refused() -> None:
    value = Manifest(
        group=1, index=2, term=3, config=Config(), files=(StateFile("a", 1), StateFile("b", 2))
    )
    body = manifest.encode(value)[:-4].replace(b"\x01\x00b", b"\x01\x00a")
    with pytest.raises(DamagedError, match="twice"):
        manifest.decode(body + crc.checksum(body).to_bytes(4, "little"), path="x")


def test_layout_of_the_bytes() -> None:
    value = Manifest(
        group=0x01020304,
        index=5,
        term=6,
        config=Config(("a",)),
        files=(StateFile("f", 7, 8),),
        payload=b"pay",
    )
    data = manifest.encode(value)
    config = b"\x01\x01\x00\x00\x00\x01\x00a"
    header = (
        b"LGRFTCHK"
        b"\x01\x00"
        b"\x00\x00"
        b"\x04\x03\x02\x01"
        + (5).to_bytes(8, "little")
        + (6).to_bytes(8, "little")
        + len(config).to_bytes(4, "little")
        + (1).to_bytes(4, "little")
        + (3).to_bytes(8, "little")
    )
    file = (7).to_bytes(8, "little") + (8).to_bytes(4, "little") + b"\x01\x00f"
    body = header + crc.checksum(header + config).to_bytes(4, "little") + config + file + b"pay"
    assert data == body + crc.checksum(body).to_bytes(4, "little")
    assert manifest.seal(data) == crc.checksum(body)
