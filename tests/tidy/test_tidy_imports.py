"""Who may import whom and what, where import-linter cannot look: compiled files, single files."""

from support import tree

LAYERS = {
    "lograft_wire": set[str](),
    "lograft_log": {"lograft_wire"},
    "lograft_replication": {"lograft_wire", "lograft_log"},
    "lograft_broker": {"lograft_wire", "lograft_log", "lograft_replication"},
    "lograft": {"lograft_wire"},
    "lograft_operator": {"lograft_wire", "lograft"},
    "lograft_spark": {"lograft_wire", "lograft"},
    "pyspark_lograft": {"lograft_spark"},
}

# These layers are pure unless listed: no clock, no disk, no network, no chance of their own.
PURE_PACKAGES = ("lograft_wire", "lograft_log", "lograft_replication")
OUTSIDE = {
    "asyncio", "fcntl", "mmap", "multiprocessing", "os", "pathlib", "queue", "random", "secrets",
    "select", "selectors", "shutil", "signal", "socket", "ssl", "subprocess", "tempfile",
    "threading", "time", "uuid", "uvloop",
}  # fmt: skip
EDGES = {
    "lograft_log/env.py": {"mmap", "os", "random", "shutil", "time"},
    "lograft_log/background.py": {"asyncio", "queue", "threading"},
    "lograft_log/compression.py": {"threading"},  # thread-local contexts, nothing shared
    "lograft_replication/link.py": {"asyncio", "socket", "ssl"},
    "lograft_replication/link_protocol.py": {"asyncio", "ssl"},
    "lograft_replication/link_socket.py": {"asyncio", "socket", "ssl"},
}

# Foreign libraries that only one package, or only some of its files, may know.
GUARDED = {
    "pysyncobj": ("lograft_replication/",),
    "kopf": ("lograft_operator/main.py", "lograft_operator/handlers.py"),
    "pyspark": ("lograft_spark/", "pyspark_lograft/"),
}


def inside(path_name: str) -> str:
    """broker/lograft_log/env.py as lograft_log/env.py."""
    return path_name.partition("/")[2]


def test_compiled_files_stay_in_their_layer() -> None:
    wrong = []
    for path in [*tree.under(*tree.ROOMS, suffix=".pyx"), *tree.under(*tree.ROOMS, suffix=".pxd")]:
        own = tree.package(path)
        reached = tree.tops(tree.cython_imports(path)) & LAYERS.keys()
        wrong += [(tree.name(path), other) for other in reached - LAYERS[own] - {own}]
    assert wrong == []


def test_compiled_files_know_c_the_wire_and_each_other_only() -> None:
    foreign = {"libc", "cpython", "cython", "posix", "sys"}
    wrong = []
    for path in [*tree.under(*tree.ROOMS, suffix=".pyx"), *tree.under(*tree.ROOMS, suffix=".pxd")]:
        for module in tree.cython_imports(path):
            known = ".hot" in module or module.startswith((".", "lograft_wire"))
            if not known and module.partition(".")[0] not in foreign:
                wrong.append((tree.name(path), module))
    assert wrong == []


def test_python_files_stay_in_their_layer() -> None:
    wrong = []
    for path in tree.under(*tree.ROOMS, suffix=".py"):
        own = tree.package(path)
        reached = tree.tops(tree.python_imports(path)) & LAYERS.keys()
        wrong += [(tree.name(path), other) for other in reached - LAYERS[own] - {own}]
    assert wrong == []


def test_only_edges_touch_the_outside_world() -> None:
    wrong = []
    for path in tree.under(*tree.ROOMS, suffix=".py"):
        if tree.package(path) not in PURE_PACKAGES:
            continue
        allowed = EDGES.get(inside(tree.name(path)), set())
        touched = tree.tops(tree.python_imports(path)) & OUTSIDE
        wrong += [(tree.name(path), module) for module in sorted(touched - allowed)]
    assert wrong == []


def test_foreign_libraries_stay_where_they_belong() -> None:
    wrong = []
    for path in tree.under(*tree.ROOMS, suffix=".py"):
        for library in tree.tops(tree.python_imports(path)) & GUARDED.keys():
            if not inside(tree.name(path)).startswith(GUARDED[library]):
                wrong.append((tree.name(path), library))
    assert wrong == []


def test_nobody_imports_tests_or_benchmarks() -> None:
    forbidden = {"support", "oracle", "sim", "bench", "e2e", "tests"}
    wrong = [
        tree.name(path)
        for path in tree.under(*tree.ROOMS, suffix=".py")
        if tree.tops(tree.python_imports(path)) & forbidden
    ]
    assert wrong == []


def test_nothing_is_unpickled() -> None:
    wrong = [
        tree.name(path)
        for path in tree.under(*tree.ROOMS, suffix=".py")
        if tree.tops(tree.python_imports(path)) & {"pickle", "marshal", "shelve", "dill"}
    ]
    assert wrong == []
