"""Random: one binding by chance, so a destination bound twice is as likely as two."""

from typing import Generic

from lograft_broker.routing.matcher import Binding, D, Needs, Properties
from lograft_log.env import Rng
from lograft_wire.amqp.fields import Table


class Random(Generic[D]):
    needs = Needs(chance=True)
    per_key = False

    def __init__(self, rng: Rng) -> None:
        self._rng = rng
        self._numbers: dict[Binding[D], int] = {}  # where in the list
        self._bindings: list[Binding[D]] = []

    def add(self, binding: Binding[D]) -> None:
        self._numbers[binding] = len(self._bindings)
        self._bindings.append(binding)

    def remove(self, binding: Binding[D]) -> None:
        """The last one takes the free place."""
        number = self._numbers.pop(binding)
        last = self._bindings.pop()
        if last is not binding:
            self._bindings[number] = last
            self._numbers[last] = number

    def match(
        self, _key: bytes, _headers: Table | None, _properties: Properties | None, /
    ) -> tuple[D, ...]:
        if not self._bindings:
            return ()
        number = int(self._rng.uniform(0, len(self._bindings)))
        return (self._bindings[min(number, len(self._bindings) - 1)].destination,)
