"""Index entries and searches in them, slowly and obviously: what hot/search.pyx must do."""

import struct

from oracle import crc

ENTRY = struct.Struct("<QQI")  # offset | position | length; a CRC follows
TIME_ENTRY = struct.Struct("<QQQ")  # timestamp_ms | offset | position; a CRC follows
HASH_ENTRY = struct.Struct("<QQ")

Entry = tuple[int, int, int]


def pack(rows: list[Entry], form: struct.Struct = ENTRY) -> bytes:
    heads = [form.pack(*row) for row in rows]
    return b"".join(head + struct.pack("<I", crc.checksum(head)) for head in heads)


def unpack(data: bytes, form: struct.Struct = ENTRY) -> list[Entry | None]:
    """Whole entries; None where the CRC does not fit."""
    size = form.size + 4
    rows: list[Entry | None] = []
    for at in range(0, len(data) - size + 1, size):
        head, check = data[at : at + form.size], data[at + form.size : at + size]
        intact = crc.checksum(head) == int.from_bytes(check, "little")
        rows.append(form.unpack(head) if intact else None)
    return rows


def last_at_most(values: list[int], value: int) -> int:
    found = [number for number, one in enumerate(values) if one <= value]
    return found[-1] if found else -1


def check(data: bytes, *, log_start: int, log_end: int, dense: bool) -> int:
    count, offset, free = 0, -1, log_start
    for row in unpack(data):
        if row is None or row[0] <= offset:
            break
        offset, position, length = row
        if position < free or (dense and position != free):
            break
        if position + 16 + length > log_end:
            break
        free = position + 16 + length
        count += 1
    return count


def check_time(data: bytes, *, log_start: int, log_end: int) -> int:
    count, timestamp_ms, offset, free = 0, 0, -1, log_start
    for row in unpack(data, TIME_ENTRY):
        if row is None or row[0] < timestamp_ms or row[1] <= offset:
            break
        if not free <= row[2] < log_end:
            break
        timestamp_ms, offset = row[0], row[1]
        free = row[2] + 16
        count += 1
    return count


def hash_term(term: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in term:
        value = ((value ^ byte) * 0x100000001B3) % (1 << 64)
    return value
