"""A metadata machine after its first start, with short words for what tests ask of it."""

from typing import TypeVar

from lograft_broker.metadata import commands, values
from lograft_broker.metadata.changes import Change
from lograft_broker.metadata.commands import Command
from lograft_broker.metadata.limits import MetadataLimits
from lograft_broker.metadata.machine import MetadataMachine
from lograft_broker.metadata.refusal import Refusal
from lograft_broker.metadata.results import Created, Existing, Result
from lograft_broker.metadata.rows import Binding, ConnectionId, Exchange, Kind, Queue, Row
from lograft_broker.metadata.state import State
from lograft_broker.metadata.values import Arguments
from lograft_wire.amqp.fields import Value

NODE = "one"
BOOT = b"boot-one"
ME = ConnectionId(NODE, BOOT, 1)
OTHER = ConnectionId(NODE, BOOT, 2)
R = TypeVar("R", bound=Row)


class Desk:
    def __init__(
        self, *, started: bool = True, shard_count: int = 4, limits: MetadataLimits | None = None
    ) -> None:
        self.machine = MetadataMachine(limits or MetadataLimits())
        self.index = 0
        self.log: list[bytes] = []
        self.changes: list[Change] = []
        if started:
            self.do(
                commands.FirstStart(
                    shard_count=shard_count, vhost="/", user="guest", password_hash=""
                )
            )
            self.do(commands.NodeBooted(node=NODE, boot=BOOT))
        self.machine.listen(self.changes.append)

    @property
    def state(self) -> State:
        return self.machine.state

    def do(self, command: Command) -> Result:
        self.index += 1
        data = commands.encode(command)
        self.log.append(data)
        return self.machine.apply(self.index, 1, data)

    def refused(self, command: Command) -> tuple[int, str]:
        """Code and text of a refusal, which is the same before and at the proposal and changes
        nothing."""
        before = self.machine.capture().payload
        early = self.machine.settled(command)
        result = self.do(command)
        assert isinstance(result, Refusal), result
        assert result == early
        assert self.machine.capture().payload == before
        return result.code, result.text

    # Objects

    def exchange(
        self,
        name: str,
        kind: str = "direct",
        *,
        durable: bool = False,
        auto_delete: bool = False,
        internal: bool = False,
    ) -> Exchange:
        command = declare_exchange(
            name, kind, durable=durable, auto_delete=auto_delete, internal=internal
        )
        return made(self.do(command), Exchange)

    def queue(
        self,
        name: str,
        by: ConnectionId = ME,
        *,
        durable: bool = False,
        exclusive: bool = False,
        auto_delete: bool = False,
        server_named: bool = False,
    ) -> Queue:
        command = declare_queue(
            name,
            by,
            durable=durable,
            exclusive=exclusive,
            auto_delete=auto_delete,
            server_named=server_named,
        )
        return made(self.do(command), Queue)

    def bind(self, source: str, queue: str, key: str = "", by: ConnectionId = ME) -> Binding:
        return made(self.do(bind(source, queue, key, by=by)), Binding)

    def bind_exchange(self, source: str, destination: str, key: str = "") -> Binding:
        return made(self.do(bind(source, destination, key, kind=Kind.EXCHANGE)), Binding)

    def queue_names(self) -> list[str]:
        return [queue.name for queue in self.state.queues]

    def exchange_names(self) -> list[str]:
        """Those that somebody declared."""
        return [row.name for row in self.state.exchanges if row.name and row.name[:4] != "amq."]


def made(result: Result, kind: type[R]) -> R:
    assert isinstance(result, (Created, Existing)), result
    assert isinstance(result.row, kind)
    return result.row


def table(**entries: Value) -> Arguments:
    """Underscores in names stand for dashes."""
    return Arguments({name.replace("_", "-"): value for name, value in entries.items()})


