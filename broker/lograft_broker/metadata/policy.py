"""What holds for a queue or exchange: its arguments, the vhost's policies, the operator's policies.

Of the policies that match by name and kind the one with the highest priority holds, as a whole; of
equals the first by name. An operator policy is found the same way and its limits win by being
smaller. Then the queue's own arguments: of limits the smallest holds, of choices the queue's own.

Pure. `Policies` remembers the policies of each vhost in order, and forgets them when told of a
change. Owners of queues ask for `queue_limits` when they open one and when `affected_queues` names
it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from lograft_broker.metadata import exchange_types, knobs, policy_checks, regexes
from lograft_broker.metadata.changes import Applied, Change, Replaced
from lograft_broker.metadata.knobs import Merge
from lograft_broker.metadata.rows import ApplyTo, Exchange, Key, Policy, Queue, QueueType
from lograft_broker.metadata.state import Rows, State
from lograft_wire.amqp.fields import Value

QUORUM_DELIVERY_LIMIT = 20  # RabbitMQ's default since 4.0
_TYPE_OF = {
    ApplyTo.CLASSIC_QUEUES: QueueType.CLASSIC,
    ApplyTo.QUORUM_QUEUES: QueueType.QUORUM,
    ApplyTo.STREAMS: QueueType.STREAM,
}


class HasState(Protocol):
    @property
    def state(self) -> State: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLimits:
    """All settings of one queue. None: nobody said anything, the node's default holds."""

    type: QueueType
    message_ttl_ms: int | None = None
    expires_ms: int | None = None
    max_length: int | None = None
    max_length_bytes: int | None = None
    overflow: str = "drop-head"
    dead_letter_exchange: str | None = None
    dead_letter_routing_key: str | None = None
    dead_letter_strategy: str = "at-most-once"
    max_priority: int = 0  # 0: the queue has no priorities
    single_active_consumer: bool = False
    delivery_limit: int | None = None  # None: no limit
    delayed_retry_type: str = "disabled"
    delayed_retry_min_ms: int | None = None
    delayed_retry_max_ms: int | None = None
    consumer_timeout_ms: int | None = None
    retention_age_ms: int | None = None  # how long settled messages are kept; of a stream: all
    retention_bytes: int | None = None
    segment_bytes_max: int | None = None
    filter_bytes: int | None = None
    leader_locator: str | None = None
    group_size: int | None = None  # accepted; how many replicas there are the cluster decides
    write_mode: str | None = None  # sync, async or immediate
    cache_share_percent: int | None = None
    batch_delay_ms: int | None = None
    batch_bytes: int | None = None
    prefetch_count: int | None = None  # messages read ahead from the log


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeLimits:
    alternate_exchange: str | None = None


class Policies:
    def __init__(self, source: HasState) -> None:
        self._source = source
        self._ordered: dict[tuple[str, bool], tuple[Policy, ...]] = {}  # by vhost and operator

    def on_change(self, change: Change) -> None:
        if not isinstance(change, Applied) or any(
            isinstance(event.row, Policy) for event in change.events
        ):
            self._ordered.clear()

    def queue_limits(self, queue: Queue) -> QueueLimits:
        return _queue_limits(
            queue,
            _definition(self.policy(queue)),
            _definition(self.operator_policy(queue)),
        )

    def exchange_limits(self, exchange: Exchange) -> ExchangeLimits:
        own = exchange.arguments.get(exchange_types.ALTERNATE)
        by_policy = _definition(self.policy(exchange)).get(exchange_types.ALTERNATE)
        alternate = own if own is not None else by_policy
        return ExchangeLimits(alternate_exchange=alternate if isinstance(alternate, str) else None)

    def policy(self, row: Queue | Exchange) -> Policy | None:
        return self._first(row, operator=False)

    def operator_policy(self, row: Queue | Exchange) -> Policy | None:
        return self._first(row, operator=True)

    def effective_definition(self, row: Queue | Exchange) -> dict[str, Value]:
        """Policy and operator policy in one, as the admin API shows it."""
        policy = _definition(self.policy(row))
        operator = _definition(self.operator_policy(row))
        merged = dict(policy)
        for name, value in operator.items():
            merged[name] = _least(name, policy.get(name), value)
        return merged

    def affected_queues(self, change: Applied) -> Iterator[Queue]:
        """Those whose limits may be others now, each once. New ones are not among them."""
        for vhost, policies in _touched(change).items():
            for queue in list(self._source.state.queues_in[vhost].values()):
                if any(_matches(policy, queue) for policy in policies):
                    yield queue

    def affected_exchanges(self, change: Applied) -> Iterator[Exchange]:
        for vhost, policies in _touched(change).items():
            for exchange in list(self._source.state.exchanges_in[vhost].values()):
                if any(_matches(policy, exchange) for policy in policies):
                    yield exchange

    def _first(self, row: Queue | Exchange, *, operator: bool) -> Policy | None:
        for policy in self._in_order(row.vhost, operator=operator):
            if _matches(policy, row):
                return policy
        return None

    def _in_order(self, vhost: str, *, operator: bool) -> tuple[Policy, ...]:
        found = self._ordered.get((vhost, operator))
        if found is None:
            state = self._source.state
            table: Rows[Key, Policy] = state.operator_policies if operator else state.policies
            rows = (row for row in table if row.vhost == vhost)
            found = tuple(sorted(rows, key=lambda row: (-row.priority, row.name)))
            self._ordered[vhost, operator] = found
        return found


