"""Every setting a queue can have: its argument, its policy key, what it may be, how they merge.

One table for all of it: `queue_arguments` refuses bad declarations by it, `policy_checks` bad
policies, and `policy` computes what holds for a queue. The argument of a setting is its policy key
behind "x-". A check returns "" or the mistake as RabbitMQ prints it behind "invalid arg".
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

from lograft_broker.metadata import words
from lograft_broker.metadata.rows import QueueType
from lograft_wire.amqp import fields
from lograft_wire.amqp.fields import Value

PRIORITY_MAX = 255
SHARE_MAX = 100
BATCH_DELAY_MS_MAX = 60_000
OVERFLOWS = ("drop-head", "reject-publish", "reject-publish-dlx")
STRATEGIES = ("at-most-once", "at-least-once")
LOCATORS = ("client-local", "balanced", "least-leaders", "random")
RETRIES = ("disabled", "all", "failed", "returned")
WRITE_MODES = ("sync", "async", "immediate")

_AGE = re.compile(r"([0-9]{1,15})([YMDhms])", re.ASCII)
_AGE_UNITS_S = {"Y": 31_536_000, "M": 2_592_000, "D": 86_400, "h": 3_600, "m": 60, "s": 1}


class Merge(Enum):
    """Which value holds when an argument and a policy both give one."""

    LEAST = "least"  # a limit: the smaller one
    ARGUMENT = "argument"  # a choice: the queue's own
    NONE = "none"  # the argument only: no policy has it


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    name: str  # the policy key
    check: Callable[[Value], str]
    policy_words: str = ""  # behind the value in "... is not a valid message TTL"
    merge: Merge = Merge.ARGUMENT
    operator: bool = False  # an operator policy may have it
    types: frozenset[QueueType] = frozenset(QueueType)

    @property
    def argument(self) -> str:
        return f"x-{self.name}"


def parse_age_ms(text: str) -> int | None:
    """`7D`, `12h`: years, months, days, hours, minutes, seconds. None if it is nothing of these."""
    match = _AGE.fullmatch(text)
    if match is None:
        return None
    age_ms = int(match[1]) * _AGE_UNITS_S[match[2]] * 1000
    return age_ms if 0 < age_ms <= fields.INT64_MAX else None


def _integer(value: Value) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        in_range = fields.INT64_MIN <= value <= fields.INT64_MAX  # JSON has larger ones
        return "" if in_range else f"{{value_too_big,{value}}}"
    return words.string(f"expected integer, got {words.type_name(value)}")


def _not_negative(value: Value) -> str:
    mistake = _integer(value)
    if not mistake and isinstance(value, int) and value < 0:
        return f"{{value_negative,{int(value)}}}"
    return mistake


def _positive(value: Value) -> str:
    mistake = _not_negative(value)
    if not mistake and isinstance(value, int) and value == 0:
        return "{value_zero,0}"
    return mistake


def _at_most(high: int) -> Callable[[Value], str]:
    def check(value: Value) -> str:
        mistake = _not_negative(value)
        if not mistake and isinstance(value, int) and value > high:
            return f"{{max_value_exceeded,{int(value)}}}"
        return mistake

    return check


def _one_of(choices: tuple[str, ...], mistake: str) -> Callable[[Value], str]:
    def check(value: Value) -> str:
        if not isinstance(value, str):
            return _unacceptable(value)
        return "" if value in choices else mistake

    return check


def _word_of(choices: tuple[str, ...], what: str) -> Callable[[Value], str]:
    def check(value: Value) -> str:
        if not isinstance(value, str):
            return _unacceptable(value)
        return "" if value in choices else words.string(f"unsupported {what} '{value}'")

    return check


def _text(value: Value) -> str:
    return "" if isinstance(value, str) else _unacceptable(value)


def _boolean(value: Value) -> str:
    return "" if isinstance(value, bool) else _unacceptable(value)


def _age(value: Value) -> str:
    if not isinstance(value, str):
        return _unacceptable(value)
    return "" if parse_age_ms(value) is not None else "invalid_max_age"


def _version(value: Value) -> str:
    mistake = _not_negative(value)
    if mistake or value in (1, 2):
        return mistake
    return words.string(f"unsupported queue version '{words.term(value)}'")


def _unacceptable(value: Value) -> str:
    return f"{{unacceptable_type,{words.type_name(value)}}}"


def _anything(_value: Value) -> str:
    return ""


_LOG = frozenset({QueueType.STREAM})
_WORK = frozenset({QueueType.CLASSIC, QueueType.QUORUM})

# In the order in which they are checked.
ALL: tuple[Knob, ...] = (
    Knob(
        name="queue-type",
        check=_word_of(tuple(QueueType), "queue type"),
        merge=Merge.NONE,
    ),
    Knob(
        name="expires",
        check=_positive,
        policy_words="queue expiry",
        merge=Merge.LEAST,
        operator=True,
        types=_WORK,
    ),
    Knob(
        name="message-ttl",
        check=_not_negative,
        policy_words="message TTL",
        merge=Merge.LEAST,
        operator=True,
        types=_WORK,
    ),
    Knob(
        name="dead-letter-exchange",
        check=_text,
        policy_words="dead letter exchange name",
        types=_WORK,
    ),
    Knob(
        name="dead-letter-routing-key",
        check=_text,
        policy_words="dead letter routing key",
        types=_WORK,
    ),
    Knob(
        name="dead-letter-strategy",
        check=_one_of(STRATEGIES, "invalid_dlx_strategy"),
        policy_words="dead letter strategy",
        types=_WORK,
    ),
    Knob(
        name="max-length",
        check=_not_negative,
        policy_words="maximum length",
        merge=Merge.LEAST,
        operator=True,
        types=_WORK,
    ),
    Knob(
        name="max-length-bytes",
        check=_not_negative,
        policy_words="maximum length in bytes",
        merge=Merge.LEAST,
        operator=True,
    ),
    Knob(
        name="max-in-memory-length",
        check=_not_negative,
        policy_words="maximum memory in bytes",
        merge=Merge.LEAST,
        operator=True,
        types=_WORK,
    ),
    Knob(
        name="max-in-memory-bytes",
        check=_not_negative,
        policy_words="maximum memory in bytes",
        merge=Merge.LEAST,
        operator=True,
        types=_WORK,
    ),
    Knob(
        name="max-priority",
        check=_at_most(PRIORITY_MAX),
        merge=Merge.NONE,
        types=_WORK,
    ),
    Knob(
        name="overflow",
        check=_one_of(OVERFLOWS, "invalid_overflow"),
        policy_words="overflow value",
        types=_WORK,
    ),
    Knob(
        name="queue-mode",
        check=_word_of(("default", "lazy"), "queue mode"),
        policy_words="queue-mode value",
        types=_WORK,
    ),
    Knob(
        name="queue-version",
        check=_version,
        policy_words="queue-version value",
        types=_WORK,
    ),
    Knob(
        name="single-active-consumer",
        check=_boolean,
        merge=Merge.NONE,
        types=_WORK,
    ),
    Knob(
        name="delivery-limit",
        check=_integer,  # a negative one is no limit
        policy_words="delivery limit",
        merge=Merge.LEAST,
        operator=True,
        types=_WORK,
    ),
    Knob(
        name="delayed-retry-type",
        check=_one_of(RETRIES, "invalid_delayed_retry_type"),
        policy_words="delayed retry type",
        types=_WORK,
    ),
    Knob(
        name="delayed-retry-min",
        check=_not_negative,
        policy_words="minimum retry delay",
        types=_WORK,
    ),
    Knob(
        name="delayed-retry-max",
        check=_not_negative,
        policy_words="maximum retry delay",
        types=_WORK,
    ),
    Knob(
        name="consumer-timeout",
        check=_not_negative,
        policy_words="consumer timeout",
        merge=Merge.LEAST,
        operator=True,
        types=_WORK,
    ),
    Knob(
        name="quorum-initial-group-size",
        check=_positive,
        merge=Merge.NONE,
        types=_WORK,
    ),
    Knob(
        name="quorum-target-group-size",
        check=_positive,
        merge=Merge.NONE,
        types=_WORK,
    ),
    Knob(name="queue-master-locator", check=_anything, types=_WORK),
    Knob(
        name="queue-leader-locator",
        check=_one_of(LOCATORS, "invalid_queue_locator_arg"),
        policy_words="queue leader locator value",
    ),
    Knob(
        name="max-age",
        check=_age,
        policy_words="max age",
        merge=Merge.LEAST,
        operator=True,
        types=_LOG,
    ),
    Knob(
        name="stream-max-segment-size-bytes",
        check=_not_negative,
        policy_words="segment size",
        types=_LOG,
    ),
    Knob(
        name="stream-filter-size-bytes",
        check=_not_negative,
        policy_words="filter size",
        types=_LOG,
    ),
    Knob(
        name="initial-cluster-size",
        check=_positive,
        policy_words="cluster size",
        types=_LOG,
    ),
    # Ours.
    Knob(
        name="retention-age",
        check=_age,
        policy_words="retention age",
        merge=Merge.LEAST,
        operator=True,
        types=_WORK,
    ),
    Knob(
        name="retention-bytes",
        check=_not_negative,
        policy_words="retention size in bytes",
        merge=Merge.LEAST,
        operator=True,
        types=_WORK,
    ),
    Knob(
        name="write-mode",
        check=_one_of(WRITE_MODES, "invalid_write_mode"),
        policy_words="write mode",
    ),
    Knob(
        name="cache-share",
        check=_at_most(SHARE_MAX),
        policy_words="cache share in percent",
        operator=True,
    ),
    Knob(
        name="batch-delay",
        check=_at_most(BATCH_DELAY_MS_MAX),
        policy_words="batch delay in milliseconds",
    ),
    Knob(name="batch-size", check=_positive, policy_words="batch size in bytes"),
    Knob(name="prefetch", check=_not_negative, policy_words="prefetch count", operator=True),
)
BY_ARGUMENT = {knob.argument: knob for knob in ALL}
BY_NAME = {knob.name: knob for knob in ALL}
_ORDER = {knob.argument: place for place, knob in enumerate(ALL)}


def known(arguments: Iterable[str]) -> list[str]:
    """The names of those that are settings, in the order in which they are checked."""
    return sorted((name for name in arguments if name in _ORDER), key=_ORDER.__getitem__)
