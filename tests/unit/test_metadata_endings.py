"""What goes along when a connection, a node, an exchange, a vhost or a user goes."""

import itertools

import pytest

from lograft_broker.metadata import commands
from lograft_broker.metadata.changes import Applied, Removed
from lograft_broker.metadata.commands import (
    ConnectionClosed,
    DeleteExchange,
    DeleteQueue,
    NodeBooted,
    NodeGone,
)
from lograft_broker.metadata.results import Absent, Changed, Created, Deleted, Existing
from lograft_broker.metadata.rows import ApplyTo, ConnectionId, Kind, Node
from lograft_broker.metadata.values import Json
from support.metadata_desk import (
    BOOT,
    ME,
    NODE,
    OTHER,
    Desk,
    check_indexes,
    declare_exchange,
    declare_queue,
    unbind,
)

TWO = ConnectionId("two", b"boot-two", 1)


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    desk.do(NodeBooted(node=TWO.node, boot=TWO.boot))
    return desk


def test_exclusive_queues_go_with_their_connection_and_no_others(desk: Desk) -> None:
    mine = desk.queue("mine", ME, exclusive=True)
    desk.queue("yours", OTHER, exclusive=True)
    desk.queue("transient", ME)
    desk.bind("amq.direct", "mine")
    assert desk.do(ConnectionClosed(connection=ME)) == Deleted((mine,))
    assert desk.queue_names() == ["yours", "transient"]
    assert list(desk.state.bindings) == []
    assert desk.do(ConnectionClosed(connection=ME)) == Absent()


def test_a_new_boot_ends_what_lived_on_the_earlier_one(desk: Desk) -> None:
    desk.queue("exclusive", ME, exclusive=True)
    desk.queue("transient", ME)
    desk.queue("durable", ME, durable=True)
    desk.queue("elsewhere", TWO)
    result = desk.do(NodeBooted(node=NODE, boot=b"next"))
    assert result == Changed(Node(name=NODE, boot=b"next"))
    assert desk.queue_names() == ["durable", "elsewhere"]
    assert desk.refused(declare_queue("late", ME))[0] == 406
    desk.queue("in time", ConnectionId(NODE, b"next", 1))
    check_indexes(desk.state)


def test_the_same_boot_again_changes_nothing(desk: Desk) -> None:
    desk.queue("transient", ME)
    version = desk.machine.version
    assert desk.do(NodeBooted(node=NODE, boot=BOOT)) == Existing(Node(name=NODE, boot=BOOT))
    assert desk.machine.version == version
    assert desk.queue_names() == ["transient"]


def test_a_node_that_is_gone_takes_its_queues_and_may_come_back(desk: Desk) -> None:
    desk.queue("transient", TWO)
    gone = Node(name="two", boot=TWO.boot)
    assert desk.do(NodeGone(node="two", boot=b"another")) == Absent()
    assert desk.do(NodeGone(node="two", boot=TWO.boot)) == Deleted((gone,))
    assert desk.queue_names() == []
    assert desk.do(NodeGone(node="two", boot=TWO.boot)) == Absent()
    assert desk.refused(declare_queue("late", TWO))[0] == 406
    assert desk.do(NodeBooted(node="two", boot=TWO.boot)) == Created(gone)
    desk.queue("again", TWO)


def test_transient_exchanges_end_when_the_whole_cluster_did(desk: Desk) -> None:
    desk.exchange("transient")
    desk.exchange("durable", durable=True)
    desk.queue("q", durable=True)
    desk.bind("transient", "q")
    desk.do(NodeBooted(node=NODE, boot=b"next"))
    assert desk.exchange_names() == ["transient", "durable"]  # node two kept it
    desk.do(NodeGone(node="two", boot=TWO.boot))
    assert desk.exchange_names() == ["transient", "durable"]
    desk.do(NodeBooted(node=NODE, boot=b"after the next"))
    assert desk.exchange_names() == ["durable"]
    assert list(desk.state.bindings) == []
    check_indexes(desk.state)


def test_bad_boots_are_refused(desk: Desk) -> None:
    assert desk.refused(NodeBooted(node="", boot=b"x"))[0] == 406
    assert desk.refused(NodeBooted(node="n", boot=b""))[0] == 406
    assert desk.refused(NodeBooted(node="n", boot=b"x" * 65))[0] == 406


def test_an_auto_delete_exchange_goes_with_the_last_binding_from_it(desk: Desk) -> None:
    desk.exchange("auto", auto_delete=True)
    desk.queue("q")
    desk.queue("r")
    desk.bind("auto", "q")
    desk.bind("auto", "r")
    desk.do(unbind("auto", "q"))
    assert desk.exchange_names() == ["auto"]
    desk.do(DeleteQueue(vhost="/", name="r", by=ME))
    assert desk.exchange_names() == []


