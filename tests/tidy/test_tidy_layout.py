"""Where files stand: rooms without packages of their own, compiled modules with all their files."""

import tomllib
from collections import Counter

from support import tree


def test_component_folders_are_not_packages() -> None:
    assert [room for room in tree.ROOMS if (tree.ROOT / room / "__init__.py").exists()] == []


def test_packages_carry_the_product_name() -> None:
    packages = {
        path.relative_to(tree.ROOT).parts[1]
        for path in tree.under(*tree.ROOMS, suffix=".py")
        if len(path.relative_to(tree.ROOT).parts) > 2
    }
    strangers = {
        package
        for package in packages
        if package != "lograft"
        and package != "pyspark_lograft"
        and not package.startswith("lograft_")
    }
    assert strangers == set()


def test_tests_have_no_packages_and_no_two_files_of_one_name() -> None:
    assert tree.under("tests", suffix=".py") != []
    names = [path.name for path in tree.under("tests", "e2e", suffix=".py")]
    assert "__init__.py" not in names
    tests = Counter(name for name in names if name.startswith("test_"))
    assert [name for name, count in tests.items() if count > 1] == []


def test_every_compiled_module_is_four_files_and_is_built() -> None:
    with (tree.ROOT / "pyproject.toml").open("rb") as file:
        extensions = tomllib.load(file)["tool"]["setuptools"]["ext-modules"]
    built = {source for extension in extensions for source in extension["sources"]}
    sources = tree.under(*tree.ROOMS, suffix=".pyx")
    assert sources != []
    missing = []
    for source in sources:
        oracle = tree.ROOT / "tests" / "oracle" / f"{source.stem}.py"
        twins = (source.with_suffix(".pxd"), source.with_suffix(".pyi"), oracle)
        missing += [tree.name(twin) for twin in twins if not twin.exists()]
        if tree.name(source) not in built:
            missing.append(f"{tree.name(source)} in pyproject.toml")
    assert missing == []
    assert {tree.name(source) for source in sources} == built


def test_compiled_modules_live_in_hot() -> None:
    strays = [path for path in tree.under(*tree.ROOMS, suffix=".pyx") if path.parent.name != "hot"]
    assert strays == []


def test_headers_a_compiled_module_includes_rebuild_it() -> None:
    with (tree.ROOT / "pyproject.toml").open("rb") as file:
        extensions = tomllib.load(file)["tool"]["setuptools"]["ext-modules"]
    forgotten = []
    for extension in extensions:
        source = tree.ROOT / extension["sources"][0]
        text = source.read_text(encoding="utf-8")
        for header in source.parent.glob("*.h"):
            if f'"{header.name}"' in text and tree.name(header) not in extension.get("depends", []):
                forgotten.append((tree.name(source), header.name))
    assert forgotten == []
