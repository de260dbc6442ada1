"""The journal as the node runs it: real files, real threads, an asyncio loop."""

import asyncio

from lograft_log import background, env
from lograft_replication.journal import Journal
from support.journal_desk import INCARNATION, SMALL, command


def open_journal(folder: str) -> tuple[Journal, list[background.ThreadBackground]]:
    loop = asyncio.get_running_loop()
    threads = [
        background.ThreadBackground("journal-writer", loop),
        background.ThreadBackground("journal-helper", loop),
    ]
    journal = Journal.open(
        disk=env.RealDisk(),
        folder=folder,
        limits=SMALL,
        rng=env.RealRng(),
        incarnation=INCARNATION,
        scheduler=loop,
        writer=threads[0],
        helper=threads[1],
    )
    return journal, threads


async def close(journal: Journal, threads: list[background.ThreadBackground]) -> None:
    closed = asyncio.Event()
    journal.close(closed.set)
    await closed.wait()
    for thread in threads:
        thread.close()


async def test_appends_from_many_groups_become_durable_and_come_back(tmp_path: object) -> None:
    journal, threads = open_journal(f"{tmp_path}/journal")
    news = asyncio.Event()
    journal.add_listener(news.set)
    for at in range(1, 301):
        for group in (1, 2, 3):
            journal.group(group).append(command(group, at, 1, 200), index=at, term=1)
        if at % 50 == 0:
            while journal.group(3).durable_index < at:
                news.clear()
                await news.wait()
            journal.group(1).trim(at)
    assert journal.stats.sync_count < 300
    await close(journal, threads)

    journal, threads = open_journal(f"{tmp_path}/journal")
    assert journal.recovered_clean
    assert (journal.group(1).base_index, journal.group(1).last_index) == (300, 300)
    for group in (2, 3):
        entries = journal.group(group).entries(1, bytes_max=1 << 20)
        assert entries == [(command(group, at, 1, 200), at, 1) for at in range(1, 301)]
    await close(journal, threads)


async def test_idle_journal_marks_by_itself(tmp_path: object) -> None:
    journal, threads = open_journal(f"{tmp_path}/journal")
    syncs = asyncio.Queue[int]()
    journal.add_listener(lambda: syncs.put_nowait(journal.durable_sequence))
    journal.group(1).append(b"x", index=1, term=1)
    assert [await syncs.get(), await syncs.get()] == [2, 3]
    await close(journal, threads)
