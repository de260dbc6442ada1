"""What the host is told when links come and go, decided without sockets."""

import pytest

from lograft_replication.handshake import Identity
from lograft_replication.peers import Down, Event, Gone, Peers, Up
from support.link_nodes import identity

ME = identity("b", boot=b"0" * 16)
OLD = identity("c", boot=b"1" * 16)
REBOOTED = identity("c", boot=b"2" * 16)
REBORN = identity("c", boot=b"3" * 16, incarnation=b"new".ljust(16))


def make() -> Peers[str]:
    return Peers(ME, ["a", "c"])


def test_first_link_is_up_and_its_loss_is_down() -> None:
    table = make()
    assert table.up(OLD, "one") == ([Up(OLD.node_id, OLD.boot)], None)
    assert table.link_of("c") == "one"
    assert table.down("one") == [Down(OLD.node_id)]
    assert table.link_of("c") is None
    assert table.down("one") == []


def test_a_newer_link_of_the_same_process_is_down_then_up() -> None:
    table = make()
    table.up(OLD, "one")
    assert table.up(OLD, "two") == ([Down(OLD.node_id), Up(OLD.node_id, OLD.boot)], "one")
    assert table.down("one") == []
    assert table.link_of("c") == "two"


@pytest.mark.parametrize("newer", [REBOOTED, REBORN])
def test_a_new_boot_or_incarnation_proves_the_old_process_gone(newer: Identity) -> None:
    table = make()
    table.up(OLD, "one")
    expected: list[Event] = [Down(OLD.node_id), Gone(OLD.node_id), Up(newer.node_id, newer.boot)]
    assert table.up(newer, "two") == (expected, "one")


def test_gone_is_told_once() -> None:
    table = make()
    table.up(OLD, "one")
    assert table.refused(OLD) == []  # a refused port proves nothing against a standing link
    table.down("one")
    assert table.refused(OLD) == [Gone(OLD.node_id)]
    assert table.refused(OLD) == []
    assert table.up(REBOOTED, "two") == ([Up(REBOOTED.node_id, REBOOTED.boot)], None)


def test_a_refusal_meant_for_an_older_process_is_ignored() -> None:
    table = make()
    table.up(OLD, "one")
    table.up(REBOOTED, "two")
    table.down("two")
    assert table.refused(OLD) == []


def test_a_succeeded_process_may_not_take_the_link_back() -> None:
    table = make()
    table.up(OLD, "one")
    table.up(REBOOTED, "two")
    assert "succeeded" in table.judge(OLD, dialled="c")
    table.down("two")
    assert table.judge(OLD, dialled="c") == ""


def test_judgement_names_what_is_wrong() -> None:
    table = make()
    assert table.judge(identity("c"), dialled="c") == ""
    assert table.judge(identity("a"), dialled="") == ""
    assert "cluster id 'other'" in table.judge(identity("c", cluster="other"), dialled="c")
    assert "my own" in table.judge(identity("b"), dialled="")
    assert "where 'c' was dialled" in table.judge(identity("d"), dialled="c")
    assert "not among the peers" in table.judge(identity("aa"), dialled="")
    assert "must wait" in table.judge(identity("c"), dialled="")
    table.set_names(["a"])
    assert "not among the peers" in table.judge(identity("c"), dialled="c")


def test_the_smaller_name_dials() -> None:
    table = make()
    assert table.dials("c")
    assert not table.dials("a")
