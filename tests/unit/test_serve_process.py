"""`lograft serve` as its users meet it: a process, its first line, its health page, its end."""

import contextlib
import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def serving(data: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "lograft.command", "serve", "--data", str(data)),
            *("--http-port", "0", "--journal-file-bytes", "32MiB", *options),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        yield process, json.loads(line)
    finally:
        process.kill()
        process.communicate()


def get(ready: dict[str, Any], path: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://{ready['http']}{path}") as answer:
        return dict(json.load(answer))


def test_first_line_and_health_tell_that_it_serves(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "--shards", "3") as (process, ready):
        assert list(ready) == ["event", "node", "amqp", "http", "feed", "peer"]
        assert ready["event"] == "ready"
        assert get(ready, "/health/ready")["status"] == "ok"
        groups = get(ready, "/api/lograft/groups")["groups"]
        assert [group["role"] for group in groups] == ["leader"] * 3
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0


def test_killed_node_comes_back_with_its_groups_and_terms(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "--shards", "2") as (process, ready):
        before = get(ready, "/api/lograft/groups")["groups"]
        process.kill()
        process.wait()
    with serving(tmp_path / "data", "--shards", "2") as (_, ready):
        after = get(ready, "/api/lograft/groups")["groups"]
    assert [group["voters"] for group in after] == [group["voters"] for group in before]
    assert [group["term"] for group in after] == [group["term"] + 1 for group in before]


def test_second_node_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "--shards", "1") as (process, _):
        second = subprocess.run(
            [
                *(sys.executable, "-m", "lograft.command", "serve"),
                *("--data", str(tmp_path / "data"), "--http-port", "0"),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    assert second.returncode == 2
    assert str(tmp_path / "data") in second.stderr
    assert str(process.pid) in second.stderr


def test_damaged_identity_is_named_and_nothing_starts_empty(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving(data, "--shards", "1") as (process, _):
        process.send_signal(signal.SIGTERM)
        process.wait()
    (data / "identity").unlink()
    again = subprocess.run(
        [
            *(sys.executable, "-m", "lograft.command", "serve"),
            *("--data", str(data), "--http-port", "0"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 3
    assert f"{data}/identity is missing" in again.stderr
    assert (data / "journal").exists()
