"""Topic patterns, slowly and obviously: the specification of hot/topic_trie.pyx."""

from collections import Counter
from collections.abc import Hashable


class TopicTrie:
    def __init__(self) -> None:
        self._added: Counter[tuple[bytes, Hashable]] = Counter()

    def __len__(self) -> int:
        return self._added.total()

    def add(self, pattern: bytes, target: Hashable) -> None:
        self._added[pattern, target] += 1

    def remove(self, pattern: bytes, target: Hashable) -> bool:
        if not self._added[pattern, target]:
            return False
        self._added[pattern, target] -= 1
        return True

    def match(self, key: bytes) -> set[Hashable]:
        return {
            target
            for (pattern, target), count in self._added.items()
            if count and fits(words(pattern), words(key))
        }


def words(text: bytes) -> list[bytes]:
    """No bytes are no words; otherwise one more than there are dots, empty ones included."""
    return text.split(b".") if text else []


def fits(pattern: list[bytes], key: list[bytes]) -> bool:
    """table[p][k]: the pattern from word p on fits the key from word k on."""
    table = [[False] * (len(key) + 1) for _ in range(len(pattern) + 1)]
    table[len(pattern)][len(key)] = True
    for p in reversed(range(len(pattern))):
        for k in reversed(range(len(key) + 1)):
            rest = k < len(key)
            if pattern[p] == b"#":
                table[p][k] = table[p + 1][k] or (rest and table[p][k + 1])
            else:
                table[p][k] = rest and pattern[p] in (b"*", key[k]) and table[p + 1][k + 1]
    return table[0][0]
