"""A short run of the AMQP codec fuzzer with a fixed seed, and proof that it can fail."""

import pytest

from fuzz import fuzz_amqp_codec
from lograft_wire.amqp import primitives, tables
from lograft_wire.errors import PeerError
from support import fuzzing


def test_damaged_tables_methods_and_headers_are_refused() -> None:
    rounds, failed = fuzzing.run(fuzz_amqp_codec.fuzz_round, seconds=2.0, seed=20_261_118)
    assert not failed
    assert rounds > 10


def test_a_string_without_its_bounds_check_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def skip(reader: primitives.Reader, size: int) -> int:
        start = reader._at
        reader._at += size
        return start

    monkeypatch.setattr(primitives.Reader, "skip", skip)
    _, failed = fuzzing.run(fuzz_amqp_codec.fuzz_round, seconds=20.0, seed=1)
    assert failed


def test_a_value_of_the_wrong_type_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tables._FIXED_BY_OCTET, ord("u"), tables._FIXED["s"])
    _, failed = fuzzing.run(fuzz_amqp_codec.fuzz_round, seconds=20.0, seed=1)
    assert failed


def test_a_refusal_that_would_close_only_the_channel_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def mild(text: str) -> PeerError:
        return PeerError(text, reply_code=406, closes_connection=False)

    monkeypatch.setattr(tables, "_bad", mild)
    _, failed = fuzzing.run(fuzz_amqp_codec.fuzz_round, seconds=20.0, seed=1)
    assert failed
