"""Where benchmark results go: one JSON line per run, with what it was measured on."""

import json
import os
import platform
import subprocess
import time
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def append(name: str, figures: dict[str, Any], *, settings: dict[str, Any]) -> None:
    line = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": _commit(),
        "hardware": f"{os.cpu_count()} cores, {platform.machine()}, {_memory_gb()} GB",
        "python": platform.python_version(),
        "settings": settings,
        "figures": figures,
    }
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / f"{name}.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def _commit() -> str:
    """The commit, marked when the tree was changed since."""
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"],
        cwd=RESULTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.strip() or "unknown"


def _memory_gb() -> int:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
