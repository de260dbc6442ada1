"""Fanout: every binding, whatever its key."""

from typing import Generic

from lograft_broker.routing.matcher import Bag, Binding, D, Needs, Properties
from lograft_wire.amqp.fields import Table


class Fanout(Generic[D]):
    needs = Needs()
    per_key = False

    def __init__(self) -> None:
        self._bag: Bag[D] = Bag()

    def add(self, binding: Binding[D]) -> None:
        self._bag.add(binding.destination)

    def remove(self, binding: Binding[D]) -> None:
        self._bag.remove(binding.destination)

    def match(
        self, _key: bytes, _headers: Table | None, _properties: Properties | None, /
    ) -> tuple[D, ...]:
        return self._bag.members
