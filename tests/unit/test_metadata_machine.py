"""The machine as a Raft group drives it: results, changes, checkpoints, placement."""

import dataclasses
import sys
from collections import Counter
from pathlib import Path

import pytest

from lograft_broker.metadata import commands
from lograft_broker.metadata.changes import Added, Applied, Change, Removed, Replaced, Restored
from lograft_broker.metadata.commands import DeleteQueue, PutVhost
from lograft_broker.metadata.machine import MetadataMachine
from lograft_broker.metadata.results import Created, Existing
from lograft_broker.metadata.rows import ApplyTo, Kind, Queue, Vhost
from lograft_broker.metadata.values import Json
from lograft_replication.machine import Machine
from lograft_replication.proposals import Committed, Outcome
from lograft_wire.amqp.fields import Int32
from lograft_wire.errors import DamagedError
from support.group_desk import A, GroupDesk
from support.metadata_desk import (
    ME,
    NODE,
    Desk,
    bind,
    check_indexes,
    declare_exchange,
    declare_queue,
    made,
    table,
)


def filled() -> Desk:
    """A bit of everything."""
    desk = Desk()
    desk.do(PutVhost(name="v", description="d", tags=("t",)))
    desk.do(commands.SetVhostLimit(vhost="v", limit="max-queues", value=100))
    desk.do(commands.PutUser(name="u", password_hash="h", tags=("management",)))
    desk.do(commands.SetUserLimit(user="u", limit="max-channels", value=3))
    desk.do(commands.SetPermission(user="u", vhost="v", configure="a", write="b", read="c"))
    desk.do(commands.SetTopicPermission(user="u", vhost="v", exchange="x", write="b", read="c"))
    for operator in (False, True):
        desk.do(
            commands.SetPolicy(
                vhost="/",
                name="p",
                pattern="^q",
                apply_to=ApplyTo.QUEUES,
                priority=-3,
                definition=Json({"max-length": 5}),
                operator=operator,
            )
        )
    desk.do(commands.SetParameter(vhost="/", component="c", name="n", value=Json([1])))
    desk.do(commands.SetGlobalParameter(name="g", value=Json({"a": None})))
    desk.do(declare_exchange("x", "topic", table(alternate_exchange="y"), durable=True))
    desk.do(declare_queue("q", ME, table(x_max_length=Int32(5)), durable=True))
    desk.do(declare_queue("transient"))
    desk.do(declare_queue("exclusive", exclusive=True))
    desk.do(bind("x", "q", "a.b", table(k=[1, {"n": None}])))
    desk.do(bind("x", "amq.fanout", kind=Kind.EXCHANGE))
    return desk


def test_it_is_a_machine() -> None:
    machine: Machine = MetadataMachine()
    machine.restore(b"", "")
    assert machine.damaged() == ""
    machine.close()


def test_a_raft_group_of_one_drives_it(tmp_path: Path) -> None:
    machine = MetadataMachine()
    desk = GroupDesk(tmp_path, voters=(A,))
    desk.group.machine = machine
    desk.group.start()
    desk.sync()
    start = commands.FirstStart(shard_count=4, vhost="/", user="guest", password_hash="")
    outcomes: list[Outcome] = []
    for _ in range(2):
        desk.group.propose(commands.encode(start), outcomes.append)
        desk.sync()
    vhost = Vhost(name="/")
    assert outcomes == [Committed(3, Created(vhost)), Committed(4, Existing(vhost))]
    assert machine.version == 3


def test_the_version_is_the_index_of_the_last_change() -> None:
    desk = Desk()
    assert desk.machine.version == 2
    desk.queue("q")
    assert desk.machine.version == 3
    desk.queue("q")
    desk.refused(declare_queue("amq.q"))
    assert (desk.machine.version, desk.index) == (3, 5)


def test_listeners_hear_of_every_change_in_order_and_of_nothing_else() -> None:
    desk = Desk()
    queue = desk.queue("q")
    binding = desk.bind("amq.direct", "q")
    desk.queue("q")
    desk.do(PutVhost(name="/", description="d"))
    desk.do(DeleteQueue(vhost="/", name="q", by=ME))
    assert desk.changes == [
        Applied(3, (Added(queue),)),
        Applied(4, (Added(binding),)),
        Applied(6, (Replaced(Vhost(name="/"), Vhost(name="/", description="d")),)),
        Applied(7, (Removed(queue), Removed(binding))),
    ]


def test_the_state_is_already_changed_when_listeners_hear_of_it() -> None:
    desk = Desk()
    seen: list[bool] = []
    desk.machine.listen(lambda _change: seen.append(desk.state.queue("/", "q") is not None))
    desk.queue("q")
    desk.do(DeleteQueue(vhost="/", name="q", by=ME))
    assert seen == [True, False]


def test_a_restore_is_one_change() -> None:
    desk = filled()
    payload = desk.machine.capture().payload
    machine = MetadataMachine()
    heard: list[Change] = []
    machine.listen(heard.append)
    machine.restore(payload, "")
    assert heard == [Restored(desk.machine.version)]
    machine.restore(b"", "")
    assert heard[1:] == [Restored(0)]


