"""Definitions, ours or RabbitMQ's, as the commands that make them.

Pure. The commands stand in an order in which each finds what it needs; the admin API proposes them
one after the other and may stop at the first refusal. What cannot be defined is left out: exclusive
queues, the exchanges every vhost has, nodes. Keys that nobody knows are passed over.
"""

from collections.abc import Iterator
from typing import Any

from lograft_broker.metadata import names, passwords, rules, values
from lograft_broker.metadata.commands import (
    Bind,
    Command,
    DeclareExchange,
    DeclareQueue,
    PutUser,
    PutVhost,
    SetGlobalParameter,
    SetParameter,
    SetPermission,
    SetPolicy,
    SetTopicPermission,
    SetUserLimit,
    SetVhostLimit,
)
from lograft_broker.metadata.rows import ApplyTo, ConnectionId, Kind, QueueType
from lograft_broker.metadata.values import Arguments, Json
from lograft_wire.errors import RefusedError

_SHA256 = "rabbit_password_hashing_sha256"  # what definitions without the word mean


class Entry:
    """One object of the document, with where it stands, so that errors can say so."""

    def __init__(self, place: str, found: object) -> None:
        if not isinstance(found, dict):
            raise RefusedError(f"{place}: an object is needed")
        self.place = place
        self._found: dict[str, Any] = found

    def __contains__(self, key: str) -> bool:
        return self._found.get(key) is not None

    def text(self, key: str, default: str | None = None) -> str:
        found = self._found.get(key, default)
        if not isinstance(found, str):
            raise RefusedError(f"{self.place}.{key}: a string is needed")
        return found

    def flag(self, key: str) -> bool:
        found = self._found.get(key, False)
        if not isinstance(found, bool):
            raise RefusedError(f"{self.place}.{key}: true or false is needed")
        return found

    def number(self, key: str, default: int | None = None) -> int:
        found = self._found.get(key, default)
        if not isinstance(found, int) or isinstance(found, bool):
            raise RefusedError(f"{self.place}.{key}: a number is needed")
        return found

    def json(self, key: str) -> Json:
        if key not in self._found:
            raise RefusedError(f"{self.place}.{key} is missing")
        return Json(self._found[key])

    def inner(self, key: str) -> "Entry":
        return Entry(f"{self.place}.{key}", self._found.get(key) or {})

    def items(self) -> Iterator[tuple[str, Any]]:
        return iter(self._found.items())

    def arguments(self) -> Arguments:
        return values.arguments_from_json(dict(self.inner("arguments").items()))

    def tags(self) -> tuple[str, ...]:
        """A list, or as RabbitMQ once wrote it, words with commas between."""
        found = self._found.get("tags") or []
        if isinstance(found, str):
            found = [tag.strip() for tag in found.split(",") if tag.strip()]
        if not isinstance(found, list) or not all(isinstance(tag, str) for tag in found):
            raise RefusedError(f"{self.place}.tags: a list of strings is needed")
        return tuple(found)


def commands(document: object, *, by: ConnectionId) -> list[Command]:
    """RefusedError names the first entry that is not understood."""
    whole = Entry("definitions", document)
    queues = _entries(whole, "queues")
    left_out = {(e.text("vhost"), e.text("name")) for e in queues if e.flag("exclusive")}
    return [
        *(command for entry in _entries(whole, "users") for command in _user(entry)),
        *(_vhost(entry) for entry in _entries(whole, "vhosts")),
        *(_permission(entry) for entry in _entries(whole, "permissions")),
        *(_topic_permission(entry) for entry in _entries(whole, "topic_permissions")),
        *(command for entry in _entries(whole, "parameters") for command in _parameter(entry)),
        *(
            SetGlobalParameter(name=entry.text("name"), value=entry.json("value"))
            for entry in _entries(whole, "global_parameters")
        ),
        *(
            policy(entry, vhost=entry.text("vhost"), name=entry.text("name"), operator=False)
            for entry in _entries(whole, "policies")
        ),
        *(command for entry in _entries(whole, "exchanges") for command in _exchange(entry)),
        *(_queue(entry, by) for entry in queues if not entry.flag("exclusive")),
        *(
            command
            for entry in _entries(whole, "bindings")
            for command in _binding(entry, by)
            if command.kind is not Kind.QUEUE
            or (command.vhost, command.destination) not in left_out
        ),
    ]


