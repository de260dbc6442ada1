"""The journal against a naive model, with power cuts at any moment on a disk that keeps any subset
of what was not synced.

The model is a list of states, one per sequence number: what each group's base, entries, term and
vote are after that record. After a cut the recovered journal must equal one of them, at or beyond
the last that was reported durable.
"""

import contextlib
import random
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lograft_replication.group_journal import GroupJournal
from lograft_replication.journal import Journal
from lograft_wire import errors
from sim.disk import SimDisk, SimFile, SimVolume
from sim.loop import SimCrash
from support.journal_desk import SMALL, JournalDesk, command

GROUPS = st.integers(0, 3)


@dataclass
class ModelGroup:
    base: tuple[int, int] = (0, 0)
    entries: list[tuple[bytes, int, int]] = field(default_factory=list)
    term: int = 0
    vote: str | None = None

    @property
    def last_index(self) -> int:
        return self.base[0] + len(self.entries)


State = dict[int, ModelGroup]


def state_of(journal: Journal) -> State:
    return {group_id: _model_of(journal.group(group_id)) for group_id in journal.groups()}


def _model_of(view: GroupJournal) -> ModelGroup:
    entries = [view.entry(index) for index in range(view.first_index, view.last_index + 1)]
    return ModelGroup((view.base_index, view.base_term), entries, view.term, view.vote)


class SeededRng:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)

    def token(self, size: int) -> bytes:
        return self._random.randbytes(size)


class JournalMachine(RuleBasedStateMachine):
    @initialize(seed=st.integers(0, 1 << 32))
    def start(self, seed: int) -> None:
        self.volume = SimVolume(random.Random(seed))
        disk = SimDisk(self.volume, on_crash=lambda: None)
        disk.make_folder("data")
        disk.sync_folder("")
        self.rng = SeededRng(seed)
        self.serial = 0
        self.state: State = {}
        self.states: dict[int, State] = {}  # sequence -> state after it
        self.boot()

    def boot(self) -> None:
        self.disk = SimDisk(self.volume, on_crash=lambda: None)
        self.desk = JournalDesk(self.disk, "data/journal", rng=self.rng, limits=SMALL)
        journal = self.desk.journal
        self.state = state_of(journal)
        self.states = {journal.durable_sequence: deepcopy(self.state)}

    @property
    def journal(self) -> Journal:
        return self.desk.journal

    def view(self, group: int) -> GroupJournal:
        self.state.setdefault(group, ModelGroup())
        return self.journal.group(group)

    def noted(self) -> None:
        self.states[self.journal.next_sequence - 1] = deepcopy(self.state)

    @rule(group=GROUPS, count=st.integers(1, 12), size=st.sampled_from([8, 100, 700, 3000]))
    def append(self, group: int, count: int, size: int) -> None:
        view, model = self.view(group), None
        for _ in range(count):
            model = self.state[group]
            index, term = view.last_index + 1, max(view.term, view.last_term)
            self.serial += 1
            data = command(group, index, self.serial, size)
            view.append(data, index=index, term=term)
            model.entries.append((data, index, term))
            self.noted()

    @rule(group=GROUPS, voter=st.sampled_from(["a@1", "b@2", None]), step=st.integers(0, 2))
    def save_state(self, group: int, voter: str | None, step: int) -> None:
        view = self.view(group)
        if step == 0 and view.vote is not None:
            return
        view.save_state(term=view.term + step, vote=voter)
        self.state[group].term += step
        self.state[group].vote = voter
        self.noted()

    @rule(group=GROUPS, back=st.integers(1, 9))
    def truncate(self, group: int, back: int) -> None:
        view = self.view(group)
        from_index = max(view.base_index + 1, view.last_index + 1 - back)
        view.truncate(from_index)
        model = self.state[group]
        del model.entries[from_index - model.base[0] - 1 :]
        self.noted()

    @rule(group=GROUPS, ahead=st.integers(0, 5))
    def reset(self, group: int, ahead: int) -> None:
        view = self.view(group)
        base = (view.last_index + ahead, view.last_term + 1)
        view.reset(base_index=base[0], base_term=base[1])
        model = self.state[group]
        model.base, model.entries = base, []
        self.noted()

    @rule(group=GROUPS, keep=st.integers(0, 6))
    def trim(self, group: int, keep: int) -> None:
        view = self.view(group)
        to_index = max(view.base_index, view.last_index - keep)
        base_term = view.term_at(to_index)
        view.trim(to_index)
        model = self.state[group]
        del model.entries[: to_index - model.base[0]]
        model.base = (to_index, base_term)
        self.noted()

    @rule(keep=st.integers(0, 3))
    def trim_all(self, keep: int) -> None:
        for group in self.journal.groups():
            self.trim(group, keep)

    @rule(group=GROUPS)
    def start_anew(self, group: int) -> None:
        self.view(group).reset(base_index=0, base_term=0)
        model = self.state[group]
        model.base, model.entries = (0, 0), []
        self.noted()

    @rule()
    def turn(self) -> None:
        self.desk.scheduler.turn()

    @rule()
    def write(self) -> None:
        if self.desk.writer.waiting:
            self.desk.writer.step()

    @rule()
    def help(self) -> None:
        if self.desk.helper.waiting:
            self.desk.helper.step()

    @rule()
    def settle(self) -> None:
        self.desk.settle()

    @rule()
    def quiet(self) -> None:
        self.desk.quiet()

    @rule(operations=st.integers(1, 12), power=st.booleans())
    def crash_within_an_operation(self, operations: int, power: bool) -> None:
        self.volume.crash_at(operations)
        with contextlib.suppress(SimCrash):
            self.desk.quiet()
        self.volume.crash_at(0)
        if power:
            self.power_cut()
        else:
            self.killed()

    @rule(forget_cache=st.booleans(), power=st.booleans())
    def sync_fails(self, forget_cache: bool, power: bool) -> None:
        """Pages of a failed sync look written and are not; nothing may be built on them."""
        self.volume.sync_errors = 1
        self.desk.settle()
        self.volume.sync_errors = 0
        if self.journal.failed is not None:
            durable = self.journal.durable_sequence
            with pytest.raises(errors.StorageError):
                self.view(0).append(b"", index=self.view(0).last_index + 1, term=99)
            self.desk.quiet()
            assert self.journal.durable_sequence == durable
            assert self.desk.failures == [self.journal.failed]
        if power:
            self.power_cut()
        else:
            self.killed(forget_cache=forget_cache)

    @rule()
    def power_cut(self) -> None:
        self.check_restart(lambda: self.volume.power_cut())

    @rule(operations=st.integers(1, 12))
    def power_cut_while_recovering(self, operations: int) -> None:
        def cut_twice() -> None:
            self.volume.power_cut()
            self.volume.crash_at(operations)
            with contextlib.suppress(SimCrash):
                self.boot()
            self.volume.power_cut()

        self.check_restart(cut_twice)

    @rule(forget_cache=st.booleans())
    def killed(self, forget_cache: bool = False) -> None:
        """The process dies, the machine runs on."""
        self.check_restart(lambda: self.volume.process_died(forget_cache=forget_cache))

    def check_restart(self, stop: Callable[[], None]) -> None:
        """What comes back is the state after some record, at or behind the last durable one."""
        durable, states = self.journal.durable_sequence, self.states
        promised = {
            group: view.durable_index
            for group in self.journal.groups()
            if (view := self.journal.group(group)).durable_index >= view.base_index
        }
        before = self.state
        stop()
        self.boot()
        reached = self.journal.durable_sequence
        assert reached >= durable
        known = max((sequence for sequence in states if sequence <= reached), default=None)
        _assert_same(self.state, {} if known is None else states[known])
        for group, index in promised.items():
            view = self.view(group)
            for data, at, term in before[group].entries:
                if at <= index:
                    assert view.entry(at) == (data, at, term)

    @invariant()
    def memory_is_counted(self) -> None:
        if hasattr(self, "desk"):
            total = sum(len(data) for model in self.state.values() for data, _, _ in model.entries)
            assert self.journal.stats.memory_bytes == total

    @invariant()
    def view_is_as_modelled(self) -> None:
        if hasattr(self, "desk"):
            assert not self.desk.failures
            _assert_same(state_of(self.journal), self.state)