def test_a_restored_machine_is_the_same_in_all_its_bytes() -> None:
    desk = filled()
    capture = desk.machine.capture()
    capture.sync()
    capture.after()
    assert capture.files == ()
    again = MetadataMachine()
    again.restore(capture.payload, "")
    assert again.capture().payload == capture.payload
    assert again.version == desk.machine.version
    assert again.export() == desk.machine.export()
    for ours, theirs in zip(desk.state.tables(), again.state.tables(), strict=True):
        assert list(ours) == list(theirs)
    check_indexes(again.state)
    row = again.state.queue("/", "q")
    assert row is not None
    assert isinstance(row.arguments["x-max-length"], Int32)


def test_a_restored_machine_goes_on_as_the_first_one_does() -> None:
    desk = filled()
    again = MetadataMachine()
    again.restore(desk.machine.capture().payload, "")
    for command in (
        declare_queue("next", durable=True),
        commands.NodeBooted(node=NODE, boot=b"later"),
        commands.DeleteVhost(name="v"),
    ):
        desk.index += 1
        data = commands.encode(command)
        assert again.apply(desk.index, 1, data) == desk.machine.apply(desk.index, 1, data)
    assert again.capture().payload == desk.machine.capture().payload


def test_every_cut_of_a_checkpoint_is_damage() -> None:
    payload = filled().machine.capture().payload
    for size in range(1, len(payload)):
        with pytest.raises(DamagedError):
            MetadataMachine().restore(payload[:size], "")
    with pytest.raises(DamagedError):
        MetadataMachine().restore(payload + b"\0", "")
    with pytest.raises(DamagedError, match="version 2"):
        MetadataMachine().restore(b"\2" + payload[1:], "")


def test_a_damaged_checkpoint_leaves_the_machine_as_it_was() -> None:
    desk = filled()
    payload = desk.machine.capture().payload
    with pytest.raises(DamagedError):
        desk.machine.restore(payload[:-1], "")
    assert desk.machine.capture().payload == payload


def test_the_header_of_a_checkpoint_stays_as_it_is() -> None:
    assert MetadataMachine().capture().payload.hex() == (
        "010000000c000000000000000000000000000000" + "00000000" * 12
    )
    desk = Desk()
    payload = desk.machine.capture().payload
    assert payload[:20].hex() == "010000000c000000020000000000000004000000"


def test_the_rows_of_a_checkpoint_stay_what_they_are() -> None:
    """Tables, and the fields of their rows, in this order: anything else needs a new version."""
    found = [
        " ".join(field.name for field in dataclasses.fields(next(iter(table))))
        for table in filled().state.tables()
    ]
    policy = "vhost name pattern apply_to priority definition operator"
    assert found == [
        "name description tags default_queue_type max_connections max_queues",
        "name password_hash tags max_connections max_channels",
        "user vhost configure write read",
        "user vhost exchange write read",
        policy,
        policy,
        "vhost component name value",
        "name value",
        "name boot",
        "vhost name type durable auto_delete internal arguments",
        "vhost name id type durable auto_delete owner home shard arguments",
        "vhost source kind destination routing_key arguments",
    ]


def test_bytes_that_are_no_command_raise() -> None:
    with pytest.raises(DamagedError):
        MetadataMachine().apply(1, 1, b"\x7f\x01")


def test_queues_are_spread_over_the_shards_evenly() -> None:
    desk = Desk(shard_count=5)
    for number in range(100):
        desk.queue(f"q{number}", durable=True)
        counts = desk.state.shard_queue_counts
        assert max(counts) - min(counts) <= 1
    desk.queue("transient")
    assert Counter(queue.shard for queue in desk.state.queues)[None] == 1


def test_a_shard_that_lost_queues_gets_the_next_ones() -> None:
    desk = Desk(shard_count=3)
    rows = [desk.queue(f"q{number}", durable=True) for number in range(9)]
    for row in rows:
        if row.shard == 1:
            desk.do(DeleteQueue(vhost="/", name=row.name, by=ME))
    found = [desk.queue(f"n{number}", durable=True).shard for number in range(3)]
    assert found == [1, 1, 1]


def test_the_first_queue_does_not_always_go_to_the_same_shard() -> None:
    found = {Desk(shard_count=8).queue(f"q{number}", durable=True).shard for number in range(20)}
    assert len(found) > 3


def test_a_queue_declared_again_later_is_another_one() -> None:
    desk = Desk()
    first = desk.queue("q", durable=True)
    desk.do(DeleteQueue(vhost="/", name="q", by=ME))
    second = desk.queue("q", durable=True)
    assert second.id != first.id
    assert list(desk.state.queue_by_id) == [second.id]


def test_declaring_touches_no_other_queue() -> None:
    """The work for one more queue is the same however many there are: counted, not timed."""

    def calls(existing: int) -> int:
        desk = Desk()
        for number in range(existing):
            desk.do(declare_queue(f"q{number}", durable=True))
        command = commands.encode(declare_queue("one more", durable=True))
        count = 0

        def trace(*_: object) -> None:
            nonlocal count
            count += 1

        sys.setprofile(trace)
        try:
            result = desk.machine.apply(desk.index + 1, 1, command)
        finally:
            sys.setprofile(None)
        assert made(result, Queue).name == "one more"
        return count

    assert calls(2_000) <= calls(10) + 5
