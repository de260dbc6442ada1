"""The whole state as one document, ready for JSON.

The shape is that of RabbitMQ's definitions, so that its tools read it: limits of vhosts and
operator policies stand among the parameters, as they do there. Besides, it has the version it was
read at, the nodes, and where each queue is. `imports` reads it back.
"""

from lograft_broker.metadata import passwords, rules, values
from lograft_broker.metadata.rows import (
    Binding,
    Exchange,
    Policy,
    Queue,
    TopicPermission,
    User,
    Vhost,
)
from lograft_broker.metadata.state import State
from lograft_broker.metadata.values import Arguments, JsonValue

Document = dict[str, JsonValue]
LIMITS_NAME = "limits"  # the one parameter of the component vhost-limits


def document(state: State) -> Document:
    return {
        "version": state.version,
        "shard_count": len(state.shard_queue_counts),
        "nodes": [{"name": node.name, "boot": node.boot.hex()} for node in state.nodes],
        "users": [user(row) for row in state.users],
        "vhosts": [vhost(row) for row in state.vhosts],
        "permissions": [
            {
                "user": row.user,
                "vhost": row.vhost,
                "configure": row.configure,
                "write": row.write,
                "read": row.read,
            }
            for row in state.permissions
        ],
        "topic_permissions": [topic_permission(row) for row in state.topic_permissions],
        "parameters": _parameters(state),
        "global_parameters": [
            {"name": row.name, "value": row.value.value} for row in state.global_parameters
        ],
        "policies": [policy(row) for row in state.policies],
        "exchanges": [exchange(row) for row in state.exchanges],
        "queues": [queue(row) for row in state.queues],
        "bindings": [binding(row) for row in state.bindings],
    }


def user(row: User) -> Document:
    password_hash, algorithm = passwords.to_definitions(row.password_hash)
    limits = {"max-connections": row.max_connections, "max-channels": row.max_channels}
    return {
        "name": row.name,
        "password_hash": password_hash,
        "hashing_algorithm": algorithm,
        "tags": list(row.tags),
        "limits": {name: limit for name, limit in limits.items() if limit is not None},
    }


def vhost(row: Vhost) -> Document:
    kind = row.default_queue_type
    found: Document = {"name": row.name, "description": row.description, "tags": list(row.tags)}
    if kind is not None:
        found["default_queue_type"] = kind.value
    return found


def vhost_limits(row: Vhost) -> Document:
    limits = {"max-connections": row.max_connections, "max-queues": row.max_queues}
    return {name: limit for name, limit in limits.items() if limit is not None}


def topic_permission(row: TopicPermission) -> Document:
    return {
        "user": row.user,
        "vhost": row.vhost,
        "exchange": row.exchange,
        "write": row.write,
        "read": row.read,
    }


def policy(row: Policy) -> Document:
    return {"vhost": row.vhost, "name": row.name, **_rule(row)}


def exchange(row: Exchange) -> Document:
    return {
        "name": row.name,
        "vhost": row.vhost,
        "type": row.type,
        "durable": row.durable,
        "auto_delete": row.auto_delete,
        "internal": row.internal,
        "arguments": _arguments(row.arguments),
    }


def queue(row: Queue) -> Document:
    return {
        "name": row.name,
        "vhost": row.vhost,
        "type": row.type.value,
        "durable": row.durable,
        "auto_delete": row.auto_delete,
        "exclusive": row.exclusive,
        "arguments": _arguments(row.arguments),
        "id": row.id,
        "shard": row.shard,
        "node": row.home.node if row.home is not None else None,
    }


def binding(row: Binding) -> Document:
    return {
        "source": row.source,
        "vhost": row.vhost,
        "destination": row.destination,
        "destination_type": row.kind.value,
        "routing_key": values.to_json(row.routing_key),
        "arguments": _arguments(row.arguments),
        "properties_key": row.properties_key,
    }


def _rule(row: Policy) -> Document:
    return {
        "pattern": row.pattern,
        "apply-to": row.apply_to.value,
        "definition": row.definition.value,
        "priority": row.priority,
    }


def _parameters(state: State) -> list[JsonValue]:
    found: list[JsonValue] = [
        _parameter(row.vhost, row.component, row.name, row.value.value) for row in state.parameters
    ]
    for row in state.vhosts:
        limits = vhost_limits(row)
        if limits:
            found.append(_parameter(row.name, rules.VHOST_LIMITS, LIMITS_NAME, limits))
    for rule in state.operator_policies:
        found.append(_parameter(rule.vhost, rules.OPERATOR_POLICY, rule.name, _rule(rule)))
    return found


def _parameter(vhost_name: str, component: str, name: str, value: JsonValue) -> Document:
    return {"vhost": vhost_name, "component": component, "name": name, "value": value}


def _arguments(arguments: Arguments) -> Document:
    return {name: values.to_json(value) for name, value in arguments.items()}
