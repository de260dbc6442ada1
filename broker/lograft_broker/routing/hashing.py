"""Consistent hash and modulus hash: one destination for each message, chosen by a hash.

x-consistent-hash: the binding key is a weight. What is hashed is the routing key, or the header
that the exchange's `hash-header` names, or the property that its `hash-property` names; a message
without it goes where an empty one goes. Several bindings to one destination add up.

x-modulus-hash: hash modulo the number of bindings, so a destination bound twice gets twice as much;
nearly all keys move when a binding comes or goes. Only the routing key is looked at.

The choice rests on the names of the destinations alone (`hot/rendezvous` says how): RabbitMQ counts
buckets in the order of binding, so that there a removed queue moves the keys of all that came after
it, and the answer hangs on history. A ring of points would do too, but needs many for an even
spread, and a limit on weights to bound them.
"""

import re
from typing import Generic

from lograft_broker.hot import rendezvous
from lograft_broker.routing import values
from lograft_broker.routing.matcher import Binding, D, Needs, Properties
from lograft_wire.amqp.fields import Table

HASH_HEADER = "hash-header"
HASH_PROPERTY = "hash-property"
PROPERTIES = ("correlation_id", "message_id", "timestamp")
_INTEGER = re.compile(rb"[+-]?[0-9]+")


class ConsistentHash(Generic[D]):
    per_key = False

    def __init__(self, arguments: Table) -> None:
        self._header = arguments.get(HASH_HEADER)
        self._property = arguments.get(HASH_PROPERTY)
        self.needs = Needs(headers=self._header is not None, properties=self._property is not None)
        self._bindings: dict[Binding[D], None] = {}
        self._destinations: list[D] = []
        self._chooser: rendezvous.Rendezvous | None = None  # None: bindings have changed

    def add(self, binding: Binding[D]) -> None:
        self._bindings[binding] = None
        self._chooser = None

    def remove(self, binding: Binding[D]) -> None:
        del self._bindings[binding]
        self._chooser = None

    def match(
        self, key: bytes, headers: Table | None, properties: Properties | None, /
    ) -> tuple[D, ...]:
        if isinstance(self._header, str):
            key = values.hashed(headers.get(self._header) if headers else None)
        elif isinstance(self._property, str):
            key = values.hashed(getattr(properties, self._property) if properties else None)
        chooser = self._chooser or self._new_chooser()
        chosen = chooser.choose(key)
        return (self._destinations[chosen],) if chosen >= 0 else ()

    def _new_chooser(self) -> rendezvous.Rendezvous:
        weights: dict[bytes, int] = {}
        by_label: dict[bytes, D] = {}
        for binding in self._bindings:
            by_label[binding.label] = binding.destination
            weights[binding.label] = weights.get(binding.label, 0) + int(binding.key)
        labels = sorted(by_label)
        self._destinations = [by_label[label] for label in labels]
        self._chooser = rendezvous.Rendezvous(
            labels, [min(weights[label], rendezvous.WEIGHT_MAX) for label in labels]
        )
        return self._chooser


class ModulusHash(Generic[D]):
    needs = Needs()
    per_key = False

    def __init__(self) -> None:
        self._bindings: dict[Binding[D], None] = {}
        self._sorted: list[D] | None = []

    def add(self, binding: Binding[D]) -> None:
        self._bindings[binding] = None
        self._sorted = None

    def remove(self, binding: Binding[D]) -> None:
        del self._bindings[binding]
        self._sorted = None

    def match(
        self, key: bytes, _headers: Table | None, _properties: Properties | None, /
    ) -> tuple[D, ...]:
        if self._sorted is None:
            ordered = sorted(self._bindings, key=lambda binding: binding.label)
            self._sorted = [binding.destination for binding in ordered]
        if not self._sorted:
            return ()
        return (self._sorted[rendezvous.stable_hash(key) % len(self._sorted)],)


def exchange_refusal(arguments: Table) -> str | None:
    """Why such a consistent-hash exchange cannot be, in RabbitMQ's words; None when it can."""
    for name in (HASH_HEADER, HASH_PROPERTY):
        if name in arguments and not isinstance(arguments[name], str):
            return f"{name} must be a string"
    if HASH_HEADER in arguments and HASH_PROPERTY in arguments:
        return "hash-header and hash-property are mutually exclusive"
    wanted = arguments.get(HASH_PROPERTY, PROPERTIES[0])
    if isinstance(wanted, str) and wanted not in PROPERTIES:
        return f"Unsupported property: {wanted}"
    return None


def binding_refusal(key: bytes) -> str | None:
    """Why a binding key cannot be a weight, in RabbitMQ's words; None when it can."""
    if not _INTEGER.fullmatch(key):
        return f"The binding key must be an integer: {values.shown_bytes(key)}"
    weight = int(key)
    if weight < 1:
        return "The binding key must be greater than 0"
    if weight > rendezvous.WEIGHT_MAX:
        return f"The binding key must not be greater than {rendezvous.WEIGHT_MAX}"
    return None
