"""AMQP 0-9-1 methods, RabbitMQ's extensions included: one frozen dataclass each, and their bytes.

A method frame's payload is class_id u16 | method_id u16 | arguments. Both directions are here for
all methods: the broker decodes what the client encodes, and the other way round. The classes stand
in three files by AMQP class and are used from here: `methods.QueueDeclare`. What a method does is
the business of channel and connection; publish, ack and deliver pass through the broker's compiled
data plane and not through this.
"""

from lograft_wire.amqp import codes, framing, layouts, tables

# One module in three files: each name of theirs is a name of this one.
from lograft_wire.amqp.methods_basic import *  # noqa: F403
from lograft_wire.amqp.methods_connection import *  # noqa: F403
from lograft_wire.amqp.methods_topology import *  # noqa: F403

Method = layouts.Method

_IDS_BYTES = 4


def decode(
    class_id: int, method_id: int, arguments: bytes, *, limits: tables.Limits = tables.LIMITS
) -> Method:
    """The method with these ids whose arguments are exactly these bytes.

    PeerError 503 if there is no such method, 502 if the arguments are not its.
    """
    layout = layouts.LAYOUTS.get((class_id, method_id))
    if layout is None:
        raise codes.error(
            codes.COMMAND_INVALID, f"unimplemented method: class {class_id}, method {method_id}"
        )
    method: Method = layout.decode(arguments, limits)
    return method


def decode_payload(payload: bytes, *, limits: tables.Limits = tables.LIMITS) -> Method:
    """The method of a whole method frame's payload: what `encode` made."""
    if len(payload) < _IDS_BYTES:
        raise codes.error(codes.FRAME_ERROR, f"method frame of {len(payload)} bytes")
    class_id, method_id = int.from_bytes(payload[:2]), int.from_bytes(payload[2:_IDS_BYTES])
    return decode(class_id, method_id, payload[_IDS_BYTES:], limits=limits)


def encode(method: Method) -> bytes:
    """The payload of its method frame. ValueError if an argument does not fit its type."""
    return layouts.LAYOUTS[method.CLASS_ID, method.METHOD_ID].encode(method)


def frame(channel: int, method: Method) -> bytes:
    return framing.frame(framing.METHOD, channel, encode(method))
