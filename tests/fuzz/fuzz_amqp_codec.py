"""Throws damaged tables, methods and content headers at their decoders for a bounded time.

`python tests/fuzz/fuzz_amqp_codec.py --seconds 30 --seed 7`. A round is decided by the seed and its
number alone; when one fails, both are printed and the exit status is 1.

What must hold: a decoder returns a value that is encoded and decoded again without change, or it
raises PeerError with an AMQP code that closes the connection; a changed property list is the list
of the changed properties.
"""

import dataclasses
import random
import struct
import sys
from pathlib import Path
from typing import Any, get_args

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lograft_wire.amqp import codes, fields, layouts, methods, primitives, properties, tables
from lograft_wire.amqp.fields import Value
from lograft_wire.errors import PeerError
from support import fuzzing

EDGES = (0, 1, 2, 127, 128, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1)
# Small, so that the limits are met often.
LIMITS = tables.Limits(table_bytes_max=600, entry_count_max=40, depth_max=5)
INTEGERS = (
    (fields.Int8, -(2**7), 2**7),
    (fields.UInt8, 0, 2**8),
    (fields.Int16, -(2**15), 2**15),
    (fields.UInt16, 0, 2**16),
    (fields.Int32, -(2**31), 2**31),
    (fields.UInt32, 0, 2**32),
    (fields.Int64, -(2**63), 2**63),
    (fields.Long64, -(2**63), 2**63),
)
REFUSALS = {codes.FRAME_ERROR, codes.SYNTAX_ERROR, codes.COMMAND_INVALID, codes.UNEXPECTED_FRAME}


def fuzz_round(rng: random.Random) -> None:
    for _ in range(10):
        check_table(rng)
        check_method(rng)
        check_content_header(rng)


def check_table(rng: random.Random) -> None:
    table = random_table(rng, depth=1)
    entries = tables.encode(table)
    assert fields.equal(tables.decode(entries), table), table
    try:
        found = tables.decode(damaged(rng, entries), limits=LIMITS)
    except PeerError as error:
        check_refusal(error)
        return
    assert fields.equal(tables.decode(tables.encode(found), limits=LIMITS), found), found


def check_method(rng: random.Random) -> None:
    payload = methods.encode(random_method(rng))
    methods.decode_payload(payload)
    try:
        found = methods.decode_payload(damaged(rng, payload), limits=LIMITS)
    except PeerError as error:
        check_refusal(error)
        return
    again = methods.decode_payload(methods.encode(found), limits=LIMITS)
    assert same(again, found), found


def check_content_header(rng: random.Random) -> None:
    data = properties.encode(random_properties(rng))
    properties.decode(data)
    header = properties.ContentHeader(body_bytes=rng.getrandbits(64), properties=data)
    payload = damaged(rng, properties.encode_header(header))
    try:
        data = properties.decode_header(payload).properties
        found = properties.decode(data, limits=LIMITS)
    except PeerError as error:
        check_refusal(error)
        return
    assert same(properties.decode(properties.encode(found)), found), found
    without = properties.with_headers(properties.with_expiration(data, None), None)
    assert properties.encode(dataclasses.replace(found, headers=None, expiration=None)) == without


def check_refusal(error: PeerError) -> None:
    assert error.closes_connection
    assert error.reply_code in REFUSALS, error.reply_code
    text = codes.reply_text(error.reply_code, str(error))
    methods.encode(methods.ConnectionClose(reply_code=error.reply_code, reply_text=text))


def same(a: object, b: object) -> bool:
    """Equal values of equal types, tables included."""
    assert dataclasses.is_dataclass(a)
    return type(a) is type(b) and all(
        fields.equal(getattr(a, field.name), getattr(b, field.name))
        if isinstance(getattr(a, field.name), dict)
        else getattr(a, field.name) == getattr(b, field.name)
        for field in dataclasses.fields(a)
    )


def damaged(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.randrange(4)):
        damage(rng, out)
    return bytes(out)


def damage(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data) + 1)
    match rng.randrange(7):
        case 0 if at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        case 1:
            del data[at:]
        case 2:
            data[at:at] = rng.randbytes(rng.randrange(1, 16))
        case 3:
            del data[at : at + rng.randrange(1, 16)]
        case 4 if at + 4 <= len(data):
            struct.pack_into(">I", data, at, rng.choice(EDGES))
        case 5 if at < len(data):
            data[at] = rng.choice(b"tbBsuIilLfdDSATFVx")
        case 6:
            data[at:at] = data[at : at + 40] * rng.randrange(1, 8)


def random_text(rng: random.Random) -> str:
    return rng.choice(("", "k", "x-message-ttl", "größe", "日本", "a" * rng.randrange(60)))


def random_value(rng: random.Random, depth: int) -> Value:
    match rng.randrange(9 if depth < 4 else 7):
        case 0:
            make, low, high = rng.choice(INTEGERS)
            return make(rng.randrange(low, high))
        case 1:
            number = struct.unpack(">f", rng.randbytes(4))[0]
            return rng.choice((fields.Float32(number), float(number)))
        case 2:
            return rng.choice((True, False, None))
        case 3:
            return random_text(rng)
        case 4:
            data = rng.randbytes(rng.randrange(20))
            return rng.choice((data, fields.LongStr(data)))
        case 5:
            return fields.Timestamp(rng.getrandbits(64))
        case 6:
            return fields.Decimal(scale=rng.randrange(256), value=rng.getrandbits(32))
        case 7:
            return [random_value(rng, depth + 1) for _ in range(rng.randrange(5))]
        case _:
            return random_table(rng, depth + 1)


def random_table(rng: random.Random, depth: int) -> dict[str, Value]:
    return {random_text(rng): random_value(rng, depth) for _ in range(rng.randrange(5))}


def random_method(rng: random.Random) -> methods.Method:
    def value(kind: object) -> object:
        if kind == primitives.OCTET:
            return rng.getrandbits(8)
        if kind == primitives.SHORT:
            return rng.getrandbits(16)
        if kind == primitives.LONG:
            return rng.getrandbits(32)
        if kind == primitives.LONGLONG:
            return rng.getrandbits(64)
        if kind == primitives.LONG_STRING:
            return rng.randbytes(rng.randrange(30))
        if kind == primitives.TABLE:
            return random_table(rng, depth=1)
        if kind in (primitives.SHORT_STRING, primitives.RAW_STRING):
            return random_text(rng)
        return rng.random() < 0.5

    make = layouts.LAYOUTS[rng.choice(sorted(layouts.LAYOUTS))].make
    arguments = dataclasses.fields(make)
    method: methods.Method = make(**{one.name: value(get_args(one.type)[1]) for one in arguments})
    return method


def random_properties(rng: random.Random) -> properties.Properties:
    given: dict[str, Any] = {
        field.name: random_text(rng) for field in dataclasses.fields(properties.Properties)
    }
    given |= {"headers": random_table(rng, depth=1), "timestamp": rng.getrandbits(64)}
    given |= {"delivery_mode": rng.getrandbits(8), "priority": rng.getrandbits(8)}
    chosen = {name: value for name, value in given.items() if rng.random() < 0.5}
    return properties.Properties(**chosen)


if __name__ == "__main__":
    sys.exit(fuzzing.main("fuzz_amqp_codec", fuzz_round))
