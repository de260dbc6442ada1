"""Vhosts, users and their permissions: what is checked and what changes.

Whether a regular expression is valid is asked by `edge_mistake` alone, before a command is
proposed; see `regexes`.
"""

from dataclasses import replace
from typing import assert_never

from lograft_broker.metadata import cluster, names, refusal, regexes, removal
from lograft_broker.metadata.commands import (
    AdminCommand,
    ClearPermission,
    ClearTopicPermission,
    DeleteUser,
    DeleteVhost,
    PutUser,
    PutVhost,
    SetPermission,
    SetTopicPermission,
    SetUserLimit,
    SetVhostLimit,
)
from lograft_broker.metadata.limits import MetadataLimits
from lograft_broker.metadata.refusal import Refusal
from lograft_broker.metadata.results import (
    Absent,
    Changed,
    Created,
    Deleted,
    Existing,
    Result,
    Settled,
)
from lograft_broker.metadata.rows import Permission, TopicPermission, User, Vhost
from lograft_broker.metadata.state import State

MAX_CONNECTIONS = "max-connections"
MAX_QUEUES = "max-queues"
MAX_CHANNELS = "max-channels"

_Managed = Vhost | User | Permission | TopicPermission


def edge_mistake(command: AdminCommand) -> Refusal | None:
    match command:
        case SetPermission():
            patterns = (command.configure, command.write, command.read)
        case SetTopicPermission():
            patterns = ("", command.write, command.read)
        case _:
            return None
    for what, pattern in zip(("configure", "write", "read"), patterns, strict=True):
        invalid = regexes.invalid(what, pattern)
        if invalid is not None:
            return invalid
    return None


def settled(state: State, command: AdminCommand, limits: MetadataLimits) -> Settled | None:
    match command:
        case PutVhost():
            return _put_vhost_settled(state, command, limits)
        case PutUser():
            return _put_user_settled(state, command, limits)
        case DeleteVhost():
            return None if command.name in state.vhosts else Absent()
        case DeleteUser():
            return None if command.name in state.users else Absent()
        case SetVhostLimit():
            vhost = state.vhosts.get(command.vhost)
            if vhost is None:
                return refusal.no_vhost(command.vhost)
            return _limited(vhost, command.limit, (MAX_CONNECTIONS, MAX_QUEUES), command.value)
        case SetUserLimit():
            user = state.users.get(command.user)
            if user is None:
                return refusal.no_user(command.user)
            return _limited(user, command.limit, (MAX_CONNECTIONS, MAX_CHANNELS), command.value)
        case SetPermission() | SetTopicPermission():
            return _grant_settled(state, command, limits)
        case ClearPermission():
            return None if (command.user, command.vhost) in state.permissions else Absent()
        case ClearTopicPermission():
            return None if _topics(state, command) else Absent()
        case _:
            assert_never(command)


def act(state: State, command: AdminCommand) -> Result:
    match command:
        case PutVhost():
            return _put_vhost(state, command)
        case PutUser():
            return _put(state, state.users.get(command.name), _user(state, command))
        case DeleteVhost():
            vhost = state.vhosts.get(command.name)
            assert vhost is not None, command
            removal.remove_vhost(state, vhost)
            return Deleted((vhost,))
        case DeleteUser():
            user = state.users.get(command.name)
            assert user is not None, command
            removal.remove_user(state, user)
            return Deleted((user,))
        case SetVhostLimit():
            vhost = state.vhosts.get(command.vhost)
            assert vhost is not None, command
            return _put(state, vhost, _with_limit(vhost, command.limit, command.value))
        case SetUserLimit():
            user = state.users.get(command.user)
            assert user is not None, command
            return _put(state, user, _with_limit(user, command.limit, command.value))
        case SetPermission() | SetTopicPermission():
            return _put(state, _granted(state, command), _grant(command))
        case ClearPermission():
            permission = state.permissions.get((command.user, command.vhost))
            assert permission is not None, command
            state.remove(permission)
            return Deleted((permission,))
        case ClearTopicPermission():
            topics = _topics(state, command)
            for topic in topics:
                state.remove(topic)
            return Deleted(topics)
        case _:
            assert_never(command)


def _put_vhost_settled(state: State, command: PutVhost, limits: MetadataLimits) -> Settled | None:
    found = state.vhosts.get(command.name)
    if found is not None and found == _vhost(found, command):
        return Existing(found)
    if found is None and len(state.vhosts) >= limits.vhost_count_max:
        return refusal.too_many("a vhost", limits.vhost_count_max)
    return (
        names.refused("vhost", command.name, limits)
        or names.too_long("description", command.description, limits.text_bytes_max)
        or _invalid_tags(command.tags, limits)
    )


