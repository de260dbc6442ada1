"""Whatever is asked in whatever order: replicas agree, checkpoints carry everything, indexes say
what the rows say, a refusal changes nothing and listeners hear of all the rest."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lograft_broker.metadata import commands
from lograft_broker.metadata.changes import Added, Applied, Change, Removed, Replaced
from lograft_broker.metadata.commands import Command
from lograft_broker.metadata.machine import MetadataMachine
from lograft_broker.metadata.policy import Policies
from lograft_broker.metadata.refusal import Refusal
from lograft_broker.metadata.results import Absent, Existing
from support.metadata_desk import check_indexes
from support.metadata_load import COMMANDS, SEQUENCES


@settings(max_examples=80, deadline=None)
@given(SEQUENCES, st.data())
def test_a_restored_replica_goes_on_like_one_that_never_stopped(
    sequence: list[Command], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(sequence)))
    entries = [commands.encode(command) for command in sequence]
    first, second = MetadataMachine(), MetadataMachine()
    results = [first.apply(index, 1, entry) for index, entry in enumerate(entries, start=1)]
    for index, entry in enumerate(entries[:cut], start=1):
        second.apply(index, 1, entry)
    payload = second.capture().payload
    third = MetadataMachine()
    third.restore(payload, "")
    assert third.capture().payload == payload
    for machine in (second, third):
        rest = enumerate(entries[cut:], start=cut + 1)
        assert [machine.apply(index, 1, entry) for index, entry in rest] == results[cut:]
        assert machine.capture().payload == first.capture().payload
        assert machine.version == first.version
        check_indexes(machine.state)


@settings(max_examples=80, deadline=None)
@given(SEQUENCES)
def test_every_step_keeps_the_indexes_and_does_what_was_foretold(sequence: list[Command]) -> None:
    machine = MetadataMachine()
    heard: list[Change] = []
    machine.listen(heard.append)
    for index, command in enumerate(sequence, start=1):
        before = machine.capture().payload
        early = machine.settled(command)
        result = machine.apply(index, 1, commands.encode(command))
        after = machine.capture().payload
        unchanged = isinstance(result, (Refusal, Existing, Absent))
        assert (after == before) == unchanged, result
        assert (machine.version == index) != unchanged
        invalid_regex = isinstance(early, Refusal) and "regular expression but" in early.text
        assert invalid_regex or early == (result if unchanged else None)
        check_indexes(machine.state)
    assert [change.version for change in heard] == sorted({change.version for change in heard}), (
        "one change for each index"
    )


@settings(max_examples=80, deadline=None)
@given(SEQUENCES)
def test_the_changes_alone_rebuild_the_tables(sequence: list[Command]) -> None:
    machine = MetadataMachine()
    shadow: dict[tuple[str, Any], object] = {}

    def key(row: Any) -> tuple[str, Any]:
        name = type(row).__name__ + str(getattr(row, "operator", ""))
        fields = ("key", "user", "vhost", "component", "exchange", "name")
        wanted = fields[:1] if hasattr(row, "key") else fields[1:]
        return name, tuple(getattr(row, field, None) for field in wanted)

    def on_change(change: Change) -> None:
        assert isinstance(change, Applied)
        for event in change.events:
            match event:
                case Added(row):
                    assert key(row) not in shadow
                    shadow[key(row)] = row
                case Replaced(before, row):
                    assert shadow[key(row)] == before
                    shadow[key(row)] = row
                case Removed(row):
                    assert shadow.pop(key(row)) == row

    machine.listen(on_change)
    for index, command in enumerate(sequence, start=1):
        machine.apply(index, 1, commands.encode(command))
    rows = {key(row): row for table in machine.state.tables() for row in table}
    assert rows == shadow


@settings(max_examples=40, deadline=None)
@given(SEQUENCES)
def test_limits_can_be_asked_of_any_queue_and_exchange(sequence: list[Command]) -> None:
    machine = MetadataMachine()
    policies = Policies(machine)
    machine.listen(policies.on_change)
    for index, command in enumerate(sequence, start=1):
        machine.apply(index, 1, commands.encode(command))
    fresh = Policies(machine)
    for queue in machine.state.queues:
        assert policies.queue_limits(queue) == fresh.queue_limits(queue)
    for exchange in machine.state.exchanges:
        assert policies.exchange_limits(exchange) == fresh.exchange_limits(exchange)
    assert machine.export()["version"] == machine.version


@settings(max_examples=150, deadline=None)
@given(COMMANDS)
def test_any_command_comes_back_from_its_bytes(command: Command) -> None:
    data = commands.encode(command)
    assert commands.encode(commands.decode(data)) == data
    assert commands.decode(data) == command
