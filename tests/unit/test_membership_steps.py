"""Members change one voter at a time, through the learner's place."""

import pytest

from lograft_replication import membership
from lograft_replication.membership import Config
from lograft_wire.errors import DamagedError, RefusedError

THREE = Config(("c@1", "a@1", "b@1"))


def test_members_are_sorted_whatever_order_they_are_given_in() -> None:
    assert Config(("a@1", "b@1", "c@1")) == THREE
    assert Config((), ("z", "y")).learners == ("y", "z")
    assert THREE.members == ("a@1", "b@1", "c@1")


@pytest.mark.parametrize(("count", "majority"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_majority_is_more_than_half_of_the_voters_alone(count: int, majority: int) -> None:
    config = Config(tuple(f"v{n}" for n in range(count)), ("learner",))
    assert config.majority_count == majority


def test_a_node_becomes_a_voter_by_way_of_learner() -> None:
    learning = membership.add_learner(THREE, "d@1")
    assert learning == Config(THREE.voters, ("d@1",))
    assert membership.promote(learning, "d@1") == Config((*THREE.voters, "d@1"))
    with pytest.raises(RefusedError, match="no learner; add it"):
        membership.promote(THREE, "d@1")


def test_a_new_incarnation_is_another_member() -> None:
    replaced = membership.promote(membership.add_learner(THREE, "a@2"), "a@2")
    assert membership.remove(replaced, "a@1").voters == ("a@2", "b@1", "c@1")


def test_who_is_there_cannot_be_added_again() -> None:
    learning = membership.add_learner(THREE, "d@1")
    for member in ("a@1", "d@1"):
        with pytest.raises(RefusedError, match="already a member"):
            membership.add_learner(learning, member)
    with pytest.raises(RefusedError, match="already a voter"):
        membership.promote(learning, "a@1")


def test_remove_takes_voters_and_learners_but_never_the_last_voter() -> None:
    config = Config(("a", "b"), ("c",))
    assert membership.remove(config, "c") == Config(("a", "b"))
    assert membership.remove(config, "b") == Config(("a",), ("c",))
    with pytest.raises(RefusedError, match="no member"):
        membership.remove(config, "x")
    with pytest.raises(RefusedError, match="last voter"):
        membership.remove(Config(("a",), ("c",)), "a")


def test_limits_are_kept() -> None:
    limits = membership.Limits(voter_count_max=1, learner_count_max=1, member_bytes_max=4)
    with pytest.raises(RefusedError, match="1 learners"):
        membership.add_learner(Config(("a",), ("b",)), "c", limits)
    with pytest.raises(RefusedError, match="1 voters"):
        membership.promote(Config(("a",), ("b",)), "b", limits)
    with pytest.raises(RefusedError, match="1 to 4 bytes"):
        membership.add_learner(Config(("a",)), "long-", limits)


def test_a_step_may_change_one_voter_and_any_learner() -> None:
    membership.check_step(THREE, Config(("a@1", "b@1"), ("x", "y")))
    membership.check_step(THREE, THREE)
    with pytest.raises(RefusedError, match=r"not a@1, d@1"):
        membership.check_step(THREE, Config(("b@1", "c@1", "d@1")))
    with pytest.raises(RefusedError, match="last voter"):
        membership.check_step(Config(("a",)), Config(()))


@pytest.mark.parametrize("config", [Config(), THREE, Config(("ä@1",), ("b@2", "c@3"))])
def test_bytes_and_back(config: Config) -> None:
    assert membership.decode(membership.encode(config)) == config


def test_layout_of_the_bytes() -> None:
    data = membership.encode(Config(("ab",), ("c",)))
    assert data == b"\x01\x01\x00\x01\x00\x02\x00ab\x01\x00c"


def test_bytes_cut_anywhere_or_too_long_are_refused() -> None:
    data = membership.encode(Config(("a@1", "b@1"), ("c@1",)))
    for size in range(len(data)):
        with pytest.raises(DamagedError):
            membership.decode(data[:size])
    for wrong in (data + b"\0", b"\x02" + data[1:], membership.encode(THREE).replace(b"b", b"a")):
        with pytest.raises(DamagedError):
            membership.decode(wrong)