def _put_vhost(state: State, command: PutVhost) -> Result:
    found = state.vhosts.get(command.name)
    if found is not None:
        return _put(state, found, _vhost(found, command))
    return Created(cluster.add_vhost(state, _vhost(Vhost(name=command.name), command)))


def _vhost(before: Vhost, command: PutVhost) -> Vhost:
    return replace(
        before,
        description=command.description,
        tags=command.tags,
        default_queue_type=command.default_queue_type,
    )


def _put_user_settled(state: State, command: PutUser, limits: MetadataLimits) -> Settled | None:
    found = state.users.get(command.name)
    if found is not None and found == _user(state, command):
        return Existing(found)
    if found is None and len(state.users) >= limits.user_count_max:
        return refusal.too_many("a user", limits.user_count_max)
    return (
        names.refused("user", command.name, limits)
        or names.too_long("password hash", command.password_hash, limits.text_bytes_max)
        or _invalid_tags(command.tags, limits)
    )


def _user(state: State, command: PutUser) -> User:
    before = state.users.get(command.name) or User(name=command.name, password_hash="")
    return replace(before, password_hash=command.password_hash, tags=command.tags)


def _invalid_tags(tags: tuple[str, ...], limits: MetadataLimits) -> Refusal | None:
    if len(tags) > limits.tag_count_max:
        return refusal.too_many("tags", limits.tag_count_max)
    for tag in tags:
        invalid = names.refused("tag", tag, limits)
        if invalid is not None:
            return invalid
    return None


def _limited(
    row: Vhost | User, limit: str, known: tuple[str, ...], value: int | None
) -> Settled | None:
    if limit not in known:
        return refusal.failed(f"limit '{limit}' is not one of {', '.join(known)}")
    return Existing(row) if _with_limit(row, limit, value) == row else None


def _with_limit(row: Vhost | User, limit: str, value: int | None) -> Vhost | User:
    value = None if value is None or value < 0 else value
    if limit == MAX_CONNECTIONS:
        return replace(row, max_connections=value)
    if isinstance(row, Vhost):
        return replace(row, max_queues=value)
    return replace(row, max_channels=value)


def _grant_settled(
    state: State, command: SetPermission | SetTopicPermission, limits: MetadataLimits
) -> Settled | None:
    if command.vhost not in state.vhosts:
        return refusal.no_vhost(command.vhost)
    if command.user not in state.users:
        return refusal.no_user(command.user)
    grant = _grant(command)
    found = _granted(state, command)
    if found == grant:
        return Existing(grant)
    if isinstance(grant, Permission):
        full = len(state.permissions) >= limits.grant_count_max
        too_long = regexes.too_long("configure", grant.configure, limits)
    else:
        full = len(state.topic_permissions) >= limits.grant_count_max
        too_long = names.too_long("exchange name", grant.exchange, limits.name_bytes_max)
    if found is None and full:
        return refusal.too_many("a permission", limits.grant_count_max)
    return (
        too_long
        or regexes.too_long("write", grant.write, limits)
        or regexes.too_long("read", grant.read, limits)
    )


def _grant(command: SetPermission | SetTopicPermission) -> Permission | TopicPermission:
    if isinstance(command, SetPermission):
        return Permission(
            user=command.user,
            vhost=command.vhost,
            configure=command.configure,
            write=command.write,
            read=command.read,
        )
    return TopicPermission(
        user=command.user,
        vhost=command.vhost,
        exchange=command.exchange,
        write=command.write,
        read=command.read,
    )


def _granted(
    state: State, command: SetPermission | SetTopicPermission
) -> Permission | TopicPermission | None:
    if isinstance(command, SetPermission):
        return state.permissions.get((command.user, command.vhost))
    return state.topic_permissions.get((command.user, command.vhost, command.exchange))


def _topics(state: State, command: ClearTopicPermission) -> tuple[TopicPermission, ...]:
    return tuple(
        row
        for row in state.topic_permissions
        if (row.user, row.vhost) == (command.user, command.vhost)
        and command.exchange in (None, row.exchange)
    )


def _put(state: State, before: _Managed | None, row: _Managed) -> Result:
    state.put(row)
    return Created(row) if before is None else Changed(row)
