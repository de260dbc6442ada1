"""Topic patterns: what fits, what a match costs, what is left when bindings go."""

import gc
import weakref

import pytest

from lograft_broker.hot.topic_trie import TopicTrie

FITS = [
    (b"a.b", b"a.b"),
    (b"*", b"a"),
    (b"#", b""),
    (b"#", b"a"),
    (b"#", b"a.b.c"),
    (b"a.#", b"a"),
    (b"a.#", b"a.b.c"),
    (b"#.c", b"c"),
    (b"#.c", b"a.c.b.c"),
    (b"a.*.c", b"a..c"),
    (b"a.*", b"a."),
    (b"*.*", b"."),
    (b"a..b", b"a..b"),
    (b"", b""),
    (b"#.#", b""),
    (b"#.*", b"a"),
    (b"*.#", b"a.b"),
    (b"#.a.#", b"b.a.c"),
    (b"*.#.*", b"a.b"),
    (b"a", b"a"),
    (b"**", b"**"),
    (b"*", b"#"),
]
FITS_NOT = [
    (b"a.b", b"a.c"),
    (b"a.b", b"a.b.c"),
    (b"a.b", b"a"),
    (b"*", b""),
    (b"*", b"a.b"),
    (b"", b"a"),
    (b"", b"."),
    (b"a", b"a."),
    (b"a.*", b"a"),
    (b"#.*", b""),
    (b"*.#.*", b"a"),
    (b"a.#.b", b"a.c"),
    (b"**", b"a"),
    (b"##", b"a"),
    (b"a*", b"ab"),
    (b"A", b"a"),
]


@pytest.mark.parametrize(("pattern", "key"), FITS)
def test_pattern_fits(pattern: bytes, key: bytes) -> None:
    trie = TopicTrie[str]()
    trie.add(pattern, "queue")
    assert trie.match(key) == ("queue",)


@pytest.mark.parametrize(("pattern", "key"), FITS_NOT)
def test_pattern_does_not_fit(pattern: bytes, key: bytes) -> None:
    trie = TopicTrie[str]()
    trie.add(pattern, "queue")
    assert trie.match(key) == ()


def test_a_target_is_found_once_however_many_of_its_patterns_fit() -> None:
    trie = TopicTrie[str]()
    for pattern in (b"a.b", b"a.*", b"#", b"#.b", b"*.*"):
        trie.add(pattern, "queue")
    assert trie.match(b"a.b") == ("queue",)


def test_a_pattern_added_twice_must_be_removed_twice() -> None:
    trie = TopicTrie[str]()
    trie.add(b"a.#", "queue")
    trie.add(b"a.#", "queue")
    assert trie.remove(b"a.#", "queue")
    assert trie.match(b"a.b") == ("queue",)
    assert trie.remove(b"a.#", "queue")
    assert trie.match(b"a.b") == ()
    assert not trie.remove(b"a.#", "queue")


def test_removing_what_is_not_there_changes_nothing() -> None:
    trie = TopicTrie[str]()
    trie.add(b"a.b", "one")
    trie.add(b"c", "two")
    assert not trie.remove(b"a", "one")
    assert not trie.remove(b"a.b", "two")
    assert not trie.remove(b"a.b.c", "one")
    assert not trie.remove(b"a.b", "three")
    assert trie.match(b"a.b") == ("one",)


def test_many_hashes_cost_words_times_nodes_not_a_power_of_them() -> None:
    """Choosing anew at each `#` would try some 10**60 ways here."""
    trie = TopicTrie[int]()
    deep = b".".join([b"#"] * 100)
    trie.add(deep, 1)
    trie.add(deep + b".no", 2)
    key = b".".join([b"a"] * 128)
    assert trie.match(key) == (1,)
    assert trie.node_count == 102
    assert trie.visited_last <= 129 * 101


def test_hashes_between_equal_words_cost_words_times_nodes() -> None:
    trie = TopicTrie[int]()
    trie.add(b".".join([b"#.a"] * 60) + b".b", 1)
    trie.add(b".".join([b"#.*"] * 60), 2)
    key = b".".join([b"a"] * 128)
    assert trie.match(key) == (2,)
    assert trie.visited_last <= 129 * trie.node_count


def test_one_of_fifty_thousand_patterns_is_found_at_a_few_places() -> None:
    trie = TopicTrie[int]()
    for number in range(50_000):
        trie.add(b"tenant%d.order.*" % number, number)
    assert trie.match(b"tenant31415.order.made") == (31415,)
    assert trie.match(b"tenant50000.order.made") == ()
    trie.match(b"tenant7.order.made")
    assert trie.visited_last == 4


def test_the_longest_keys_of_amqp_are_matched() -> None:
    trie = TopicTrie[str]()
    word = b"x" * 255
    dots = b"." * 255
    trie.add(word, "word")
    trie.add(dots, "dots")
    trie.add(b"*." * 127 + b"#", "many")
    assert trie.match(word) == ("word",)
    assert set(trie.match(dots)) == {"dots", "many"}
    assert trie.match(b"x" * 254) == ()


def test_words_that_come_and_go_leave_nothing_behind() -> None:
    trie = TopicTrie[int]()
    trie.add(b"stays.*.#", -1)
    count = trie.node_count
    for number in range(1000):
        pattern = b"amq.gen-%08d-of-some-length.#" % number
        trie.add(pattern, number)
        assert trie.remove(pattern, number)
        assert trie.node_count == count
    assert trie.match(b"stays.put") == (-1,)


def test_a_target_without_patterns_is_let_go() -> None:
    class Target:
        pass

    trie = TopicTrie[Target]()
    target = Target()
    trie.add(b"a", target)
    trie.add(b"b", target)
    seen = weakref.ref(target)
    trie.remove(b"a", target)
    trie.remove(b"b", target)
    del target
    gc.collect()
    assert seen() is None


def test_a_trie_in_a_cycle_with_its_target_is_collected() -> None:
    class Target:
        trie: "TopicTrie[Target]"

    target = Target()
    target.trie = TopicTrie[Target]()
    target.trie.add(b"#", target)
    seen = weakref.ref(target)
    del target
    gc.collect()
    assert seen() is None


def test_the_same_bindings_in_the_same_order_give_the_same_order() -> None:
    def build() -> TopicTrie[str]:
        trie = TopicTrie[str]()
        for number in range(50):
            trie.add((b"a.*", b"a.#", b"#", b"a.b")[number % 4], f"queue{number}")
        for number in range(0, 50, 3):
            trie.remove((b"a.*", b"a.#", b"#", b"a.b")[number % 4], f"queue{number}")
        return trie

    assert build().match(b"a.b") == build().match(b"a.b")
    assert len(build().match(b"a.b")) == 33


def test_keys_and_patterns_are_bytes_and_targets_hashable() -> None:
    trie = TopicTrie[object]()
    with pytest.raises(TypeError):
        trie.match("a")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        trie.add(None, "queue")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        trie.add(b"a.b", [])
    assert (len(trie), trie.node_count) == (0, 1)
