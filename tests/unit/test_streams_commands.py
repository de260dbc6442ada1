"""Commands of a stream machine as bytes and back."""

import pytest

from lograft_replication import stream_commands
from lograft_replication.stream_commands import Batch, Close, Open, Records, StreamCommand, Trim
from lograft_wire.errors import DamagedError

COMMANDS: list[StreamCommand] = [
    Records(
        1234, (Batch(7, 100, 3, b"frames"), Batch(2**64 - 1, 0, 1, b""), Batch(7, 103, 1, b"x"))
    ),
    Records(0, ()),
    Open(5, ((1, 0), (2, 50))),
    Close(6, (1, 2**63)),
    Trim(7, ((1, 10),)),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: type(command).__name__)
def test_commands_come_back_as_they_went(command: StreamCommand) -> None:
    assert stream_commands.decode(stream_commands.encode(command)) == command


def test_layout_of_records() -> None:
    data = stream_commands.encode(Records(0x0102, (Batch(3, 4, 5, b"abc"),)))
    assert data == (
        b"\x20\x01\x00\x00"
        b"\x01\x00\x00\x00"
        b"\x02\x01\x00\x00\x00\x00\x00\x00"
        b"\x03\x00\x00\x00\x00\x00\x00\x00"
        b"\x04\x00\x00\x00\x00\x00\x00\x00"
        b"\x05\x00\x00\x00"
        b"\x03\x00\x00\x00"
        b"abc"
    )


def test_frames_are_views_of_the_command_and_not_copies() -> None:
    command = stream_commands.encode(Records(1, (Batch(1, 0, 1, b"frames"),)))
    decoded = stream_commands.decode(command)
    assert isinstance(decoded, Records)
    assert memoryview(decoded.batches[0].frames).obj is command


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: type(command).__name__)
def test_cut_or_longer_commands_are_refused(command: StreamCommand) -> None:
    data = stream_commands.encode(command)
    for wrong in (*(data[:size] for size in range(len(data))), data + b"\0"):
        with pytest.raises(DamagedError):
            stream_commands.decode(wrong)


def test_unknown_types_and_versions_are_refused() -> None:
    data = stream_commands.encode(COMMANDS[2])
    for wrong in (b"\x2f" + data[1:], data[:1] + b"\x02" + data[2:], data[:2] + b"\x01" + data[3:]):
        with pytest.raises(DamagedError):
            stream_commands.decode(wrong)
