"""How many routes the router finds per CPU-second, one at a time, as a channel asks after a miss.

- direct: 1,000 queues, each under a key of its own;
- fanout to 1 and to 100 queues;
- topic with 10, 1,000 and 50,000 bindings of four words, a third of them with wildcards;
- headers with 100 bindings of two arguments each;
- consistent hash over 10 and over 100 queues;
- from a fanout over a topic with 1,000 bindings to its queues: two exchanges.

Keys are made beforehand and differ from one route to the next, so nothing is answered from a cache.
With --record it appends one JSON line to results/routing.jsonl.
"""

import argparse
import random
import statistics
import time
from collections.abc import Sequence

import record as bench_record

from lograft_broker.routing.router import Router
from lograft_log.env import RealRng
from lograft_wire.amqp.fields import Table

VHOST = "/"
WORDS = [f"word{number}" for number in range(1000)]
ROUNDS = 5
KEY_COUNT = 1 << 12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--routes", type=int, default=200_000, help="per figure and round")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    figures = measure(options.routes)
    for name, value in figures.items():
        print(f"{name:40} {value:14,.0f}")
    if options.record:
        bench_record.append("routing", figures, settings={"routes": options.routes})


def measure(routes: int) -> dict[str, float]:
    result = {"direct_routes_per_cpu_s": direct(routes)}
    for count in (1, 100):
        result[f"fanout_{count}_routes_per_cpu_s"] = fanout(routes, count)
    for count in (10, 1000, 50_000):
        result[f"topic_{count}_routes_per_cpu_s"] = topic(routes, count)
    result["headers_100_routes_per_cpu_s"] = headers(routes, 100)
    for count in (10, 100):
        result[f"consistent_hash_{count}_routes_per_cpu_s"] = consistent_hash(routes, count)
    result["fanout_to_topic_1000_routes_per_cpu_s"] = topic(routes, 1000, entry="fanout")
    return result


def direct(routes: int) -> float:
    router = with_queues(1000)
    router.add_exchange(VHOST, "x", kind="direct")
    for number in range(1000):
        router.bind(VHOST, source="x", destination=f"q{number}", key=b"key.%d" % number)
    return rate(router, routes, [b"key.%d" % (number % 1000) for number in range(KEY_COUNT)])


def fanout(routes: int, count: int) -> float:
    router = with_queues(count)
    router.add_exchange(VHOST, "x", kind="fanout")
    for number in range(count):
        router.bind(VHOST, source="x", destination=f"q{number}")
    return rate(router, routes, some_keys())


def topic(routes: int, count: int, *, entry: str = "") -> float:
    rng = random.Random(1)
    router = with_queues(count)
    router.add_exchange(VHOST, "topic" if entry else "x", kind="topic")
    for number in range(count):
        words = rng.choices(WORDS, k=4)
        if number % 3 == 0:
            words[rng.randrange(4)] = rng.choice("*#")
        router.bind(
            VHOST,
            source="topic" if entry else "x",
            destination=f"q{number}",
            key=".".join(words).encode(),
        )
    if entry:
        router.add_exchange(VHOST, "x", kind=entry)
        router.bind(VHOST, source="x", destination="topic", to_exchange=True)
    return rate(router, routes, some_keys())


def headers(routes: int, count: int) -> float:
    router = with_queues(count)
    router.add_exchange(VHOST, "x", kind="headers")
    for number in range(count):
        wanted: Table = {"tenant": f"t{number // 5}", "format": WORDS[number % 5]}
        router.bind(VHOST, source="x", destination=f"q{number}", arguments=wanted)
    rng = random.Random(2)
    tables: list[Table] = [
        {"tenant": f"t{rng.randrange(20)}", "format": rng.choice(WORDS[:5]), "attempt": number}
        for number in range(KEY_COUNT)
    ]
    return rate(router, routes, [b"key"] * KEY_COUNT, tables)


def consistent_hash(routes: int, count: int) -> float:
    router = with_queues(count)
    router.add_exchange(VHOST, "x", kind="x-consistent-hash")
    for number in range(count):
        router.bind(VHOST, source="x", destination=f"q{number}", key=b"1")
    return rate(router, routes, some_keys())


def with_queues(count: int) -> Router[str]:
    router = Router[str](rng=RealRng())
    router.add_vhost(VHOST)
    for number in range(count):
        router.add_queue(VHOST, f"q{number}", f"q{number}")
    return router


def some_keys() -> list[bytes]:
    rng = random.Random(3)
    return [".".join(rng.choices(WORDS, k=4)).encode() for _ in range(KEY_COUNT)]


def rate(
    router: Router[str], routes: int, keys: list[bytes], tables: Sequence[Table | None] = ()
) -> float:
    """Median of some rounds; the first, which fills caches of the machine, does not count."""
    asked = list(zip(keys, tables or [None] * len(keys), strict=True))
    turns = max(1, routes // len(asked))
    rates = []
    for _ in range(ROUNDS + 1):
        route = router.route
        cpu_s = time.process_time()
        for _ in range(turns):
            for key, table in asked:
                route(VHOST, "x", key, table)
        rates.append(turns * len(asked) / (time.process_time() - cpu_s))
    return statistics.median(rates[1:])


if __name__ == "__main__":
    main()
