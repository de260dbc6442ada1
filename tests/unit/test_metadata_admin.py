"""Vhosts, users, permissions, policies and parameters as an administrator sets them."""

import pytest

from lograft_broker.metadata import commands
from lograft_broker.metadata.commands import (
    ClearGlobalParameter,
    ClearParameter,
    ClearPermission,
    ClearPolicy,
    ClearTopicPermission,
    Command,
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
from lograft_broker.metadata.limits import MetadataLimits
from lograft_broker.metadata.refusal import Refusal
from lograft_broker.metadata.results import Absent, Changed, Created, Deleted, Existing
from lograft_broker.metadata.rows import ApplyTo, QueueType, User, Vhost
from lograft_broker.metadata.values import Json, JsonValue
from support.metadata_desk import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk()


def policy(
    definition: JsonValue,
    *,
    name: str = "p",
    pattern: str = "^q",
    operator: bool = False,
    priority: int = 0,
    vhost: str = "/",
) -> SetPolicy:
    return SetPolicy(
        vhost=vhost,
        name=name,
        pattern=pattern,
        apply_to=ApplyTo.ALL,
        priority=priority,
        definition=Json(definition),
        operator=operator,
    )


def test_the_first_start_makes_a_vhost_and_an_administrator() -> None:
    desk = Desk(started=False)
    start = commands.FirstStart(shard_count=3, vhost="/", user="guest", password_hash="h")
    assert desk.do(start) == Created(Vhost(name="/"))
    (user,) = desk.state.users
    assert user == User(name="guest", password_hash="h", tags=("administrator",))
    (grant,) = desk.state.permissions
    assert (grant.configure, grant.write, grant.read) == (".*", ".*", ".*")
    assert desk.state.shard_queue_counts == [0, 0, 0]
    version = desk.machine.version
    other = commands.FirstStart(shard_count=9, vhost="x", user="y", password_hash="z")
    assert desk.do(other) == Existing(Vhost(name="/"))
    desk.do(commands.DeleteVhost(name="/"))
    assert desk.do(other) == Absent()
    assert (version, len(desk.state.vhosts)) == (1, 0)


@pytest.mark.parametrize("shard_count", [0, -1, 1025])
def test_a_first_start_with_impossible_shards_is_refused(shard_count: int) -> None:
    desk = Desk(started=False)
    start = commands.FirstStart(shard_count=shard_count, vhost="/", user="u", password_hash="")
    assert desk.refused(start) == (406, f"{shard_count} shards: it must be from 1 to 1024")


def test_a_vhost_is_made_changed_and_left_alone(desk: Desk) -> None:
    put = PutVhost(name="v", description="d", tags=("a", "b"))
    row = Vhost(name="v", description="d", tags=("a", "b"))
    assert desk.do(put) == Created(row)
    assert desk.do(put) == Existing(row)
    desk.do(SetVhostLimit(vhost="v", limit="max-queues", value=5))
    changed = Vhost(name="v", default_queue_type=QueueType.QUORUM, max_queues=5)
    assert desk.do(PutVhost(name="v", default_queue_type=QueueType.QUORUM)) == Changed(changed)
    assert desk.state.vhosts.get("v") == changed


def test_limits_of_vhosts_and_users(desk: Desk) -> None:
    assert desk.do(SetVhostLimit(vhost="/", limit="max-connections", value=3)) == Changed(
        Vhost(name="/", max_connections=3)
    )
    assert desk.do(SetVhostLimit(vhost="/", limit="max-connections", value=3)) == Existing(
        Vhost(name="/", max_connections=3)
    )
    desk.do(SetVhostLimit(vhost="/", limit="max-connections", value=-1))
    assert desk.state.vhosts.get("/") == Vhost(name="/")
    desk.do(SetUserLimit(user="guest", limit="max-channels", value=2))
    desk.do(SetUserLimit(user="guest", limit="max-connections", value=0))
    user = desk.state.users.get("guest")
    assert user is not None
    assert (user.max_channels, user.max_connections) == (2, 0)
    desk.do(PutUser(name="guest", password_hash="new"))
    user = desk.state.users.get("guest")
    assert user is not None
    assert (user.max_channels, user.password_hash, user.tags) == (2, "new", ())


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            SetVhostLimit(vhost="/", limit="max-channels", value=1),
            (406, "limit 'max-channels' is not one of max-connections, max-queues"),
        ),
        (SetVhostLimit(vhost="v", limit="max-queues", value=1), (404, "no vhost 'v'")),
        (
            SetUserLimit(user="guest", limit="max-queues", value=1),
            (406, "limit 'max-queues' is not one of max-connections, max-channels"),
        ),
        (SetUserLimit(user="u", limit="max-channels", value=1), (404, "no user 'u'")),
        (PutVhost(name=""), (406, "vhost name may not be empty")),
        (PutVhost(name="v" * 256), (406, "vhost name has 256 bytes, at most 255 are allowed")),
        (
            PutVhost(name="v", description="d" * 4097),
            (406, "description has 4097 bytes, at most 4096 are allowed"),
        ),
        (PutVhost(name="v", tags=("",)), (406, "tag name may not be empty")),
        (
            PutVhost(name="v", tags=("t",) * 33),
            (406, "cannot add tags: the limit of 32 is reached"),
        ),
        (PutUser(name="", password_hash=""), (406, "user name may not be empty")),
        (
            PutUser(name="u", password_hash="h" * 4097),
            (406, "password hash has 4097 bytes, at most 4096 are allowed"),
        ),
        (
            SetPermission(user="guest", vhost="v", configure="", write="", read=""),
            (404, "no vhost 'v'"),
        ),
        (
            SetPermission(user="u", vhost="/", configure="", write="", read=""),
            (404, "no user 'u'"),
        ),
        (
            SetPermission(user="guest", vhost="/", configure="", write="x" * 1025, read=""),
            (
                406,
                "write is a regular expression of 1025 characters, at most 1024 are allowed",
            ),
        ),
        (
            SetTopicPermission(user="guest", vhost="/", exchange="x" * 256, write="", read=""),
            (406, "exchange name has 256 bytes, at most 255 are allowed"),
        ),
        (policy({"max-length": 1}, vhost="v"), (404, "no vhost 'v'")),
        (policy({"max-length": 1}, name=""), (406, "policy name may not be empty")),
        (
            policy({"max-length": 1}, pattern="x" * 1025),
            (
                406,
                "pattern is a regular expression of 1025 characters, at most 1024 are allowed",
            ),
        ),
        (
            policy({"max-length": 1}, priority=1 << 40),
            (406, f"priority {1 << 40} is out of range"),
        ),
        (policy({}), (406, "no policy provided")),
        (policy([1]), (406, "definition must be a dictionary: [1]")),
        (
            policy({"max-length": 1, "nonsense": "a", "more": {"b": None}}),
            (
                406,
                '[{<<"more">>,{"b":null}},{<<"nonsense">>,<<"a">>}] '
                "are not recognised policy settings",
            ),
        ),
        (
            policy({"overflow": "drop-head"}, operator=True),
            (406, '[{<<"overflow">>,<<"drop-head">>}] are not recognised policy settings'),
        ),
        (policy({"max-length": -1}), (406, "-1 is not a valid maximum length")),
        (
            policy({"max-length": 10**30}),
            (406, f"{10**30} is not a valid maximum length"),
        ),
        (
            policy({"max-length-bytes": "1"}),
            (406, '<<"1">> is not a valid maximum length in bytes'),
        ),
        (policy({"message-ttl": 1.5}), (406, "1.5 is not a valid message TTL")),
        (policy({"message-ttl": True}), (406, "true is not a valid message TTL")),
        (policy({"expires": 0}), (406, "0 is not a valid queue expiry")),
        (policy({"overflow": "x"}), (406, '<<"x">> is not a valid overflow value')),
        (policy({"overflow": 10**30}), (406, f"{10**30} is not a valid overflow value")),
        (
            policy({"dead-letter-exchange": None}),
            (406, "undefined is not a valid dead letter exchange name"),
        ),
        (
            policy({"alternate-exchange": [1]}),
            (406, "[1] is not a valid alternate exchange name"),
        ),
        (policy({"max-age": "1"}), (406, '<<"1">> is not a valid max age')),
        (
            SetParameter(vhost="v", component="c", name="n", value=Json(1)),
            (404, "no vhost 'v'"),
        ),
        (
            SetParameter(vhost="/", component="", name="n", value=Json(1)),
            (406, "component name may not be empty"),
        ),
        (
            SetParameter(vhost="/", component="policy", name="n", value=Json(1)),
            (406, "component policy has commands of its own"),
        ),
        (
            SetGlobalParameter(name="n", value=Json("x" * (256 << 10))),
            (406, "a value of 262146 bytes, at most 262144 are allowed"),
        ),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    desk: Desk, command: Command, said: tuple[int, str]
) -> None:
    assert desk.refused(command) == said


