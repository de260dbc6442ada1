"""Whether the definition of a policy makes sense. Pure; the words are RabbitMQ's."""

from lograft_broker.metadata import knobs, refusal, words
from lograft_broker.metadata.knobs import Merge
from lograft_broker.metadata.refusal import Refusal
from lograft_broker.metadata.values import Json, JsonValue

ALTERNATE = "alternate-exchange"
# Of RabbitMQ's mirrored queues. Definitions that still carry them can be imported; every durable
# queue is replicated here whatever they say.
IGNORED = frozenset(
    {
        "ha-mode",
        "ha-params",
        "ha-sync-mode",
        "ha-sync-batch-size",
        "ha-promote-on-shutdown",
        "ha-promote-on-failure",
        "queue-master-locator",
        "target-group-size",
    }
)
PRIORITY_MIN, PRIORITY_MAX = -(1 << 31), (1 << 31) - 1


def invalid(definition: Json, *, operator: bool) -> Refusal | None:
    keys = definition.value
    if not isinstance(keys, dict):
        return refusal.failed(f"definition must be a dictionary: {definition.text}")
    if not keys:
        return refusal.failed("no policy provided")
    unknown = {name: value for name, value in keys.items() if not _known(name, operator)}
    if unknown:
        listed = ",".join(
            f"{{{words.term(name)},{_said(value)}}}" for name, value in unknown.items()
        )
        return refusal.failed(f"[{listed}] are not recognised policy settings")
    for name, value in keys.items():
        mistake = _invalid_value(name, value)
        if mistake:
            return refusal.failed(f"{_said(value)} is not a valid {mistake}")
    return None


def _known(name: str, operator: bool) -> bool:
    knob = knobs.BY_NAME.get(name)
    if operator:
        return knob is not None and knob.operator
    in_policy = knob is not None and knob.merge is not Merge.NONE
    return in_policy or name == ALTERNATE or name in IGNORED


def _invalid_value(name: str, value: JsonValue) -> str:
    """What the value should have been, or ""."""
    if name in IGNORED:
        return ""
    if name == ALTERNATE:
        return "" if isinstance(value, str) else "alternate exchange name"
    knob = knobs.BY_NAME[name]
    return knob.policy_words if knob.check(value) else ""


def _said(value: JsonValue) -> str:
    return Json(value).text if isinstance(value, (dict, list)) else words.term(value)
