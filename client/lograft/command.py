"""The `lograft` command: finds its subcommands among the installed packages and runs one.

A subcommand is an entry point of group `lograft.commands`: a function `command(argv) -> int` that
takes the words behind its name and returns the exit code. The first line of its module's docstring
is its line in the help. Which packages offer one is not known here, so this package imports none
of them: `serve` comes with the broker, others with theirs.
"""

import difflib
import importlib.metadata
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import EntryPoint
from typing import TextIO, cast

GROUP = "lograft.commands"
EXIT_USAGE = 2

Command = Callable[[list[str]], int]


def main() -> int:
    """What the installed `lograft` script calls."""
    return run(sys.argv[1:], installed(), out=sys.stdout, errors=sys.stderr)


def installed() -> dict[str, EntryPoint]:
    return {point.name: point for point in importlib.metadata.entry_points(group=GROUP)}


def run(
    argv: Sequence[str], commands: Mapping[str, EntryPoint], *, out: TextIO, errors: TextIO
) -> int:
    match list(argv):
        case []:
            errors.write(usage(commands))
            return EXIT_USAGE
        case ["--help" | "-h" | "help", *_]:
            out.write(usage(commands))
            return 0
        case ["--version", *_]:
            out.write(f"lograft {importlib.metadata.version('lograft')}\n")
            return 0
        case [name, *rest]:
            if name in commands:
                return _start(commands[name], rest, errors)
            errors.write(f"lograft: unknown command {name!r}{_nearest(name, commands)}\n")
            return EXIT_USAGE
    raise AssertionError("a list is empty or has a first word")


def usage(commands: Mapping[str, EntryPoint]) -> str:
    width = max((len(name) for name in commands), default=0)
    lines = ["usage: lograft COMMAND [OPTION]...", "       lograft --version", ""]
    lines += [f"  {name:{width}}  {_help(commands[name])}" for name in sorted(commands)]
    lines += ["", "`lograft COMMAND --help` lists the options of one command.", ""]
    return "\n".join(lines)


def _start(point: EntryPoint, argv: list[str], errors: TextIO) -> int:
    try:
        command = cast(Command, point.load())
    except ImportError as error:
        errors.write(f"lograft: {point.name} cannot be loaded: {error}\n")
        return EXIT_USAGE
    return command(argv)


def _help(point: EntryPoint) -> str:
    try:
        command = point.load()
    except ImportError as error:  # an extra that is not installed must not spoil the list
        return f"(not available: {error})"
    documented = sys.modules[command.__module__].__doc__ or ""
    return documented.strip().partition("\n")[0]


def _nearest(name: str, commands: Mapping[str, EntryPoint]) -> str:
    close = difflib.get_close_matches(name, list(commands), n=1, cutoff=0.0)
    return f"; did you mean {close[0]!r}?" if close else ""


if __name__ == "__main__":
    sys.exit(main())
