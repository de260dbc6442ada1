"""The stream machine on real files: what entries do, what checkpoints hold."""

import random
from pathlib import Path

import pytest

from lograft_log.env import RealClock, RealDisk
from lograft_log.settings import LogLimits, LogSettings
from lograft_log.sync import SyncWork
from lograft_replication import stream_state
from lograft_replication.checkpoint import CheckpointStore
from lograft_replication.machine import Capture, Machine
from lograft_replication.membership import Config
from lograft_replication.stream_commands import Batch
from lograft_replication.streams import StreamMachine
from lograft_wire.errors import DamagedError, RefusedError, StorageError
from support.crash_disk import new_disk
from support.pulling import GROUP, Sink, Source
from support.stream_load import (
    Model,
    batch,
    bodies,
    closing,
    opening,
    records,
    trimming,
)

SMALL = LogSettings(limits=LogLimits(segment_bytes_max=2000))


def machine_in(folder: Path, payload: bytes = b"", settings: LogSettings = SMALL) -> StreamMachine:
    folder.mkdir(exist_ok=True)
    machine = StreamMachine(RealDisk(), RealClock(), settings)
    machine.restore(payload, str(folder))
    return machine


def checkpoint(machine: StreamMachine) -> Capture:
    capture = machine.capture()
    capture.sync()
    capture.after()
    return capture


def test_it_is_a_machine(tmp_path: Path) -> None:
    machine: Machine = machine_in(tmp_path)
    machine.close()


def test_records_go_to_their_streams_at_their_offsets(tmp_path: Path) -> None:
    machine = machine_in(tmp_path)
    assert machine.apply(1, 1, opening(7, 8)) == (True, True)
    command = records(batch(7, 0, [b"a", b"b"]), batch(8, 0, [b"x"]), batch(7, 2, [b"c"]))
    assert machine.apply(2, 1, command) == (2, 1, 3)
    assert bodies(machine, 7) == [b"a", b"b", b"c"]
    assert bodies(machine, 8) == [b"x"]


def test_a_batch_that_cannot_be_is_refused_alone(tmp_path: Path) -> None:
    machine = machine_in(tmp_path)
    machine.apply(1, 1, opening(7))
    machine.apply(2, 1, records(batch(7, 0, [b"a", b"b"])))
    bad = batch(7, 2, [b"bad"])
    flipped = bytearray(bad.frames)
    flipped[-1] ^= 1
    broken = type(bad)(bad.stream, bad.base_offset, bad.count, bytes(flipped))
    command = records(batch(9, 0, [b"?"]), batch(7, 1, [b"?"]), broken, batch(7, 2, [b"c"]))
    results = machine.apply(3, 1, command)
    assert isinstance(results, tuple)
    assert [isinstance(result, RefusedError) for result in results] == [True, True, True, False]
    assert "not open" in str(results[0])
    assert "at 2, offset 1 is taken" in str(results[1])
    assert bodies(machine, 7) == [b"a", b"b", b"c"]


def test_opening_twice_and_closing_twice_do_nothing_more(tmp_path: Path) -> None:
    machine = machine_in(tmp_path)
    machine.apply(1, 1, opening(7))
    machine.apply(2, 1, records(batch(7, 0, [b"a"])))
    assert machine.apply(3, 1, opening(7)) == (False,)
    assert bodies(machine, 7) == [b"a"]
    assert machine.apply(4, 1, closing(7)) == (True,)
    assert machine.apply(5, 1, closing(7)) == (False,)
    assert machine.streams == ()


def test_a_stream_opened_again_starts_empty(tmp_path: Path) -> None:
    machine = machine_in(tmp_path)
    machine.apply(1, 1, opening(7))
    machine.apply(2, 1, records(batch(7, 0, [b"a"])))
    machine.apply(3, 1, closing(7))
    machine.apply(4, 1, opening(7))
    assert machine.apply(5, 1, records(batch(7, 0, [b"new"]))) == (1,)
    assert bodies(machine, 7) == [b"new"]


