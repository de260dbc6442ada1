"""What a client says in its login, by mechanism: PLAIN, AMQPLAIN, EXTERNAL. Pure."""

from dataclasses import dataclass, field

from lograft_wire.amqp import codes, tables
from lograft_wire.errors import PeerError


@dataclass(frozen=True, slots=True)
class Login:
    user: str
    password: bytes = field(repr=False)


def read(mechanism: str, response: bytes) -> Login:
    """Raises PeerError where the response is not of that mechanism's form."""
    match mechanism:
        case "PLAIN":
            return _plain(response)
        case "AMQPLAIN":
            return _amqplain(response)
        case "EXTERNAL":
            return Login(_text(response), b"")  # the certificate says the rest
    raise codes.error(codes.COMMAND_INVALID, f"unknown authentication mechanism '{mechanism}'")


def _plain(response: bytes) -> Login:
    """authorization id, NUL, user, NUL, password. The first is what RabbitMQ ignores too."""
    parts = response.split(b"\0")
    if len(parts) != 3:
        raise _bad("response of PLAIN is not of the form NUL user NUL password")
    return Login(_text(parts[1]), parts[2])


def _amqplain(response: bytes) -> Login:
    try:
        given = tables.decode(response)
    except PeerError as error:
        raise _bad("response of AMQPLAIN is not a table") from error
    user, password = given.get("LOGIN"), given.get("PASSWORD")
    if not isinstance(user, str | bytes) or not isinstance(password, str | bytes):
        raise _bad("response of AMQPLAIN lacks LOGIN or PASSWORD")
    return Login(_text(_bytes(user)), _bytes(password))


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise _bad("user name is not UTF-8") from error


def _bad(text: str) -> PeerError:
    return codes.error(codes.SYNTAX_ERROR, text)