def _touched(change: Applied) -> dict[str, list[Policy]]:
    """Policies that came, changed or went, as they were and as they are, by vhost."""
    found: dict[str, list[Policy]] = {}
    for event in change.events:
        before = event.before if isinstance(event, Replaced) else None
        for row in (before, event.row):
            if isinstance(row, Policy):
                found.setdefault(row.vhost, []).append(row)
    return found


def _definition(policy: Policy | None) -> Mapping[str, Value]:
    value = policy.definition.value if policy is not None else {}
    assert isinstance(value, dict), policy  # checked when it was set
    return value


def _matches(policy: Policy, row: Queue | Exchange) -> bool:
    return _concerns(policy, row) and regexes.matches(policy.pattern, row.name)


def _concerns(policy: Policy, row: Queue | Exchange) -> bool:
    if policy.apply_to is ApplyTo.ALL:
        kind_fits = True
    elif isinstance(row, Exchange):
        kind_fits = policy.apply_to is ApplyTo.EXCHANGES
    else:
        kind_fits = policy.apply_to is ApplyTo.QUEUES or _TYPE_OF.get(policy.apply_to) is row.type
    return kind_fits and (isinstance(row, Exchange) or _applicable(policy, row.type))


def _applicable(policy: Policy, kind: QueueType) -> bool:
    """A policy with a setting that this type of queue cannot have is passed over as a whole."""
    for name in _definition(policy):
        knob = knobs.BY_NAME.get(name)
        if knob is not None and kind not in knob.types and name not in policy_checks.IGNORED:
            return False
    return True


def _size(name: str, value: Value) -> float:
    """How much a value of a limit allows."""
    if isinstance(value, str):
        return knobs.parse_age_ms(value) or 0
    assert isinstance(value, (int, float)), (name, value)
    no_limit = name == "delivery-limit" and value < 0
    return float("inf") if no_limit else value


def _least(name: str, *values: Value) -> Value:
    present = [value for value in values if value is not None]
    return present[0] if len(present) == 1 else min(present, key=lambda v: _size(name, v))


def _merged(
    queue: Queue, policy: Mapping[str, Value], operator: Mapping[str, Value]
) -> dict[str, Value]:
    """What was said by anybody about the settings this type of queue has."""
    found: dict[str, Value] = {}
    own = {name.removeprefix("x-"): queue.arguments[name] for name in knobs.known(queue.arguments)}
    for name in {**own, **policy, **operator}:
        knob = knobs.BY_NAME.get(name)
        if knob is not None and queue.type in knob.types:
            by_policy = policy.get(name)
            if knob.merge is not Merge.LEAST and name in own:
                by_policy = None
            found[name] = _least(name, own.get(name), by_policy, operator.get(name))
    return found


def _queue_limits(
    queue: Queue, policy: Mapping[str, Value], operator: Mapping[str, Value]
) -> QueueLimits:
    values = _merged(queue, policy, operator)

    def number(name: str) -> int | None:
        found = values.get(name)
        return int(found) if isinstance(found, int) else None

    def text(name: str) -> str | None:
        found = values.get(name)
        return found if isinstance(found, str) else None

    def age_ms(name: str) -> int | None:
        return knobs.parse_age_ms(text(name) or "")

    stream = queue.type is QueueType.STREAM
    return QueueLimits(
        type=queue.type,
        message_ttl_ms=number("message-ttl"),
        expires_ms=number("expires"),
        max_length=number("max-length"),
        max_length_bytes=None if stream else number("max-length-bytes"),
        overflow=text("overflow") or "drop-head",
        dead_letter_exchange=text("dead-letter-exchange"),
        dead_letter_routing_key=text("dead-letter-routing-key"),
        dead_letter_strategy=text("dead-letter-strategy") or "at-most-once",
        max_priority=number("max-priority") or 0,
        single_active_consumer=values.get("single-active-consumer") is True,
        delivery_limit=_delivery_limit(queue.type, number("delivery-limit")),
        delayed_retry_type=text("delayed-retry-type") or "disabled",
        delayed_retry_min_ms=number("delayed-retry-min"),
        delayed_retry_max_ms=number("delayed-retry-max"),
        consumer_timeout_ms=number("consumer-timeout"),
        retention_age_ms=age_ms("max-age" if stream else "retention-age"),
        retention_bytes=number("max-length-bytes" if stream else "retention-bytes"),
        segment_bytes_max=number("stream-max-segment-size-bytes"),
        filter_bytes=number("stream-filter-size-bytes"),
        leader_locator=text("queue-leader-locator"),
        group_size=number("initial-cluster-size" if stream else "quorum-initial-group-size"),
        write_mode=text("write-mode"),
        cache_share_percent=number("cache-share"),
        batch_delay_ms=number("batch-delay"),
        batch_bytes=number("batch-size"),
        prefetch_count=number("prefetch"),
    )


def _delivery_limit(kind: QueueType, limit: int | None) -> int | None:
    if limit is None:
        return QUORUM_DELIVERY_LIMIT if kind is QueueType.QUORUM else None
    return None if limit < 0 else limit
