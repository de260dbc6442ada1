"""How settings are written: durations, sizes, ports, names and peers, as pure functions of text.

Each takes the text and returns the value, or raises ValueError whose message says what would be
right. `config` adds where the text stood.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

PORT_MAX = 65_535
NAME_CHARACTERS_MAX = 63  # as in DNS labels and Kubernetes names
PEERS_COUNT_MAX = 64

_DURATION_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SIZE_UNITS = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
_QUANTITY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([A-Za-z]*)", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Peer:
    name: str
    host: str
    port: int


def text(written: str) -> str:
    if not written.strip():
        raise ValueError("it may not be empty")
    return written


def text_or_empty(written: str) -> str:
    return written


def name(written: str) -> str:
    if not _NAME.fullmatch(written) or len(written) > NAME_CHARACTERS_MAX:
        raise ValueError(
            f"a name is 1 to {NAME_CHARACTERS_MAX} letters, digits, '.', '_' or '-', "
            "and begins with a letter or digit"
        )
    return written


def port(written: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", written, re.ASCII) or int(written) > PORT_MAX:
        raise ValueError(f"a port is a number from 0 (any free one) to {PORT_MAX}")
    return int(written)


def duration_s(written: str) -> float:
    """`100ms`, `5s`, `1.5m`, `2h`, `7d`, or `0`."""
    return float(
        _quantity(written, _DURATION_UNITS_MS, "a duration like 100ms, 5s, 2m or 0") / 1000
    )


def size_bytes(written: str) -> int:
    """`64MB` is 64 million bytes, `64MiB` is 64 times 2**20; a bare number is bytes."""
    bare = written.strip()
    if re.fullmatch(r"[0-9]{1,15}", bare, re.ASCII):
        return int(bare)
    size = _quantity(written, _SIZE_UNITS, "a size like 4096, 64MB or 1GiB")
    if size.denominator != 1:
        raise ValueError("it is not a whole number of bytes")
    return int(size)


def duration_between(low: str, high: str, *, zero_allowed: bool = False) -> Callable[[str], float]:
    low_s, high_s = duration_s(low), duration_s(high)

    def parse(written: str) -> float:
        seconds = duration_s(written)
        if not (low_s <= seconds <= high_s or (zero_allowed and seconds == 0)):
            raise ValueError(f"it must be {'0 or ' if zero_allowed else ''}from {low} to {high}")
        return seconds

    return parse


def size_between(low: str, high: str) -> Callable[[str], int]:
    low_bytes, high_bytes = size_bytes(low), size_bytes(high)

    def parse(written: str) -> int:
        size = size_bytes(written)
        if not low_bytes <= size <= high_bytes:
            raise ValueError(f"it must be from {low} to {high}")
        return size

    return parse


def number_between(low: int, high: int, *, words: Mapping[str, int]) -> Callable[[str], int]:
    """A whole number, or one of a few words that stand for one."""

    def parse(written: str) -> int:
        if written in words:
            return words[written]
        digits = re.fullmatch(r"[0-9]{1,15}", written, re.ASCII)
        if not digits or not low <= int(written) <= high:
            choices = " or ".join([f"a number from {low} to {high}", *words])
            raise ValueError(f"it must be {choices}")
        return int(written)

    return parse


def one_of(*choices: str) -> Callable[[str], str]:
    def parse(written: str) -> str:
        if written not in choices:
            raise ValueError(f"it must be one of {', '.join(choices)}")
        return written

    return parse


def peers(written: str) -> tuple[Peer, ...]:
    """`NAME=HOST:PORT` with commas between; an IPv6 host stands in square brackets."""
    found: dict[str, Peer] = {}
    for item in filter(None, (part.strip() for part in written.split(","))):
        new = _peer(item)
        if new.name in found:
            raise ValueError(f"{new.name} is listed twice")
        found[new.name] = new
    if len(found) > PEERS_COUNT_MAX:
        raise ValueError(f"{len(found)} peers are more than {PEERS_COUNT_MAX}")
    return tuple(found.values())


def _peer(item: str) -> Peer:
    match = re.fullmatch(r"([^=]+)=(\[[0-9A-Fa-f:.%]+\]|[^:\[\]\s]+):([0-9]+)", item, re.ASCII)
    if match is None:
        raise ValueError(f"{item!r} is not NAME=HOST:PORT")
    peer_name, host, peer_port = match.groups()
    try:
        found = Peer(name(peer_name), host.strip("[]"), port(peer_port))
    except ValueError as error:
        raise ValueError(f"in {item!r}: {error}") from error
    if found.port == 0:
        raise ValueError(f"in {item!r}: others must know the port, so it cannot be 0")
    return found


def _quantity(written: str, unit_sizes: Mapping[str, int], right: str) -> Fraction:
    match = _QUANTITY.fullmatch(written.strip())
    if match is None:
        raise ValueError(f"write {right}")
    number, unit = Fraction(match[1]), match[2]
    if not unit and number == 0:
        return Fraction(0)
    if unit not in unit_sizes:
        said = f"unit {unit!r} is not known" if unit else "it has no unit"
        raise ValueError(f"{said}; write {right}")
    return number * unit_sizes[unit]
