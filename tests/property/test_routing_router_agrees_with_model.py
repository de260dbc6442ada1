"""The router against a slow and obvious model: any topology, any changes, cycles and alternates."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from lograft_broker.routing import kinds
from lograft_broker.routing.router import Router
from lograft_log.env import RealRng
from lograft_wire.amqp import fields
from lograft_wire.amqp.fields import Table
from oracle import rendezvous, topic_trie

VHOST = "v"
EXCHANGES = ("u", "v", "w", "x", "y")
QUEUES = ("a", "b", "c")
KINDS: tuple[tuple[str, Table], ...] = (
    ("direct", {}),
    ("fanout", {}),
    ("topic", {}),
    ("headers", {}),
    ("x-consistent-hash", {}),
    ("x-consistent-hash", {"hash-header": "h"}),
    ("x-consistent-hash", {"hash-property": "message_id"}),
    ("x-modulus-hash", {}),
    ("x-delayed-message", {"x-delayed-type": "topic"}),
    ("x-delayed-message", {"x-delayed-type": "fanout"}),
)
KEYS = (b"", b"1", b"2", b"#", b"*", b"1.#", b"1.2")
ARGUMENTS: tuple[Table, ...] = (
    {},
    {"h": "1"},
    {"h": None, "i": 1},
    {"x-match": "any", "h": "1", "i": fields.Int8(1)},
    {"x-match": "any"},
    {"x-match": "all-with-x", "x-h": 1},
    {"x-match": "any-with-x", "x-h": 1, "i": True},
)
HEADERS: tuple[Table | None, ...] = (
    None,
    {"h": "1"},
    {"h": "2", "i": fields.Int64(1)},
    {"x-h": 1, "i": True},
    {"h": b"1", "x-h": 2},
)


@dataclass(frozen=True)
class Properties:
    message_id: str | None
    correlation_id: None = None
    timestamp: None = None


@dataclass(frozen=True)
class Message:
    keys: tuple[bytes, ...]
    headers: Table | None
    properties: Properties


@dataclass(frozen=True)
class Link:
    source: str
    end: tuple[str, str]  # "exchange" or "queue", name
    key: bytes
    arguments: int


End: TypeAlias = tuple[str, str]


@dataclass
class Exchange:
    kind: str
    arguments: Table
    alternate: str | None


@dataclass
class Model:
    exchanges: dict[str, Exchange] = field(default_factory=dict)
    queues: set[str] = field(default_factory=set)
    links: set[Link] = field(default_factory=set)

    def drop(self, gone: Callable[[Link], bool]) -> None:
        self.links = {link for link in self.links if not gone(link)}

    def next_ends(self, name: str, message: Message) -> set[End]:
        """Where a message goes from one exchange."""
        if name == "":
            return {("queue", queue) for queue in self.queues if queue.encode() in message.keys}
        exchange = self.exchanges[name]
        found = wanted(exchange, [link for link in self.links if link.source == name], message)
        if not found and exchange.alternate in self.exchanges:
            return {("exchange", str(exchange.alternate))}
        return found

    def reached(self, start: str, message: Message, *, stop_at_delayed: bool) -> set[str]:
        """The exchanges a message visits; those that delay are not entered if so asked."""
        seen: set[str] = set()
        ahead = [start]
        while ahead:
            name = ahead.pop()
            delays = name != "" and self.exchanges[name].kind == kinds.DELAYED
            if name in seen or (delays and stop_at_delayed):
                continue
            seen.add(name)
            ahead += [other for what, other in self.next_ends(name, message) if what == "exchange"]
        return seen

    def queues_reached(self, start: str, message: Message, *, stop_at_delayed: bool) -> set[str]:
        return {
            queue
            for name in self.reached(start, message, stop_at_delayed=stop_at_delayed)
            for what, queue in self.next_ends(name, message)
            if what == "queue"
        }

    def may_reach(self, start: str) -> Iterator[Exchange]:
        seen: set[str | None] = set()
        ahead: list[str | None] = [start]
        while ahead:
            name = ahead.pop()
            if name in seen or name not in self.exchanges:
                continue
            seen.add(name)
            yield self.exchanges[name]
            ahead.append(self.exchanges[name].alternate)
            ahead += [
                link.end[1]
                for link in self.links
                if link.source == name and link.end[0] == "exchange"
            ]


def wanted(exchange: Exchange, links: list[Link], message: Message) -> set[End]:
    kind = kinds.underlying(exchange.kind, exchange.arguments)
    if kind == "x-consistent-hash":
        return by_hash(links, hashed(exchange, message))
    if kind == "x-modulus-hash":
        ends = sorted(link.end for link in links)
        at = rendezvous.hash_bytes(message.keys[0]) % len(ends) if ends else 0
        return set(ends[at : at + 1])
    return {link.end for link in links if takes(kind, link, message)}


def takes(kind: str, link: Link, message: Message) -> bool:
    match kind:
        case "fanout":
            return True
        case "direct":
            return link.key in message.keys
        case "topic":
            words = topic_trie.words
            return any(topic_trie.fits(words(link.key), words(key)) for key in message.keys)
        case _:
            return headers_fit(ARGUMENTS[link.arguments], message.headers or {})


def headers_fit(arguments: Table, headers: Table) -> bool:
    mode = str(arguments.get("x-match", "all"))
    verdicts = [
        name in headers and (value is None or fields.equivalent(value, headers[name]))
        for name, value in arguments.items()
        if name != "x-match" and (mode.endswith("-with-x") or not name.startswith("x-"))
    ]
    return any(verdicts) if mode.startswith("any") else all(verdicts)


def hashed(exchange: Exchange, message: Message) -> bytes:
    if "hash-header" in exchange.arguments:
        value = (message.headers or {}).get("h", "")
        return value if isinstance(value, bytes) else str(value).encode()
    if "hash-property" in exchange.arguments:
        return (message.properties.message_id or "").encode()
    return message.keys[0]


def by_hash(links: list[Link], value: bytes) -> set[End]:
    weights: dict[End, int] = {}
    for link in links:
        weights[link.end] = weights.get(link.end, 0) + int(link.key)
    ends = sorted(weights)
    names = [f"{what}/{name}".encode() for what, name in ends]
    chosen = rendezvous.choose(names, [weights[end] for end in ends], value)
    return {ends[chosen]} if ends else set()


class Both:
    """The router and its model, changed together."""

    def __init__(self) -> None:
        self.model = Model()
        self.router = Router[str](rng=RealRng())
        self.router.add_vhost(VHOST)

    def exchange(self, name: str, kind: int, alternate: str | None) -> None:
        if name not in self.model.exchanges:
            of, arguments = KINDS[kind]
            self.model.exchanges[name] = Exchange(of, arguments, alternate)
            self.router.add_exchange(VHOST, name, kind=of, arguments=arguments, alternate=alternate)

    def drop_exchange(self, name: str) -> None:
        self.router.remove_exchange(VHOST, name)
        self.model.exchanges.pop(name, None)
        self.model.drop(lambda link: link.source == name or link.end == ("exchange", name))

    def alternate(self, name: str, alternate: str | None) -> None:
        if name in self.model.exchanges:
            self.model.exchanges[name].alternate = alternate
            self.router.set_alternate(VHOST, name, alternate)

    def queue(self, name: str) -> None:
        if name not in self.model.queues:
            self.model.queues.add(name)
            self.router.add_queue(VHOST, name, name)

    def drop_queue(self, name: str) -> None:
        self.router.remove_queue(VHOST, name)
        self.model.queues.discard(name)
        self.model.drop(lambda link: link.end == ("queue", name))

    def bind(self, source: str, end: End, key: bytes, arguments: int) -> None:
        what, name = end
        exchange = self.model.exchanges.get(source)
        there = name in (self.model.queues if what == "queue" else self.model.exchanges)
        if exchange is None or not there:
            return
        table = ARGUMENTS[arguments]
        if kinds.binding_refusal(exchange.kind, exchange.arguments, key=key, arguments=table):
            return
        self.model.links.add(Link(source, end, key, arguments))
        self.router.bind(
            VHOST,
            source=source,
            destination=name,
            to_exchange=what == "exchange",
            key=key,
            arguments=table,
        )

    def unbind(self, source: str, end: End, key: bytes, arguments: int) -> None:
        what, name = end
        self.model.links.discard(Link(source, end, key, arguments))
        self.router.unbind(
            VHOST,
            source=source,
            destination=name,
            to_exchange=what == "exchange",
            key=key,
            arguments=ARGUMENTS[arguments],
        )

    def check(self, start: str, message: Message) -> None:
        routed = self.router.route_many(
            VHOST, start, message.keys, message.headers, message.properties
        )
        if len(message.keys) == 1:
            key = message.keys[0]
            alone = self.router.route(VHOST, start, key, message.headers, message.properties)
            assert alone == routed
        if start != "" and start not in self.model.exchanges:
            assert routed is None
            return
        assert routed is not None
        now = self.model.queues_reached(start, message, stop_at_delayed=True)
        reached = self.model.queues_reached(start, message, stop_at_delayed=False)
        assert set(routed.targets) == reached
        assert set(routed.delayed_targets) == reached - now
        assert len(routed.targets) == len(reached)
        assert len(routed.delayed_targets) == len(reached - now)
        looks = any(
            kinds.underlying(one.kind, one.arguments) == "headers" or "hash-header" in one.arguments
            for one in self.model.may_reach(start)
        )
        assert self.router.needs_headers(VHOST, start) == looks


some_exchange = st.sampled_from(EXCHANGES)
some_queue = st.sampled_from(QUEUES)
some_alternate = st.none() | some_exchange
some_end = st.tuples(st.just("queue"), some_queue) | st.tuples(st.just("exchange"), some_exchange)
some_message = st.builds(
    Message,
    st.lists(st.sampled_from((*KEYS, b"a", b"9")), min_size=1, max_size=3).map(tuple),
    st.sampled_from(HEADERS),
    st.builds(Properties, st.sampled_from((None, "m", "n"))),
)
link = (some_exchange, some_end, st.sampled_from(KEYS), st.integers(0, len(ARGUMENTS) - 1))
bind_step = st.tuples(st.just(Both.bind), *link)
check_step = st.tuples(st.just(Both.check), st.just("") | some_exchange, some_message)
step = st.one_of(
    st.tuples(
        st.just(Both.exchange), some_exchange, st.integers(0, len(KINDS) - 1), some_alternate
    ),
    st.tuples(st.just(Both.queue), some_queue),
    bind_step,
    bind_step,
    bind_step,
    check_step,
    check_step,
    st.tuples(st.just(Both.unbind), *link),
    st.tuples(st.just(Both.drop_exchange), some_exchange),
    st.tuples(st.just(Both.drop_queue), some_queue),
    st.tuples(st.just(Both.alternate), some_exchange, some_alternate),
)
start_kinds = st.lists(
    st.tuples(st.integers(0, len(KINDS) - 1), some_alternate), min_size=5, max_size=5
)


@settings(max_examples=200)
@given(
    start_kinds,
    st.lists(bind_step, min_size=8, max_size=20),
    st.lists(step, max_size=40),
    st.lists(some_message, min_size=2, max_size=4),
)
def test_router_agrees_with_model_after_any_changes(
    first: list[tuple[int, str | None]],
    binds: list[tuple[Callable[..., None], *tuple[object, ...]]],
    steps: list[tuple[Callable[..., None], *tuple[object, ...]]],
    messages: list[Message],
) -> None:
    both = Both()
    for name, (kind, alternate) in zip(EXCHANGES, first, strict=True):
        both.exchange(name, kind, alternate)
    for name in QUEUES:
        both.queue(name)
    for act, *arguments in (*binds, *steps):
        act(both, *arguments)
    for name in ("", *EXCHANGES):
        for message in messages:
            both.check(name, message)
