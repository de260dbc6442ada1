"""A source and a puller on one disk, with a wire between them that a test can cut and bend."""

import itertools
from collections import deque
from collections.abc import Callable, Iterator

from lograft_log.env import Disk
from lograft_replication.bulk import Limits, PullServer
from lograft_replication.checkpoint import CheckpointStore
from lograft_replication.machine import StateFile
from lograft_replication.manifest import Manifest
from lograft_replication.membership import Config
from lograft_replication.messages import Chunk, Offer, Pull
from lograft_replication.puller import Puller
from support.stepped import SteppedBackground, SteppedClock

GROUP = 5
LIMITS = Limits(chunk_bytes_max=1000, free_bytes_min=0)


class Source:
    """A node with a checkpoint at `index` over the given files."""

    def __init__(self, disk: Disk, folder: str, limits: Limits = LIMITS) -> None:
        self.disk = disk
        self.clock = SteppedClock()
        self.background = SteppedBackground()
        self.store = CheckpointStore(disk, folder, GROUP)
        self.store.open()
        self.server = PullServer(
            disk, self.store, limits, clock=self.clock, background=self.background
        )

    def checkpoint(self, index: int, contents: dict[str, bytes], crcs: dict[str, int]) -> Offer:
        for path, content in contents.items():
            full = f"{self.store.state_folder}/{path}"
            self.disk.make_folder(full.rpartition("/")[0])
            file = self.disk.open(full, create=True)
            file.write_at(0, [content])
            file.close()
        files = tuple(
            StateFile(path, len(content), crcs.get(path, 0)) for path, content in contents.items()
        )
        config = Config(("a@1",))
        self.store.write(
            Manifest(
                group=GROUP, index=index, term=1, config=config, files=files, payload=b"p" * 2500
            )
        )
        offer = self.store.offer(term=1, commit=index)
        assert offer is not None
        return offer

    def ask(self, pull: Pull) -> Chunk:
        answers: list[Chunk] = []
        self.server.on_pull(pull, answers.append)
        self.background.drain()
        (answer,) = answers
        return answer


class Sink:
    """A node that pulls. Requests wait in `sent` until the test has them answered."""

    def __init__(self, disk: Disk, folder: str, offer: Offer, limits: Limits = LIMITS) -> None:
        self.clock = SteppedClock()
        self.background = SteppedBackground()
        self.store = CheckpointStore(disk, folder, GROUP)
        self.store.open()
        self.sent: deque[Pull] = deque()
        self.results: list[tuple[Manifest | None, Exception | None]] = []
        self.requests: Iterator[int] = itertools.count(1)
        self.puller = Puller(
            disk,
            self.store,
            offer,
            self.clock,
            limits,
            self.sent.append,
            lambda manifest, error: self.results.append((manifest, error)),
            background=self.background,
            requests=self.requests,
        )

    def pull_all(
        self, source: Source, bend: Callable[[Chunk], Chunk] = lambda chunk: chunk
    ) -> None:
        self.puller.on_timer()
        while not self.results:
            self.answer_one(source, bend)

    def answer_one(
        self, source: Source, bend: Callable[[Chunk], Chunk] = lambda chunk: chunk
    ) -> None:
        if self.sent:
            self.puller.on_chunk(bend(source.ask(self.sent.popleft())))
        elif not self.background.waiting:
            self.clock.at_s += 0.1
            self.puller.on_timer()
        self.background.drain()
