"""`lograft dump` as its users meet it."""

from pathlib import Path

import pytest

from lograft_log import dump_command
from lograft_log.env import RealClock, RealDisk
from lograft_log.hot.record import Record
from lograft_log.log import open_log


@pytest.fixture
def log_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "log"
    log = open_log(str(folder), disk=RealDisk(), clock=RealClock())
    log.append([Record(b"first", key=b"k"), Record(b"second")])
    log.close()
    return folder


def test_folder_shows_every_record(log_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dump_command.command([str(log_folder)]) == 0
    shown = capsys.readouterr().out
    assert "first" in shown
    assert "second" in shown


def test_damage_is_shown_with_its_position(
    log_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = next(log_folder.glob("*.log"))
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    assert dump_command.command([str(file)]) == 0
    shown = capsys.readouterr().out
    assert "first" in shown
    assert "second" not in shown
    assert "BAD checksum mismatch" in shown


def test_a_damaged_file_header_is_a_line_and_the_other_files_are_shown(
    log_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index = next(log_folder.glob("*.index"))
    index.write_bytes(b"")
    assert dump_command.command([str(log_folder)]) == 0
    shown = capsys.readouterr().out
    assert f"file {index} BAD" in shown
    assert "second" in shown
    assert "state=open" in shown


def test_folder_without_a_log_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dump_command.command([str(tmp_path)]) == 2
    assert f"{tmp_path}: there is no log here" in capsys.readouterr().err


def test_no_path_tells_how_to_use_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert dump_command.command([]) == 2
    assert "usage: lograft dump PATH" in capsys.readouterr().err
