"""Names as clients write them: cleaned at the edge, judged here.

RabbitMQ strips line breaks from the names of exchanges and queues instead of refusing them. The
channel does so with `clean` before it builds a command; a command that still has some is refused.
"""

from lograft_broker.metadata import refusal
from lograft_broker.metadata.limits import MetadataLimits
from lograft_broker.metadata.refusal import Refusal

DEFAULT_EXCHANGE = ""
RESERVED = "amq."
_LINE_BREAKS = str.maketrans("", "", "\r\n")


def clean(name: str) -> str:
    return name.translate(_LINE_BREAKS)


def refused(what: str, name: str, limits: MetadataLimits) -> Refusal | None:
    """Why `name` cannot be the name of `what` ("queue", "vhost" ...)."""
    if not name:
        return refusal.failed(f"{what} name may not be empty")
    if clean(name) != name:
        return refusal.failed(f"{what} name contains a line break")
    return too_long(f"{what} name", name, limits.name_bytes_max)


def too_long(what: str, text: str, bytes_max: int) -> Refusal | None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:  # half of a pair of surrogates, as JSON may carry
        return refusal.failed(f"{what} is not valid Unicode")
    if size > bytes_max:
        return refusal.failed(f"{what} has {size} bytes, at most {bytes_max} are allowed")
    return None
