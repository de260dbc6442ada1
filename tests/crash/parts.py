"""What the programs of the crash tests share: a host with small files, a load, and reading back.

Small journal files, segments and checkpoints, so that every few rounds a kill strikes a roll, a
checkpoint or a recycled file.
"""

import asyncio
import os
from collections.abc import Callable
from functools import partial

from lograft_log.background import ThreadBackground
from lograft_log.env import RealClock, RealDisk, RealRng
from lograft_log.hot import crc, record
from lograft_log.settings import LogLimits, LogSettings
from lograft_replication import bulk, stream_commands
from lograft_replication.group import RaftGroup
from lograft_replication.host import Host
from lograft_replication.identity import Identity
from lograft_replication.journal_limits import JournalLimits
from lograft_replication.network import PeerNetwork
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


class Listener:
    """Tells when this node takes over; anything else ends the process, loudly."""

    def __init__(self, on_leads: Callable[[], None]) -> None:
        self._on_leads = on_leads

    def on_role(self, group: RaftGroup) -> None:
        pass

    def on_leads(self, group: RaftGroup) -> None:
        self._on_leads()

    def on_halted(self, group: RaftGroup, error: LograftError) -> None:
        raise error

    def on_failed(self, error: LograftError) -> None:
        raise error


def make_host(
    folder: str, me: Identity, network: PeerNetwork, on_leads: Callable[[], None]
) -> Host:
    loop = asyncio.get_running_loop()
    disk, clock = RealDisk(), RealClock()
    return Host(
        node=me.id,
        incarnation=me.incarnation,
        disk=disk,
        folder=folder,
        clock=clock,
        rng=RealRng(),
        scheduler=loop,
        network=network,
        writer=ThreadBackground("journal", loop),
        helper=ThreadBackground("files", loop),
        worker=ThreadBackground("worker", loop),
        machine_for=lambda _: StreamMachine(disk, clock, SETTINGS),
        listener=Listener(on_leads),
        timing=Timing(),
        limits=GroupLimits(
            checkpoint_bytes=512 << 10, command_bytes_max=128 << 10, append_bytes_max=1 << 20
        ),
        journal_limits=JournalLimits(
            file_bytes=1 << 20, entry_bytes_max=128 << 10, group_count_max=8, vote_bytes_max=64
        ),
        bulk_limits=bulk.Limits(),
    )


class Load:
    """Appends random records wherever this node leads, and prints what was confirmed: lines of
    "OFFSET STREAM CHECKSUM", written at once."""

    def __init__(self, group: RaftGroup) -> None:
        self._group = group
        self._next: dict[int, int] = {}
        self._in_flight = 0
        self.running = True

    def take_over(self) -> None:
        """Elected, and all that was committed before is applied: offsets go on from there."""
        command = stream_commands.encode(Open(0, tuple((stream, 0) for stream in STREAMS)))
        self._group.propose(command, self._opened)

    def _opened(self, outcome: Outcome) -> None:
        if isinstance(outcome, Committed):
            for number in STREAMS:
                stream = machine_of(self._group).stream(number)
                assert stream is not None
                self._next[number] = stream.next_offset
            self._fill()

    def _fill(self) -> None:
        while self.running and self._group.is_leader and self._in_flight < IN_FLIGHT_MAX:
            stream = STREAMS[os.urandom(1)[0] % len(STREAMS)]
            first = self._next[stream]
            bodies = [os.urandom(20 + os.urandom(1)[0] * 12) for _ in range(BATCH_RECORDS)]
            frames = record.encode([record.Record(body) for body in bodies], first)
            self._next[stream] = first + len(bodies)
            batch = Batch(stream, first, len(bodies), frames)
            command = stream_commands.encode(Records(0, (batch,)))
            self._in_flight += 1
            self._group.propose(command, partial(self._done, stream, first, bodies))

    def _done(self, stream: int, first: int, bodies: list[bytes], outcome: Outcome) -> None:
        self._in_flight -= 1
        if not isinstance(outcome, Committed):
            return  # leadership is lost; whoever takes over goes on
        assert outcome.result == (first + len(bodies),), outcome
        lines = [f"{first + i} {stream} {crc.checksum(body)}\n" for i, body in enumerate(bodies)]
        os.write(1, "".join(lines).encode())
        asyncio.get_running_loop().call_soon(self._fill)


def machine_of(group: RaftGroup) -> StreamMachine:
    assert isinstance(group.machine, StreamMachine)
    return group.machine


def read_all(group: RaftGroup) -> str:
    """Every record of every stream, as `Load` prints them."""
    lines = []
    for number in machine_of(group).streams:
        stream = machine_of(group).stream(number)
        assert stream is not None
        offset = stream.first_offset
        while offset < stream.next_offset:
            chunk = stream.log.read(offset)
            for found in chunk.records(offset):
                lines.append(f"{found.offset} {number} {crc.checksum(found.body)}\n")
            offset = chunk.offset_next
    return "".join(lines)