def test_trim_moves_the_start_and_frees_segments_one_checkpoint_after_it_is_durable(
    tmp_path: Path,
) -> None:
    machine = machine_in(tmp_path)
    machine.apply(1, 1, opening(7))
    for number in range(10):
        machine.apply(2 + number, 1, records(batch(7, number, [b"%d" % number * 900])))
    checkpoint(machine)
    before = len(list(tmp_path.rglob("*.log")))
    machine.apply(12, 1, trimming(7, 8))
    assert [body[:1] for body in bodies(machine, 7)] == [b"8", b"9"]
    checkpoint(machine)
    assert len(list(tmp_path.rglob("*.log"))) == before
    checkpoint(machine)
    assert len(list(tmp_path.rglob("*.log"))) < before
    machine.apply(13, 1, trimming(7, 3))
    machine.apply(14, 1, trimming(7, 999))
    assert bodies(machine, 7) == []
    assert machine.apply(15, 1, records(batch(7, 10, [b"next"]))) == (11,)


def test_files_of_a_closed_stream_stay_until_a_checkpoint_without_it(tmp_path: Path) -> None:
    machine = machine_in(tmp_path)
    machine.apply(1, 1, opening(7))
    machine.apply(2, 1, records(batch(7, 0, [b"a"])))
    payload = checkpoint(machine).payload
    machine.apply(3, 1, closing(7))
    capture = machine.capture()
    capture.sync()
    assert bodies(machine_in(tmp_path, payload), 7) == [b"a"]
    capture.after()
    assert list(tmp_path.iterdir()) == []


def test_the_payload_grows_with_segments_and_not_with_records(tmp_path: Path) -> None:
    machine = machine_in(tmp_path, settings=LogSettings())
    machine.apply(1, 1, opening(7))
    machine.apply(2, 1, records(batch(7, 0, [b"a"])))
    small = len(machine.capture().payload)
    machine.close()
    machine = machine_in(tmp_path, settings=LogSettings())
    machine.apply(1, 1, opening(7))
    machine.apply(2, 1, records(batch(7, 0, [b"a"] * 5000)))
    assert len(machine.capture().payload) == small


def test_restore_continues_where_the_checkpoint_was_and_entries_may_come_again(
    tmp_path: Path,
) -> None:
    rng = random.Random(5)
    model = Model()
    machine = machine_in(tmp_path)
    payload, at = b"", 0
    for index in range(1, 200):
        model.random_command(rng)
        machine.apply(index, 1, model.commands[index])
        model.check(machine, index)
        if index % 41 == 0:
            payload, at = checkpoint(machine).payload, index
        if index % 60 == 0:  # the process ends and starts again; nothing unsynced was lost
            machine = machine_in(tmp_path, payload)
            model.check(machine, at, replaying=True)
            for again in range(at + 1, index + 1):
                machine.apply(again, 1, model.commands[again])
                model.check(machine, again, replaying=True)
            model.check(machine, index)


def test_a_refused_batch_is_refused_again_when_the_log_is_ahead(tmp_path: Path) -> None:
    """The log already holds later records; decisions must not look at it."""
    machine = machine_in(tmp_path)
    machine.apply(1, 1, opening(7))
    payload = checkpoint(machine).payload
    entries = [
        records(batch(7, 0, [b"a", b"b"])),
        records(batch(7, 1, [b"?"])),
        records(batch(7, 2, [b"c"])),
    ]
    first = [machine.apply(2 + number, 1, entry) for number, entry in enumerate(entries)]
    again = machine_in(tmp_path, payload)
    second = [again.apply(2 + number, 1, entry) for number, entry in enumerate(entries)]
    assert [str(result) for result in first] == [str(result) for result in second]
    assert bodies(again, 7) == [b"a", b"b", b"c"]


def test_a_stream_that_lost_its_files_is_damage(tmp_path: Path) -> None:
    machine = machine_in(tmp_path)
    machine.apply(1, 1, opening(7))
    machine.apply(2, 1, records(batch(7, 0, [b"a"])))
    payload = checkpoint(machine).payload
    (folder,) = tmp_path.iterdir()
    for path in folder.iterdir():
        path.unlink()
    with pytest.raises(DamagedError, match="lost all its segments"):
        machine_in(tmp_path, payload)


