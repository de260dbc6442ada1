"""The frame around every AMQP payload, and the bytes that open a connection.

For rare frames and for the client; the broker's data plane has its own, compiled. Frame sizes are
the caller's care: a method is never split, a body is cut by whoever sends it.
"""

import struct

PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"

METHOD = 1
HEADER = 2
BODY = 3
HEARTBEAT = 8

# type u8 | channel u16 | payload_bytes u32, then the payload and the end octet
PREFIX = struct.Struct(">BHI")
assert PREFIX.size == 7
END = b"\xce"
OVERHEAD_BYTES = PREFIX.size + len(END)


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    return PREFIX.pack(kind, channel, len(payload)) + payload + END


HEARTBEAT_FRAME = frame(HEARTBEAT, 0, b"")
