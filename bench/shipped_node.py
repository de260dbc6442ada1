"""One node of pysyncobj exactly as shipped, for comparison: its own transport, journal in memory.

Called by bench_raft: shipped_node.py NUMBER FOLDER SIZE WINDOW RUN_S PORT PORT PORT. Node 0 leads,
makes the load and prints the result.
"""

import json
import os
import sys
import time
from typing import Any

from pysyncobj import SyncObj, SyncObjConf, replicated

NUMBER, SIZE, WINDOW, RUN_S = (
    int(sys.argv[1]),
    int(sys.argv[3]),
    int(sys.argv[4]),
    float(sys.argv[5]),
)
ADDRESSES = [f"127.0.0.1:{port}" for port in sys.argv[6:]]


class Shipped(SyncObj):  # type: ignore[misc]
    @replicated  # type: ignore[untyped-decorator]
    def put(self, data: bytes) -> None:
        pass


def main() -> None:
    first = NUMBER == 0
    conf = SyncObjConf(
        autoTick=False,
        appendEntriesBatchSizeBytes=4 << 20,
        logCompactionMinEntries=1000,
        raftMinTimeout=1.5 if first else 4.0,  # so that node 0 leads
        raftMaxTimeout=2.0 if first else 5.0,
        connectionTimeout=10,
        connectionRetryTime=0.2,
        useFork=False,
        commandsQueueSize=1_000_000,
    )
    me = Shipped(ADDRESSES[NUMBER], [at for at in ADDRESSES if at != ADDRESSES[NUMBER]], conf)
    if not first:
        while True:
            me.doTick(0.005)
    while not (me._isLeader() and me.isReady()):
        me.doTick(0.005)
    print(json.dumps(load(me)), flush=True)


def load(me: Any) -> dict[str, Any]:
    pool = [os.urandom(SIZE) for _ in range(16)]
    latencies: list[float] = []
    state = {"in_flight": 0, "count": 0, "number": 0}
    started = time.monotonic()
    while (elapsed := time.monotonic() - started) < RUN_S:
        while state["in_flight"] < WINDOW:
            state["in_flight"] += 1
            state["number"] += 1
            asked = time.monotonic()

            def done(_result: object, error: int, asked: float = asked) -> None:
                state["in_flight"] -= 1
                if not error:
                    state["count"] += 1
                    latencies.append(time.monotonic() - asked)

            me.put(pool[state["number"] % len(pool)], callback=done)
        me.doTick(0.005)
    latencies.sort()
    return {
        "size": SIZE,
        "window": WINDOW,
        "mb_s": round(state["count"] * SIZE / elapsed / 1e6, 1),
        "p50_ms": round(latencies[len(latencies) // 2] * 1000, 1) if latencies else None,
        "cpu_s_per_gb": round(time.process_time() / (state["count"] * SIZE / 1e9), 1)
        if state["count"]
        else None,
    }


if __name__ == "__main__":
    main()
