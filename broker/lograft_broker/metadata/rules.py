"""Policies and parameters: what is checked and what changes. What policies mean is in `policy`."""

from typing import assert_never

from lograft_broker.metadata import names, policy_checks, refusal, regexes
from lograft_broker.metadata.commands import (
    ClearGlobalParameter,
    ClearParameter,
    ClearPolicy,
    RuleCommand,
    SetGlobalParameter,
    SetParameter,
    SetPolicy,
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
from lograft_broker.metadata.rows import GlobalParameter, Key, Parameter, Policy
from lograft_broker.metadata.state import Rows, State
from lograft_broker.metadata.values import Json

# Components that have tables of their own.
POLICY = "policy"
OPERATOR_POLICY = "operator_policy"
VHOST_LIMITS = "vhost-limits"
_OWN_TABLES = (POLICY, OPERATOR_POLICY, VHOST_LIMITS)

_Rule = Policy | Parameter | GlobalParameter


def edge_mistake(command: RuleCommand) -> Refusal | None:
    if isinstance(command, SetPolicy):
        return regexes.invalid("pattern", command.pattern)
    return None


def settled(state: State, command: RuleCommand, limits: MetadataLimits) -> Settled | None:
    found = _found(state, command)
    wanted = _wanted(command)
    if wanted is None:
        return Absent() if found is None else None
    if found == wanted:
        return Existing(wanted)
    match command:
        case SetPolicy():
            mistake = _invalid_policy(state, command, limits)
            full = len(_policies(state, operator=command.operator)) >= limits.policy_count_max
        case SetParameter():
            mistake = _invalid_parameter(state, command, limits)
            full = len(state.parameters) >= limits.parameter_count_max
        case SetGlobalParameter():
            mistake = names.refused("parameter", command.name, limits)
            mistake = mistake or _too_large(command.value, limits)
            full = len(state.global_parameters) >= limits.parameter_count_max
        case _:
            raise AssertionError(command)
    if mistake is None and full and found is None:
        return refusal.too_many("a policy or parameter", limits.policy_count_max)
    return mistake


def act(state: State, command: RuleCommand) -> Result:
    found = _found(state, command)
    wanted = _wanted(command)
    if wanted is None:
        assert found is not None, command
        state.remove(found)
        return Deleted((found,))
    state.put(wanted)
    return Created(wanted) if found is None else Changed(wanted)


def _found(state: State, command: RuleCommand) -> _Rule | None:
    match command:
        case SetPolicy() | ClearPolicy():
            table = _policies(state, operator=command.operator)
            return table.get((command.vhost, command.name))
        case SetParameter() | ClearParameter():
            return state.parameters.get((command.vhost, command.component, command.name))
        case SetGlobalParameter() | ClearGlobalParameter():
            return state.global_parameters.get(command.name)
        case _:
            assert_never(command)


def _policies(state: State, *, operator: bool) -> Rows[Key, Policy]:
    return state.operator_policies if operator else state.policies


def _wanted(command: RuleCommand) -> _Rule | None:
    match command:
        case SetPolicy():
            return Policy(
                vhost=command.vhost,
                name=command.name,
                pattern=command.pattern,
                apply_to=command.apply_to,
                priority=command.priority,
                definition=command.definition,
                operator=command.operator,
            )
        case SetParameter():
            return Parameter(
                vhost=command.vhost,
                component=command.component,
                name=command.name,
                value=command.value,
            )
        case SetGlobalParameter():
            return GlobalParameter(name=command.name, value=command.value)
        case ClearPolicy() | ClearParameter() | ClearGlobalParameter():
            return None
        case _:
            assert_never(command)


def _invalid_policy(state: State, command: SetPolicy, limits: MetadataLimits) -> Refusal | None:
    if command.vhost not in state.vhosts:
        return refusal.no_vhost(command.vhost)
    if not policy_checks.PRIORITY_MIN <= command.priority <= policy_checks.PRIORITY_MAX:
        return refusal.failed(f"priority {command.priority} is out of range")
    return (
        names.refused("policy", command.name, limits)
        or regexes.too_long("pattern", command.pattern, limits)
        or _too_large(command.definition, limits)
        or policy_checks.invalid(command.definition, operator=command.operator)
    )


def _invalid_parameter(
    state: State, command: SetParameter, limits: MetadataLimits
) -> Refusal | None:
    if command.vhost not in state.vhosts:
        return refusal.no_vhost(command.vhost)
    if command.component in _OWN_TABLES:
        return refusal.failed(f"component {command.component} has commands of its own")
    return (
        names.refused("component", command.component, limits)
        or names.refused("parameter", command.name, limits)
        or _too_large(command.value, limits)
    )


def _too_large(value: Json, limits: MetadataLimits) -> Refusal | None:
    if len(value.text) <= limits.json_bytes_max:
        return None
    return refusal.failed(
        f"a value of {len(value.text)} bytes, at most {limits.json_bytes_max} are allowed"
    )
