"""The exchanges and queues of a vhost, and the bindings between them, as the router holds them.

Each binding is known at both of its ends, so that an end that goes takes its bindings along.
Plain structure: `router` decides when to change it and walks it.
"""

from collections.abc import Hashable
from typing import Generic, TypeAlias, TypeVar

from lograft_broker.routing.matcher import Binding, Matcher
from lograft_wire.amqp import tables
from lograft_wire.amqp.fields import Table

T = TypeVar("T", bound=Hashable)

# Label of the destination, binding key, arguments: tells the bindings of one exchange apart.
Identity: TypeAlias = tuple[bytes, bytes, bytes]


class End(Generic[T]):
    """What can be bound to an exchange."""

    __slots__ = ("incoming", "label")

    def __init__(self, label: bytes) -> None:
        self.label = label
        self.incoming: dict[tuple[Exchange[T], Identity], None] = {}

    def unbind_all(self) -> None:
        for source, identity in tuple(self.incoming):
            source.unbind(identity)


class Queue(End[T]):
    __slots__ = ("target",)

    def __init__(self, name: str, target: T) -> None:
        super().__init__(b"queue/" + octets(name))
        self.target = target


class Exchange(End[T]):
    __slots__ = ("alternate", "bindings", "delayed", "exchanges", "matcher", "plain")

    def __init__(
        self,
        name: str,
        matcher: "Matcher[T | Exchange[T]]",
        *,
        alternate: str | None,
        delayed: bool,
    ) -> None:
        super().__init__(b"exchange/" + octets(name))
        self.matcher = matcher
        self.alternate = alternate
        self.delayed = delayed
        self.bindings: dict[Identity, tuple[Binding[T | Exchange[T]], End[T]]] = {}
        self.exchanges: dict[Exchange[T], int] = {}  # bound to it, with the number of bindings
        self.plain = not delayed  # what the matcher finds are the targets; nothing to follow

    def bind(self, end: End[T], key: bytes, arguments: Table) -> bool:
        """False when that binding is there already."""
        identity = identify(end, key, arguments)
        if identity in self.bindings:
            return False
        destination: T | Exchange[T]
        if isinstance(end, Exchange):
            destination = end
            self.exchanges[end] = self.exchanges.get(end, 0) + 1
            self.plain = False
        else:
            assert isinstance(end, Queue)
            destination = end.target
        binding = Binding(
            destination=destination, label=end.label, key=key, arguments=dict(arguments)
        )
        self.bindings[identity] = binding, end
        end.incoming[self, identity] = None
        self.matcher.add(binding)
        return True

    def unbind(self, identity: Identity) -> bool:
        """False when there is no such binding."""
        binding, end = self.bindings.pop(identity, (None, None))
        if binding is None or end is None:
            return False
        self.matcher.remove(binding)
        del end.incoming[self, identity]
        if isinstance(end, Exchange):
            self.exchanges[end] -= 1
            if not self.exchanges[end]:
                del self.exchanges[end]
            self.plain = not (self.delayed or self.exchanges)
        return True

    def unbind_outgoing(self) -> None:
        for identity in tuple(self.bindings):
            self.unbind(identity)


class Vhost(Generic[T]):
    __slots__ = ("exchanges", "queues")

    def __init__(self) -> None:
        self.exchanges: dict[str, Exchange[T]] = {}
        self.queues: dict[str, Queue[T]] = {}


def octets(name: str) -> bytes:
    """A name as it came; one that is not UTF-8 was decoded with Python's surrogate escapes."""
    return name.encode("utf-8", "surrogateescape")


def identify(end: End[T], key: bytes, arguments: Table) -> Identity:
    """Arguments count as the bytes they travel as, in order of name: as metadata tells them apart,
    or else two bindings there could be one here."""
    ordered = {name: arguments[name] for name in sorted(arguments)}
    return end.label, key, tables.encode(ordered) if ordered else b""
