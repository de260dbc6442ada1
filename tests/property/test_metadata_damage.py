"""Any bytes are a command or damage and nothing else; and whatever is a command can be applied."""

import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st

from lograft_broker.metadata import commands
from lograft_broker.metadata.commands import TYPES, VERSION, Command
from lograft_broker.metadata.machine import MetadataMachine
from lograft_wire.errors import DamagedError
from support.metadata_desk import check_indexes
from support.metadata_load import COMMANDS, START


def started() -> MetadataMachine:
    machine = MetadataMachine()
    for index, command in enumerate(START, start=1):
        machine.apply(index, 1, commands.encode(command))
    return machine


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(TYPES)), st.binary(max_size=200))
def test_random_bytes(number: int, rest: bytes) -> None:
    data = bytes((number, VERSION)) + rest
    with contextlib.suppress(DamagedError):
        assert commands.encode(commands.decode(data)) == data


@settings(max_examples=200, deadline=None)
@given(COMMANDS, st.data())
def test_a_changed_byte_is_damage_or_another_command_that_can_be_applied(
    command: Command, data: st.DataObject
) -> None:
    entry = bytearray(commands.encode(command))
    for _ in range(data.draw(st.integers(1, 3))):
        entry[data.draw(st.integers(0, len(entry) - 1))] = data.draw(st.integers(0, 255))
    machine = started()
    try:
        decoded = commands.decode(bytes(entry))
    except DamagedError:
        return
    assert commands.encode(decoded) == bytes(entry)
    machine.apply(10, 1, bytes(entry))
    machine.settled(decoded)
    check_indexes(machine.state)


@settings(max_examples=100, deadline=None)
@given(st.lists(COMMANDS, max_size=20), st.data())
def test_a_changed_checkpoint_is_damage_or_can_be_read(
    sequence: list[Command], data: st.DataObject
) -> None:
    machine = started()
    for index, command in enumerate(sequence, start=10):
        machine.apply(index, 1, commands.encode(command))
    payload = bytearray(machine.capture().payload)
    for _ in range(data.draw(st.integers(1, 3))):
        payload[data.draw(st.integers(0, len(payload) - 1))] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(DamagedError):
        machine.restore(bytes(payload), "")
