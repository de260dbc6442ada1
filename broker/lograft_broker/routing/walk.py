"""The way of one message through the exchanges of a vhost.

From the exchange it was published to, a message follows bindings to further exchanges, and visits
each once however many ways lead there. An exchange where nothing is bound that wants it, neither
queue nor exchange, passes it to its alternate if that exists. A queue is named once.

What passes through a delayed exchange reaches the queues behind it later. A queue that is reached
without one, too, gets its single copy at once: hence all undelayed ways are walked first.
"""

from collections.abc import Sequence
from typing import Generic, NamedTuple

from lograft_broker.routing.matcher import Needs, Properties
from lograft_broker.routing.topology import Exchange, T, Vhost
from lograft_wire.amqp.fields import Table


class Routed(NamedTuple, Generic[T]):
    """`targets` has every queue once; `delayed_targets`, a part of them, get the message later."""

    targets: tuple[T, ...]
    delayed_targets: tuple[T, ...] = ()

    @property
    def matched(self) -> bool:
        return bool(self.targets)

    @property
    def delayed(self) -> bool:
        return bool(self.delayed_targets)


def follow(
    vhost: Vhost[T],
    start: Exchange[T],
    keys: Sequence[bytes],
    headers: Table | None,
    properties: Properties | None,
) -> Routed[T]:
    """Where a message with these keys (the publisher's first, then CC and BCC) ends up."""
    ahead: list[Exchange[T]] = [start]
    ahead_later: list[Exchange[T]] = []
    targets: dict[T, None] = {}
    targets_later: dict[T, None] = {}
    seen: set[Exchange[T]] = set()
    while ahead or ahead_later:
        later = not ahead
        exchange = ahead_later.pop() if later else ahead.pop()
        if exchange in seen:
            continue
        if exchange.delayed and not later:
            ahead_later.append(exchange)
            continue
        seen.add(exchange)
        for destination in _wanted(vhost, exchange, keys, headers, properties):
            if isinstance(destination, Exchange):
                (ahead_later if later else ahead).append(destination)
            else:
                (targets_later if later else targets)[destination] = None
    delayed = tuple(target for target in targets_later if target not in targets)
    return Routed((*targets, *delayed), delayed)


def needs(vhost: Vhost[T], start: Exchange[T]) -> Needs:
    """What any exchange may look at that a message published to `start` can reach."""
    result = Needs()
    seen, ahead = {start}, [start]
    while ahead:
        exchange = ahead.pop()
        result |= exchange.matcher.needs
        alternate = vhost.exchanges.get(exchange.alternate) if exchange.alternate else None
        for other in (*exchange.exchanges, *((alternate,) if alternate else ())):
            if other not in seen:
                seen.add(other)
                ahead.append(other)
    return result


def _wanted(
    vhost: Vhost[T],
    exchange: Exchange[T],
    keys: Sequence[bytes],
    headers: Table | None,
    properties: Properties | None,
) -> tuple[T | Exchange[T], ...]:
    matcher = exchange.matcher
    found = matcher.match(keys[0], headers, properties)
    if len(keys) > 1 and matcher.per_key:
        union = dict.fromkeys(found)
        for key in keys[1:]:
            union.update(dict.fromkeys(matcher.match(key, headers, properties)))
        found = tuple(union)
    if not found and exchange.alternate is not None:
        alternate = vhost.exchanges.get(exchange.alternate)
        return () if alternate is None else (alternate,)
    return found
