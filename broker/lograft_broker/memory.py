"""How the C library's allocator treats the memory of large batches.

By default it gives a freed batch back to the system and asks for it anew a millisecond later; every
page is then cleared by the kernel again. With 256 KB batches that costs a tenth of the throughput
(bench/bench_raft.py). Called once by `server`, before anything large is allocated.
"""

import ctypes

M_TRIM_THRESHOLD = -1  # numbers of glibc's malloc.h
M_MMAP_THRESHOLD = -3
KEPT_BYTES_MAX = 256 << 20  # free at the top of the heap before any of it is given back
HEAP_BYTES_MAX = 32 << 20  # pieces up to this size come from the heap; glibc allows no more


def keep_freed_batches() -> bool:
    """False where there is no such allocator (musl, say): then its own ways must do."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(
        mallopt(M_MMAP_THRESHOLD, HEAP_BYTES_MAX) and mallopt(M_TRIM_THRESHOLD, KEPT_BYTES_MAX)
    )
