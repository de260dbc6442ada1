"""Throws damaged files at scanning, decoding and recovery for a bounded time.

`python tests/fuzz/fuzz_record.py --seconds 20 --seed 7`. A round is decided by the seed and its
number alone; when one fails, both are printed and the exit status is 1.

What must hold: the compiled scan agrees with its specification; decoding never leaves its bytes;
opening a damaged log either refuses it with a StorageError or serves records that were written,
each in its place and in order, and a log that opened can be appended to and opened again.
"""

import logging
import random
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lograft_log import dump, layout
from lograft_log.hot import record
from lograft_log.hot.record import Record
from lograft_log.log import Log
from lograft_log.secondary import KeyTerm
from lograft_log.settings import Codec, IndexKind, LogSettings
from lograft_wire.errors import StorageError
from oracle import record as oracle
from sim.disk import SimDisk
from support import fuzzing, log_desk
from support.crash_disk import new_disk

EDGES = (0, 1, 15, 16, 17, 27, 28, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1)
PAYLOAD_MAX = 1 << 20


def fuzz_round(rng: random.Random) -> None:
    for _ in range(5):
        check_frames(rng)
    check_log(rng)


def damage(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data) + 1)
    match rng.randrange(7):
        case 0 if at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        case 1:
            del data[at:]
        case 2:
            data[at:at] = rng.randbytes(rng.randrange(1, 40))
        case 3:
            del data[at : at + rng.randrange(1, 40)]
        case 4 if at + 4 <= len(data):
            data[at : at + 4] = rng.choice(EDGES).to_bytes(4, "little")
        case 5:
            data[at : at + 512] = bytes(len(data[at : at + 512]))
        case _:
            data += data[at : at + rng.randrange(400)]


# Frames


def check_frames(rng: random.Random) -> None:
    data = bytearray(random_frames(rng))
    for _ in range(rng.randrange(4)):
        damage(rng, data)
    if rng.random() < 0.5:
        resign(rng, data)
    frames = bytes(data)
    expected = oracle.scan(frames, 0, len(frames), offset_min=0, payload_max=PAYLOAD_MAX)
    found = record.scan(frames, 0, len(frames), offset_min=0, payload_max=PAYLOAD_MAX)
    for name, value in vars(expected).items():
        assert getattr(found, name) == value, (name, found, expected)
    for decoder in (record.frames, record.decode):
        try:
            decoder(frames)
        except ValueError:
            continue
    if found.end and not found.batch_count:
        rows = oracle.decode(frames[: found.end])
        assert [row[0] for row in rows] == [r.offset for r in record.decode(frames[: found.end])]


def resign(rng: random.Random, data: bytearray) -> None:
    """Make the CRC of the first frame right again, so that damage inside it is met."""
    length = int.from_bytes(data[:4], "little")
    if len(data) >= 16 + length and rng.random() < 0.9:
        data[: 16 + length] = oracle.frame(
            int.from_bytes(data[4:12], "little"), bytes(data[16 : 16 + length])
        )


def random_frames(rng: random.Random) -> bytes:
    rows: list[oracle.Row] = []
    offset = rng.randrange(1000)
    for _ in range(rng.randrange(1, 6)):
        key = rng.choice((None, b"", b"key"))
        rows.append((offset, rng.getrandbits(40), key, b"h" * rng.randrange(9), b"b" * 20, False))
        offset += rng.choice((1, 1, 5))
    plain = oracle.encode(rows)
    last = rows[-1][0]
    if rng.random() < 0.3:
        return oracle.wrap(
            plain, codec=1, count=len(rows), first=rows[0][0], last=last, plain=len(plain)
        )
    return plain


# Logs


def check_log(rng: random.Random) -> None:
    disk, settings, written = random_log(rng)
    for _ in range(rng.randrange(1, 4)):
        damage_file(rng, disk)
    try:
        log = log_desk.open_small(disk, settings=settings)
    except StorageError:
        return  # a foreign or newer file: named, not touched
    served = readable(log)
    assert [item.offset for item in served] == sorted({item.offset for item in served})
    for item in served:
        assert written.get(item.offset) == item.body, item
    for name in disk.names(log_desk.FOLDER):
        try:
            list(dump.lines(disk, f"{log_desk.FOLDER}/{name}"))
        except StorageError:
            continue
    offset, _ = log.append([Record(b"after", timestamp_ms=1)])
    log.close()
    again = log_desk.open_small(disk, settings=settings)
    found = again.get(offset)
    assert found is not None
    assert found.body == b"after"


def readable(log: Log) -> list[Record]:
    """Everything the log serves, stepping over what it has quarantined."""
    result: list[Record] = []
    offset = log.first_offset
    while offset < log.next_offset:
        try:
            chunk = log.read(offset, bytes_max=300)
            items = chunk.records(offset)
        except StorageError:
            following = [s.base_offset for s in log.segments() if s.base_offset > offset]
            offset = following[0] if following else log.next_offset
            continue
        result += items
        offset = max(offset + 1, chunk.offset_next) if items else log.next_offset
    return result


def random_log(rng: random.Random) -> tuple[SimDisk, LogSettings, dict[int, bytes]]:
    settings = LogSettings(
        index=rng.choice(list(IndexKind)),
        index_interval_bytes=rng.choice((1, 100, 1000)),
        codec=rng.choice(list(Codec)),
        term=rng.choice((None, KeyTerm())),
        limits=log_desk.SMALL,
    )
    disk = new_disk(rng.getrandbits(32))
    log = log_desk.open_small(disk, settings=settings)
    written = {}
    for _ in range(rng.randrange(1, 8)):
        items = [
            Record(rng.randbytes(rng.randrange(60)) * rng.choice((1, 4)), timestamp_ms=7)
            for _ in range(rng.randrange(1, 9))
        ]
        first, _ = log.append(items)
        written.update({first + number: item.body for number, item in enumerate(items)})
        if rng.random() < 0.3:
            log.roll()
    log.sync()
    if rng.random() < 0.7:
        log.close()
    return disk, settings, written


def damage_file(rng: random.Random, disk: SimDisk) -> None:
    name = rng.choice(disk.names(log_desk.FOLDER))
    path = f"{log_desk.FOLDER}/{name}"
    if rng.random() < 0.1 and layout.LOG not in name:
        disk.remove(path)
        return
    file = disk.open(path)
    data = bytearray(file.read_at(0, file.size()))
    damage(rng, data)
    file.truncate(0)
    file.write_at(0, [data])
    file.sync()


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    sys.exit(fuzzing.main("fuzz_record", fuzz_round))
