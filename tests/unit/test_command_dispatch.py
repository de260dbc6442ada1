"""The `lograft` command finds, lists and runs subcommands."""

import io
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from lograft import command

SOURCE = '''"""Count the words it is given.

Not part of the help.
"""


def command(argv: list[str]) -> int:
    return len(argv)
'''


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, EntryPoint]:
    (tmp_path / "counting_command.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "counting_command", raising=False)
    return {
        "count": EntryPoint("count", "counting_command:command", command.GROUP),
        "spark": EntryPoint("spark", "no_such_module_anywhere:command", command.GROUP),
    }


def run(commands: dict[str, EntryPoint], *argv: str) -> tuple[int, str, str]:
    out, errors = io.StringIO(), io.StringIO()
    return command.run(argv, commands, out=out, errors=errors), out.getvalue(), errors.getvalue()


def test_subcommand_gets_the_words_behind_its_name_and_gives_the_exit_code(
    commands: dict[str, EntryPoint],
) -> None:
    assert run(commands, "count", "a", "--help") == (2, "", "")


def test_help_lists_first_line_of_each_module_and_what_is_not_available(
    commands: dict[str, EntryPoint],
) -> None:
    code, out, _ = run(commands, "--help")
    assert code == 0
    assert "count  Count the words it is given.\n" in out
    assert "spark  (not available: No module named 'no_such_module_anywhere')\n" in out
    assert "Not part" not in out


def test_no_command_shows_the_help_as_an_error(commands: dict[str, EntryPoint]) -> None:
    code, out, errors = run(commands)
    assert (code, out) == (2, "")
    assert errors.startswith("usage: lograft COMMAND")


def test_unknown_command_names_the_nearest(commands: dict[str, EntryPoint]) -> None:
    code, _, errors = run(commands, "cuont")
    assert code == 2
    assert errors == "lograft: unknown command 'cuont'; did you mean 'count'?\n"


def test_command_that_cannot_be_loaded_says_why(commands: dict[str, EntryPoint]) -> None:
    code, _, errors = run(commands, "spark")
    assert code == 2
    assert errors == (
        "lograft: spark cannot be loaded: No module named 'no_such_module_anywhere'\n"
    )


def test_version_is_that_of_the_package(commands: dict[str, EntryPoint]) -> None:
    code, out, _ = run(commands, "--version")
    assert code == 0
    assert out.startswith("lograft 0.")


def test_serve_is_installed() -> None:
    assert "serve" in command.installed()
