"""A node process for the crash tests: writes records into streams and says what was confirmed.

    python writer.py FOLDER write    append until killed; "OFFSET STREAM CRC" per confirmed record
    python writer.py FOLDER read     after recovery: the same per record found, then "end"

Small journal files, segments and checkpoints, so that every few rounds a kill strikes a roll, a
checkpoint or a recycled file.
"""

import asyncio
import os
import sys
from functools import partial

from lograft_log.background import ThreadBackground
from lograft_log.env import RealClock, RealDisk, RealRng
from lograft_log.hot import crc, record
from lograft_log.settings import LogLimits, LogSettings
from lograft_replication import bulk, identity, stream_commands
from lograft_replication.group import RaftGroup
from lograft_replication.host import Host
from lograft_replication.journal_limits import JournalLimits
from lograft_replication.membership import Config
from lograft_replication.proposals import Committed, Outcome
from lograft_replication.stream_commands import Batch, Open, Records
from lograft_replication.streams import StreamMachine
from lograft_replication.timing import GroupLimits, Timing
from lograft_wire.errors import LograftError

GROUP = 1
STREAMS = (10, 11, 12)
BATCH_RECORDS = 7
IN_FLIGHT_MAX = 8
SETTINGS = LogSettings(limits=LogLimits(segment_bytes_max=256 << 10))


class NoPeers:
    def attach(self, _events: object) -> None:
        pass

    def send(self, _peer: str, _frame: object) -> bool:
        return False

    def backlog_bytes(self, _peer: str) -> int:
        return 0


class Listener:
    def on_role(self, group: RaftGroup) -> None:
        pass

    def on_leads(self, group: RaftGroup) -> None:
        pass

    def on_halted(self, group: RaftGroup, error: LograftError) -> None:
        raise error

    def on_failed(self, error: LograftError) -> None:
        raise error


def make_host(folder: str) -> Host:
    loop = asyncio.get_running_loop()
    disk, clock, rng = RealDisk(), RealClock(), RealRng()
    disk.make_folder(folder)
    me = identity.load_or_create(disk, folder, "crash", "crash-tests", rng)
    return Host(
        node=me.id,
        incarnation=me.incarnation,
        disk=disk,
        folder=folder,
        clock=clock,
        rng=rng,
        scheduler=loop,
        network=NoPeers(),
        writer=ThreadBackground("journal", loop),
        helper=ThreadBackground("files", loop),
        worker=ThreadBackground("worker", loop),
        machine_for=lambda _: StreamMachine(disk, clock, SETTINGS),
        listener=Listener(),
        timing=Timing(),
        limits=GroupLimits(
            checkpoint_bytes=512 << 10, command_bytes_max=128 << 10, append_bytes_max=1 << 20
        ),
        journal_limits=JournalLimits(
            file_bytes=1 << 20, entry_bytes_max=128 << 10, group_count_max=8, vote_bytes_max=64
        ),
        bulk_limits=bulk.Limits(),
    )


class Writer:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._group = host.groups[GROUP]
        self._next: dict[int, int] = {}
        self._in_flight = 0
        self._checkpoint_pulse = 0

    def start(self) -> None:
        machine = self._group.machine
        assert isinstance(machine, StreamMachine)
        command = stream_commands.encode(Open(0, tuple((stream, 0) for stream in STREAMS)))
        self._group.propose(command, self._opened)

    def _opened(self, outcome: Outcome) -> None:
        assert isinstance(outcome, Committed), outcome
        machine = self._group.machine
        assert isinstance(machine, StreamMachine)
        for stream in STREAMS:
            found = machine.stream(stream)
            assert found is not None
            self._next[stream] = found.next_offset
        self._fill()

    def _fill(self) -> None:
        while self._in_flight < IN_FLIGHT_MAX:
            stream = STREAMS[os.urandom(1)[0] % len(STREAMS)]
            first = self._next[stream]
            bodies = [os.urandom(20 + os.urandom(1)[0] * 12) for _ in range(BATCH_RECORDS)]
            records = [
                record.Record(body, timestamp_ms=1 + first + i) for i, body in enumerate(bodies)
            ]
            frames = record.encode(records, first)
            self._next[stream] = first + len(bodies)
            batch = Batch(stream, first, len(bodies), frames)
            command = stream_commands.encode(Records(0, (batch,)))
            self._in_flight += 1
            self._group.propose(command, partial(self._done, stream, first, bodies))

    def _done(self, stream: int, first: int, bodies: list[bytes], outcome: Outcome) -> None:
        assert isinstance(outcome, Committed), outcome
        assert outcome.result == (first + len(bodies),), outcome
        lines = [f"{first + i} {stream} {crc.checksum(body)}\n" for i, body in enumerate(bodies)]
        os.write(1, "".join(lines).encode())
        self._in_flight -= 1
        self._checkpoint_pulse += 1
        if self._checkpoint_pulse % 64 == 0:
            self._host.checkpoint(GROUP)
        asyncio.get_running_loop().call_soon(self._fill)


async def wait_applied(group: RaftGroup) -> None:
    """Until all that recovery found is committed and applied again."""
    while not group.serving or group.applied_index < group.log.last_index:  # noqa: ASYNC110
        await asyncio.sleep(0.005)  # in a test program: the product is told by its listener


async def main() -> None:
    host = make_host(sys.argv[1])
    host.start()
    if GROUP not in host.groups:
        host.create_group(GROUP, Config((host.node,)))
    group = host.groups[GROUP]
    await wait_applied(group)
    if sys.argv[2] == "write":
        Writer(host).start()
        await asyncio.sleep(3600)
    machine = group.machine
    assert isinstance(machine, StreamMachine)
    lines = []
    for number in machine.streams:
        stream = machine.stream(number)
        assert stream is not None
        offset = stream.first_offset
        while offset < stream.next_offset:
            chunk = stream.log.read(offset)
            for found in chunk.records(offset):
                lines.append(f"{found.offset} {number} {crc.checksum(found.body)}\n")
            offset = chunk.offset_next
    sys.stdout.write("".join(lines) + "end\n")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