@pytest.mark.parametrize("pattern", ["(", "[a-", "*", "(?P<n>a)(?P<n>b)", "a{99999999999}"])
def test_a_bad_regular_expression_is_refused_before_it_is_proposed(
    desk: Desk, pattern: str
) -> None:
    """By whoever proposes alone: replicas with another Python must not differ over it."""
    for command in (
        SetPermission(user="guest", vhost="/", configure=pattern, write="", read=""),
        SetPermission(user="guest", vhost="/", configure="", write=pattern, read=""),
        SetPermission(user="guest", vhost="/", configure="", write="", read=pattern),
        SetTopicPermission(user="guest", vhost="/", exchange="x", write="", read=pattern),
        policy({"max-length": 1}, pattern=pattern),
    ):
        found = desk.machine.settled(command)
        assert isinstance(found, Refusal)
        assert found.code == 406
        assert " should be regular expression but is invalid: " in found.text
        assert isinstance(desk.do(command), (Created, Changed))


def test_permissions_are_set_changed_and_cleared(desk: Desk) -> None:
    desk.do(PutUser(name="u", password_hash=""))
    one = SetPermission(user="u", vhost="/", configure="a", write="b", read="c")
    assert isinstance(desk.do(one), Created)
    assert isinstance(desk.do(one), Existing)
    two = SetPermission(user="u", vhost="/", configure="a", write="b", read="d")
    assert isinstance(desk.do(two), Changed)
    assert isinstance(desk.do(ClearPermission(user="u", vhost="/")), Deleted)
    assert desk.do(ClearPermission(user="u", vhost="/")) == Absent()


