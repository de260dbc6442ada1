"""Reply codes of AMQP 0-9-1: their names, what each one ends, and the text that goes with them.

The names are RabbitMQ's, because clients read them in reply-text. Whoever finds the mistake raises
`error(code, text)`; the edge that closes the channel or connection writes `reply_text(...)`.
"""

from lograft_wire.errors import PeerError

REPLY_SUCCESS = 200

# Told by basic.return; nothing is closed.
CONTENT_TOO_LARGE = 311
NO_ROUTE = 312
NO_CONSUMERS = 313

CONNECTION_FORCED = 320
INVALID_PATH = 402
ACCESS_REFUSED = 403
NOT_FOUND = 404
RESOURCE_LOCKED = 405
PRECONDITION_FAILED = 406
FRAME_ERROR = 501
SYNTAX_ERROR = 502
COMMAND_INVALID = 503
CHANNEL_ERROR = 504
UNEXPECTED_FRAME = 505
RESOURCE_ERROR = 506
NOT_ALLOWED = 530
NOT_IMPLEMENTED = 540
INTERNAL_ERROR = 541

NAMES = {
    REPLY_SUCCESS: "REPLY_SUCCESS",
    CONTENT_TOO_LARGE: "CONTENT_TOO_LARGE",
    NO_ROUTE: "NO_ROUTE",
    NO_CONSUMERS: "NO_CONSUMERS",
    CONNECTION_FORCED: "CONNECTION_FORCED",
    INVALID_PATH: "INVALID_PATH",
    ACCESS_REFUSED: "ACCESS_REFUSED",
    NOT_FOUND: "NOT_FOUND",
    RESOURCE_LOCKED: "RESOURCE_LOCKED",
    PRECONDITION_FAILED: "PRECONDITION_FAILED",
    FRAME_ERROR: "FRAME_ERROR",
    SYNTAX_ERROR: "SYNTAX_ERROR",
    COMMAND_INVALID: "COMMAND_INVALID",
    CHANNEL_ERROR: "CHANNEL_ERROR",
    UNEXPECTED_FRAME: "UNEXPECTED_FRAME",
    RESOURCE_ERROR: "RESOURCE_ERROR",
    NOT_ALLOWED: "NOT_ALLOWED",
    NOT_IMPLEMENTED: "NOT_IMPLEMENTED",
    INTERNAL_ERROR: "INTERNAL_ERROR",
}

CHANNEL_CODES = frozenset({ACCESS_REFUSED, NOT_FOUND, RESOURCE_LOCKED, PRECONDITION_FAILED})
CONNECTION_CODES = frozenset(
    {
        CONNECTION_FORCED,
        INVALID_PATH,
        FRAME_ERROR,
        SYNTAX_ERROR,
        COMMAND_INVALID,
        CHANNEL_ERROR,
        UNEXPECTED_FRAME,
        RESOURCE_ERROR,
        NOT_ALLOWED,
        NOT_IMPLEMENTED,
        INTERNAL_ERROR,
    }
)

REPLY_TEXT_BYTES_MAX = 255  # it travels as a short string
_ELLIPSIS = "..."


def closes_connection(code: int) -> bool:
    """Whether `code` ends the whole connection; else it ends one channel."""
    assert code in CONNECTION_CODES or code in CHANNEL_CODES, code
    return code in CONNECTION_CODES


def error(code: int, text: str) -> PeerError:
    """The error to raise for `code`, with the scope that is usual for it.

    At login and on channel 0 every code closes the connection: there is no channel to close.
    """
    return PeerError(text, reply_code=code, closes_connection=closes_connection(code))


def reply_text(code: int, text: str = "") -> str:
    """`NAME - text`, cut where it would not fit into a short string; without text just `NAME`."""
    name = NAMES[code]
    # Text may quote what a peer sent, bytes outside UTF-8 included (see `tables`).
    whole = (f"{name} - {text}" if text else name).encode("utf-8", "backslashreplace")
    if len(whole) <= REPLY_TEXT_BYTES_MAX:
        return whole.decode()
    room = REPLY_TEXT_BYTES_MAX - len(_ELLIPSIS)
    return whole[:room].decode("utf-8", "ignore") + _ELLIPSIS
