"""The secondary index: by key, by header, sealed and live, lost and changed."""

import struct

import pytest

from lograft_log import headers, layout
from lograft_log.hot.record import Record
from lograft_log.log import Log
from lograft_log.secondary import HeaderTerm, KeyTerm
from lograft_log.settings import Codec, LogSettings, Term
from sim.disk import SimDisk
from support import log_desk
from support.crash_disk import new_disk


def shortstr(text: bytes) -> bytes:
    return bytes([len(text)]) + text


def longstr(text: bytes) -> bytes:
    return struct.pack(">I", len(text)) + text


def properties(table: bytes, *, content_type: bytes | None = b"text/plain") -> bytes:
    flags = headers.HEADERS | (headers.CONTENT_TYPE if content_type is not None else 0)
    kind = shortstr(content_type) if content_type is not None else b""
    return struct.pack(">H", flags) + kind + longstr(table)


TABLE = (
    shortstr(b"n") + b"I" + struct.pack(">i", 7)
    + shortstr(b"nested") + b"F" + longstr(shortstr(b"x-id") + b"S" + longstr(b"inner"))
    + shortstr(b"nothing") + b"V"
    + shortstr(b"x-id") + b"S" + longstr(b"outer")
)  # fmt: skip


def test_a_header_is_found_behind_others_of_every_kind() -> None:
    assert headers.value(properties(TABLE), "x-id") == b"outer"
    assert headers.value(properties(TABLE, content_type=None), "n") == struct.pack(">i", 7)
    assert headers.value(properties(TABLE), "nothing") == b""
    assert headers.value(properties(TABLE), "absent") is None


def test_damaged_properties_have_no_headers() -> None:
    whole = properties(TABLE)
    for cut in range(len(whole)):
        assert headers.value(whole[:cut], "x-id") in (None, b"outer")
    assert headers.value(b"", "x-id") is None
    assert headers.value(properties(shortstr(b"a") + b"?"), "a") is None


def make(disk: SimDisk, term: Term, codec: Codec = Codec.NONE) -> Log:
    chosen = LogSettings(term=term, codec=codec, limits=log_desk.SMALL)
    return log_desk.open_small(disk, settings=chosen)


def fill(log: Log) -> None:
    for number in range(0, 60, 2):
        table = shortstr(b"x-id") + b"S" + longstr(b"id%d" % (number % 6))
        log.append(
            [
                Record(bytes(30), key=b"k%d" % (number % 7), timestamp_ms=1),
                Record(bytes(30), headers=properties(table), timestamp_ms=1),
            ]
        )


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_lookup_by_key_covers_sealed_and_live_segments(codec: Codec) -> None:
    log = make(new_disk(1), KeyTerm(), codec)
    fill(log)
    log.sync()
    fill(log)
    expected = [n for n in range(0, 120, 2) if n % 60 % 7 == 3]
    assert [one.offset for one in log.lookup(b"k3")] == expected
    assert list(log.lookup(b"k9")) == []


def test_lookup_by_header() -> None:
    log = make(new_disk(1), HeaderTerm("x-id"))
    fill(log)
    expected = [n + 1 for n in range(0, 60, 2) if n % 6 == 4]
    assert [one.offset for one in log.lookup(b"id4")] == expected


def test_lost_or_damaged_hash_indexes_are_made_again_and_saved() -> None:
    disk = new_disk(1)
    log = make(disk, KeyTerm())
    fill(log)
    log.close()
    found = [one.offset for one in log.lookup(b"k3")]
    first, second, *_ = (f"{log.folder}/{layout.name(s.base_offset, '.hashindex')}"
                         for s in log.segments())  # fmt: skip
    disk.remove(first)
    disk.open(second).write_at(60, [b"\xff"])
    again = make(disk, KeyTerm())
    assert [one.offset for one in again.lookup(b"k3")] == found
    assert again.index_health().rebuild_count == 2
    again.sync()
    assert disk.exists(first)
    again.close()
    third = make(disk, KeyTerm())
    assert [one.offset for one in third.lookup(b"k3")] == found
    assert third.index_health().rebuild_count == 0


def test_another_term_does_not_use_the_old_index() -> None:
    disk = new_disk(1)
    log = make(disk, KeyTerm())
    fill(log)
    log.close()
    again = make(disk, HeaderTerm("x-id"))
    assert len(list(again.lookup(b"id4"))) == 10
    assert list(again.lookup(b"k3")) == []
