"""What stands in files: no leftovers, no machine's own paths, links that lead somewhere."""

import ast
import re
from pathlib import Path

from support import tree

COMMAND_LINE = ("client/lograft/command.py", "broker/lograft_log/dump.py")
TEXT_SUFFIXES = {
    "", ".cfg", ".h", ".md", ".pxd", ".py", ".pyi", ".pyx", ".sh", ".toml", ".txt", ".yaml", ".yml",
}  # fmt: skip
# Assembled here so that this file does not find itself.
MACHINE_PATH = re.compile("(?<![\\w.])/(?:" + "|".join(["home", "work", "root", "Users"]) + ")/")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
DECISION_NAME = re.compile(r"\d{4}-[a-z0-9-]+\.md")
DECISION_HEADINGS = ["Context", "Choice", "Price", "What would change our mind"]


def test_no_leftover_debugging() -> None:
    found = []
    for path in tree.under(*tree.ROOMS, suffix=".py"):
        if tree.name(path) in COMMAND_LINE:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Name) and called.id in ("print", "breakpoint", "pprint"):
                found.append(f"{tree.name(path)}:{called.lineno}")
        if tree.tops(tree.python_imports(path)) & {"pdb", "ipdb", "pudb", "pprint"}:
            found.append(tree.name(path))
    assert found == []


def test_no_leftover_debugging_in_compiled_files() -> None:
    call = re.compile(r"^\s*(print|printf|breakpoint)\s*\(", re.MULTILINE)
    found = [
        tree.name(path)
        for path in tree.under(*tree.ROOMS, suffix=".pyx")
        if call.search(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_no_paths_of_one_machine() -> None:
    found = []
    for path in tree.files():
        if path.suffix in TEXT_SUFFIXES and path.name != "LICENSE":
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                if MACHINE_PATH.search(line):
                    found.append(f"{tree.name(path)}:{number}")
    assert found == []


def test_links_between_pages_lead_somewhere() -> None:
    broken = []
    for page in (path for path in tree.files() if path.suffix == ".md"):
        for target in LINK.findall(page.read_text(encoding="utf-8")):
            if re.match(r"[a-z]+:", target) or target.startswith("#"):
                continue
            if not (page.parent / target.partition("#")[0]).exists():
                broken.append(f"{tree.name(page)} -> {target}")
    assert broken == []


def test_formats_mention_every_layout() -> None:
    """Each module with a struct.Struct is named there: `package.module` or `package/module.py`."""
    formats = (tree.ROOT / "docs" / "FORMATS.md").read_text(encoding="utf-8")
    missing = [
        _dotted(path)
        for path in tree.under(*tree.ROOMS, suffix=".py")
        if _defines_layout(path)
        and _dotted(path) not in formats
        and _dotted(path).replace(".", "/") + ".py" not in formats
    ]
    assert missing == []


def test_decision_records_follow_the_template() -> None:
    folder = tree.ROOT / "docs" / "decisions"
    records = [path for path in sorted(folder.glob("*.md")) if path.name != "README.md"]
    wrong = []
    for record in records:
        text = record.read_text(encoding="utf-8")
        headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
        title = re.match(rf"# {record.name[:4]}\b", text)
        if not DECISION_NAME.fullmatch(record.name) or not title or headings != DECISION_HEADINGS:
            wrong.append((record.name, headings))
    assert wrong == []


def test_decision_records_are_numbered_once_and_listed() -> None:
    folder = tree.ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    names = [path.name for path in sorted(folder.glob("[0-9]*.md"))]
    numbers = [name[:4] for name in names]
    assert len(numbers) == len(set(numbers))
    assert [name for name in names if f"({name})" not in index] == []


def _dotted(path: Path) -> str:
    return ".".join(path.relative_to(tree.ROOT).with_suffix("").parts[1:])


def _defines_layout(path: Path) -> bool:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr == "Struct":
            return True
        if isinstance(called, ast.Name) and called.id == "Struct":
            return True
    return False
