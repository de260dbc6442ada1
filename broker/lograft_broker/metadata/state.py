"""The tables of the metadata with their indexes, and how one row comes, changes and goes.

A change of one row costs the same whether there are ten queues or a million. Rows keep the order in
which they came, in the tables and in the indexes, on every replica and over a checkpoint: so
whatever walks them walks them alike everywhere. Each row is written as bytes once, when it comes,
so that a checkpoint only joins them.

Pure and without any judgement: `apply` has checked before it calls. Readers read the tables; only
`machine` changes them.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar, assert_never

from lograft_broker.metadata import placement
from lograft_broker.metadata.changes import Added, Event, Removed, Replaced
from lograft_broker.metadata.packing import Packer
from lograft_broker.metadata.rows import (
    Binding,
    BindingKey,
    Boot,
    ConnectionId,
    Exchange,
    GlobalParameter,
    Key,
    Kind,
    Node,
    Parameter,
    Permission,
    Policy,
    Queue,
    Row,
    TopicPermission,
    User,
    Vhost,
)

K = TypeVar("K", bound=Hashable)
R = TypeVar("R", bound=Row)


class Rows(Generic[K, R]):
    """One table: rows by key, in order, with their bytes."""

    def __init__(self, kind: type[R], key: Callable[[R], K]) -> None:
        self.packer = Packer(kind)
        self._key = key
        self._rows: dict[K, R] = {}
        self._packed: dict[K, bytes] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[R]:
        return iter(self._rows.values())

    def __contains__(self, key: K) -> bool:
        return key in self._rows

    def get(self, key: K) -> R | None:
        return self._rows.get(key)

    def put(self, row: R, packed: bytes | None) -> R | None:
        """Returns the row that was there before. `packed` are its bytes, where they are known."""
        key = self._key(row)
        before = self._rows.get(key)
        self._packed[key] = self.packer.pack(row) if packed is None else packed
        self._rows[key] = row
        return before

    def holds(self, row: R) -> bool:
        return self._key(row) in self._rows

    def remove(self, row: R) -> None:
        key = self._key(row)
        del self._rows[key]
        del self._packed[key]

    def packed(self) -> Iterable[bytes]:
        return self._packed.values()


class Index(Generic[K, R]):
    """Rows grouped by something they share."""

    def __init__(self) -> None:
        self._groups: dict[K, dict[Hashable, R]] = {}

    def __getitem__(self, group: K) -> Mapping[Hashable, R]:
        return self._groups.get(group, {})

    def __len__(self) -> int:
        return len(self._groups)

    def groups(self) -> Mapping[K, Mapping[Hashable, R]]:
        return self._groups

    def put(self, group: K, key: Hashable, row: R) -> None:
        self._groups.setdefault(group, {})[key] = row

    def remove(self, group: K, key: Hashable) -> None:
        rows = self._groups[group]
        del rows[key]
        if not rows:
            del self._groups[group]


class State:
    def __init__(self) -> None:
        self.version = 0  # index of the last command that changed anything
        self.shard_queue_counts: list[int] = []  # by shard; their number is set at the first start
        self.vhosts: Rows[str, Vhost] = Rows(Vhost, lambda row: row.name)
        self.users: Rows[str, User] = Rows(User, lambda row: row.name)
        self.permissions: Rows[tuple[str, str], Permission] = Rows(
            Permission, lambda row: (row.user, row.vhost)
        )
        self.topic_permissions: Rows[tuple[str, str, str], TopicPermission] = Rows(
            TopicPermission, lambda row: (row.user, row.vhost, row.exchange)
        )
        self.policies: Rows[Key, Policy] = Rows(Policy, lambda row: row.key)
        self.operator_policies: Rows[Key, Policy] = Rows(Policy, lambda row: row.key)
        self.parameters: Rows[tuple[str, str, str], Parameter] = Rows(
            Parameter, lambda row: (row.vhost, row.component, row.name)
        )
        self.global_parameters: Rows[str, GlobalParameter] = Rows(
            GlobalParameter, lambda row: row.name
        )
        self.nodes: Rows[str, Node] = Rows(Node, lambda row: row.name)
        self.exchanges: Rows[Key, Exchange] = Rows(Exchange, lambda row: row.key)
        self.queues: Rows[Key, Queue] = Rows(Queue, lambda row: row.key)
        self.bindings: Rows[BindingKey, Binding] = Rows(Binding, lambda row: row.key)
        self.exchanges_in: Index[str, Exchange] = Index()  # by vhost, then by Key
        self.queues_in: Index[str, Queue] = Index()
        self.queue_by_id: dict[int, Queue] = {}
        self.queues_at: Index[Boot, Queue] = Index()  # exclusive and transient ones, by their home
        self.queues_of: Index[ConnectionId, Queue] = Index()  # exclusive ones
        self.bindings_from: Index[Key, Binding] = Index()  # by source, then by BindingKey
        self.bindings_to: Index[tuple[Kind, Key], Binding] = Index()
        self._events: list[Event] = []

    def __repr__(self) -> str:
        return (
            f"State(version={self.version}, vhosts={len(self.vhosts)}, "
            f"exchanges={len(self.exchanges)}, queues={len(self.queues)}, "
            f"bindings={len(self.bindings)})"
        )

    def take_events(self) -> tuple[Event, ...]:
        """What changed since this was last asked."""
        events, self._events = tuple(self._events), []
        return events

    # Reading

    def exchange(self, vhost: str, name: str) -> Exchange | None:
        return self.exchanges.get((vhost, name))

    def queue(self, vhost: str, name: str) -> Queue | None:
        return self.queues.get((vhost, name))

    def sourced_by(self, vhost: str, exchange: str) -> Mapping[Hashable, Binding]:
        return self.bindings_from[(vhost, exchange)]

    def leading_to(self, kind: Kind, vhost: str, name: str) -> Mapping[Hashable, Binding]:
        return self.bindings_to[kind, (vhost, name)]

    def tables(self) -> tuple["Rows[Any, Any]", ...]:
        """All of them, in the order of a checkpoint."""
        return (
            self.vhosts,
            self.users,
            self.permissions,
            self.topic_permissions,
            self.policies,
            self.operator_policies,
            self.parameters,
            self.global_parameters,
            self.nodes,
            self.exchanges,
            self.queues,
            self.bindings,
        )

    def least_loaded_shard(self, vhost: str, name: str) -> int:
        return placement.choose(self.shard_queue_counts, vhost, name)

    def fits(self, table: "Rows[Any, Any]", row: Row) -> bool:
        """Whether a row that was read can be one of `table`: bytes may say anything."""
        if table is not self._table(row) or table.holds(row):
            return False
        if not isinstance(row, Queue):
            return True
        placed = row.shard is None or 0 <= row.shard < len(self.shard_queue_counts)
        return (
            placed and (row.home is None) != (row.shard is None) and row.id not in self.queue_by_id
        )

    # Changing

    def put(self, row: Row, *, packed: bytes | None = None) -> None:
        """Add or replace. An exchange, queue or binding is never replaced: it has an identity."""
        match row:
            case Exchange():
                assert row.key not in self.exchanges, row
                self.exchanges_in.put(row.vhost, row.key, row)
            case Queue():
                assert row.key not in self.queues, row
                self._index_queue(row)
            case Binding():
                assert row.key not in self.bindings, row
                self.bindings_from.put((row.vhost, row.source), row.key, row)
                group = row.kind, (row.vhost, row.destination)
                self.bindings_to.put(group, row.key, row)
            case _:
                pass
        before = self._table(row).put(row, packed)
        self._events.append(Added(row) if before is None else Replaced(before, row))

    def remove(self, row: Row) -> None:
        match row:
            case Exchange():
                self.exchanges_in.remove(row.vhost, row.key)
            case Queue():
                self._forget_queue(row)
            case Binding():
                self.bindings_from.remove((row.vhost, row.source), row.key)
                self.bindings_to.remove((row.kind, (row.vhost, row.destination)), row.key)
            case _:
                pass
        self._table(row).remove(row)
        self._events.append(Removed(row))

    def _index_queue(self, queue: Queue) -> None:
        assert (queue.home is None) != (queue.shard is None), queue
        self.queues_in.put(queue.vhost, queue.key, queue)
        self.queue_by_id[queue.id] = queue
        if queue.home is not None:
            self.queues_at.put(queue.home, queue.key, queue)
        if queue.owner is not None:
            self.queues_of.put(queue.owner, queue.key, queue)
        if queue.shard is not None:
            self.shard_queue_counts[queue.shard] += 1

    def _forget_queue(self, queue: Queue) -> None:
        self.queues_in.remove(queue.vhost, queue.key)
        del self.queue_by_id[queue.id]
        if queue.home is not None:
            self.queues_at.remove(queue.home, queue.key)
        if queue.owner is not None:
            self.queues_of.remove(queue.owner, queue.key)
        if queue.shard is not None:
            self.shard_queue_counts[queue.shard] -= 1

    def _table(self, row: Row) -> "Rows[Any, Any]":
        match row:
            case Vhost():
                return self.vhosts
            case User():
                return self.users
            case Permission():
                return self.permissions
            case TopicPermission():
                return self.topic_permissions
            case Policy():
                return self.operator_policies if row.operator else self.policies
            case Parameter():
                return self.parameters
            case GlobalParameter():
                return self.global_parameters
            case Node():
                return self.nodes
            case Exchange():
                return self.exchanges
            case Queue():
                return self.queues
            case Binding():
                return self.bindings
            case _:
                assert_never(row)
