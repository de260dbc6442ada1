"""What holds for a queue: its arguments, the vhost's policies and the operator's."""

from dataclasses import fields as dataclass_fields
from dataclasses import replace

import pytest

from lograft_broker.metadata import commands, knobs
from lograft_broker.metadata.changes import Applied
from lograft_broker.metadata.commands import ClearPolicy, SetPolicy
from lograft_broker.metadata.policy import ExchangeLimits, Policies, QueueLimits
from lograft_broker.metadata.rows import ApplyTo, Exchange, Queue, QueueType
from lograft_broker.metadata.values import Arguments, Json, JsonValue
from lograft_wire.amqp.fields import Int32, Value
from support.metadata_desk import ME, Desk, declare_exchange, declare_queue, made, table


class PolicyDesk(Desk):
    def __init__(self) -> None:
        super().__init__()
        self.policies = Policies(self.machine)
        self.machine.listen(self.policies.on_change)

    def policy(self, definition: dict[str, JsonValue], **changes: object) -> None:
        command = SetPolicy(
            vhost="/",
            name="p",
            pattern="",
            apply_to=ApplyTo.ALL,
            priority=0,
            definition=Json(definition),
        )
        self.do(replace(command, **changes))  # type: ignore[arg-type]

    def limits(self, name: str, **arguments: Value) -> QueueLimits:
        command = declare_queue(name, ME, table(**arguments), durable=True)
        return self.policies.queue_limits(made(self.do(command), Queue))


@pytest.fixture
def desk() -> PolicyDesk:
    return PolicyDesk()


def test_nothing_said_means_the_defaults(desk: PolicyDesk) -> None:
    assert desk.limits("q") == QueueLimits(type=QueueType.CLASSIC)


def test_arguments_become_limits(desk: PolicyDesk) -> None:
    found = desk.limits(
        "q",
        x_message_ttl=Int32(1),
        x_expires=Int32(2),
        x_max_length=Int32(3),
        x_max_length_bytes=Int32(4),
        x_overflow="reject-publish",
        x_dead_letter_exchange="dlx",
        x_dead_letter_routing_key="dlk",
        x_dead_letter_strategy="at-least-once",
        x_max_priority=Int32(5),
        x_single_active_consumer=True,
        x_delivery_limit=Int32(6),
        x_delayed_retry_type="failed",
        x_delayed_retry_min=Int32(7),
        x_delayed_retry_max=Int32(8),
        x_consumer_timeout=Int32(9),
        x_retention_age="10s",
        x_retention_bytes=Int32(11),
        x_queue_leader_locator="balanced",
        x_quorum_initial_group_size=Int32(3),
        x_write_mode="async",
        x_cache_share=Int32(12),
        x_batch_delay=Int32(13),
        x_batch_size=Int32(14),
        x_prefetch=Int32(15),
    )
    assert found == QueueLimits(
        type=QueueType.CLASSIC,
        message_ttl_ms=1,
        expires_ms=2,
        max_length=3,
        max_length_bytes=4,
        overflow="reject-publish",
        dead_letter_exchange="dlx",
        dead_letter_routing_key="dlk",
        dead_letter_strategy="at-least-once",
        max_priority=5,
        single_active_consumer=True,
        delivery_limit=6,
        delayed_retry_type="failed",
        delayed_retry_min_ms=7,
        delayed_retry_max_ms=8,
        consumer_timeout_ms=9,
        retention_age_ms=10_000,
        retention_bytes=11,
        leader_locator="balanced",
        group_size=3,
        write_mode="async",
        cache_share_percent=12,
        batch_delay_ms=13,
        batch_bytes=14,
        prefetch_count=15,
    )
    for field in dataclass_fields(found):  # plain numbers: the data plane takes no others
        assert type(getattr(found, field.name)) in (int, str, bool, type(None), QueueType)


def test_a_policy_gives_the_same_limits_as_arguments(desk: PolicyDesk) -> None:
    values: dict[str, JsonValue] = {
        "message-ttl": 1,
        "expires": 2,
        "max-length": 3,
        "max-length-bytes": 4,
        "overflow": "reject-publish",
        "dead-letter-exchange": "dlx",
        "dead-letter-routing-key": "dlk",
        "dead-letter-strategy": "at-least-once",
        "delivery-limit": 6,
        "delayed-retry-type": "failed",
        "delayed-retry-min": 7,
        "delayed-retry-max": 8,
        "consumer-timeout": 9,
        "retention-age": "10s",
        "retention-bytes": 11,
        "queue-leader-locator": "balanced",
        "write-mode": "async",
        "cache-share": 12,
        "batch-delay": 13,
        "batch-size": 14,
        "prefetch": 15,
    }
    own = desk.limits("own", **{f"x-{name}": value for name, value in values.items()})
    desk.policy(values)
    assert desk.limits("q") == own


