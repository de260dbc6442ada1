"""Which shard a new queue goes to. Pure, and the same on every replica."""

import zlib
from collections.abc import Sequence


def choose(queue_counts: Sequence[int], vhost: str, name: str) -> int:
    """The shard with the fewest queues. Among equals the first at or behind a place that the name
    decides, so that clusters declared in the same order do not all fill shard 0 first."""
    assert queue_counts, "the number of shards is set at the first start"
    count = len(queue_counts)
    start = zlib.crc32(f"{vhost}\0{name}".encode()) % count
    return min(range(count), key=lambda shard: (queue_counts[shard], (shard - start) % count))
