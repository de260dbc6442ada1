"""Show what stands in the files of a log, beside a running broker or on a copy.

`lograft dump PATH...`: each PATH is a file of a segment or the folder of a log. Exit codes: 0 all
was readable, 2 a path cannot be shown. Damage inside a file is a line of its own, not an error.
"""

import sys

from lograft_log import dump, env, layout
from lograft_wire.errors import StorageError

USAGE = "usage: lograft dump PATH...\n\nPATH is a segment's file or the folder of a log.\n"
EXIT_CANNOT = 2


def command(argv: list[str]) -> int:
    if not argv or "--help" in argv or "-h" in argv:
        (sys.stdout if argv else sys.stderr).write(USAGE)
        return 0 if argv else EXIT_CANNOT
    disk = env.RealDisk()
    status = 0
    for path in argv:
        try:
            for file in _files(disk, path):
                for line in dump.lines(disk, file):
                    sys.stdout.write(line + "\n")
        except (StorageError, OSError) as error:
            sys.stderr.write(f"lograft dump: {error}\n")
            status = EXIT_CANNOT
    return status


def _files(disk: env.Disk, path: str) -> list[str]:
    """The file itself, or all files of a log's folder in the order of their segments."""
    try:
        names = disk.names(path)
    except NotADirectoryError:
        return [path]
    files = [f"{path}/{name}" for name in names if layout.parse_name(name) is not None]
    if not files:
        raise StorageError(f"{path}: there is no log here", path=path)
    return files
