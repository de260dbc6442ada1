"""Weighted choice by hash, slowly and obviously: the specification of hot/rendezvous.pyx."""

import decimal
from collections.abc import Sequence
from fractions import Fraction

WORD = 1 << 64
SCALE = 1 << 32  # a cost counts 2**-32
STEPS = 256

_EXACT = decimal.Context(prec=60)
_LOG_2 = _EXACT.ln(decimal.Decimal(2))
LOGARITHMS = [
    int(_EXACT.ln(decimal.Decimal(STEPS + step) / STEPS) / _LOG_2 * SCALE) for step in range(STEPS)
] + [SCALE]


def mix(value: int) -> int:
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB % WORD
    return value ^ (value >> 31)


def hash_bytes(data: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % WORD
    return mix(value)


def cost(value: int) -> int:
    """-log2(value / 2**64), by straight lines between 256 steps of each power of two."""
    power = value.bit_length() - 1
    below = (value - (1 << power)) * SCALE >> power  # the part behind the leading bit
    step, part = divmod(below, SCALE // STEPS)
    rise = LOGARITHMS[step + 1] - LOGARITHMS[step]
    return (64 - power) * SCALE - LOGARITHMS[step] - rise * part * STEPS // SCALE


def choose(names: Sequence[bytes], weights: Sequence[int], value: bytes) -> int:
    """Of equals the first."""
    costs = [
        Fraction(cost(mix(hash_bytes(value) ^ hash_bytes(name)) | 1), weight)
        for name, weight in zip(names, weights, strict=True)
    ]
    return costs.index(min(costs)) if costs else -1
