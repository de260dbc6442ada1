"""The compiled weighted choice against its specification."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lograft_broker.hot import rendezvous
from oracle import rendezvous as oracle

names = st.lists(st.binary(max_size=12), max_size=8, unique=True)
weights = st.integers(1, 3) | st.integers(1, rendezvous.WEIGHT_MAX)


@given(st.data(), names, st.lists(st.binary(max_size=40), max_size=8))
def test_choice_agrees_with_oracle(
    data: st.DataObject, some: list[bytes], keys: list[bytes]
) -> None:
    heavy = data.draw(st.lists(weights, min_size=len(some), max_size=len(some)))
    chooser = rendezvous.Rendezvous(some, heavy)
    assert len(chooser) == len(some)
    for key in keys:
        assert chooser.choose(key) == oracle.choose(some, heavy, key)


@pytest.mark.parametrize(
    ("some", "heavy"),
    [
        ([b"a"], []),
        ([b"a"], [0]),
        ([b"a", b"b"], [1, -1]),
        ([b"a"], [rendezvous.WEIGHT_MAX + 1]),
    ],
)
def test_weights_that_do_not_fit_are_refused(some: list[bytes], heavy: list[int]) -> None:
    with pytest.raises(ValueError, match="weights"):
        rendezvous.Rendezvous(some, heavy)


@given(names.filter(bool), st.lists(st.binary(max_size=12), max_size=20), st.data())
def test_a_name_that_goes_moves_only_its_own_values(
    some: list[bytes], keys: list[bytes], data: st.DataObject
) -> None:
    heavy = data.draw(st.lists(st.integers(1, 9), min_size=len(some), max_size=len(some)))
    gone = data.draw(st.integers(0, len(some) - 1))
    left = some[:gone] + some[gone + 1 :]
    before = rendezvous.Rendezvous(some, heavy)
    after = rendezvous.Rendezvous(left, heavy[:gone] + heavy[gone + 1 :])
    for key in keys:
        chosen = before.choose(key)
        if chosen != gone:
            assert left[after.choose(key)] == some[chosen]


@given(names.filter(bool), st.lists(st.binary(max_size=12), max_size=10), st.data())
def test_the_order_of_names_does_not_matter(
    some: list[bytes], keys: list[bytes], data: st.DataObject
) -> None:
    heavy = {name: data.draw(st.integers(1, 9)) for name in some}
    other = data.draw(st.permutations(some))
    one = rendezvous.Rendezvous(some, [heavy[name] for name in some])
    two = rendezvous.Rendezvous(other, [heavy[name] for name in other])
    for key in keys:
        assert some[one.choose(key)] == other[two.choose(key)]