def test_limits_of_a_stream(desk: PolicyDesk) -> None:
    found = desk.limits(
        "s",
        x_queue_type="stream",
        x_max_age="1D",
        x_max_length_bytes=Int32(5),
        x_stream_max_segment_size_bytes=Int32(6),
        x_stream_filter_size_bytes=Int32(7),
        x_initial_cluster_size=Int32(3),
    )
    assert found == QueueLimits(
        type=QueueType.STREAM,
        retention_age_ms=86_400_000,
        retention_bytes=5,
        segment_bytes_max=6,
        filter_bytes=7,
        group_size=3,
    )


def test_quorum_queues_have_a_delivery_limit_unless_it_is_taken_away(desk: PolicyDesk) -> None:
    assert desk.limits("q", x_queue_type="quorum").delivery_limit == 20
    assert desk.limits("c").delivery_limit is None
    unlimited = desk.limits("u", x_queue_type="quorum", x_delivery_limit=Int32(-1))
    assert unlimited.delivery_limit is None
    desk.policy({"delivery-limit": 5})
    assert desk.limits("u", x_queue_type="quorum", x_delivery_limit=Int32(-1)).delivery_limit == 5
    assert desk.limits("c").delivery_limit == 5


def test_of_a_limit_the_smallest_holds_and_of_a_choice_the_queues_own(desk: PolicyDesk) -> None:
    desk.policy({"max-length": 10, "overflow": "reject-publish", "batch-delay": 10})
    small = desk.limits("small", x_max_length=Int32(5), x_overflow="drop-head")
    large = desk.limits("large", x_max_length=Int32(50), x_batch_delay=Int32(50))
    assert (small.max_length, small.overflow, small.batch_delay_ms) == (5, "drop-head", 10)
    assert (large.max_length, large.overflow, large.batch_delay_ms) == (10, "reject-publish", 50)


@pytest.mark.parametrize(
    ("own", "policy", "operator", "holds"),
    [
        (None, 10, 5, 5),
        (None, 5, 10, 5),
        (None, None, 7, 7),
        (3, 10, 5, 3),
        (9, 10, 5, 5),
        (9, None, 5, 5),
    ],
)
def test_an_operator_policy_wins_by_being_smaller(
    desk: PolicyDesk, own: int | None, policy: int | None, operator: int, holds: int
) -> None:
    if policy is not None:
        desk.policy({"max-length": policy, "cache-share": policy})
    desk.policy({"max-length": operator, "cache-share": operator}, operator=True)
    arguments: dict[str, Value] = (
        {} if own is None else {"x-max-length": Int32(own), "x-cache-share": Int32(own)}
    )
    found = desk.limits("q", **arguments)
    assert (found.max_length, found.cache_share_percent) == (holds, holds)


def test_ages_are_compared_as_times(desk: PolicyDesk) -> None:
    desk.policy({"retention-age": "2D"})
    desk.policy({"retention-age": "30h"}, operator=True)
    assert desk.limits("q").retention_age_ms == 30 * 3_600_000
    assert desk.limits("r", x_retention_age="100s").retention_age_ms == 100_000


def test_only_the_policy_with_the_highest_priority_holds(desk: PolicyDesk) -> None:
    desk.policy({"max-length": 1}, name="low", priority=1)
    desk.policy({"message-ttl": 2}, name="high", priority=2)
    desk.policy({"expires": 3}, name="elsewhere", priority=9, pattern="^x")
    found = desk.limits("q")
    assert (found.max_length, found.message_ttl_ms, found.expires_ms) == (None, 2, None)


def test_of_equal_priorities_the_first_name_holds(desk: PolicyDesk) -> None:
    desk.policy({"max-length": 2}, name="b")
    desk.policy({"max-length": 1}, name="a")
    assert desk.limits("q").max_length == 1


@pytest.mark.parametrize(
    ("apply_to", "matched"),
    [
        (ApplyTo.ALL, {"classic", "quorum", "stream", "exchange"}),
        (ApplyTo.QUEUES, {"classic", "quorum", "stream"}),
        (ApplyTo.CLASSIC_QUEUES, {"classic"}),
        (ApplyTo.QUORUM_QUEUES, {"quorum"}),
        (ApplyTo.STREAMS, {"stream"}),
        (ApplyTo.EXCHANGES, {"exchange"}),
    ],
)
def test_what_a_policy_applies_to(desk: PolicyDesk, apply_to: ApplyTo, matched: set[str]) -> None:
    rows: list[Queue | Exchange] = [desk.exchange("exchange")]
    for kind in QueueType:
        command = declare_queue(kind.value, ME, table(x_queue_type=kind.value), durable=True)
        rows.append(made(desk.do(command), Queue))
    desk.policy({"max-length-bytes": 1}, apply_to=apply_to)
    assert {row.name for row in rows if desk.policies.policy(row) is not None} == matched


