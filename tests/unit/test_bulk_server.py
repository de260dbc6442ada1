"""The source holds a checkpoint's files while they are pulled, and answers nothing else."""

from dataclasses import replace
from pathlib import Path

import pytest

from lograft_log.env import RealDisk
from lograft_replication import manifest
from lograft_replication.messages import Pull
from support.pulling import GROUP, LIMITS, Source

CONTENTS = {"a/0.log": b"0123456789" * 300, "b/0.log": b"other"}


@pytest.fixture
def source(tmp_path: Path) -> Source:
    made = Source(RealDisk(), str(tmp_path))
    made.checkpoint(50, CONTENTS, {})
    return made


def pull(file: int, position: int, size: int, checkpoint: int = 50) -> Pull:
    return Pull(9, GROUP, checkpoint, file, position, size)


def test_file_zero_is_the_manifest(source: Source) -> None:
    current = source.store.current
    assert current is not None
    answers = [source.ask(pull(0, position, 1000)) for position in (0, 1000, 2000)]
    assert b"".join(bytes(answer.data) for answer in answers) == manifest.encode(current)
    assert {answer.request for answer in answers} == {9}


def test_files_are_numbered_as_in_the_manifest_and_end_at_their_length(source: Source) -> None:
    assert source.ask(pull(1, 5, 4)).data == b"5678"
    assert source.ask(pull(1, 2995, 100)).data == b"56789"
    assert source.ask(pull(2, 0, 100)).data == b"other"


def test_an_answer_is_never_longer_than_the_limit(source: Source) -> None:
    assert len(bytes(source.ask(pull(1, 0, 3000)).data)) == LIMITS.chunk_bytes_max


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (pull(3, 0, 10), "has no file 3"),
        (pull(1, 3000, 10), "has 3000 bytes but not 10 at 3000"),
        (pull(1, 0, 0), "has 3000 bytes but not 0 at 0"),
        (pull(0, 10**9, 10), "not 10 at 1000000000"),
        (pull(0, 0, 10, checkpoint=49), "checkpoint 49 is unknown, current is 50"),
    ],
)
def test_what_does_not_exist_is_answered_with_a_reason(
    source: Source, wanted: Pull, reason: str
) -> None:
    answer = source.ask(wanted)
    assert reason in answer.error
    assert bytes(answer.data) == b""


def test_pinned_files_outlive_their_names_and_newer_checkpoints(source: Source) -> None:
    source.ask(pull(0, 0, 10))
    folder = source.store.state_folder
    for path in CONTENTS:
        Path(folder, path).unlink()
    source.checkpoint(60, {}, {})
    assert source.server.pinned == (50,)
    assert source.ask(pull(2, 0, 100)).data == b"other"
    assert source.ask(pull(1, 0, 10)).data == b"0123456789"


def test_a_checkpoint_that_lost_a_file_is_refused_as_a_whole(source: Source) -> None:
    Path(source.store.state_folder, "b/0.log").unlink()
    assert "no longer whole" in source.ask(pull(0, 0, 10)).error
    assert not source.server.pinned


def test_a_pin_is_released_after_idling_and_not_before(source: Source) -> None:
    source.ask(pull(0, 0, 10))
    source.clock.at_s += LIMITS.pin_s_max - 1
    source.server.on_timer()
    assert source.server.pinned == (50,)
    source.ask(pull(1, 0, 10))
    source.clock.at_s += LIMITS.pin_s_max - 1
    source.server.on_timer()
    assert source.server.pinned == (50,)
    source.clock.at_s += 2
    source.server.on_timer()
    assert not source.server.pinned


def test_released_files_are_closed(source: Source) -> None:
    source.ask(pull(1, 0, 10))
    before = len(RealDisk().names("/proc/self/fd"))
    source.server.release(50)
    source.background.drain()
    assert len(RealDisk().names("/proc/self/fd")) == before - 2


def test_pins_and_waiting_reads_are_limited(tmp_path: Path) -> None:
    limits = replace(LIMITS, pin_count_max=1, reads_waiting_max=1)
    source = Source(RealDisk(), str(tmp_path), limits)
    source.checkpoint(50, CONTENTS, {})
    answers: list[str] = []
    for _ in range(2):
        source.server.on_pull(pull(1, 0, 10), lambda chunk: answers.append(chunk.error))
    assert answers == ["1 reads wait already"]
    source.background.drain()
    assert answers == ["1 reads wait already", ""]
    source.checkpoint(60, {}, {})
    assert "1 checkpoints are being pulled" in source.ask(pull(0, 0, 10, checkpoint=60)).error


def test_a_pin_that_idles_gives_way_to_a_newer_checkpoint(tmp_path: Path) -> None:
    source = Source(RealDisk(), str(tmp_path), replace(LIMITS, pin_count_max=2))
    for index in range(50, 60):
        source.checkpoint(index, CONTENTS, {})
        assert source.ask(pull(0, 0, 10, checkpoint=index)).error == ""
        source.clock.at_s += LIMITS.pin_busy_s
    assert source.server.pinned == (58, 59)


def test_files_beyond_the_pin_limit_are_opened_when_asked_for(tmp_path: Path) -> None:
    source = Source(RealDisk(), str(tmp_path), replace(LIMITS, pinned_file_count_max=1))
    source.checkpoint(50, CONTENTS, {})
    source.ask(pull(0, 0, 10))
    assert source.ask(pull(2, 0, 100)).data == b"other"


def test_a_file_shorter_than_its_manifest_is_not_padded(source: Source) -> None:
    Path(source.store.state_folder, "a/0.log").write_bytes(b"short")
    assert "has 3000 bytes but not 100 at 0" in source.ask(pull(1, 0, 100)).error
