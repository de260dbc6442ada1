"""Topic: the routing key fits the binding key as a pattern. The matching is `hot/topic_trie`."""

from typing import Generic

from lograft_broker.hot.topic_trie import TopicTrie
from lograft_broker.routing.matcher import Binding, D, Needs, Properties
from lograft_wire.amqp.fields import Table


class Topic(Generic[D]):
    needs = Needs()
    per_key = True

    def __init__(self) -> None:
        self._trie = TopicTrie[D]()

    def add(self, binding: Binding[D]) -> None:
        self._trie.add(binding.key, binding.destination)

    def remove(self, binding: Binding[D]) -> None:
        removed = self._trie.remove(binding.key, binding.destination)
        assert removed, binding

    def match(
        self, key: bytes, _headers: Table | None, _properties: Properties | None, /
    ) -> tuple[D, ...]:
        return self._trie.match(key)
