"""When a leader may serve: the lease. Pure.

A leader serves only while a majority of voters answered heartbeats that it SENT within `lease_s`;
an answer is a promise not to elect anyone else for `election_s_min`, which is longer. A new leader
waits until no earlier one can still believe in its lease: each vote says how long that may be for
the voter (with room for a slower clock), and the largest of those answers covers every majority
the old leader may have had.
Safety of the log never rests on this (epochs do that); the lease avoids duplicates.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class VoterWord:
    """What one vote said about earlier leaders."""

    contact_term: int
    lease_left_s: float
    stepped_down: bool


def wait_s(words: Iterable[VoterWord]) -> float:
    """How long a leader elected by these votes must wait before it serves.

    A leader that voted for its successor has stopped; its own word covers itself and whoever was
    before it, so other voters' contact with that term or an earlier one no longer matters.
    """
    words = list(words)
    ended = max((word.contact_term for word in words if word.stepped_down), default=-1)
    return max(
        (
            word.lease_left_s
            for word in words
            if word.contact_term > ended or (word.stepped_down and word.contact_term == ended)
        ),
        default=0.0,
    )


def majority_time(own: float, others: Iterable[float], majority: int) -> float:
    """The latest time at which a majority (ourselves included) was in contact."""
    times = sorted([own, *others], reverse=True)
    return times[majority - 1] if len(times) >= majority else float("-inf")
