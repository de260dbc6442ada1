"""The compiled topic matcher against its specification, on likely and on unlikely bytes."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from lograft_broker.hot.topic_trie import TopicTrie
from oracle import topic_trie as oracle

# Words that share their first eight bytes, hold what is used to pad them, or look like wildcards.
WORDS = (
    b"", b"a", b"b", b"aa", b"\0", b"a\0", b"eightbyt", b"eightbyt\0", b"eightbytA", b"eightbytAB",
    b"eightbytB", b"**", b"##", b"*a", b"\xff\xfe",
)  # fmt: skip
dotted = st.lists(st.sampled_from(WORDS), max_size=6).map(b".".join)
patterns = st.lists(st.sampled_from((*WORDS, b"*", b"*", b"#", b"#", b"#")), max_size=6).map(
    b".".join
)
keys = dotted | patterns | st.binary(max_size=20)
changes = st.tuples(st.booleans(), patterns | st.binary(max_size=12), st.integers(0, 5))


def check(trie: TopicTrie[int], model: oracle.TopicTrie, some_keys: Sequence[bytes]) -> None:
    assert len(trie) == len(model)
    for key in some_keys:
        found = trie.match(key)
        assert len(found) == len(set(found)), key
        assert set(found) == model.match(key), key


@given(st.lists(changes, max_size=40), st.lists(keys, min_size=1, max_size=12))
def test_match_agrees_with_oracle_after_any_changes(
    some: list[tuple[bool, bytes, int]], some_keys: list[bytes]
) -> None:
    trie, model = TopicTrie[int](), oracle.TopicTrie()
    for adds, pattern, target in some:
        if adds:
            trie.add(pattern, target)
            model.add(pattern, target)
        else:
            assert trie.remove(pattern, target) == model.remove(pattern, target)
        check(trie, model, some_keys[:2])
    check(trie, model, [*some_keys, *(pattern for _, pattern, _ in some)])


@given(st.lists(st.tuples(patterns, st.integers(0, 3)), max_size=30), keys)
def test_what_was_added_can_all_be_removed(some: list[tuple[bytes, int]], key: bytes) -> None:
    trie = TopicTrie[int]()
    for pattern, target in some:
        trie.add(pattern, target)
    for pattern, target in reversed(some):
        assert trie.remove(pattern, target)
    assert trie.match(key) == ()
    assert (len(trie), trie.node_count) == (0, 1)


@given(st.lists(patterns, max_size=30), keys)
def test_a_match_stands_at_each_node_at_most_once_per_word(some: list[bytes], key: bytes) -> None:
    trie = TopicTrie[int]()
    for number, pattern in enumerate(some):
        trie.add(pattern, number)
    trie.match(key)
    assert 0 < trie.visited_last <= (len(oracle.words(key)) + 1) * trie.node_count
