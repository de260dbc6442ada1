"""The repository as the tidy tests see it: its files, their imports, their text."""

import ast
import functools
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
ROOMS = ("broker", "replication", "client", "operator", "pipeline")
_IGNORED_FOLDERS = {".git", ".venv", "build", "data", "dist", "__pycache__"}
_CIMPORT = re.compile(r"^\s*(?:from\s+([\w.]+)\s+c?import|c?import\s+([\w.]+))", re.MULTILINE)


@functools.cache
def files() -> tuple[Path, ...]:
    """What is or could be committed: not ignored by git. Without git, all but caches."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
        ).stdout.decode()
        paths: Iterable[Path] = (ROOT / name for name in listed.split("\0") if name)
    except (OSError, subprocess.CalledProcessError):
        paths = (path for path in ROOT.rglob("*") if not _is_ignored(path))
    return tuple(sorted(path for path in paths if path.is_file()))


def under(*folders: str, suffix: str) -> list[Path]:
    tops = [ROOT / folder for folder in folders]
    return [
        path
        for path in files()
        if path.suffix == suffix and any(path.is_relative_to(top) for top in tops)
    ]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def package(path: Path) -> str:
    """The top package of a file in a room: broker/lograft_log/hot/crc.pyx is in lograft_log."""
    return path.relative_to(ROOT).parts[1]


def python_imports(path: Path) -> set[str]:
    """Dotted names of every module a Python file imports, wherever in the file."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def cython_imports(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    return {first or second for first, second in _CIMPORT.findall(text)}


def tops(modules: Iterable[str]) -> set[str]:
    return {module.partition(".")[0] for module in modules}


def _is_ignored(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    hidden = any(part.startswith(".") and part != ".ci" for part in parts[:-1])
    return hidden or bool(_IGNORED_FOLDERS.intersection(parts)) or path.suffix in (".c", ".so")
