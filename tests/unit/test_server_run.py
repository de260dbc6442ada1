"""One run of a node process, from settings to exit code. The nodes here are small but real to
`server`: the true one has its own tests, and one that starts the whole process."""

import asyncio
import errno
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from lograft_broker import server
from lograft_broker.folder import FolderLock
from lograft_wire.config import Settings
from lograft_wire.errors import ConfigError, StorageError
from support import root_logger


class SmallNode:
    def __init__(self, settings: Settings, *, on_start: Callable[["SmallNode"], None]) -> None:
        self.failed: asyncio.Future[StorageError] = asyncio.get_running_loop().create_future()
        self.stopped_with: list[float] = []
        self._settings = settings
        self._on_start = on_start

    async def start(self) -> None:
        self._on_start(self)

    def health(self) -> Mapping[str, object]:
        return {"live": True, "ready": True, "reasons": [], "details": {}}

    def ready_line(self) -> Mapping[str, object]:
        return {"node": self._settings.node, "amqp": None, "feed": None, "peer": "127.0.0.1:1"}

    async def stop(self, *, grace_s: float) -> None:
        self.stopped_with.append(grace_s)


class StandardOutput(io.StringIO):
    """Asks for an orderly stop as soon as the node says that it is ready."""

    def write(self, text: str) -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        return super().write(text)


@pytest.fixture(autouse=True)
def root_logger_as_before() -> Iterator[None]:
    with root_logger.restored():
        yield


def no_trouble(_node: SmallNode) -> None:
    pass


def run(
    tmp_path: Path, *argv: str, on_start: Callable[[SmallNode], None] = no_trouble
) -> tuple[int, str, str, list[SmallNode]]:
    out, errors = StandardOutput(), io.StringIO()
    nodes: list[SmallNode] = []

    def make(settings: Settings) -> SmallNode:
        nodes.append(SmallNode(settings, on_start=on_start))
        return nodes[-1]

    code = server.run(
        ["--data", str(tmp_path / "data"), "--http-port", "0", *argv], make, out=out, errors=errors
    )
    return code, out.getvalue(), errors.getvalue(), nodes


def test_first_line_says_ready_with_addresses_and_sigterm_ends_it_cleanly(tmp_path: Path) -> None:
    code, out, _, [node] = run(tmp_path, "--node", "n7", "--stop-grace", "3s")
    assert code == 0
    ready = json.loads(out)
    assert ready.pop("http").startswith("127.0.0.1:")
    assert ready == {
        "event": "ready",
        "node": "n7",
        "amqp": None,
        "feed": None,
        "peer": "127.0.0.1:1",
    }
    assert node.stopped_with == [3.0]


def test_wrong_setting_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    code, out, errors, nodes = run(tmp_path, "--http-prot", "1")
    assert (code, out, nodes) == (2, "", [])
    assert errors == "lograft serve: unknown option '--http-prot'; did you mean --http-port?\n"


def test_http_port_in_use_is_exit_code_2(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, errors, _ = run(tmp_path, "--http-port", str(port))
    assert (code, out) == (2, "")
    assert f"--http-port {port}: another process listens" in errors


def test_port_in_use_inside_the_node_names_its_option(tmp_path: Path) -> None:
    def refuse(_node: SmallNode) -> None:
        raise OSError(errno.EADDRINUSE, "while binding ('127.0.0.1', 7999)")

    code, _, errors, [node] = run(tmp_path, "--peer-port", "7999", on_start=refuse)
    assert code == 2
    assert "--peer-port 7999: another process listens on 127.0.0.1:7999 already" in errors
    assert node.stopped_with == [0.0]


def test_start_that_finds_damage_is_exit_code_3(tmp_path: Path) -> None:
    def damaged(_node: SmallNode) -> None:
        raise StorageError("journal file 3 fails its check at 4096")

    code, out, errors, _ = run(tmp_path, on_start=damaged)
    assert (code, out) == (3, "")
    assert "lograft serve: journal file 3 fails its check at 4096\n" in errors


def test_disk_that_fails_while_serving_is_exit_code_3_without_a_drain(tmp_path: Path) -> None:
    def fail_soon(node: SmallNode) -> None:
        error = StorageError("sync of journal failed")
        asyncio.get_running_loop().call_soon(node.failed.set_result, error)

    code, _, errors, [node] = run(tmp_path, on_start=fail_soon)
    assert code == 3
    assert "lograft serve: sync of journal failed\n" in errors
    assert node.stopped_with == [0.0]


def test_log_lines_are_json_when_asked(tmp_path: Path) -> None:
    _, _, errors, _ = run(tmp_path, "--log-format", "json")
    events = [json.loads(line)["event"] for line in errors.splitlines()]
    assert events == ["node_ready", "signal_received", "node_stopping", "node_stopped"]


def test_folder_in_use_names_folder_and_process(tmp_path: Path) -> None:
    lock = FolderLock(str(tmp_path / "data"))
    code, out, errors, nodes = run(tmp_path)
    lock.close()
    assert (code, out, nodes) == (2, "", [])
    assert f"{tmp_path}/data is in use by another node (process {os.getpid()})" in errors


def test_folder_is_free_again_after_a_run(tmp_path: Path) -> None:
    assert run(tmp_path)[0] == 0
    FolderLock(str(tmp_path / "data")).close()


def test_folder_that_cannot_be_made_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file stands here")
    code, _, errors, _ = run(tmp_path)
    assert code == 3
    assert "cannot be used" in errors


def test_lock_of_a_killed_process_does_not_stay(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK, str(tmp_path)], stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(ConfigError, match=f"process {holder.pid}"):
        FolderLock(str(tmp_path))
    holder.kill()
    holder.wait()
    holder.stdout.close()
    FolderLock(str(tmp_path)).close()


HOLD_LOCK = """
import sys, time
from lograft_broker.folder import FolderLock
lock = FolderLock(sys.argv[1])
print("held", flush=True)
time.sleep(60)
"""

NEVER_DRAINS = """
import asyncio, sys
from lograft_broker import server

class Node:
    def __init__(self):
        self.failed = asyncio.get_running_loop().create_future()
    async def start(self): pass
    def health(self): return {"live": True, "ready": True, "reasons": [], "details": {}}
    def ready_line(self): return {"node": "n"}
    async def stop(self, *, grace_s):
        print("draining", flush=True)
        await asyncio.Event().wait()

sys.exit(server.run(sys.argv[1:], lambda settings: Node(), out=sys.stdout, errors=sys.stderr))
"""


def test_second_signal_does_not_wait_for_the_drain(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", NEVER_DRAINS, "--data", str(tmp_path), "--http-port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    watchdog = threading.Timer(30, process.kill)
    watchdog.start()
    assert process.stdout is not None
    assert b'"ready"' in process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == b"draining\n"
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate()
    watchdog.cancel()
    assert process.returncode == 128 + signal.SIGTERM
    assert b"node_stopped_at_once signal=SIGTERM" in errors
