"""What a group sees of the journal: hard state, entries, and how far they are durable."""

import pytest

from lograft_log import env
from lograft_replication import journal_limits
from lograft_wire import errors
from support.journal_desk import SMALL, JournalDesk, command, fill


@pytest.fixture
def desk(tmp_path: object) -> JournalDesk:
    return JournalDesk(env.RealDisk(), f"{tmp_path}/journal")


def test_nothing_is_durable_before_the_sync_ended(desk: JournalDesk) -> None:
    view = desk.journal.group(7)
    view.save_state(term=3, vote="a@1")
    fill(desk, 7, count=2, term=3)
    assert (view.last_index, view.durable_index, view.state_durable) == (2, 0, False)
    desk.scheduler.turn()
    assert (view.durable_index, view.state_durable) == (0, False)
    desk.writer.step()
    assert (view.durable_index, view.state_durable) == (2, True)


def test_one_sync_serves_all_groups_that_wait(desk: JournalDesk) -> None:
    told: list[int] = []
    desk.journal.add_listener(lambda: told.append(desk.journal.durable_sequence))
    for group in range(5):
        fill(desk, group, count=3)
    desk.settle()
    assert desk.journal.stats.sync_count == 1
    assert told == [desk.journal.next_sequence - 1]


def test_batch_grows_while_a_flush_runs(desk: JournalDesk) -> None:
    fill(desk, 1, count=1)
    desk.scheduler.turn()
    for _ in range(4):
        fill(desk, 1, count=1)
        desk.scheduler.turn()
    assert len(desk.writer.waiting) == 1
    desk.writer.step()
    assert desk.journal.group(1).durable_index == 1
    desk.writer.step()
    assert desk.journal.group(1).durable_index == 5
    assert desk.journal.stats.sync_count == 2


def test_flush_now_does_not_wait_for_the_turn(desk: JournalDesk) -> None:
    fill(desk, 1, count=1)
    desk.journal.flush_now()
    desk.writer.step()
    assert desk.journal.group(1).durable_index == 1
    assert desk.journal.stats.pending_bytes == 0


def test_flush_ends_at_its_byte_limit(desk: JournalDesk) -> None:
    fill(desk, 1, count=5, size=2800)  # with the third, the limit of 8 KB is reached
    desk.scheduler.turn()
    desk.writer.step()
    assert desk.journal.group(1).durable_index == 3
    desk.settle()
    assert desk.journal.group(1).durable_index == 5


def test_sync_begun_before_a_truncation_makes_no_later_entry_durable(desk: JournalDesk) -> None:
    view = desk.journal.group(1)
    fill(desk, 1, count=5)
    desk.scheduler.turn()  # the writer has entries 1 to 5 of term 1
    view.truncate(3)
    fill(desk, 1, count=3, term=2)
    desk.writer.step()
    assert (view.last_index, view.durable_index) == (5, 2)
    desk.settle()
    assert view.durable_index == 5
    assert [view.term_at(index) for index in range(1, 6)] == [1, 1, 2, 2, 2]


def test_reset_is_durable_only_with_its_record(desk: JournalDesk) -> None:
    view = desk.journal.group(1)
    fill(desk, 1, count=5)
    desk.settle()
    view.reset(base_index=50, base_term=4)
    assert (view.first_index, view.last_index, view.last_term) == (51, 50, 4)
    assert view.durable_index == 0
    fill(desk, 1, count=1, term=4)
    desk.settle()
    assert view.durable_index == 51


def test_trim_ahead_of_the_disk_promises_nothing(desk: JournalDesk) -> None:
    view = desk.journal.group(1)
    fill(desk, 1, count=2)
    desk.settle()
    fill(desk, 1, count=4)
    view.trim(5)
    assert (view.base_index, view.base_term, view.durable_index) == (5, 1, 2)
    desk.settle()
    assert view.durable_index == 6


def test_trim_of_durable_entries_keeps_what_is_durable(desk: JournalDesk) -> None:
    view = desk.journal.group(1)
    fill(desk, 1, count=6)
    desk.settle()
    view.trim(4)
    assert (view.first_index, view.durable_index) == (5, 6)
    view.trim(2)  # older than the base: nothing to do
    assert view.base_index == 4


def test_entries_stop_at_either_limit_but_give_one(desk: JournalDesk) -> None:
    fill(desk, 1, count=9, size=100)
    view = desk.journal.group(1)
    assert [index for _, index, _ in view.entries(3, bytes_max=350)] == [3, 4, 5]
    assert [index for _, index, _ in view.entries(3, bytes_max=1)] == [3]
    assert [index for _, index, _ in view.entries(3, bytes_max=9999, count_max=2)] == [3, 4]
    assert view.entries(10, bytes_max=9999) == []
    assert view.entry(4) == (command(1, 4, 1), 4, 1)


