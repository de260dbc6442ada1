"""What every kind of exchange does: take bindings, and say who wants a message.

A destination is whatever the router hands in: one object for each queue, one for each exchange.
One kind per file beside this one; `kinds` lists them, `router` follows what they answer.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from lograft_wire.amqp.fields import Table

D = TypeVar("D", bound=Hashable)


class Properties(Protocol):
    """What an exchange may look at besides key and headers: a text each, None where missing, and a
    number or a moment."""

    @property
    def message_id(self) -> object: ...
    @property
    def correlation_id(self) -> object: ...
    @property
    def timestamp(self) -> object: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What, besides the routing keys, decides where a message goes."""

    headers: bool = False
    properties: bool = False
    chance: bool = False

    @property
    def keys_only(self) -> bool:
        """The same keys go the same way until a binding changes: a route that may be kept."""
        return not (self.headers or self.properties or self.chance)

    def __or__(self, other: "Needs") -> "Needs":
        return Needs(
            headers=self.headers or other.headers,
            properties=self.properties or other.properties,
            chance=self.chance or other.chance,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Binding(Generic[D]):
    destination: D
    label: bytes  # of the destination: the same in every process, another for each
    key: bytes
    arguments: Table


class Matcher(Protocol[D]):
    needs: Needs
    per_key: bool  # of several keys of a message each leads somewhere; else only the first counts

    def add(self, binding: Binding[D]) -> None: ...

    def remove(self, binding: Binding[D]) -> None:
        """A binding that was added: the very object."""

    def match(
        self, key: bytes, headers: Table | None, properties: Properties | None, /
    ) -> tuple[D, ...]:
        """Each destination once."""


class Bag(Generic[D]):
    """Destinations in the order they came, each once; one that came twice must go twice.

    The tuple is made once after a change, not once per message.
    """

    __slots__ = ("_counts", "_members")

    def __init__(self) -> None:
        self._counts: dict[D, int] = {}
        self._members: tuple[D, ...] | None = ()

    def __len__(self) -> int:
        return len(self._counts)

    def add(self, destination: D) -> None:
        self._counts[destination] = self._counts.get(destination, 0) + 1
        self._members = None

    def remove(self, destination: D) -> None:
        self._counts[destination] -= 1
        if not self._counts[destination]:
            del self._counts[destination]
        self._members = None

    @property
    def members(self) -> tuple[D, ...]:
        if self._members is None:
            self._members = tuple(self._counts)
        return self._members
