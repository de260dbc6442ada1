"""Proposals under way in one group, and what became of them.

Every proposal is answered exactly once. Refused means it certainly had no effect; Unknown means
that it may or may not be applied later, so only a retry under the same producer id and sequence is
safe. The library's own callbacks are not used: it forgets them on a change of leader.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Committed:
    """On disk at a majority and applied on this node."""

    index: int
    result: object


@dataclass(frozen=True, slots=True)
class Refused:
    reason: str
    leader: str | None = None  # who might take it instead


@dataclass(frozen=True, slots=True)
class Unknown:
    reason: str


Outcome = Committed | Refused | Unknown
Done = Callable[[Outcome], None]


class Proposals:
    def __init__(self) -> None:
        self._waiting: dict[int, tuple[int, Done]] = {}  # index -> (term, done)
        self._ready: list[tuple[Done, Outcome]] = []  # answered, to be told at the end of the turn

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, index: int, term: int, done: Done) -> None:
        assert index not in self._waiting, index
        self._waiting[index] = (term, done)

    def applied(self, index: int, term: int, result: object) -> None:
        waiting = self._waiting.pop(index, None)
        if waiting is None:
            return
        if waiting[0] == term:
            self._ready.append((waiting[1], Committed(index, result)))
        else:  # our entry was replaced by another leader's: it is in nobody's log any more
            self._ready.append((waiting[1], Refused("replaced by a later leader")))

    def fail_all(self, reason: str) -> None:
        waiting, self._waiting = self._waiting, {}
        self._ready.extend((done, Unknown(reason)) for _, done in waiting.values())

    def tell(self) -> None:
        """Call back for what was answered; callbacks may propose again. One that raises keeps
        nobody else from an answer."""
        ready, self._ready = self._ready, []
        mistakes: list[Exception] = []
        for done, outcome in ready:
            try:
                done(outcome)
            except Exception as error:
                mistakes.append(error)
        if mistakes:
            raise mistakes[0]