def test_bytes_between_counts_commands_across_trim_and_truncation(desk: JournalDesk) -> None:
    view = desk.journal.group(1)
    for index in range(1, 11):
        view.append(bytes(index), index=index, term=1)
    view.trim(3)
    view.truncate(9)
    assert view.bytes_between(4, 8) == 4 + 5 + 6 + 7 + 8
    assert view.bytes_between(5, 5) == 5
    assert view.bytes_between(6, 5) == 0
    view.append(bytes(100), index=9, term=2)
    assert view.bytes_between(8, 9) == 108


def test_state_and_log_come_back_after_a_clean_stop(tmp_path: object) -> None:
    desk = JournalDesk(env.RealDisk(), f"{tmp_path}/journal")
    desk.journal.group(1).save_state(term=4, vote=None)
    desk.journal.group(2).save_state(term=9, vote="")
    fill(desk, 2, count=30, term=8)
    desk.journal.group(2).trim(10)
    desk.close()
    again = JournalDesk(env.RealDisk(), f"{tmp_path}/journal")
    assert again.journal.recovered_clean
    assert again.journal.groups() == [1, 2]
    assert (again.journal.group(1).term, again.journal.group(1).vote) == (4, None)
    view = again.journal.group(2)
    assert (view.term, view.vote, view.state_durable) == (9, "", True)
    assert (view.base_index, view.base_term, view.last_index, view.durable_index) == (10, 8, 30, 30)
    assert view.entry(11) == (command(2, 11, 8), 11, 8)


def test_a_killed_journal_does_not_count_as_clean(tmp_path: object) -> None:
    desk = JournalDesk(env.RealDisk(), f"{tmp_path}/journal")
    fill(desk, 1, count=1)
    desk.quiet()
    again = JournalDesk(env.RealDisk(), f"{tmp_path}/journal")
    assert not again.journal.recovered_clean
    assert again.journal.group(1).durable_index == 1


def test_group_that_starts_anew_keeps_its_vote(tmp_path: object) -> None:
    desk = JournalDesk(env.RealDisk(), f"{tmp_path}/journal")
    desk.journal.group(1).save_state(term=9, vote="a@1")
    fill(desk, 1, count=5, term=9)
    desk.settle()
    desk.journal.group(1).reset(base_index=0, base_term=0)
    fill(desk, 1, count=2, term=9)
    desk.settle()
    assert desk.journal.stats.memory_bytes == 200
    again = JournalDesk(env.RealDisk(), f"{tmp_path}/journal").journal.group(1)
    assert (again.term, again.vote, again.last_index) == (9, "a@1", 2)


def test_our_own_mistakes_are_asserted(desk: JournalDesk) -> None:
    view = desk.journal.group(1)
    view.save_state(term=2, vote="a@1")
    fill(desk, 1, count=3, term=2)
    view.trim(1)
    for mistake in (
        lambda: view.append(b"", index=5, term=2),  # a gap
        lambda: view.append(b"", index=4, term=1),  # a term going back
        lambda: view.truncate(1),  # below the base
        lambda: view.save_state(term=1, vote=None),
        lambda: view.save_state(term=2, vote="b@1"),  # a second vote in one term
        lambda: view.save_state(term=2, vote=None),
        lambda: view.entry(1),
        lambda: view.append(bytes(SMALL.entry_bytes_max + 1), index=4, term=2),
    ):
        with pytest.raises(AssertionError):
            mistake()
    desk.settle()
    assert (view.last_index, view.durable_index, view.vote) == (3, 3, "a@1")


def test_same_state_again_writes_nothing(desk: JournalDesk) -> None:
    view = desk.journal.group(1)
    view.save_state(term=2, vote="a@1")
    before = desk.journal.next_sequence
    view.save_state(term=2, vote="a@1")
    assert desk.journal.next_sequence == before


def test_more_groups_than_the_limit_are_refused(desk: JournalDesk) -> None:
    for group in range(SMALL.group_count_max):
        desk.journal.group(group)
    with pytest.raises(errors.RefusedError):
        desk.journal.group(99)


def test_limits_that_cannot_work_are_named() -> None:
    with pytest.raises(errors.ConfigError, match="file_bytes 4096"):
        journal_limits.JournalLimits(file_bytes=4096)


def test_quiet_journal_marks_once_and_then_rests(desk: JournalDesk) -> None:
    fill(desk, 1, count=1)
    desk.quiet()
    after = desk.journal.next_sequence
    assert after == 4  # table, entry, mark
    desk.quiet()
    desk.quiet()
    assert desk.journal.next_sequence == after


def test_busy_journal_does_not_mark(desk: JournalDesk) -> None:
    fill(desk, 1, count=1)
    desk.settle()
    desk.scheduler.advance(0.05)
    fill(desk, 1, count=1)
    desk.settle()
    desk.scheduler.advance(0.06)  # the timer of the first sync is over, but there was another
    desk.settle()
    assert desk.journal.next_sequence == 4
    desk.scheduler.advance(0.2)
    desk.settle()
    assert desk.journal.next_sequence == 5
