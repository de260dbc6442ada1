"""Who may do what: permissions on names, topic permissions on routing keys, limits at login.

Decisions are remembered, because every publish asks, and forgotten when anything they rest on
changes. The texts are RabbitMQ's. Pure; connections and channels ask. Who somebody is (a password,
a certificate) is settled before; see `passwords`.
"""

import re
from collections.abc import Mapping
from enum import StrEnum

from lograft_broker.metadata import names, refusal, regexes, words
from lograft_broker.metadata.changes import Applied, Change
from lograft_broker.metadata.policy import HasState
from lograft_broker.metadata.refusal import Refusal
from lograft_broker.metadata.rows import Permission, User, Vhost
from lograft_wire.amqp import codes

DEFAULT_EXCHANGE_ALIAS = "amq.default"  # under this name permissions speak of it
DECISION_COUNT_MAX = 10_000


class Operation(StrEnum):
    CONFIGURE = "configure"
    WRITE = "write"
    READ = "read"


class Access:
    def __init__(self, source: HasState) -> None:
        self._source = source
        self._decisions: dict[tuple[str, str, Operation, str], bool] = {}

    def on_change(self, change: Change) -> None:
        if not isinstance(change, Applied) or any(
            isinstance(event.row, (Permission, User, Vhost)) for event in change.events
        ):
            self._decisions.clear()

    # Names

    def may(self, user: str, vhost: str, operation: Operation, name: str) -> bool:
        """`name` is that of an exchange or queue."""
        question = (user, vhost, operation, name)
        found = self._decisions.get(question)
        if found is None:
            if len(self._decisions) >= DECISION_COUNT_MAX:
                self._decisions.clear()
            found = self._decisions[question] = self._decide(*question)
        return found

    def refuses(
        self, user: str, vhost: str, operation: Operation, *, kind: str, name: str
    ) -> Refusal | None:
        if kind == "exchange" and name == names.DEFAULT_EXCHANGE:
            name = DEFAULT_EXCHANGE_ALIAS
        if self.may(user, vhost, operation, name):
            return None
        resource = words.resource(kind, name, vhost)
        return refusal.access(f"{operation} access to {resource} refused for user '{user}'")

    # Topics

    def may_topic(
        self,
        user: str,
        vhost: str,
        operation: Operation,
        *,
        exchange: str,
        routing_key: str,
        variables: Mapping[str, str] | None = None,
    ) -> bool:
        """Without a topic permission for that exchange everything is allowed. `variables` are
        further names for the pattern, like client_id; username and vhost it always knows."""
        found = self._source.state.topic_permissions.get((user, vhost, exchange))
        if found is None or operation is Operation.CONFIGURE:
            return True
        pattern = found.write if operation is Operation.WRITE else found.read
        known = {**(variables or {}), "username": user, "vhost": vhost}
        return regexes.matches_permission(_expanded(pattern, known), routing_key)

    def refuses_topic(
        self,
        user: str,
        vhost: str,
        operation: Operation,
        *,
        exchange: str,
        routing_key: str,
        variables: Mapping[str, str] | None = None,
    ) -> Refusal | None:
        if self.may_topic(
            user,
            vhost,
            operation,
            exchange=exchange,
            routing_key=routing_key,
            variables=variables,
        ):
            return None
        return refusal.access(
            f"{operation} access to topic '{routing_key}' in exchange '{exchange}' "
            f"in vhost '{vhost}' refused for user '{user}'"
        )

    # Vhosts and connections

    def refuses_vhost(self, user: str, vhost: str) -> Refusal | None:
        """Any permission in a vhost, even an empty one, lets a user in."""
        state = self._source.state
        if vhost not in state.vhosts:
            return Refusal(codes.NOT_ALLOWED, f"vhost {vhost} not found")
        if (user, vhost) not in state.permissions:
            return _not_allowed(f"access to vhost '{vhost}' refused for user '{user}'")
        return None

    def refuses_connection(
        self, user: str, vhost: str, *, vhost_connection_count: int, user_connection_count: int
    ) -> Refusal | None:
        """By the limits on connections; the counts are those without the new one."""
        in_vhost = self._source.state.vhosts.get(vhost)
        limit = in_vhost.max_connections if in_vhost is not None else None
        if limit is not None and vhost_connection_count >= limit:
            return _not_allowed(
                f"access to vhost '{vhost}' refused for user '{user}': "
                f"connection limit ({limit}) is reached"
            )
        of_user = self._source.state.users.get(user)
        limit = of_user.max_connections if of_user is not None else None
        if limit is not None and user_connection_count >= limit:
            return _not_allowed(
                f"connection refused for user '{user}': user connection limit ({limit}) is reached"
            )
        return None

    def refuses_channel(self, user: str, *, channel_count: int) -> Refusal | None:
        of_user = self._source.state.users.get(user)
        limit = of_user.max_channels if of_user is not None else None
        if limit is None or channel_count < limit:
            return None
        return _not_allowed(
            f"number of channels opened for user '{user}' has reached the maximum allowed user "
            f"limit of ({limit})"
        )

    def _decide(self, user: str, vhost: str, operation: Operation, name: str) -> bool:
        found = self._source.state.permissions.get((user, vhost))
        if found is None:
            return False
        match operation:
            case Operation.CONFIGURE:
                pattern = found.configure
            case Operation.WRITE:
                pattern = found.write
            case Operation.READ:
                pattern = found.read
        return regexes.matches_permission(pattern, name)


def _expanded(pattern: str, variables: Mapping[str, str]) -> str:
    """Values are taken literally, unlike in RabbitMQ: a user named "a.b" is not "axb", and nobody
    writes expressions by the name he chooses."""
    for name, value in variables.items():
        pattern = pattern.replace(f"{{{name}}}", re.escape(value))
    return pattern


def _not_allowed(text: str) -> Refusal:
    return Refusal(codes.NOT_ALLOWED, text)
