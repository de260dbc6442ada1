"""Who may do what, in RabbitMQ's words."""

import pytest

from lograft_broker.metadata import access, commands
from lograft_broker.metadata.access import Access, Operation
from lograft_broker.metadata.commands import (
    ClearPermission,
    DeleteUser,
    PutUser,
    SetPermission,
    SetTopicPermission,
    SetUserLimit,
    SetVhostLimit,
)
from support.metadata_desk import Desk


class AccessDesk(Desk):
    def __init__(self) -> None:
        super().__init__()
        self.access = Access(self.machine)
        self.machine.listen(self.access.on_change)
        self.do(PutUser(name="u", password_hash=""))

    def grant(self, configure: str = "", write: str = "", read: str = "") -> None:
        self.do(SetPermission(user="u", vhost="/", configure=configure, write=write, read=read))

    def may(self, name: str) -> list[str]:
        return [operation for operation in Operation if self.access.may("u", "/", operation, name)]

    def topic(self, write: str, read: str = "") -> None:
        self.do(SetTopicPermission(user="u", vhost="/", exchange="t", write=write, read=read))

    def may_write_topic(self, key: str, **variables: str) -> bool:
        return self.access.may_topic(
            "u", "/", Operation.WRITE, exchange="t", routing_key=key, variables=variables
        )


@pytest.fixture
def desk() -> AccessDesk:
    return AccessDesk()


def test_each_operation_has_its_expression(desk: AccessDesk) -> None:
    desk.grant(configure="^a", write="^b", read="^(a|b)$")
    assert desk.may("a") == ["configure", "read"]
    assert desk.may("b") == ["write", "read"]
    assert desk.may("abc") == ["configure"]
    assert desk.may("c") == []


def test_an_expression_is_looked_for_anywhere_in_the_name(desk: AccessDesk) -> None:
    desk.grant(write="queue")
    assert desk.may("my-queue-1") == ["write"]


def test_an_empty_expression_allows_nothing_that_has_a_name(desk: AccessDesk) -> None:
    desk.grant(read=".*")
    assert desk.may("q") == ["read"]
    assert desk.may("") == ["configure", "write", "read"]


def test_without_a_permission_nothing_is_allowed(desk: AccessDesk) -> None:
    assert desk.may("q") == []
    desk.grant(".*", ".*", ".*")
    assert not desk.access.may("u", "other", Operation.READ, "q")
    assert not desk.access.may("nobody", "/", Operation.READ, "q")


def test_an_expression_nobody_understands_allows_nothing(desk: AccessDesk) -> None:
    desk.grant(read="(")
    assert desk.may("(") == []


def test_changes_are_seen_at_once(desk: AccessDesk) -> None:
    desk.grant(read=".*")
    assert desk.may("q") == ["read"]
    desk.grant(write=".*")
    assert desk.may("q") == ["write"]
    payload = desk.machine.capture().payload
    desk.do(ClearPermission(user="u", vhost="/"))
    assert desk.may("q") == []
    desk.machine.restore(payload, "")
    assert desk.may("q") == ["write"]
    desk.do(DeleteUser(name="u"))
    assert desk.may("q") == []


def test_decisions_are_remembered_but_not_without_end(
    desk: AccessDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "DECISION_COUNT_MAX", 10)
    desk.grant(read="5$")
    found = [desk.access.may("u", "/", Operation.READ, f"q{number}") for number in range(100)]
    assert found == [number % 10 == 5 for number in range(100)]
    assert len(desk.access._decisions) <= 10


def test_refusals_name_who_wanted_what(desk: AccessDesk) -> None:
    desk.grant(write="^ok$")
    assert desk.access.refuses("u", "/", Operation.WRITE, kind="exchange", name="ok") is None
    found = desk.access.refuses("u", "/", Operation.CONFIGURE, kind="queue", name="q")
    assert found is not None
    assert (found.code, found.text) == (
        403,
        "configure access to queue 'q' in vhost '/' refused for user 'u'",
    )