def policy(entry: Entry, *, vhost: str, name: str, operator: bool) -> SetPolicy:
    apply_to = entry.text("apply-to", ApplyTo.ALL)
    if apply_to not in tuple(ApplyTo):
        raise RefusedError(
            f"{entry.place}: apply-to '{apply_to}' unrecognised; should be one of: "
            f"{', '.join(repr(choice.value) for choice in ApplyTo)}"
        )
    return SetPolicy(
        vhost=vhost,
        name=name,
        pattern=entry.text("pattern"),
        apply_to=ApplyTo(apply_to),
        priority=entry.number("priority", 0),
        definition=entry.json("definition"),
        operator=operator,
    )


def _entries(whole: Entry, key: str) -> list[Entry]:
    for name, found in whole.items():
        if name == key and found is not None:
            if not isinstance(found, list):
                raise RefusedError(f"{key}: a list is needed")
            return [Entry(f"{key}[{place}]", entry) for place, entry in enumerate(found)]
    return []


def _user(entry: Entry) -> list[Command]:
    name = entry.text("name")
    algorithm = entry.text("hashing_algorithm", _SHA256)
    try:
        stored = passwords.from_definitions(entry.text("password_hash", ""), algorithm)
    except RefusedError as error:
        raise RefusedError(f"{entry.place}: {error}") from error
    limits = entry.inner("limits")
    return [
        PutUser(name=name, password_hash=stored, tags=entry.tags()),
        *(
            SetUserLimit(user=name, limit=limit, value=limits.number(limit))
            for limit, _ in limits.items()
        ),
    ]


def _vhost(entry: Entry) -> Command:
    kind = entry.text("default_queue_type", "") if "default_queue_type" in entry else ""
    if kind not in ("", "undefined", *QueueType):
        raise RefusedError(f"{entry.place}: unsupported queue type '{kind}'")
    return PutVhost(
        name=entry.text("name"),
        description=entry.text("description", "") if "description" in entry else "",
        tags=entry.tags(),
        default_queue_type=QueueType(kind) if kind in tuple(QueueType) else None,
    )


def _permission(entry: Entry) -> Command:
    return SetPermission(
        user=entry.text("user"),
        vhost=entry.text("vhost"),
        configure=entry.text("configure"),
        write=entry.text("write"),
        read=entry.text("read"),
    )


def _topic_permission(entry: Entry) -> Command:
    return SetTopicPermission(
        user=entry.text("user"),
        vhost=entry.text("vhost"),
        exchange=entry.text("exchange"),
        write=entry.text("write"),
        read=entry.text("read"),
    )


def _parameter(entry: Entry) -> list[Command]:
    vhost, component, name = entry.text("vhost"), entry.text("component"), entry.text("name")
    if component == rules.VHOST_LIMITS:
        limits = entry.inner("value")
        return [
            SetVhostLimit(vhost=vhost, limit=limit, value=limits.number(limit))
            for limit, _ in limits.items()
        ]
    if component in (rules.POLICY, rules.OPERATOR_POLICY):
        operator = component == rules.OPERATOR_POLICY
        return [policy(entry.inner("value"), vhost=vhost, name=name, operator=operator)]
    value = entry.json("value")
    return [SetParameter(vhost=vhost, component=component, name=name, value=value)]


def _exchange(entry: Entry) -> list[Command]:
    name = names.clean(entry.text("name"))
    if name == names.DEFAULT_EXCHANGE or name.startswith(names.RESERVED):
        return []
    return [
        DeclareExchange(
            vhost=entry.text("vhost"),
            name=name,
            type=entry.text("type"),
            durable=entry.flag("durable"),
            auto_delete=entry.flag("auto_delete"),
            internal=entry.flag("internal"),
            arguments=entry.arguments(),
        )
    ]


def _queue(entry: Entry, by: ConnectionId) -> Command:
    name = names.clean(entry.text("name"))
    return DeclareQueue(
        vhost=entry.text("vhost"),
        name=name,
        by=by,
        durable=entry.flag("durable"),
        auto_delete=entry.flag("auto_delete"),
        server_named=name.startswith(names.RESERVED),
        arguments=entry.arguments(),
    )


def _binding(entry: Entry, by: ConnectionId) -> list[Bind]:
    kind = entry.text("destination_type")
    if kind not in tuple(Kind):
        raise RefusedError(f"{entry.place}.destination_type: queue or exchange is needed")
    source = names.clean(entry.text("source"))
    if source == names.DEFAULT_EXCHANGE:
        return []  # every queue is bound to it anyhow
    return [
        Bind(
            vhost=entry.text("vhost"),
            source=source,
            kind=Kind(kind),
            destination=names.clean(entry.text("destination")),
            by=by,
            routing_key=entry.text("routing_key", ""),
            arguments=entry.arguments(),
        )
    ]
