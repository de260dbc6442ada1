"""One header out of a record's AMQP properties, without decoding the rest.

A record's `headers` are the property flags and the property list of an AMQP 0-9-1 content header,
as they came over the wire:

    flags u16 | content-type shortstr? | content-encoding shortstr? | headers table? | ...

Numbers are big-endian here, as AMQP has them. Bytes that are not such a list have no headers: the
secondary index skips them. Called by `secondary` only.
"""

CONTENT_TYPE = 1 << 15
CONTENT_ENCODING = 1 << 14
HEADERS = 1 << 13

_FIXED = {
    ord("t"): 1,
    ord("b"): 1,
    ord("B"): 1,
    ord("s"): 2,
    ord("U"): 2,
    ord("u"): 2,
    ord("I"): 4,
    ord("i"): 4,
    ord("f"): 4,
    ord("l"): 8,
    ord("L"): 8,
    ord("d"): 8,
    ord("T"): 8,
    ord("D"): 5,
    ord("V"): 0,
}
_LONG = frozenset(b"SxFA")  # u32 length, then the bytes


def value(properties: bytes, header: str) -> bytes | None:
    """The raw bytes of a header's value (of a string: its text), or None."""
    try:
        table = _table(properties)
        return None if table is None else _find(table, header.encode())
    except IndexError:
        return None


def _table(properties: bytes) -> bytes | None:
    if len(properties) < 2:
        return None
    flags = int.from_bytes(properties[:2], "big")
    if not flags & HEADERS:
        return None
    at = 2
    for flag in (CONTENT_TYPE, CONTENT_ENCODING):
        if flags & flag:
            at += 1 + properties[at]
    size = int.from_bytes(properties[at : at + 4], "big")
    return properties[at + 4 : at + 4 + size]


def _find(table: bytes, header: bytes) -> bytes | None:
    at = 0
    while at < len(table):
        name_end = at + 1 + table[at]
        kind = table[name_end]
        start = name_end + 1
        if kind in _LONG:
            size = int.from_bytes(table[start : start + 4], "big")
            start += 4
        elif kind in _FIXED:
            size = _FIXED[kind]
        else:
            return None
        if table[at + 1 : name_end] == header:
            return table[start : start + size] if start + size <= len(table) else None
        at = start + size
    return None
