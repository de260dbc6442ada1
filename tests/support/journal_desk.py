"""A journal on any disk whose writer, helper and loop turns a test moves by hand."""

from lograft_log import env
from lograft_replication.journal import Journal
from lograft_replication.journal_limits import JournalLimits
from lograft_wire import errors
from support.manual_scheduler import ManualScheduler
from support.stepped import SteppedBackground

INCARNATION = bytes(range(16))
SMALL = JournalLimits(
    file_bytes=16 << 10,
    entry_bytes_max=4 << 10,
    flush_bytes_max=8 << 10,
    memory_bytes_max=1 << 20,
    spare_files_max=1,
    group_count_max=8,
    vote_bytes_max=16,
)


class JournalDesk:
    def __init__(
        self,
        disk: env.Disk,
        folder: str,
        *,
        limits: JournalLimits = SMALL,
        rng: env.Rng | None = None,
        incarnation: bytes = INCARNATION,
    ) -> None:
        self.scheduler = ManualScheduler()
        self.writer = SteppedBackground()
        self.helper = SteppedBackground()
        self.failures: list[errors.StorageError] = []
        self.journal = Journal.open(
            disk=disk,
            folder=folder,
            limits=limits,
            rng=rng if rng is not None else env.RealRng(),
            incarnation=incarnation,
            scheduler=self.scheduler,
            writer=self.writer,
            helper=self.helper,
        )
        self.journal.on_failed = self.failures.append

    def settle(self) -> None:
        """Until nothing is under way: all that was handed in is durable (or has failed)."""
        moved = True
        while moved:
            moved = self.scheduler.turn()
            for background in (self.writer, self.helper):
                if background.waiting:
                    background.step()
                    moved = True

    def quiet(self) -> None:
        """Settle, and let the time pass after which the journal marks what is durable."""
        self.settle()
        self.scheduler.advance(10.0)
        self.settle()

    def close(self) -> None:
        closed: list[bool] = []
        self.journal.close(lambda: closed.append(True))
        self.settle()
        assert closed == [True]


def fill(desk: JournalDesk, group: int, *, count: int, size: int = 100, term: int = 1) -> None:
    """Append entries whose bytes tell their index."""
    view = desk.journal.group(group)
    for _ in range(count):
        index = view.last_index + 1
        view.append(command(group, index, term, size), index=index, term=term)


def command(group: int, index: int, term: int, size: int = 100) -> bytes:
    return f"{group}/{index}/{term};".encode().ljust(size, b".")
