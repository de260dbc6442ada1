"""Router: which queues a message goes to.

It is told of vhosts, exchanges, queues and bindings one by one, as the metadata machine applies its
commands, and answers for each message that a channel keeps no route for. It decides nothing else:
who may publish, what becomes of an unroutable message, how a delay is kept, is its callers'.
"""

from collections.abc import Sequence
from typing import Generic

from lograft_broker.routing import kinds, topology, walk
from lograft_broker.routing.matcher import Needs, Properties
from lograft_broker.routing.topology import End, Exchange, Queue, T, Vhost
from lograft_broker.routing.walk import Routed
from lograft_log.env import Rng
from lograft_wire.amqp.fields import Table

DEFAULT_EXCHANGE = ""  # has every queue of its vhost under the queue's name, and no other binding


class Router(Generic[T]):
    """`T` is what stands for a queue: hashable, another one for each queue."""

    def __init__(self, *, rng: Rng) -> None:
        self.epoch = 0  # grows with every change; a route kept from an older one is void
        self._rng = rng
        self._vhosts: dict[str, Vhost[T]] = {}
        self._needs: dict[Exchange[T], Needs] = {}  # of this epoch, as far as asked for

    def __repr__(self) -> str:
        return f"Router({len(self._vhosts)} vhosts, epoch {self.epoch})"

    def route(
        self,
        vhost: str,
        exchange: str,
        key: bytes,
        headers: Table | None = None,
        properties: Properties | None = None,
    ) -> Routed[T] | None:
        """None when there is no such exchange. Headers and properties may be left out where
        `needs` does not ask for them."""
        place = self._vhosts.get(vhost)
        start = place.exchanges.get(exchange) if place is not None else None
        if place is None or start is None:
            return None
        if start.plain:
            found = start.matcher.match(key, headers, properties)
            if found:
                return Routed(found)  # type: ignore[arg-type]  # a plain one has no exchanges
            if start.alternate is None:
                return Routed(())
        return walk.follow(place, start, (key,), headers, properties)

    def route_many(
        self,
        vhost: str,
        exchange: str,
        keys: Sequence[bytes],
        headers: Table | None = None,
        properties: Properties | None = None,
    ) -> Routed[T] | None:
        """For a message with several keys: its own first, then CC and BCC. It goes where any of
        them leads, and to an alternate only where none does."""
        assert keys
        place = self._vhosts.get(vhost)
        start = place.exchanges.get(exchange) if place is not None else None
        if place is None or start is None:
            return None
        return walk.follow(place, start, keys, headers, properties)

    def needs(self, vhost: str, exchange: str) -> Needs:
        """What a route from here may look at, wherever it leads. Nothing if there is no such
        exchange."""
        place = self._vhosts.get(vhost)
        start = place.exchanges.get(exchange) if place is not None else None
        if place is None or start is None:
            return Needs()
        known = self._needs.get(start)
        if known is None:
            known = self._needs[start] = walk.needs(place, start)
        return known

    def needs_headers(self, vhost: str, exchange: str) -> bool:
        return self.needs(vhost, exchange).headers

    def add_vhost(self, vhost: str) -> None:
        """With its default exchange, and nothing else."""
        assert vhost not in self._vhosts, vhost
        self._vhosts[vhost] = Vhost()
        self._add_exchange(vhost, DEFAULT_EXCHANGE, "direct", {}, None)

    def remove_vhost(self, vhost: str) -> None:
        """With all that is in it."""
        if self._vhosts.pop(vhost, None) is not None:
            self._changed()

    def add_exchange(
        self,
        vhost: str,
        name: str,
        *,
        kind: str,
        arguments: Table | None = None,
        alternate: str | None = None,
    ) -> None:
        """`alternate` is what is in force, from an argument or from a policy."""
        assert name != DEFAULT_EXCHANGE
        assert name not in self._vhosts[vhost].exchanges, (vhost, name)
        self._add_exchange(vhost, name, kind, arguments or {}, alternate)

    def set_alternate(self, vhost: str, name: str, alternate: str | None) -> None:
        self._vhosts[vhost].exchanges[name].alternate = alternate
        self._changed()

    def remove_exchange(self, vhost: str, name: str) -> None:
        """With all bindings from and to it."""
        assert name != DEFAULT_EXCHANGE
        gone = self._vhosts[vhost].exchanges.pop(name, None)
        if gone is not None:
            gone.unbind_all()
            gone.unbind_outgoing()
            self._changed()

    def add_queue(self, vhost: str, name: str, target: T) -> None:
        place = self._vhosts[vhost]
        assert name not in place.queues, (vhost, name)
        assert not isinstance(target, Exchange)
        place.queues[name] = queue = Queue(name, target)
        place.exchanges[DEFAULT_EXCHANGE].bind(queue, topology.octets(name), {})
        self._changed()

    def remove_queue(self, vhost: str, name: str) -> None:
        """With all bindings to it."""
        gone = self._vhosts[vhost].queues.pop(name, None)
        if gone is not None:
            gone.unbind_all()
            self._changed()

    def bind(
        self,
        vhost: str,
        *,
        source: str,
        destination: str,
        to_exchange: bool = False,
        key: bytes = b"",
        arguments: Table | None = None,
    ) -> None:
        """Both ends must be there. A binding that is there already stays one."""
        end = self._end(vhost, destination, to_exchange=to_exchange)
        assert end is not None, (vhost, destination)
        assert source != DEFAULT_EXCHANGE
        if self._vhosts[vhost].exchanges[source].bind(end, key, arguments or {}):
            self._changed()

    def unbind(
        self,
        vhost: str,
        *,
        source: str,
        destination: str,
        to_exchange: bool = False,
        key: bytes = b"",
        arguments: Table | None = None,
    ) -> None:
        """A binding that is not there, or lost an end already, is no mistake."""
        end = self._end(vhost, destination, to_exchange=to_exchange)
        origin = self._vhosts[vhost].exchanges.get(source)
        if end is None or origin is None:
            return
        if origin.unbind(topology.identify(end, key, arguments or {})):
            self._changed()

    def _add_exchange(
        self, vhost: str, name: str, kind: str, arguments: Table, alternate: str | None
    ) -> None:
        self._vhosts[vhost].exchanges[name] = Exchange(
            name,
            kinds.make(kind, arguments, self._rng),
            alternate=alternate,
            delayed=kind == kinds.DELAYED,
        )
        self._changed()

    def _end(self, vhost: str, name: str, *, to_exchange: bool) -> End[T] | None:
        place = self._vhosts[vhost]
        return place.exchanges.get(name) if to_exchange else place.queues.get(name)

    def _changed(self) -> None:
        self.epoch += 1
        self._needs.clear()