def test_a_damaged_segment_is_reported_and_the_rest_is_served(tmp_path: Path) -> None:
    machine = machine_in(tmp_path)
    machine.apply(1, 1, opening(7))
    for number in range(6):
        machine.apply(2 + number, 1, records(batch(7, number, [b"%d" % number * 900])))
    payload = checkpoint(machine).payload
    machine.close()
    first, *_ = sorted(tmp_path.rglob("*.log"))
    first.write_bytes(first.read_bytes()[:100])
    again = machine_in(tmp_path, payload)
    assert [damage.base_offset for damage in again.damages()] == [0]
    assert again.apply(8, 1, records(batch(7, 6, [b"6"]))) == (7,)


def test_a_failed_sync_stops_the_machine() -> None:
    disk = new_disk(1)
    disk.make_folder("/state")
    machine = StreamMachine(disk, RealClock(), SMALL)
    machine.restore(b"", "/state")
    machine.apply(1, 1, opening(7))
    machine.apply(2, 1, records(batch(7, 0, [b"a"])))
    capture = machine.capture()
    disk.volume.sync_errors = 1
    with pytest.raises(StorageError):
        capture.sync()
    with pytest.raises(StorageError):
        machine.capture()
    with pytest.raises(StorageError):
        machine.apply(3, 1, records(batch(7, 1, [b"b"])))


def test_a_pulled_checkpoint_makes_an_equal_machine(tmp_path: Path) -> None:
    rng = random.Random(3)
    model = Model()
    source = Source(RealDisk(), str(tmp_path / "from"))
    machine = StreamMachine(RealDisk(), RealClock(), SMALL)
    machine.restore(b"", source.store.state_folder)
    config = Config(("a@1",))
    for index in range(1, 121):
        model.random_command(rng)
        machine.apply(index, 1, model.commands[index])
        if index in (60, 80):
            source.store.take(machine.capture(), index=index, term=1, config=config)
    offer = source.store.offer(term=1, commit=120)
    assert offer is not None
    sink = Sink(RealDisk(), str(tmp_path / "to"), offer)
    copy = StreamMachine(RealDisk(), RealClock(), SMALL)
    copy.restore(b"", sink.store.state_folder)
    sink.pull_all(source)
    manifest, _ = sink.results[0]
    assert manifest is not None
    sink.store.finish_install(manifest)
    copy.restore(manifest.payload, sink.store.state_folder)
    model.check(copy, 80)
    assert copy.damages() == []
    for index in range(81, 121):
        copy.apply(index, 1, model.commands[index])
    model.check(copy, 120)
    sink.store.take(copy.capture(), index=120, term=1, config=config)
    again = CheckpointStore(RealDisk(), str(tmp_path / "to"), GROUP)
    found = again.open()
    assert found is not None
    copy.restore(found.payload, again.state_folder)
    model.check(copy, 120)


def test_state_bytes_and_back_and_every_cut_is_refused(tmp_path: Path) -> None:
    machine = machine_in(tmp_path)
    machine.apply(1, 1, opening(7, 9))
    machine.apply(2, 1, records(batch(7, 0, [b"x" * 900] * 5)))
    payload = machine.capture().payload
    states = stream_state.decode(payload)
    assert [(state.stream, state.opened, state.next_offset) for state in states] == [
        (7, 1, 5),
        (9, 1, 0),
    ]
    assert stream_state.encode(states) == payload
    assert stream_state.decode(b"") == []
    for size in range(1, len(payload)):
        with pytest.raises(DamagedError):
            stream_state.decode(payload[:size])
    with pytest.raises(DamagedError):
        stream_state.decode(payload + b"\0")
    with pytest.raises(DamagedError):
        stream_state.decode(b"\x02" + payload[1:])


def test_a_stream_opened_again_is_not_trimmed_like_the_one_before(tmp_path: Path) -> None:
    machine = machine_in(tmp_path)
    machine.apply(1, 1, opening(7))
    machine.apply(2, 1, records(batch(7, 0, [b"old"] * 5)))
    machine.apply(3, 1, trimming(7, 4))
    checkpoint(machine)
    machine.apply(4, 1, closing(7))
    machine.apply(5, 1, opening(7))
    machine.apply(6, 1, records(batch(7, 0, [b"new"] * 5)))
    checkpoint(machine)
    assert bodies(machine, 7) == [b"new"] * 5
    found = machine.stream(7)
    assert found is not None
    assert found.log.first_offset == 0


