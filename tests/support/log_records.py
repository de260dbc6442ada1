"""Hypothesis strategies for records and for frames that are whole, cut or damaged."""

from hypothesis import strategies as st

from lograft_log.hot.record import Record
from oracle import record as oracle

keys = st.none() | st.binary(max_size=20)
timestamps = st.integers(0, 1 << 63)


@st.composite
def rows(draw: st.DrawFn, *, max_size: int = 8) -> list[oracle.Row]:
    """Records with rising offsets; sometimes with gaps."""
    offset = draw(st.integers(0, 1 << 40))
    result: list[oracle.Row] = []
    for _ in range(draw(st.integers(0, max_size))):
        offset += draw(st.sampled_from((0, 0, 0, 1, 1000)))
        result.append(
            (
                offset,
                draw(timestamps),
                draw(keys),
                draw(st.binary(max_size=30)),
                draw(st.binary(max_size=80)),
                draw(st.booleans()),
            )
        )
        offset += 1
    return result


def make(row: oracle.Row) -> Record:
    offset, timestamp_ms, key, headers, body, tombstone = row
    return Record(
        body,
        key=key,
        headers=headers,
        timestamp_ms=timestamp_ms,
        offset=offset,
        tombstone=tombstone,
    )


def split(item: Record) -> oracle.Row:
    return (item.offset, item.timestamp_ms, item.key, item.headers, item.body, item.tombstone)


@st.composite
def frames(draw: st.DrawFn) -> bytes:
    """Plain records and batches; the batches' insides are nonsense, which a scan does not see."""
    parts = []
    for part in draw(st.lists(rows(max_size=4), max_size=3)):
        parts.append(oracle.encode(part))
        if draw(st.booleans()):
            first = draw(st.integers(0, 1 << 41))
            parts.append(
                oracle.wrap(
                    draw(st.binary(max_size=40)),
                    codec=draw(st.integers(0, 3)),
                    count=draw(st.integers(0, 5)),
                    first=first,
                    last=first + draw(st.integers(-1, 9)) if first else 0,
                    plain=draw(st.integers(0, 1 << 31)),
                )
            )
    return b"".join(parts)


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    data = bytearray(draw(whole))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        match draw(st.integers(0, 3)):
            case 0:
                data[at : at + 1] = bytes([draw(st.integers(0, 255))])
            case 1:
                del data[at:]
            case 2:
                del data[at : at + draw(st.integers(1, 40))]
            case _:
                data[at:at] = draw(st.binary(max_size=40))
    return bytes(data)