def test_topic_permissions_are_cleared_one_by_one_or_all(desk: Desk) -> None:
    for exchange in ("x", "y", "z"):
        command = SetTopicPermission(
            user="guest", vhost="/", exchange=exchange, write="a", read="b"
        )
        assert isinstance(desk.do(command), Created)
    cleared = desk.do(ClearTopicPermission(user="guest", vhost="/", exchange="y"))
    assert isinstance(cleared, Deleted)
    assert [row.exchange for row in desk.state.topic_permissions] == ["x", "z"]
    cleared = desk.do(ClearTopicPermission(user="guest", vhost="/", exchange=None))
    assert isinstance(cleared, Deleted)
    assert len(cleared.rows) == 2
    none = desk.do(ClearTopicPermission(user="guest", vhost="/", exchange=None))
    assert none == Absent()


def test_policies_and_operator_policies_have_names_of_their_own(desk: Desk) -> None:
    assert isinstance(desk.do(policy({"max-length": 1})), Created)
    assert isinstance(desk.do(policy({"max-length": 2}, operator=True)), Created)
    assert isinstance(desk.do(policy({"max-length": 1})), Existing)
    assert isinstance(desk.do(policy({"max-length": 3})), Changed)
    assert isinstance(desk.do(ClearPolicy(vhost="/", name="p")), Deleted)
    assert desk.do(ClearPolicy(vhost="/", name="p")) == Absent()
    assert [row.definition.value for row in desk.state.operator_policies] == [{"max-length": 2}]
    assert isinstance(desk.do(ClearPolicy(vhost="/", name="p", operator=True)), Deleted)


def test_policies_of_mirrored_queues_are_taken_and_ignored(desk: Desk) -> None:
    assert isinstance(desk.do(policy({"ha-mode": "all", "ha-params": 3})), Created)


def test_parameters_are_kept_as_they_are(desk: Desk) -> None:
    value = Json({"b": [1, 1.0, None, "é"], "a": {}})
    put = SetParameter(vhost="/", component="shovel", name="s", value=value)
    assert isinstance(desk.do(put), Created)
    assert isinstance(desk.do(put), Existing)
    found = desk.state.parameters.get(("/", "shovel", "s"))
    assert found is not None
    assert found.value.value == {"b": [1, 1.0, None, "é"], "a": {}}
    other = SetParameter(vhost="/", component="shovel", name="s", value=Json({"b": [1.0]}))
    assert isinstance(desk.do(other), Changed)
    clear = ClearParameter(vhost="/", component="shovel", name="s")
    assert isinstance(desk.do(clear), Deleted)
    assert desk.do(clear) == Absent()
    assert isinstance(desk.do(SetGlobalParameter(name="g", value=Json(1))), Created)
    assert isinstance(desk.do(SetGlobalParameter(name="g", value=Json(1.0))), Changed)
    assert isinstance(desk.do(SetGlobalParameter(name="g", value=Json(1.0))), Existing)
    assert isinstance(desk.do(ClearGlobalParameter(name="g")), Deleted)
    assert desk.do(ClearGlobalParameter(name="g")) == Absent()


def test_full_means_refused() -> None:
    limits = MetadataLimits(
        vhost_count_max=1,
        user_count_max=1,
        grant_count_max=1,
        policy_count_max=1,
        parameter_count_max=1,
        node_count_max=1,
    )
    desk = Desk(limits=limits)
    desk.do(policy({"max-length": 1}))
    desk.do(SetGlobalParameter(name="g", value=Json(1)))
    desk.do(SetParameter(vhost="/", component="c", name="n", value=Json(1)))
    topic = SetTopicPermission(user="guest", vhost="/", exchange="x", write="", read="")
    desk.do(topic)
    for command in (
        PutVhost(name="v"),
        PutUser(name="u", password_hash=""),
        SetTopicPermission(user="guest", vhost="/", exchange="y", write="", read=""),
        policy({"max-length": 1}, name="other"),
        SetGlobalParameter(name="other", value=Json(1)),
        SetParameter(vhost="/", component="c", name="other", value=Json(1)),
        commands.NodeBooted(node="two", boot=b"b"),
    ):
        code, text = desk.refused(command)
        assert code == 406
        assert "the limit of 1 is reached" in text
    assert isinstance(desk.do(policy({"max-length": 2})), Changed)
