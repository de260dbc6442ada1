"""Direct: the routing key is the binding key."""

from typing import Generic

from lograft_broker.routing.matcher import Bag, Binding, D, Needs, Properties
from lograft_wire.amqp.fields import Table

_NOBODY: tuple[()] = ()


class Direct(Generic[D]):
    needs = Needs()
    per_key = True

    def __init__(self) -> None:
        self._bags: dict[bytes, Bag[D]] = {}

    def add(self, binding: Binding[D]) -> None:
        self._bags.setdefault(binding.key, Bag()).add(binding.destination)

    def remove(self, binding: Binding[D]) -> None:
        bag = self._bags[binding.key]
        bag.remove(binding.destination)
        if not bag:
            del self._bags[binding.key]

    def match(
        self, key: bytes, _headers: Table | None, _properties: Properties | None, /
    ) -> tuple[D, ...]:
        bag = self._bags.get(key)
        return _NOBODY if bag is None else bag.members