def _assert_same(found: State, expected: State) -> None:
    """Groups that hold nothing may be there or not."""
    empty = ModelGroup()
    for group in found.keys() | expected.keys():
        assert found.get(group, empty) == expected.get(group, empty), group


TestJournalSurvivesPowerCuts = JournalMachine.TestCase
TestJournalSurvivesPowerCuts.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None
)


@pytest.mark.parametrize("seed", range(12))
def test_long_random_runs(seed: int) -> None:
    """The same steps, weighted so that files fill, roll and are recycled between the cuts."""
    rng = random.Random(seed)
    machine = JournalMachine()
    machine.start(seed)
    cuts = rng.choice([1, 3, 8])
    steps: list[tuple[int, Callable[[], object]]] = [
        (30, lambda: machine.append(group(), rng.randint(1, 12), rng.choice([8, 100, 700, 3000]))),
        (5, lambda: machine.save_state(group(), rng.choice(["a@1", None]), rng.randrange(3))),
        (4, lambda: machine.truncate(group(), rng.randint(1, 9))),
        (1, lambda: machine.reset(group(), rng.randrange(5))),
        (6, lambda: machine.trim(group(), rng.randrange(7))),
        (4, lambda: machine.trim_all(rng.randrange(4))),
        (1, lambda: machine.start_anew(group())),
        (20, machine.turn),
        (20, machine.write),
        (10, machine.help),
        (5, machine.settle),
        (2, machine.quiet),
        (cuts, lambda: machine.crash_within_an_operation(rng.randint(1, 12), rng.random() < 0.5)),
        (cuts, lambda: machine.sync_fails(rng.random() < 0.5, rng.random() < 0.5)),
        (cuts, machine.power_cut),
        (cuts, lambda: machine.power_cut_while_recovering(rng.randint(1, 12))),
        (cuts, lambda: machine.killed(rng.random() < 0.5)),
    ]

    def group() -> int:
        return rng.randrange(4)

    for _ in range(300):
        _, step = rng.choices(steps, [weight for weight, _ in steps])[0]
        step()
    machine.view_is_as_modelled()
    machine.memory_is_counted()


def test_a_journal_that_does_not_sync_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model above must see a missing sync: here fixed steps, so that it surely does."""

    def loses_entries(*, synced: bool) -> bool:
        with monkeypatch.context() as patch:
            if not synced:
                patch.setattr(SimFile, "sync", lambda self: None)
            for seed in range(30):
                machine = JournalMachine()
                machine.start(seed)
                machine.append(1, 5, 700)
                machine.save_state(1, "a@1", 1)
                machine.settle()
                try:
                    machine.power_cut()
                except Exception:
                    return True
            return False

    assert not loses_entries(synced=True)
    assert loses_entries(synced=False)