def declare_exchange(
    name: str,
    kind: str = "direct",
    arguments: Arguments = values.EMPTY,
    *,
    vhost: str = "/",
    durable: bool = False,
    auto_delete: bool = False,
    internal: bool = False,
) -> commands.DeclareExchange:
    return commands.DeclareExchange(
        vhost=vhost,
        name=name,
        type=kind,
        durable=durable,
        auto_delete=auto_delete,
        internal=internal,
        arguments=arguments,
    )


def declare_queue(
    name: str,
    by: ConnectionId = ME,
    arguments: Arguments = values.EMPTY,
    *,
    vhost: str = "/",
    durable: bool = False,
    exclusive: bool = False,
    auto_delete: bool = False,
    server_named: bool = False,
) -> commands.DeclareQueue:
    return commands.DeclareQueue(
        vhost=vhost,
        name=name,
        by=by,
        durable=durable,
        exclusive=exclusive,
        auto_delete=auto_delete,
        server_named=server_named,
        arguments=arguments,
    )


def bind(
    source: str,
    destination: str,
    key: str = "",
    arguments: Arguments = values.EMPTY,
    *,
    kind: Kind = Kind.QUEUE,
    by: ConnectionId = ME,
    vhost: str = "/",
) -> commands.Bind:
    return commands.Bind(
        vhost=vhost,
        source=source,
        kind=kind,
        destination=destination,
        by=by,
        routing_key=key,
        arguments=arguments,
    )


def unbind(
    source: str,
    destination: str,
    key: str = "",
    arguments: Arguments = values.EMPTY,
    *,
    kind: Kind = Kind.QUEUE,
    by: ConnectionId = ME,
    vhost: str = "/",
) -> commands.Unbind:
    return commands.Unbind(
        vhost=vhost,
        source=source,
        kind=kind,
        destination=destination,
        by=by,
        routing_key=key,
        arguments=arguments,
    )


def check_indexes(state: State) -> None:
    """Every index says what the rows say, in their order, and nothing more."""
    for rows, index, group in (
        (state.exchanges, state.exchanges_in, lambda row: row.vhost),
        (state.queues, state.queues_in, lambda row: row.vhost),
        (state.queues, state.queues_at, lambda row: row.home),
        (state.queues, state.queues_of, lambda row: row.owner),
        (state.bindings, state.bindings_from, lambda row: (row.vhost, row.source)),
        (
            state.bindings,
            state.bindings_to,
            lambda row: (row.kind, (row.vhost, row.destination)),
        ),
    ):
        expected: dict[object, dict[object, object]] = {}
        for row in rows:
            if group(row) is not None:
                expected.setdefault(group(row), {})[row.key] = row
        found = {key: dict(rows) for key, rows in index.groups().items()}
        assert found == expected
        assert [list(rows) for rows in found.values()] == [list(expected[key]) for key in found], (
            "the order differs"
        )
    assert state.queue_by_id == {queue.id: queue for queue in state.queues}
    counts = [0] * len(state.shard_queue_counts)
    for queue in state.queues:
        if queue.shard is not None:
            counts[queue.shard] += 1
    assert state.shard_queue_counts == counts
    check_links(state)


def check_links(state: State) -> None:
    """Nothing points at what is not there."""
    vhosts = {vhost.name for vhost in state.vhosts}
    users = {user.name for user in state.users}
    homes = {node.home for node in state.nodes}
    for row in (*state.exchanges, *state.queues, *state.policies, *state.operator_policies):
        assert row.vhost in vhosts, row
    for grant in (*state.permissions, *state.topic_permissions):
        assert grant.vhost in vhosts, grant
        assert grant.user in users, grant
    for parameter in state.parameters:
        assert parameter.vhost in vhosts, parameter
    for queue in state.queues:
        assert queue.home is None or queue.home in homes, queue
    for binding in state.bindings:
        assert state.exchange(binding.vhost, binding.source) is not None, binding
        if binding.kind is Kind.QUEUE:
            assert state.queue(binding.vhost, binding.destination) is not None, binding
        else:
            assert state.exchange(binding.vhost, binding.destination) is not None, binding
