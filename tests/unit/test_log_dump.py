"""What the dump of each file says."""

import pytest

from lograft_log import dump, layout
from lograft_log.hot.record import Record
from lograft_log.secondary import KeyTerm
from lograft_log.settings import Codec, LogSettings
from lograft_wire.errors import StorageError
from sim.disk import SimDisk
from support import log_desk
from support.crash_disk import new_disk


def path(ending: str) -> str:
    return f"{log_desk.FOLDER}/{layout.name(0, ending)}"


@pytest.fixture
def disk() -> SimDisk:
    disk = new_disk(1)
    log = log_desk.open_small(disk, settings=LogSettings(term=KeyTerm()))
    log.append([Record(b"hello", key=b"k", timestamp_ms=5), Record(b"", tombstone=True)])
    log.append([Record(b"again " * 40, timestamp_ms=6) for _ in range(4)], codec=Codec.ZSTD)
    log.roll()
    log.close()
    return disk


def test_a_log_shows_records_and_batches(disk: SimDisk) -> None:
    shown = list(dump.lines(disk, path(".log")))
    assert "base_offset=0 generation=0" in shown[0]
    assert shown[1].startswith("48 record offset=0 timestamp_ms=5 key=b'k'")
    assert "tombstone" in shown[2]
    assert "batch codec=zstd offsets=2..5 records=4" in shown[3]
    assert [line.startswith("  ") for line in shown[4:8]] == [True] * 4
    assert shown[8].endswith(" end")


def test_damage_is_shown_where_it_is(disk: SimDisk) -> None:
    disk.volume.flip_bit(path(".log"), 48 + 20)
    shown = list(dump.lines(disk, path(".log")))
    assert shown[-1] == "48 BAD checksum mismatch"


def test_indexes_and_seal_are_shown(disk: SimDisk) -> None:
    assert "entry offset=0 position=48 length=22" in list(dump.lines(disk, path(".index")))
    assert any("timestamp_ms=5 offset=0" in line for line in dump.lines(disk, path(".timeindex")))
    assert any("position=48" in line for line in dump.lines(disk, path(".hashindex")))
    (seal,) = dump.lines(disk, path(".seal"))
    assert "state=sealed" in seal
    assert "next_offset=6" in seal
    disk.volume.flip_bit(path(".index"), 50)
    assert any("BAD" in line for line in dump.lines(disk, path(".index")))


def test_other_files_are_refused(disk: SimDisk) -> None:
    with pytest.raises(StorageError, match="not the name"):
        list(dump.lines(disk, "notes.txt"))
