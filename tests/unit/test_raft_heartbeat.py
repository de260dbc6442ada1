"""One heartbeat per pair of nodes: what it carries, and what its answer promises."""

from dataclasses import dataclass, field

from lograft_replication.heartbeat import PeerBeat
from lograft_replication.messages import Heartbeat, HeartbeatOk


@dataclass
class Group:
    term: int = 3
    is_leader: bool = True
    follows: bool = True
    confirmations: list[float] = field(default_factory=list)
    contradictions: list[int] = field(default_factory=list)

    def confirmed(self, peer: str, sent_at: float) -> None:
        self.confirmations.append(sent_at)

    def contradicted(self, peer: str, term: int) -> None:
        self.contradictions.append(term)

    def heartbeat(self, leader: str, term: int) -> bool:
        return self.follows and term == self.term


def test_table_travels_until_it_is_known_then_only_its_number() -> None:
    ours, theirs = PeerBeat("b"), PeerBeat("a")
    groups = {1: Group()}
    first = ours.beat(((1, 3),), 10.0)
    assert first == Heartbeat(1, 10_000_000, ((1, 3),))
    assert ours.beat(((1, 3),), 10.1).table == ((1, 3),)
    ours.answered(theirs.answer(first, groups), groups)
    later = ours.beat(((1, 3),), 10.2)
    assert later == Heartbeat(1, 10_200_000, None)
    assert theirs.answer(later, groups) == HeartbeatOk(1, 10_200_000, unknown=False, refused=())
    assert ours.beat(((1, 4),), 10.3) == Heartbeat(2, 10_300_000, ((1, 4),))


def test_answer_confirms_from_the_time_of_sending() -> None:
    beat = PeerBeat("b")
    sent = beat.beat(((1, 3), (2, 3)), 10.0)
    groups = {1: Group(), 2: Group(is_leader=False)}
    beat.answered(HeartbeatOk(sent.version, sent.sent_at_us, unknown=False, refused=()), groups)
    assert groups[1].confirmations == [10.0]
    assert groups[2].confirmations == []


def test_group_that_changed_its_term_meanwhile_gains_nothing() -> None:
    beat = PeerBeat("b")
    sent = beat.beat(((1, 3),), 10.0)
    groups = {1: Group(term=5)}
    beat.answered(HeartbeatOk(sent.version, sent.sent_at_us, unknown=False, refused=()), groups)
    assert groups[1].confirmations == []


def test_refusal_names_the_groups_and_their_terms() -> None:
    theirs = PeerBeat("a")
    followed, strange = Group(), Group(term=9)
    answer = theirs.answer(Heartbeat(1, 5, ((1, 3), (2, 3), (7, 3))), {1: followed, 2: strange})
    assert answer == HeartbeatOk(1, 5, unknown=False, refused=((2, 9), (7, 0)))
    ours = PeerBeat("b")
    ours.beat(((1, 3), (2, 3), (7, 3)), 10.0)
    led = {1: Group(), 2: Group(), 7: Group()}
    ours.answered(answer, led)
    assert [group.contradictions for group in led.values()] == [[], [9], [0]]
    assert led[2].confirmations == []


def test_lost_table_is_sent_again() -> None:
    ours, theirs = PeerBeat("b"), PeerBeat("a")
    ours.answered(HeartbeatOk(ours.beat((), 1.0).version, 1_000_000, False, ()), {})
    quiet = ours.beat((), 1.1)
    assert quiet.table is None
    answer = theirs.answer(quiet, {})  # a peer that restarted knows no table
    assert answer.unknown
    ours.answered(answer, {})
    assert ours.beat((), 1.2).table == ()
