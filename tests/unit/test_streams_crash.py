"""After a power cut, checkpoint plus replayed entries give every record back, whatever was lost."""

import random

from lograft_log.env import RealClock
from lograft_log.settings import LogLimits, LogSettings
from lograft_replication.checkpoint import CheckpointStore
from lograft_replication.membership import Config
from lograft_replication.streams import StreamMachine
from sim.disk import SimDisk
from sim.loop import SimCrash
from support.crash_disk import new_disk, reboot
from support.stream_load import Model

SETTINGS = LogSettings(limits=LogLimits(segment_bytes_max=3000))
CONFIG = Config(("a@1",))


class Node:
    """One boot: the machine as its group drives it, with the entries of a model as the journal."""

    def __init__(self, disk: SimDisk, model: Model) -> None:
        self.store = CheckpointStore(disk, "/data/groups", 1)
        found = self.store.open()
        self.machine = StreamMachine(disk, RealClock(), SETTINGS)
        payload = found.payload if found is not None else b""
        self.machine.restore(payload, self.store.state_folder)
        self.applied = found.index if found is not None else 0
        self.model = model
        self.checkpoint = self.applied
        model.check(self.machine, self.applied, replaying=True)

    def apply_to(self, index: int) -> None:
        while self.applied < index:
            self.applied += 1
            self.machine.apply(self.applied, 1, self.model.commands[self.applied])

    def take(self) -> None:
        if self.applied > self.checkpoint:
            self.store.take(self.machine.capture(), index=self.applied, term=1, config=CONFIG)
            self.checkpoint = self.applied


def run(seed: int, *, cuts: int) -> None:
    rng = random.Random(seed)
    model = Model()
    disk = new_disk(seed)
    disk.make_folder("/data")
    disk.sync_folder("/")
    durable = 0  # the last checkpoint that was known to be whole
    for _ in range(cuts):
        disk.volume.crash_at(rng.choice((rng.randint(1, 30), rng.randint(1, 300))))
        try:
            node = Node(disk, model)
            assert node.checkpoint >= durable
            while True:
                model.random_command(rng)
                node.apply_to(len(model.commands) - 1)
                if rng.random() < 0.15:
                    node.take()
                    durable = node.checkpoint
        except SimCrash:
            disk = reboot(disk)
    disk.volume.crash_at(0)
    node = Node(disk, model)
    assert node.checkpoint >= durable
    node.apply_to(len(model.commands) - 1)
    model.check(node.machine, node.applied)
    assert node.machine.damages() == []


def test_records_survive_power_cuts_at_any_operation() -> None:
    for seed in range(40):
        try:
            run(seed, cuts=8)
        except BaseException:
            print(f"seed {seed}")  # noqa: T201
            raise
