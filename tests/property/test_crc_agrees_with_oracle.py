"""The compiled CRC-32C, by instruction and by tables, against its definition."""

from hypothesis import given
from hypothesis import strategies as st

from lograft_log.hot import crc
from oracle import crc as oracle


def test_known_answer() -> None:
    assert crc.checksum(b"123456789") == 0xE3069283


@given(st.binary(max_size=4000), st.integers(0, 4000), st.integers(0, 7))
def test_agrees_with_oracle(data: bytes, cut: int, repeat: int) -> None:
    data = data * repeat  # long enough for the three-stream loops
    expected = oracle.checksum(data)
    assert crc.checksum(data) == expected
    assert crc.checksum_plain(data) == expected
    assert crc.checksum(data[cut:], crc.checksum(data[:cut])) == expected
