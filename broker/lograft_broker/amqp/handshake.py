"""The beginning of an AMQP connection: header, login, tune, open; a machine without I/O.

It is given what the client sends and answers with steps: what to send, whom to check, how it ends.
Passwords are checked elsewhere, because that takes time; until the answer comes nothing else is
read. Once a vhost is open the connection itself takes over.
"""

from dataclasses import dataclass, field
from enum import Enum, auto

from lograft_broker.amqp import sasl
from lograft_wire.amqp import codes, framing, methods
from lograft_wire.amqp.fields import Table
from lograft_wire.amqp.methods import Method
from lograft_wire.errors import PeerError

FRAME_BYTES_MIN = 4096  # what every peer must accept, and all that is read before the login


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What the broker proposes to a client."""

    server_properties: Table
    mechanisms: tuple[str, ...] = ("PLAIN", "AMQPLAIN")
    channel_max: int = 2047
    frame_bytes_max: int = 131_072
    heartbeat_s: int = 60


@dataclass(frozen=True, slots=True)
class Send:
    method: Method


@dataclass(frozen=True, slots=True)
class SendHeader:
    """To a client of another protocol: our own header, and the socket is closed."""


@dataclass(frozen=True, slots=True)
class CheckLogin:
    """`logged_in` or `refused` must follow."""

    user: str
    password: bytes = field(repr=False)
    mechanism: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreed:
    channel_max: int
    frame_bytes_max: int
    heartbeat_s: int  # 0: none


@dataclass(frozen=True, slots=True)
class OpenVhost:
    """`opened` must follow, or the connection is closed with the reason."""

    vhost: str


@dataclass(frozen=True, slots=True)
class Drop:
    """Close the socket without a word: the client does not know the one for it."""

    why: str


Step = Send | SendHeader | CheckLogin | Agreed | OpenVhost | Drop


class _Expects(Enum):
    HEADER = auto()
    START_OK = auto()
    LOGIN = auto()
    TUNE_OK = auto()
    OPEN = auto()
    VHOST = auto()
    NOTHING = auto()


class Handshake:
    def __init__(self, offer: Offer) -> None:
        self.client_properties: Table = {}
        self.user = ""
        self._offer = offer
        self._expects = _Expects.HEADER
        self._mechanism = ""

    def __repr__(self) -> str:
        return f"Handshake({self._expects.name}, user={self.user!r})"

    @property
    def is_over(self) -> bool:
        return self._expects is _Expects.NOTHING

    def header(self, data: bytes) -> list[Step]:
        assert self._expects is _Expects.HEADER, self
        if data != framing.PROTOCOL_HEADER:
            self._expects = _Expects.NOTHING
            return [SendHeader()]
        self._expects = _Expects.START_OK
        start = methods.ConnectionStart(
            server_properties=self._offer.server_properties,
            mechanisms=" ".join(self._offer.mechanisms).encode(),
        )
        return [Send(start)]

    def receive(self, method: Method) -> list[Step]:
        """Raises what the connection is closed with."""
        match self._expects, method:
            case _Expects.START_OK, methods.ConnectionStartOk():
                return self._start_ok(method)
            case _Expects.TUNE_OK, methods.ConnectionTuneOk():
                return self._tune_ok(method)
            case _Expects.OPEN, methods.ConnectionOpen():
                self._expects = _Expects.VHOST
                return [OpenVhost(method.virtual_host)]
        raise codes.error(codes.COMMAND_INVALID, f"{method.NAME} is not expected now")

    def logged_in(self) -> list[Step]:
        assert self._expects is _Expects.LOGIN, self
        self._expects = _Expects.TUNE_OK
        offer = self._offer
        tune = methods.ConnectionTune(
            channel_max=offer.channel_max,
            frame_max=offer.frame_bytes_max,
            heartbeat=offer.heartbeat_s,
        )
        return [Send(tune)]

    def refused(self) -> list[Step]:
        """A wrong name or password, or a user who may not come from there."""
        self._expects = _Expects.NOTHING
        text = (
            f"Login was refused using authentication mechanism {self._mechanism}. "
            "For details see the broker logfile."
        )
        if not self.client_can("authentication_failure_close"):
            return [Drop(text)]
        raise PeerError(text, reply_code=codes.ACCESS_REFUSED)

    def opened(self) -> list[Step]:
        assert self._expects is _Expects.VHOST, self
        self._expects = _Expects.NOTHING
        return [Send(methods.ConnectionOpenOk())]

    def client_can(self, capability: str) -> bool:
        capabilities = self.client_properties.get("capabilities")
        return isinstance(capabilities, dict) and capabilities.get(capability) is True

    def _start_ok(self, method: methods.ConnectionStartOk) -> list[Step]:
        self.client_properties = dict(method.client_properties)
        self._mechanism = method.mechanism
        if method.mechanism not in self._offer.mechanisms:
            raise codes.error(
                codes.COMMAND_INVALID, f"unknown authentication mechanism '{method.mechanism}'"
            )
        login = sasl.read(method.mechanism, method.response)
        self.user = login.user
        self._expects = _Expects.LOGIN
        return [CheckLogin(login.user, login.password, method.mechanism)]

    def _tune_ok(self, method: methods.ConnectionTuneOk) -> list[Step]:
        offer = self._offer
        _check("channel_max", method.channel_max, offer.channel_max)
        _check("frame_max", method.frame_max, offer.frame_bytes_max)
        if method.frame_max and method.frame_max < FRAME_BYTES_MIN:
            raise codes.error(
                codes.NOT_ALLOWED,
                f"negotiated frame_max = {method.frame_max} is lower than the minimum allowed "
                f"value ({FRAME_BYTES_MIN})",
            )
        self._expects = _Expects.OPEN
        agreed = Agreed(
            channel_max=method.channel_max or 0xFFFF,
            frame_bytes_max=method.frame_max or offer.frame_bytes_max,
            heartbeat_s=method.heartbeat,
        )
        return [agreed]


def _check(name: str, asked: int, offered: int) -> None:
    """Zero means no limit, which is more than any limit."""
    if offered and (asked == 0 or asked > offered):
        shown = f"{asked} (no limit)" if asked == 0 else str(asked)
        raise codes.error(
            codes.NOT_ALLOWED,
            f"negotiated {name} = {shown} is higher than the maximum allowed value ({offered})",
        )
