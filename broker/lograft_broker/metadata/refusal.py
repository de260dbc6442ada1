"""A refusal: why a request is not allowed, with the AMQP reply code and RabbitMQ's words.

Clients compare these texts, so they are kept letter by letter. The text goes behind the name of the
code ("PRECONDITION_FAILED - ..."), which the channel adds; the admin API maps the codes to its own.
"""

from dataclasses import dataclass

from lograft_broker.metadata import words
from lograft_wire.amqp import codes
from lograft_wire.errors import PeerError


@dataclass(frozen=True, slots=True)
class Refusal:
    code: int
    text: str

    def error(self) -> PeerError:
        return codes.error(self.code, self.text)


def failed(text: str) -> Refusal:
    return Refusal(codes.PRECONDITION_FAILED, text)


def access(text: str) -> Refusal:
    return Refusal(codes.ACCESS_REFUSED, text)


def no(kind: str, name: str, vhost: str) -> Refusal:
    return Refusal(codes.NOT_FOUND, f"no {words.resource(kind, name, vhost)}")


def no_vhost(vhost: str) -> Refusal:
    return Refusal(codes.NOT_FOUND, f"no vhost '{vhost}'")


def no_user(user: str) -> Refusal:
    return Refusal(codes.NOT_FOUND, f"no user '{user}'")


def locked(queue: str, vhost: str) -> Refusal:
    return Refusal(
        codes.RESOURCE_LOCKED,
        f"cannot obtain exclusive access to locked {words.resource('queue', queue, vhost)}. "
        "It could be originally declared on another connection or the exclusive property value "
        "does not match that of the original declaration.",
    )


def default_exchange() -> Refusal:
    return access("operation not permitted on the default exchange")


def reserved(kind: str, name: str) -> Refusal:
    return access(f"{kind} name '{name}' contains reserved prefix 'amq.*'")


def inequivalent(key: str, owner: str, *, received: str, current: str) -> Refusal:
    """`owner` is the whole resource; the values are as `words` prints them."""
    return failed(
        f"inequivalent arg '{key}' for {owner}: received {received} but current is {current}"
    )


def too_many(what: str, limit: int) -> Refusal:
    return failed(f"cannot add {what}: the limit of {limit} is reached")
