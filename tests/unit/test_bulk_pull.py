"""A checkpoint arrives whole on another node, or the reason is told and nothing stays."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lograft_log.env import RealDisk
from lograft_log.hot import crc
from lograft_replication.bulk import Limits
from lograft_replication.messages import Chunk, Offer, Pull
from lograft_replication.puller import Phase
from lograft_wire.errors import DamagedError, PeerError, StorageError, UnavailableError
from support.crash_disk import new_disk
from support.pulling import LIMITS, Sink, Source

CONTENTS = {
    "s1/0.log": bytes(range(256)) * 17,
    "s1/9.log": b"tail" * 300,
    "s2/0.log": b"x",
    "empty": b"",
}
CRCS = {"s1/0.log": crc.checksum(CONTENTS["s1/0.log"])}
Pair = tuple[Source, Offer, Callable[..., Sink]]


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    source = Source(RealDisk(), str(tmp_path / "from"))
    offer = source.checkpoint(50, CONTENTS, CRCS)

    def sink(offer: Offer = offer, limits: Limits = LIMITS) -> Sink:
        return Sink(RealDisk(), str(tmp_path / "to"), offer, limits)

    return source, offer, sink


def install(sink: Sink) -> dict[str, bytes]:
    """What the group does with a pulled checkpoint; returns the files of the new state."""
    manifest, error = sink.results[0]
    assert error is None
    assert manifest is not None
    sink.store.finish_install(manifest)
    root = Path(sink.store.state_folder)
    files = [path for path in root.rglob("*") if path.is_file()]
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def leftovers(sink: Sink) -> list[str]:
    return [name for name in RealDisk().names(sink.store.folder) if name.startswith("state-")]


def test_all_files_arrive_and_become_the_state(pair: Pair) -> None:
    source, _, make = pair
    sink = make()
    sink.pull_all(source)
    assert install(sink) == CONTENTS
    assert sink.store.current == source.store.current
    total = sum(len(content) for content in CONTENTS.values())
    assert sink.puller.bytes_done == sink.puller.bytes_total > total


def test_only_the_valid_prefix_travels(pair: Pair) -> None:
    source, _, make = pair
    grown = Path(source.store.state_folder, "s1/9.log")
    grown.write_bytes(CONTENTS["s1/9.log"] + b"later entries")
    sink = make()
    sink.pull_all(source)
    assert install(sink) == CONTENTS


def test_a_checkpoint_without_files_is_ready_after_its_manifest(tmp_path: Path) -> None:
    source = Source(RealDisk(), str(tmp_path / "from"))
    sink = Sink(RealDisk(), str(tmp_path / "to"), source.checkpoint(1, {}, {}))
    sink.pull_all(source)
    assert install(sink) == {}


def test_few_requests_are_in_flight_counting_those_being_written(pair: Pair) -> None:
    source, _, make = pair
    sink = make(limits=replace(LIMITS, chunks_in_flight_max=3))
    sink.puller.on_timer()
    assert len(sink.sent) == 3
    while sink.puller.phase is not Phase.FILES:
        sink.answer_one(source)
    sink.puller.on_timer()
    assert len(sink.sent) == 3
    sink.puller.on_chunk(source.ask(sink.sent.popleft()))  # its write waits in the background
    assert len(sink.sent) == 2
    sink.background.drain()
    assert len(sink.sent) == 3


def test_answers_in_any_order_and_twice_make_the_same_files(pair: Pair) -> None:
    source, _, make = pair
    sink = make()
    sink.puller.on_timer()
    while not sink.results:
        for pull in reversed(list(sink.sent)):
            chunk = source.ask(pull)
            sink.puller.on_chunk(chunk)
            sink.puller.on_chunk(chunk)
        sink.sent.clear()
        sink.background.drain()
        sink.puller.on_timer()
    assert install(sink) == CONTENTS


def test_short_answers_are_followed_by_the_rest(pair: Pair) -> None:
    source, _, make = pair
    sink = make()
    sink.pull_all(source, lambda chunk: replace(chunk, data=bytes(chunk.data)[:333]))
    assert install(sink) == CONTENTS


def test_a_lost_link_is_resumed_where_it_was(pair: Pair) -> None:
    source, _, make = pair
    sink = make()
    sink.puller.on_timer()
    while sink.puller.bytes_done < sink.puller.bytes_total // 2 or not sink.sent:
        sink.answer_one(source)
    late = [source.ask(pull) for pull in sink.sent]
    sink.sent.clear()
    done = sink.puller.bytes_done
    sink.puller.on_link(False)
    sink.puller.on_timer()
    assert not sink.sent
    for chunk in late:
        sink.puller.on_chunk(chunk)
    sink.background.drain()
    assert sink.puller.bytes_done == done
    sink.puller.on_link(True)
    asked = 0
    while not sink.results:
        asked += sum(pull.size for pull in list(sink.sent)[:1])
        sink.answer_one(source)
    assert asked == sink.puller.bytes_total - done
    assert install(sink) == CONTENTS


def test_a_restarted_source_with_the_same_checkpoint_goes_on(pair: Pair, tmp_path: Path) -> None:
    source, _, make = pair
    sink = make()
    sink.puller.on_timer()
    for _ in range(6):
        sink.answer_one(source)
    sink.puller.on_link(False)
    sink.sent.clear()
    again = Source(RealDisk(), str(tmp_path / "from"))
    sink.puller.on_link(True)
    sink.pull_all(again)
    assert install(sink) == CONTENTS


def test_a_source_with_another_checkpoint_ends_the_pull_and_nothing_stays(pair: Pair) -> None:
    source, _, make = pair
    sink = make()
    sink.puller.on_timer()
    for _ in range(6):
        sink.answer_one(source)
    source.server.close()
    source.checkpoint(60, CONTENTS, CRCS)
    sink.pull_all(source)
    manifest, error = sink.results[0]
    assert manifest is None
    assert isinstance(error, UnavailableError)
    assert "checkpoint 50 is unknown, current is 60" in str(error)
    assert leftovers(sink) == ["state-0001"]
    assert sink.store.current is None


def test_a_request_without_answer_is_sent_again(pair: Pair) -> None:
    source, _, make = pair
    sink = make()
    sink.puller.on_timer()
    lost = {pull.request for pull in sink.sent}
    sink.sent.clear()
    sink.clock.at_s += LIMITS.chunk_s_max + 1
    sink.puller.on_timer()
    assert sink.sent
    assert not lost & {pull.request for pull in sink.sent}
    sink.pull_all(source)
    assert install(sink) == CONTENTS


def test_a_silent_source_ends_the_pull(pair: Pair) -> None:
    _, _, make = pair
    sink = make()
    for _ in range(int(LIMITS.silence_s_max) + 2):
        sink.puller.on_timer()
        sink.clock.at_s += 1.0
    sink.background.drain()
    ((_, error),) = sink.results
    assert isinstance(error, UnavailableError)
    assert "silent" in str(error)


def test_a_file_that_does_not_match_its_checksum_is_named(pair: Pair) -> None:
    source, _, make = pair

    def bend(chunk: Chunk) -> Chunk:
        data = bytes(chunk.data)
        return replace(chunk, data=data.replace(b"\x00\x01\x02", b"\x00\x09\x02"))

    sink = make()
    while not sink.results:
        if sink.puller.phase is Phase.FILES:
            sink.answer_one(source, bend)
        else:
            sink.puller.on_timer()
            sink.answer_one(source)
    ((manifest, error),) = sink.results
    assert manifest is None
    assert isinstance(error, DamagedError)
    assert "s1/0.log" in str(error)
    assert leftovers(sink) == ["state-0001"]


def test_a_bent_manifest_is_refused(pair: Pair) -> None:
    source, _, make = pair
    sink = make()
    sink.pull_all(source, lambda chunk: replace(chunk, data=bytes(chunk.data).replace(b"p", b"q")))
    ((_, error),) = sink.results
    assert isinstance(error, DamagedError)
    assert "the manifest of checkpoint 50 of group 5" in str(error)


@pytest.mark.parametrize("field", ["index_term", "manifest_crc"])
def test_a_manifest_that_is_not_the_offered_one_is_refused(pair: Pair, field: str) -> None:
    source, offer, make = pair
    sink = make(offer=replace(offer, **{field: getattr(offer, field) ^ 1}))
    sink.pull_all(source)
    ((_, error),) = sink.results
    assert isinstance(error, PeerError)
    assert "not the one that was offered" in str(error)


def test_too_many_or_no_bytes_are_the_sources_fault(pair: Pair) -> None:
    source, _, make = pair
    for data in (b"", b"x" * 1001):
        sink = make()
        sink.pull_all(source, lambda chunk, data=data: replace(chunk, data=data))  # type: ignore[misc]
        assert isinstance(sink.results[0][1], PeerError)


def test_cancel_ends_silently_and_removes_what_came(pair: Pair) -> None:
    source, _, make = pair
    sink = make()
    sink.puller.on_timer()
    while sink.puller.phase is not Phase.FILES:
        sink.answer_one(source)
    sink.answer_one(source)
    sink.puller.on_chunk(source.ask(sink.sent.popleft()))
    sink.puller.cancel()
    sink.puller.cancel()
    sink.background.drain()
    assert sink.results == []
    assert leftovers(sink) == ["state-0001"]
    sink.sent.clear()
    sink.puller.on_timer()
    sink.puller.on_link(True)
    assert not sink.sent


def test_cancel_after_the_install_keeps_the_new_state(pair: Pair) -> None:
    source, _, make = pair
    sink = make()
    sink.pull_all(source)
    install(sink)
    sink.puller.cancel()
    sink.background.drain()
    assert Path(sink.store.state_folder, "s2/0.log").read_bytes() == b"x"


def test_a_pull_keeps_to_its_rate(pair: Pair) -> None:
    source, _, make = pair
    sink = make(limits=replace(LIMITS, bytes_per_s=5000, burst_bytes=1000))
    start_s = sink.clock.at_s
    sink.pull_all(source)
    least_s = (sink.puller.bytes_total - 1000) / 5000
    assert least_s <= sink.clock.at_s - start_s <= least_s * 2


def test_too_little_space_is_told_before_any_file_is_asked_for(pair: Pair) -> None:
    source, offer, _ = pair
    disk = new_disk(1)
    sink = Sink(disk, "/data/groups", offer)
    disk.volume.capacity_bytes = disk.volume.used_bytes + 3000
    asked: list[Pull] = []
    sink.puller.on_timer()
    while not sink.results:
        asked += list(sink.sent)[:1]
        sink.answer_one(source)
    ((_, error),) = sink.results
    assert isinstance(error, StorageError)
    assert "bytes and 0 to spare, 3000 are free" in str(error)
    assert {pull.file for pull in asked} == {0}


def test_a_failing_disk_ends_the_pull_with_its_reason(pair: Pair) -> None:
    source, offer, _ = pair
    disk = new_disk(1)
    sink = Sink(disk, "/data/groups", offer)
    sink.puller.on_timer()
    while sink.puller.phase is not Phase.FILES:
        sink.answer_one(source)
    disk.volume.sync_errors = 1
    sink.pull_all(source)
    ((_, error),) = sink.results
    assert isinstance(error, StorageError)
    assert "checking the pulled" in str(error)
