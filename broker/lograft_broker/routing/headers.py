"""Headers: the message's headers have what the binding's arguments ask for.

`x-match` says whether all of the arguments must be met or any; without it, all. An argument without
a value asks for presence only. Arguments that begin with `x-` are ignored, unless `x-match` is
all-with-x or any-with-x. So a binding without arguments takes everything (all) or nothing (any).

Bindings are filed under a header with its value, so that a message looks only at those it may
match: an any-binding under each of its arguments, an all-binding under the least crowded one.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic

from lograft_broker.routing import values
from lograft_broker.routing.matcher import Bag, Binding, D, Needs, Properties
from lograft_wire.amqp import fields
from lograft_wire.amqp.fields import Table

X_MATCH = "x-match"
MODES = ("all", "any", "all-with-x", "any-with-x")

# A name and its comparable value; None asks for presence only.
Condition = tuple[str, Hashable]


@dataclass(frozen=True, slots=True, eq=False)
class _Filed(Generic[D]):
    destination: D
    under: tuple[Condition, ...]
    others: tuple[Condition, ...]  # must hold as well, once one of `under` does


class Headers(Generic[D]):
    needs = Needs(headers=True)
    per_key = False

    def __init__(self) -> None:
        self._always: Bag[D] = Bag()
        self._files: dict[Condition, dict[_Filed[D], None]] = {}
        self._filed: dict[Binding[D], _Filed[D]] = {}

    def add(self, binding: Binding[D]) -> None:
        wanted = conditions(binding.arguments)
        if not wanted:
            if not wants_any(binding.arguments):
                self._always.add(binding.destination)
            return
        if wants_any(binding.arguments):
            filed = _Filed(binding.destination, wanted, ())
        else:
            least = min(wanted, key=lambda one: len(self._files.get(one, ())))
            others = tuple(one for one in wanted if one != least)
            filed = _Filed(binding.destination, (least,), others)
        for condition in filed.under:
            self._files.setdefault(condition, {})[filed] = None
        self._filed[binding] = filed

    def remove(self, binding: Binding[D]) -> None:
        filed = self._filed.pop(binding, None)
        if filed is None:
            if not wants_any(binding.arguments):
                self._always.remove(binding.destination)
            return
        for condition in filed.under:
            del self._files[condition][filed]
            if not self._files[condition]:
                del self._files[condition]

    def match(
        self, _key: bytes, headers: Table | None, _properties: Properties | None, /
    ) -> tuple[D, ...]:
        if not headers:
            return self._always.members
        found = dict.fromkeys(self._always.members)
        given = {name: values.comparable(value) for name, value in headers.items()}
        for name, value in given.items():
            for condition in ((name, None), (name, value)):
                for filed in self._files.get(condition, ()):
                    if _all_hold(filed.others, given):
                        found[filed.destination] = None
        return tuple(found)


def conditions(arguments: Table) -> tuple[Condition, ...]:
    with_x = arguments.get(X_MATCH) in MODES[2:]
    return tuple(
        (name, values.comparable(value))
        for name, value in arguments.items()
        if name != X_MATCH and (with_x or not name.startswith("x-"))
    )


def wants_any(arguments: Table) -> bool:
    return arguments.get(X_MATCH) in ("any", "any-with-x")


def refusal(arguments: Table) -> str | None:
    """Why such a binding cannot be, in RabbitMQ's words; None when it can."""
    if X_MATCH not in arguments:
        return None
    mode = arguments[X_MATCH]
    kind = fields.type_name(mode)
    if kind != "longstr":
        return f"Invalid x-match field type {kind} (value {values.shown(mode)}); expected longstr"
    if mode not in MODES:
        return (
            f"Invalid x-match field value {values.shown(mode)}; "
            "expected all, any, all-with-x, or any-with-x"
        )
    return None


def _all_hold(wanted: tuple[Condition, ...], given: dict[str, Hashable]) -> bool:
    for name, value in wanted:
        if name not in given or (value is not None and given[name] != value):
            return False
    return True
