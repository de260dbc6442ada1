"""How settings are written."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lograft_wire import units


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("0", 0), ("100ms", 0.1), ("5s", 5), ("1.5m", 90), ("2h", 7200), ("7d", 604800), (" 5 s ", 5)],
)
def test_duration_with_unit(written: str, seconds: float) -> None:
    assert units.duration_s(written) == seconds


@pytest.mark.parametrize(
    "written", ["", "5", "s", "-1s", "5 sec", "1e3s", "٣s", "5s5s", "nan", "0.1.2s"]
)
def test_duration_that_cannot_be_read_says_how_to_write_one(written: str) -> None:
    with pytest.raises(ValueError, match="a duration like 100ms, 5s, 2m or 0"):
        units.duration_s(written)


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("0", 0),
        ("4096", 4096),
        ("64MB", 64_000_000),
        ("64MiB", 2**26),
        ("1GiB", 2**30),
        ("1.5KB", 1500),
    ],
)
def test_size_with_unit(written: str, size: int) -> None:
    assert units.size_bytes(written) == size


@pytest.mark.parametrize("written", ["", "64mb", "64 MBit", "-1", "1.5", "one"])
def test_size_that_cannot_be_read_says_how_to_write_one(written: str) -> None:
    with pytest.raises(ValueError, match="a size like 4096, 64MB or 1GiB"):
        units.size_bytes(written)


def test_size_must_be_whole_bytes() -> None:
    with pytest.raises(ValueError, match="whole number of bytes"):
        units.size_bytes("1.0001KB")


def test_duration_range_includes_its_ends_and_zero_only_when_allowed() -> None:
    parse = units.duration_between("10ms", "1h", zero_allowed=True)
    assert (parse("0"), parse("10ms"), parse("1h")) == (0, 0.01, 3600)
    for outside in ("9ms", "61m"):
        with pytest.raises(ValueError, match="0 or from 10ms to 1h"):
            parse(outside)
    with pytest.raises(ValueError, match="from 10ms to 1h"):
        units.duration_between("10ms", "1h")("0")


def test_peers_with_names_hosts_and_ipv6() -> None:
    assert units.peers("a=10.0.0.1:7471, b=b.local:1,c=[::1]:7473") == (
        units.Peer("a", "10.0.0.1", 7471),
        units.Peer("b", "b.local", 1),
        units.Peer("c", "::1", 7473),
    )
    assert units.peers("") == ()


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("a", "'a' is not NAME=HOST:PORT"),
        ("a=h", "'a=h' is not NAME=HOST:PORT"),
        ("a=::1:5", "'a=::1:5' is not NAME=HOST:PORT"),
        ("a=h:1,a=h:2", "a is listed twice"),
        ("a@1=h:1", "a name is 1 to 63"),
        ("a=h:70000", "a port is a number"),
        ("a=h:0", "cannot be 0"),
    ],
)
def test_peers_that_cannot_be_read(written: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        units.peers(written)


def test_too_many_peers_are_refused() -> None:
    many = ",".join(f"n{number}=h:1" for number in range(units.PEERS_COUNT_MAX + 1))
    with pytest.raises(ValueError, match="65 peers are more than 64"):
        units.peers(many)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused_with_a_value_error(written: str) -> None:
    for parse in (units.duration_s, units.size_bytes, units.port, units.peers, units.name):
        with contextlib.suppress(ValueError):
            parse(written)