def test_segments_sealed_by_an_earlier_sync_travel_with_their_seals(tmp_path: Path) -> None:
    machine = machine_in(tmp_path)
    machine.apply(1, 1, opening(7))
    for number in range(4):
        machine.apply(2 + number, 1, records(batch(7, number, [b"x" * 900])))
    checkpoint(machine)
    machine.apply(6, 1, records(batch(7, 4, [b"x"])))
    files = checkpoint(machine).files
    assert any(file.path.endswith(".seal") for file in files)
    for file in files:
        assert (tmp_path / file.path).stat().st_size >= file.length > 0


def test_nothing_is_trimmed_on_the_word_of_a_checkpoint_that_was_never_placed(
    tmp_path: Path,
) -> None:
    machine = machine_in(tmp_path)
    machine.apply(1, 1, opening(7))
    for number in range(6):
        machine.apply(2 + number, 1, records(batch(7, number, [b"x" * 900])))
    checkpoint(machine)
    before = sorted(tmp_path.rglob("*.log"))
    machine.apply(8, 1, trimming(7, 6))
    for _ in range(2):
        machine.capture().sync()
    assert sorted(tmp_path.rglob("*.log")) == before


def test_restore_removes_folders_the_checkpoint_does_not_have(tmp_path: Path) -> None:
    machine = machine_in(tmp_path)
    machine.apply(1, 1, opening(7))
    payload = checkpoint(machine).payload
    machine.apply(2, 1, opening(8))
    (tmp_path / "00000000000000000009-00000000000000000001").mkdir()
    machine_in(tmp_path, payload)
    assert [path.name[:20] for path in tmp_path.iterdir()] == ["00000000000000000007"]


@pytest.mark.parametrize(
    ("base_offset", "count", "made_at"), [(3, 2, 0), (3, 1, 3), (3, 3, 3), (3, 2, 4), (3, 9, None)]
)
def test_a_row_that_does_not_fit_its_frames_is_refused_and_changes_nothing(
    tmp_path: Path, base_offset: int, count: int, made_at: int | None
) -> None:
    """Whatever a proposer got wrong, no replica halts over it and all say the same."""
    machine = machine_in(tmp_path)
    machine.apply(1, 1, opening(7))
    machine.apply(2, 1, records(batch(7, 0, [b"a", b"b", b"c"])))
    frames = b"" if made_at is None else bytes(batch(7, made_at, [b"x", b"y"]).frames)
    results = machine.apply(3, 1, records(Batch(7, base_offset, count, frames)))
    assert isinstance(results, tuple)
    assert isinstance(results[0], RefusedError)
    assert machine.apply(4, 1, records(batch(7, 3, [b"d"]))) == (4,)
    assert bodies(machine, 7) == [b"a", b"b", b"c", b"d"]
    machine.close()


def test_the_largest_offsets_can_be_checkpointed(tmp_path: Path) -> None:
    machine = machine_in(tmp_path)
    machine.apply(1, 1, opening(7))
    top = (1 << 64) - 1
    for base_offset, count in ((top, 1), (top, 0)):
        machine.apply(2, 1, records(Batch(7, base_offset, count, b"")))
        payload = checkpoint(machine).payload
    machine.close()
    again = machine_in(tmp_path, payload)
    found = again.stream(7)
    assert found is not None
    assert found.next_offset == top
    again.close()


def test_a_sync_that_ended_in_any_error_is_never_taken_for_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = machine_in(tmp_path)
    machine.apply(1, 1, opening(7))
    machine.apply(2, 1, records(batch(7, 0, [b"a"])))
    capture = machine.capture()

    def broken(self: SyncWork) -> None:
        raise AssertionError(self.folder)

    monkeypatch.setattr(SyncWork, "_run", broken)
    with pytest.raises(AssertionError):
        capture.sync()
    with pytest.raises(StorageError, match="an earlier sync failed"):
        machine.capture()
    machine.close()
