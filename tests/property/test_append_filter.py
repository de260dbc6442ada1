"""Whatever a leader sends, in any order, however often: a follower's log stays truthful."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from lograft_replication import append_filter
from lograft_replication.messages import Append, Entry

BASE_TERM = 1


@dataclass
class ListLog:
    """A log as a list of terms behind a base; commands tell whose entry it is."""

    base_index: int
    base_term: int
    entries: list[Entry]

    @property
    def last_index(self) -> int:
        return self.base_index + len(self.entries)

    @property
    def last_term(self) -> int:
        return self.entries[-1][2] if self.entries else self.base_term

    def term_at(self, index: int) -> int:
        assert self.base_index <= index <= self.last_index
        return (
            self.base_term
            if index == self.base_index
            else self.entries[index - self.base_index - 1][2]
        )


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[Entry], ListLog, int, Append, int]:
    """A leader's whole log, a follower that shares a committed prefix and has a tail of its own,
    and one message of that leader, new or old."""
    leader_terms = sorted(draw(st.lists(st.integers(1, 4), min_size=1, max_size=12)))
    leader = [(b"L%d" % (i + 2), i + 2, term) for i, term in enumerate(leader_terms)]
    shared = draw(st.integers(0, len(leader)))
    floor = leader[shared - 1][2] if shared else BASE_TERM
    # Where logs differ, they were written in different terms: one leader per term.
    other = {term for _, _, term in leader[shared:]}
    tail_terms = sorted(draw(st.lists(st.integers(floor, 5), max_size=6)))
    tail_terms = [term for term in tail_terms if term not in other]
    tail = [(b"F%d" % i, shared + 2 + i, term) for i, term in enumerate(tail_terms)]
    commit = draw(st.integers(1, shared + 1))
    base = draw(st.integers(1, commit))
    base_term = BASE_TERM if base == 1 else leader[base - 2][2]
    follower = ListLog(
        base, base_term, [entry for entry in leader[:shared] + tail if entry[1] > base]
    )
    prev = draw(st.integers(1, len(leader) + 1))
    prev_term = BASE_TERM if prev == 1 else leader[prev - 2][2]
    count = draw(st.integers(0, len(leader) + 1 - prev))
    leader_commit = draw(st.integers(commit, max(commit, len(leader) + 1)))
    message = Append(9, leader_commit, prev, prev_term, tuple(leader[prev - 1 : prev - 1 + count]))
    return leader, follower, commit, message, shared


@given(situations())
def test_log_stays_a_truthful_copy(
    situation: tuple[list[Entry], ListLog, int, Append, int],
) -> None:
    leader, follower, commit, message, shared = situation
    decision = append_filter.decide(follower, commit, message)
    assert not isinstance(decision, append_filter.Contradiction)
    if isinstance(decision, append_filter.Reject):
        assert commit < decision.next_index <= follower.last_index + 1
        assert decision.next_index <= max(message.prev_index, shared + 2)
        return
    before = list(follower.entries)
    keep = decision.prev_index - follower.base_index
    after = before[:keep] + list(decision.entries)
    equal = [entry for entry in before if entry in leader]
    assert after[: len(equal)] == equal  # nothing that equals the leader's log was lost
    compared = [entry for entry in after if entry[1] <= decision.verified]
    assert compared == [e for e in leader if follower.base_index < e[1] <= decision.verified]
    assert decision.commit <= max(decision.verified, commit)
    assert decision.commit <= message.commit


@given(situations())
def test_repeating_a_message_changes_nothing(
    situation: tuple[list[Entry], ListLog, int, Append, int],
) -> None:
    _, follower, commit, message, _ = situation
    first = append_filter.decide(follower, commit, message)
    if not isinstance(first, append_filter.Accept):
        return
    keep = first.prev_index - follower.base_index
    after = ListLog(
        follower.base_index, follower.base_term, follower.entries[:keep] + list(first.entries)
    )
    again = append_filter.decide(after, commit, message)
    assert isinstance(again, append_filter.Accept)
    assert again.entries == ()
    assert again.prev_index == after.last_index
    assert again.verified == first.verified
