"""Rolling, making files ready ahead, recycling, and reading evicted entries."""

from dataclasses import replace

import pytest

from lograft_log import env
from lograft_wire import errors
from support.journal_desk import SMALL, JournalDesk, command, fill


@pytest.fixture
def folder(tmp_path: object) -> str:
    return f"{tmp_path}/journal"


def names(folder: str) -> list[str]:
    return [name.lstrip("0") for name in env.RealDisk().names(folder)]


def grow(desk: JournalDesk, group: int, *, count: int, size: int = 1000) -> None:
    for _ in range(count):
        fill(desk, group, count=1, size=size)
        desk.settle()


def test_next_file_is_ready_before_the_roll(folder: str) -> None:
    desk = JournalDesk(env.RealDisk(), folder)
    grow(desk, 1, count=5)
    assert names(folder) == ["1.journal"]
    grow(desk, 1, count=5)
    assert names(folder) == ["1.journal", "2.journal"]
    grow(desk, 1, count=10)
    assert names(folder) == ["1.journal", "2.journal"]
    assert desk.journal.group(1).durable_index == 20


def test_flush_waits_for_a_file_that_is_not_ready(folder: str) -> None:
    desk = JournalDesk(env.RealDisk(), folder)
    fill(desk, 1, count=40, size=1000)  # three files at once
    desk.scheduler.turn()
    desk.writer.drain()
    first = desk.journal.group(1).durable_index
    assert 0 < first < 20
    desk.helper.step()
    desk.writer.drain()
    assert first < desk.journal.group(1).durable_index < 40
    desk.settle()
    assert desk.journal.group(1).durable_index == 40
    again = JournalDesk(env.RealDisk(), folder)
    assert again.journal.group(1).last_index == 40


def test_oldest_file_goes_when_no_group_needs_it(folder: str) -> None:
    desk = JournalDesk(env.RealDisk(), folder)
    desk.journal.group(2).save_state(term=7, vote="b@2")
    grow(desk, 1, count=1)
    grow(desk, 2, count=40)
    assert names(folder) == ["1.journal", "2.journal", "3.journal", "4.journal"]  # 4 is ahead
    assert desk.journal.oldest_pinning_groups() == [1, 2]
    desk.journal.group(2).trim(40)
    desk.settle()
    assert desk.journal.oldest_pinning_groups() == [1]
    assert "1.journal" in names(folder)
    desk.journal.group(1).trim(1)
    desk.settle()
    assert desk.journal.oldest_pinning_groups() == []
    assert names(folder)[-2:] == ["3.journal", "4.journal"]
    assert "2.journal" not in names(folder)
    assert desk.journal.stats.spare_file_count <= SMALL.spare_files_max
    again = JournalDesk(env.RealDisk(), folder)  # hard states are in the table of file 3
    assert (again.journal.group(2).term, again.journal.group(2).vote) == (7, "b@2")
    assert again.journal.group(1).last_index == 1


def test_file_stays_until_the_trim_is_durable(folder: str) -> None:
    desk = JournalDesk(env.RealDisk(), folder)
    grow(desk, 1, count=20)
    desk.journal.group(1).trim(20)
    desk.scheduler.turn()
    desk.helper.drain()
    assert "1.journal" in names(folder)
    desk.settle()
    assert "1.journal" not in names(folder)


@pytest.mark.parametrize("way", ["truncate", "reset"])
def test_forgotten_entries_do_not_keep_a_file(folder: str, way: str) -> None:
    desk = JournalDesk(env.RealDisk(), folder)
    grow(desk, 1, count=20)
    if way == "truncate":
        desk.journal.group(1).truncate(1)
    else:
        desk.journal.group(1).reset(base_index=5, base_term=1)
    desk.settle()
    assert "1.journal" not in names(folder)
    assert not JournalDesk(env.RealDisk(), folder).failures


def test_spare_is_used_again_under_another_epoch(folder: str) -> None:
    desk = JournalDesk(env.RealDisk(), folder)
    seen: set[str] = set()
    for _ in range(12):
        grow(desk, 1, count=10)
        view = desk.journal.group(1)
        view.trim(view.last_index)
        desk.settle()
        seen.update(names(folder))
    assert any(name.endswith(".spare") for name in seen)
    assert len(names(folder)) <= 3
    fill(desk, 1, count=1)
    desk.settle()
    again = JournalDesk(env.RealDisk(), folder).journal.group(1)
    assert (again.base_index, again.last_index) == (120, 121)


