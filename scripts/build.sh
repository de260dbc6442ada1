#!/bin/sh
# Makes .venv and installs Lograft into it, compiled and editable, with all the tests need.
# Called by `make build` when there is no .venv yet or something compiled has changed.
# Usage: build.sh [PYTHON]
set -eu

venv=.venv
wanted=${1:-}

# Prints the line that installs packages here; the arguments are the names on Debian.
install_line() {
    if command -v apt-get >/dev/null 2>&1; then
        echo "apt-get install -y $*"
    elif command -v dnf >/dev/null 2>&1; then
        echo "dnf install -y python3 python3-devel gcc"
    elif command -v apk >/dev/null 2>&1; then
        echo "apk add python3 python3-dev gcc musl-dev linux-headers"
    else
        echo "apt-get install -y $*    (Debian; use your system's own names)"
    fi
}

missing() {
    what=$1
    shift
    echo "lograft needs $what. Install it with:" >&2
    echo "    $(install_line "$@")" >&2
    exit 1
}

# Prints what interpreter $1 lacks: nothing, "age", "venv" or "headers".
lack_of() {
    "$1" - 2>/dev/null <<'PYTHON' || echo age
import os, sys, sysconfig
if sys.version_info < (3, 11):
    sys.exit(1)
try:
    import ensurepip, venv
except ImportError:
    print("venv")
else:
    header = os.path.join(sysconfig.get_path("include"), "Python.h")
    if not os.path.exists(header):
        print("headers")
PYTHON
}

# The first complete interpreter; failing that, the first that is new enough, to say what it lacks.
find_python() {
    python= incomplete= lack=
    for name in ${wanted:-python3.13 python3.12 python3.11 python3}; do
        command -v "$name" >/dev/null 2>&1 || continue
        found=$(lack_of "$name")
        if [ -z "$found" ]; then
            python=$name
            return
        elif [ "$found" != age ] && [ -z "$incomplete" ]; then
            incomplete=$name lack=$found
        fi
    done
}

check_prerequisites() {
    find_python
    if [ -z "$python" ]; then
        # A bare name has Debian packages of the same name; anything else gets the default ones.
        case $incomplete in python3*) package=$incomplete ;; *) package=python3 ;; esac
        case $lack in
        venv) missing "the venv module of $incomplete" "$package-venv" "$package-dev" gcc ;;
        headers) missing "the C headers of $incomplete (Python.h)" "$package-dev" gcc ;;
        *) missing "Python 3.11 or newer${wanted:+ ($wanted is not)}" python3 python3-venv python3-dev gcc ;;
        esac
    fi
    compiler=${CC:-}
    for name in ${compiler:-gcc cc clang}; do
        if command -v "$name" >/dev/null 2>&1; then
            return
        fi
    done
    missing "a C compiler${compiler:+ (CC=$compiler is not found)}" gcc
}

check_prerequisites
if [ ! -x $venv/bin/python ]; then
    echo "making $venv with $("$python" --version)"
    "$python" -m venv $venv
fi

# Without build isolation, so that a rebuild does not fetch Cython again; hence it is installed first.
# What is installed changes only with pyproject.toml; a changed .pyx alone is compiled without asking the index.
if ! cmp -s pyproject.toml $venv/.pyproject.toml; then
    $venv/bin/python - >$venv/.build-requires <<'PYTHON'
import tomllib
with open("pyproject.toml", "rb") as file:
    print(*tomllib.load(file)["build-system"]["requires"], sep="\n")
PYTHON
    $venv/bin/python -m pip install -q --disable-pip-version-check -r $venv/.build-requires
    $venv/bin/python -m pip install -q --disable-pip-version-check --no-build-isolation -e '.[test]'
    cp pyproject.toml $venv/.pyproject.toml
else
    $venv/bin/python -m pip install -q --disable-pip-version-check --no-build-isolation --no-deps -e .
fi
touch $venv/.built
