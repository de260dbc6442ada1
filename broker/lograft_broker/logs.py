"""How a node's log lines look: key=value text or JSON lines on standard error.

Every module logs through its own logger and writes `log.info("link_up peer=%s", peer)`: first the
event's name (`event=` before it is optional), which stays the same over versions, then key=value
pairs. As text that is the line; as
JSON the pairs become members. Set up once, by `server`.
"""

import json
import logging
import re
import time
from typing import TextIO

_PAIR = re.compile(r"""(\w+)=("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\S*)""")
_OWN_KEYS = ("time", "level", "logger", "event", "message", "exception")


def set_up(*, level: str, format: str, stream: TextIO) -> None:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if format == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


class TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = (
            f"time={_timestamp(record)} level={record.levelname.lower()} "
            f"logger={record.name} event={_one_line(_message(record))}"
        )
        # A traceback keeps its lines, indented, so that a line that begins with time= is an event.
        exception = _exception(self, record)
        return line + "".join(f"\n    {part}" for part in exception.splitlines())


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        message = _message(record)
        event, _, rest = message.partition(" ")
        members: dict[str, str] = {
            "time": _timestamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": event,
            "message": message,
        }
        if exception := _exception(self, record):
            members["exception"] = exception
        for key, value in _PAIR.findall(rest):
            if key not in _OWN_KEYS:
                members[key] = value[1:-1] if value[:1] in ("'", '"') else value
        return json.dumps(members)


def _message(record: logging.LogRecord) -> str:
    return record.getMessage().removeprefix("event=")


def _timestamp(record: logging.LogRecord) -> str:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{seconds}.{int(record.msecs):03d}Z"


def _one_line(message: str) -> str:
    """Text from a peer or a file name must not be able to forge a line of its own."""
    return message.replace("\r", "\\r").replace("\n", "\\n")


def _exception(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    return formatter.formatException(record.exc_info) if record.exc_info else ""