def test_no_spare_is_kept_beyond_the_limit(folder: str) -> None:
    desk = JournalDesk(env.RealDisk(), folder, limits=replace(SMALL, spare_files_max=0))
    grow(desk, 1, count=60)
    desk.journal.group(1).trim(60)
    desk.settle()
    assert not [name for name in names(folder) if name.endswith(".spare")]


def test_evicted_entries_are_read_back(folder: str) -> None:
    desk = JournalDesk(env.RealDisk(), folder, limits=replace(SMALL, memory_bytes_max=5000))
    for _ in range(30):
        grow(desk, 1, count=1)
        grow(desk, 2, count=1, size=300)
    assert desk.journal.stats.memory_bytes <= 5000
    for group, size in ((1, 1000), (2, 300)):
        found = desk.journal.group(group).entries(1, bytes_max=1 << 20)
        assert found == [(command(group, at, 1, size), at, 1) for at in range(1, 31)]


def test_recovery_keeps_to_the_memory_limit_too(folder: str) -> None:
    limits = replace(SMALL, memory_bytes_max=5000)
    desk = JournalDesk(env.RealDisk(), folder, limits=limits)
    grow(desk, 1, count=30)
    desk.close()
    again = JournalDesk(env.RealDisk(), folder, limits=limits)
    assert again.journal.stats.memory_bytes <= 5000
    assert again.journal.group(1).entry(1) == (command(1, 1, 1, 1000), 1, 1)
    again.journal.group(1).truncate(5)
    again.journal.group(1).trim(4)
    assert again.journal.stats.memory_bytes == 0


def test_entry_not_yet_durable_is_never_evicted(folder: str) -> None:
    desk = JournalDesk(env.RealDisk(), folder, limits=replace(SMALL, memory_bytes_max=0))
    fill(desk, 1, count=5)
    assert desk.journal.stats.memory_bytes == 500
    desk.settle()
    assert desk.journal.stats.memory_bytes == 0


def test_damaged_evicted_entry_is_not_served(folder: str) -> None:
    desk = JournalDesk(env.RealDisk(), folder, limits=replace(SMALL, memory_bytes_max=0))
    grow(desk, 1, count=3)
    path = f"{folder}/{1:016d}.journal"
    file = env.RealDisk().open(path)
    position = file.read_at(0, SMALL.file_bytes).index(b"1/2/1;")
    file.write_at(position + 50, [b"!"])
    file.close()
    assert desk.journal.group(1).entry(1)[1] == 1
    with pytest.raises(errors.DamagedError) as caught:
        desk.journal.group(1).entry(2)
    assert caught.value.path == path
    assert 0 < caught.value.position < position


def test_settings_may_change_between_starts(folder: str) -> None:
    desk = JournalDesk(env.RealDisk(), folder)
    grow(desk, 1, count=20)
    desk.close()
    larger = replace(SMALL, file_bytes=32 << 10)
    desk = JournalDesk(env.RealDisk(), folder, limits=larger)
    grow(desk, 1, count=60)
    desk.journal.group(1).trim(79)
    desk.settle()
    again = JournalDesk(env.RealDisk(), folder, limits=larger).journal.group(1)
    assert (again.base_index, again.last_index) == (79, 80)


def test_closing_waits_for_all_files(folder: str) -> None:
    desk = JournalDesk(env.RealDisk(), folder)
    fill(desk, 1, count=40, size=1000)
    desk.close()
    again = JournalDesk(env.RealDisk(), folder)
    assert again.journal.recovered_clean
    assert again.journal.group(1).durable_index == 40
    with pytest.raises(errors.StorageError):
        desk.journal.group(1).append(b"", index=41, term=1)


def test_closing_during_a_mark_is_still_clean(folder: str) -> None:
    desk = JournalDesk(env.RealDisk(), folder)
    fill(desk, 1, count=1)
    desk.settle()
    desk.scheduler.advance(1.0)
    desk.scheduler.turn()  # the mark is with the writer
    assert desk.writer.waiting
    desk.close()
    assert JournalDesk(env.RealDisk(), folder).journal.recovered_clean