def test_an_auto_delete_exchange_that_never_had_a_binding_stays(desk: Desk) -> None:
    desk.exchange("auto", auto_delete=True)
    desk.exchange("source")
    desk.bind_exchange("source", "auto")
    desk.do(unbind("source", "auto", kind=Kind.EXCHANGE))
    assert desk.exchange_names() == ["auto", "source"]


def test_auto_delete_goes_through_a_long_chain(desk: Desk) -> None:
    count = 3_000  # deeper than Python would recurse
    names = [f"x{number}" for number in range(count)]
    for name in names:
        desk.do(declare_exchange(name, auto_delete=True))
    for source, destination in itertools.pairwise(names):
        desk.bind_exchange(source, destination)
    desk.queue("q")
    desk.bind(names[-1], "q")
    desk.do(DeleteQueue(vhost="/", name="q", by=ME))
    assert desk.exchange_names() == []
    assert list(desk.state.bindings) == []
    check_indexes(desk.state)


def test_auto_delete_in_a_circle(desk: Desk) -> None:
    for name in ("a", "b"):
        desk.exchange(name, auto_delete=True)
    desk.bind_exchange("a", "b")
    desk.bind_exchange("b", "a")
    desk.bind_exchange("a", "a")
    desk.do(DeleteExchange(vhost="/", name="a"))
    assert desk.exchange_names() == []
    check_indexes(desk.state)


def test_deleting_an_exchange_leaves_its_destinations(desk: Desk) -> None:
    for name in ("x", "y"):
        desk.exchange(name)
    desk.exchange("auto", auto_delete=True)
    desk.queue("q")
    desk.bind("x", "q")
    desk.bind_exchange("x", "y")
    desk.bind_exchange("auto", "x")
    desk.do(DeleteExchange(vhost="/", name="x"))
    assert desk.exchange_names() == ["y"]  # auto lost its only binding
    assert desk.queue_names() == ["q"]


def test_deleting_a_vhost_takes_all_in_it_and_nothing_else(desk: Desk) -> None:
    desk.do(commands.PutVhost(name="v"))
    for vhost in ("/", "v"):
        desk.do(declare_exchange("x", vhost=vhost, auto_delete=True))
        desk.do(declare_queue("q", vhost=vhost, durable=True))
        desk.do(declare_queue("e", vhost=vhost, exclusive=True))
        desk.do(commands.Bind(vhost=vhost, source="x", kind=Kind.QUEUE, destination="q", by=ME))
        desk.do(commands.SetPermission(user="guest", vhost=vhost, configure="", write="", read=""))
        desk.do(
            commands.SetTopicPermission(user="guest", vhost=vhost, exchange="x", write="", read="")
        )
        for operator in (False, True):
            desk.do(
                commands.SetPolicy(
                    vhost=vhost,
                    name="p",
                    pattern="",
                    apply_to=ApplyTo.ALL,
                    priority=0,
                    definition=Json({"max-length": 1}),
                    operator=operator,
                )
            )
        desk.do(commands.SetParameter(vhost=vhost, component="c", name="p", value=Json(1)))
    desk.changes.clear()
    assert isinstance(desk.do(commands.DeleteVhost(name="v")), Deleted)
    assert [vhost.name for vhost in desk.state.vhosts] == ["/"]
    for rows in desk.state.tables():
        assert all(getattr(row, "vhost", "/") == "/" for row in rows)
    assert [len(rows) for rows in desk.state.tables()[2:8]] == [1, 1, 1, 1, 1, 0]
    assert (len(desk.state.queues), len(desk.state.bindings)) == (2, 1)
    check_indexes(desk.state)
    (change,) = desk.changes
    assert isinstance(change, Applied)
    assert all(isinstance(event, Removed) for event in change.events)
    assert len(change.events) == 1 + 6 + 1 + 2 + 1 + 2 + 2 + 1
    assert desk.do(commands.DeleteVhost(name="v")) == Absent()


def test_deleting_a_user_takes_his_permissions(desk: Desk) -> None:
    desk.do(commands.PutUser(name="u", password_hash=""))
    for user in ("u", "guest"):
        desk.do(commands.SetPermission(user=user, vhost="/", configure="", write="", read=""))
        desk.do(commands.SetTopicPermission(user=user, vhost="/", exchange="x", write="", read=""))
    desk.do(commands.DeleteUser(name="u"))
    assert [row.user for row in desk.state.permissions] == ["guest"]
    assert [row.user for row in desk.state.topic_permissions] == ["guest"]
    assert [row.name for row in desk.state.users] == ["guest"]
    assert desk.do(commands.DeleteUser(name="u")) == Absent()