def test_the_default_exchange_has_a_name_of_its_own_here(desk: AccessDesk) -> None:
    found = desk.access.refuses("u", "/", Operation.WRITE, kind="exchange", name="")
    assert found is not None
    assert found.text == (
        "write access to exchange 'amq.default' in vhost '/' refused for user 'u'"
    )
    desk.grant(write="^amq\\.default$")
    assert desk.access.refuses("u", "/", Operation.WRITE, kind="exchange", name="") is None


def test_topics_are_free_until_somebody_says_otherwise(desk: AccessDesk) -> None:
    assert desk.may_write_topic("any.key")
    desk.topic("^a\\.")
    assert desk.may_write_topic("a.b")
    assert not desk.may_write_topic("b.a")
    assert desk.access.may_topic("u", "/", Operation.WRITE, exchange="x", routing_key="b.a")
    assert not desk.access.may_topic("u", "/", Operation.READ, exchange="t", routing_key="a.b")
    desk.do(commands.ClearTopicPermission(user="u", vhost="/", exchange="t"))
    assert desk.may_write_topic("b.a")


def test_topic_refusals(desk: AccessDesk) -> None:
    desk.topic("^a$")
    found = desk.access.refuses_topic("u", "/", Operation.WRITE, exchange="t", routing_key="k")
    assert found is not None
    assert (found.code, found.text) == (
        403,
        "write access to topic 'k' in exchange 't' in vhost '/' refused for user 'u'",
    )
    assert (
        desk.access.refuses_topic("u", "/", Operation.WRITE, exchange="t", routing_key="a") is None
    )


def test_variables_in_topic_patterns(desk: AccessDesk) -> None:
    desk.topic("^{vhost}{username}\\.{client_id}$")
    assert desk.may_write_topic("/u.c7", client_id="c7")
    assert not desk.may_write_topic("/x.c7", client_id="c7")
    assert not desk.may_write_topic("/u.c8", client_id="c7")
    assert not desk.may_write_topic("/u.c7")


def test_variables_are_taken_literally(desk: AccessDesk) -> None:
    desk.topic("^{client_id}$")
    assert not desk.may_write_topic("secret", client_id=".*")
    assert desk.may_write_topic(".*", client_id=".*")
    assert not desk.may_write_topic("u", client_id="{username}")
    assert desk.may_write_topic("{username}", client_id="{username}")


def test_entering_a_vhost(desk: AccessDesk) -> None:
    missing = desk.access.refuses_vhost("u", "none")
    refused = desk.access.refuses_vhost("u", "/")
    assert missing is not None
    assert refused is not None
    assert (missing.code, missing.text) == (530, "vhost none not found")
    assert (refused.code, refused.text) == (530, "access to vhost '/' refused for user 'u'")
    assert refused.error().closes_connection
    desk.grant()
    assert desk.access.refuses_vhost("u", "/") is None


def test_limits_on_connections_and_channels(desk: AccessDesk) -> None:
    def refused(in_vhost: int, of_user: int) -> str | None:
        found = desk.access.refuses_connection(
            "u", "/", vhost_connection_count=in_vhost, user_connection_count=of_user
        )
        assert found is None or found.code == 530
        return found.text if found is not None else None

    assert refused(1000, 1000) is None
    desk.do(SetVhostLimit(vhost="/", limit="max-connections", value=2))
    assert refused(1, 0) is None
    assert refused(2, 0) == (
        "access to vhost '/' refused for user 'u': connection limit (2) is reached"
    )
    desk.do(SetUserLimit(user="u", limit="max-connections", value=0))
    assert refused(0, 0) == (
        "connection refused for user 'u': user connection limit (0) is reached"
    )
    assert desk.access.refuses_channel("u", channel_count=9) is None
    desk.do(SetUserLimit(user="u", limit="max-channels", value=9))
    assert desk.access.refuses_channel("u", channel_count=8) is None
    found = desk.access.refuses_channel("u", channel_count=9)
    assert found is not None
    assert found.text == (
        "number of channels opened for user 'u' has reached the maximum allowed user limit of (9)"
    )
