"""Methods of the classes connection, channel and access. Use them from `methods`."""

from dataclasses import field

from lograft_wire.amqp.layouts import (
    Bit,
    Long,
    LongString,
    Method,
    Octet,
    Short,
    ShortString,
    Table,
    method,
)

__all__ = [
    "AccessRequest",
    "AccessRequestOk",
    "ChannelClose",
    "ChannelCloseOk",
    "ChannelFlow",
    "ChannelFlowOk",
    "ChannelOpen",
    "ChannelOpenOk",
    "ConnectionBlocked",
    "ConnectionClose",
    "ConnectionCloseOk",
    "ConnectionOpen",
    "ConnectionOpenOk",
    "ConnectionSecure",
    "ConnectionSecureOk",
    "ConnectionStart",
    "ConnectionStartOk",
    "ConnectionTune",
    "ConnectionTuneOk",
    "ConnectionUnblocked",
    "ConnectionUpdateSecret",
    "ConnectionUpdateSecretOk",
]


@method(10, 10, "connection.start")
class ConnectionStart(Method):
    version_major: Octet = 0
    version_minor: Octet = 9
    server_properties: Table = field(default_factory=dict)
    mechanisms: LongString = b"PLAIN"  # separated by spaces
    locales: LongString = b"en_US"


@method(10, 11, "connection.start-ok")
class ConnectionStartOk(Method):
    client_properties: Table = field(default_factory=dict)
    mechanism: ShortString = "PLAIN"
    response: LongString = field(default=b"", repr=False)  # holds the password
    locale: ShortString = "en_US"


@method(10, 20, "connection.secure")
class ConnectionSecure(Method):
    challenge: LongString


@method(10, 21, "connection.secure-ok")
class ConnectionSecureOk(Method):
    response: LongString = field(repr=False)


@method(10, 30, "connection.tune")
class ConnectionTune(Method):
    channel_max: Short = 0
    frame_max: Long = 0
    heartbeat: Short = 0  # seconds


@method(10, 31, "connection.tune-ok")
class ConnectionTuneOk(Method):
    channel_max: Short = 0
    frame_max: Long = 0
    heartbeat: Short = 0  # seconds


@method(10, 40, "connection.open")
class ConnectionOpen(Method):
    virtual_host: ShortString = "/"
    reserved_capabilities: ShortString = ""
    reserved_insist: Bit = False


@method(10, 41, "connection.open-ok")
class ConnectionOpenOk(Method):
    reserved_known_hosts: ShortString = ""


@method(10, 50, "connection.close")
class ConnectionClose(Method):
    reply_code: Short
    reply_text: ShortString = ""
    class_id: Short = 0  # of the method that is to blame, 0 if none is
    method_id: Short = 0


@method(10, 51, "connection.close-ok")
class ConnectionCloseOk(Method):
    pass


@method(10, 60, "connection.blocked")
class ConnectionBlocked(Method):
    reason: ShortString = ""


@method(10, 61, "connection.unblocked")
class ConnectionUnblocked(Method):
    pass


@method(10, 70, "connection.update-secret")
class ConnectionUpdateSecret(Method):
    new_secret: LongString = field(repr=False)
    reason: ShortString = ""


@method(10, 71, "connection.update-secret-ok")
class ConnectionUpdateSecretOk(Method):
    pass


@method(20, 10, "channel.open")
class ChannelOpen(Method):
    reserved_out_of_band: ShortString = ""


@method(20, 11, "channel.open-ok")
class ChannelOpenOk(Method):
    reserved_channel_id: LongString = b""


@method(20, 20, "channel.flow")
class ChannelFlow(Method):
    active: Bit


@method(20, 21, "channel.flow-ok")
class ChannelFlowOk(Method):
    active: Bit


@method(20, 40, "channel.close")
class ChannelClose(Method):
    reply_code: Short
    reply_text: ShortString = ""
    class_id: Short = 0  # of the method that is to blame, 0 if none is
    method_id: Short = 0


@method(20, 41, "channel.close-ok")
class ChannelCloseOk(Method):
    pass


# A remnant of AMQP 0-8 that old clients still send: answered, and of no effect.
@method(30, 10, "access.request")
class AccessRequest(Method):
    realm: ShortString = "/data"
    exclusive: Bit = False
    passive: Bit = True
    active: Bit = True
    write: Bit = True
    read: Bit = True


@method(30, 11, "access.request-ok")
class AccessRequestOk(Method):
    ticket: Short = 1