def test_a_policy_with_a_setting_the_type_cannot_have_is_passed_over(desk: PolicyDesk) -> None:
    desk.policy({"max-length-bytes": 1}, name="low", priority=1)
    desk.policy({"max-length-bytes": 2, "message-ttl": 2}, name="queues", priority=2)
    desk.policy({"max-length-bytes": 3, "max-age": "1D"}, name="streams", priority=3)
    assert desk.limits("q").max_length_bytes == 2
    stream = desk.limits("s", x_queue_type="stream")
    assert (stream.retention_bytes, stream.retention_age_ms) == (3, 86_400_000)
    desk.do(ClearPolicy(vhost="/", name="streams"))
    assert desk.limits("s", x_queue_type="stream").retention_bytes == 1


def test_a_pattern_is_looked_for_anywhere_in_the_name(desk: PolicyDesk) -> None:
    desk.policy({"max-length": 1}, pattern=r"b\.")
    assert desk.limits("ab.c").max_length == 1
    assert desk.limits("abc").max_length is None


def test_a_pattern_nobody_understands_matches_nothing(desk: PolicyDesk) -> None:
    desk.policy({"max-length": 1}, pattern="(")
    assert desk.limits("(").max_length is None


def test_policies_of_another_vhost_do_not_count(desk: PolicyDesk) -> None:
    desk.do(commands.PutVhost(name="v"))
    desk.policy({"max-length": 1}, vhost="v")
    assert desk.limits("q").max_length is None


def test_changes_are_seen_at_once(desk: PolicyDesk) -> None:
    assert desk.limits("q").max_length is None
    desk.policy({"max-length": 1})
    assert desk.limits("q").max_length == 1
    desk.policy({"max-length": 2})
    assert desk.limits("q").max_length == 2
    payload = desk.machine.capture().payload
    desk.do(ClearPolicy(vhost="/", name="p"))
    assert desk.limits("q").max_length is None
    desk.machine.restore(payload, "")
    assert desk.limits("q").max_length == 2


def test_affected_names_the_queues_a_policy_matched_before_or_matches_now(
    desk: PolicyDesk,
) -> None:
    for name in ("a", "b", "c"):
        desk.queue(name)
    desk.exchange("a")
    desk.changes.clear()
    desk.policy({"max-length": 1}, pattern="a")
    desk.policy({"max-length": 1}, pattern="b")
    desk.do(ClearPolicy(vhost="/", name="p"))
    desk.queue("d")
    changes = [change for change in desk.changes if isinstance(change, Applied)]
    queues = [[q.name for q in desk.policies.affected_queues(change)] for change in changes]
    assert queues == [["a"], ["a", "b"], ["b"], []]
    exchanges = [[x.name for x in desk.policies.affected_exchanges(change)] for change in changes]
    assert [[name for name in names if name[:4] != "amq."] for names in exchanges] == [
        ["a"],
        ["a"],
        [],
        [],
    ]


def test_the_effective_definition_is_both_policies_in_one(desk: PolicyDesk) -> None:
    desk.policy({"max-length": 10, "overflow": "drop-head", "delivery-limit": -1})
    desk.policy({"max-length": 5, "message-ttl": 3, "delivery-limit": 4}, operator=True)
    queue = desk.queue("q")
    assert desk.policies.effective_definition(queue) == {
        "max-length": 5,
        "overflow": "drop-head",
        "delivery-limit": 4,
        "message-ttl": 3,
    }
    operator = desk.policies.operator_policy(queue)
    assert operator is not None
    assert operator.name == "p"


def test_the_alternate_exchange_is_the_exchanges_own_or_its_policys(desk: PolicyDesk) -> None:
    plain = desk.exchange("plain")
    command = declare_exchange("own", "direct", table(alternate_exchange="mine"))
    own = made(desk.do(command), Exchange)
    assert desk.policies.exchange_limits(plain) == ExchangeLimits()
    desk.policy({"alternate-exchange": "theirs"})
    assert desk.policies.exchange_limits(plain) == ExchangeLimits(alternate_exchange="theirs")
    assert desk.policies.exchange_limits(own) == ExchangeLimits(alternate_exchange="mine")


def test_every_setting_has_one_argument_and_the_words_its_policy_needs() -> None:
    assert len(knobs.BY_NAME) == len(knobs.ALL)
    for knob in knobs.ALL:
        in_policy = knob.merge is not knobs.Merge.NONE and knob.name != "queue-master-locator"
        assert bool(knob.policy_words) == in_policy, knob.name
        assert not knob.operator or in_policy, knob.name
    assert Arguments({"x-expires": 1}).keys() & knobs.BY_ARGUMENT.keys() == {"x-expires"}
