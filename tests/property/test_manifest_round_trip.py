"""Manifests come back as they went, and anything else is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lograft_replication import manifest
from lograft_replication.machine import StateFile
from lograft_replication.manifest import Manifest
from lograft_replication.membership import Config
from lograft_wire.errors import DamagedError

U64 = st.integers(0, 2**64 - 1)
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=12)
PARTS = NAMES.filter(lambda part: part not in (".", ".."))
PATHS = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
FILES = st.builds(StateFile, PATHS, U64, st.integers(0, 2**32 - 1))


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    members = draw(st.lists(NAMES, unique=True, max_size=6))
    split = draw(st.integers(0, len(members)))
    return Manifest(
        group=draw(st.integers(0, 2**32 - 1)),
        index=draw(U64),
        term=draw(U64),
        config=Config(tuple(members[:split]), tuple(members[split:])),
        files=tuple(draw(st.lists(FILES, max_size=5, unique_by=lambda file: file.path))),
        payload=draw(st.binary(max_size=300)),
    )


@given(manifests())
def test_decode_gives_back_what_was_encoded(value: Manifest) -> None:
    assert manifest.decode(manifest.encode(value), path="x") == value


@given(manifests(), st.data())
def test_any_flipped_bit_is_damage_that_names_the_file(
    value: Manifest, data: st.DataObject
) -> None:
    whole = bytearray(manifest.encode(value))
    bit = data.draw(st.integers(0, len(whole) * 8 - 1))
    whole[bit // 8] ^= 1 << bit % 8
    with pytest.raises(DamagedError, match=r"some/manifest") as caught:
        manifest.decode(bytes(whole), path="some/manifest")
    assert caught.value.path == "some/manifest"


@given(manifests(), st.data())
def test_any_cut_is_damage(value: Manifest, data: st.DataObject) -> None:
    whole = manifest.encode(value)
    with pytest.raises(DamagedError):
        manifest.decode(whole[: data.draw(st.integers(0, len(whole) - 1))], path="x")


@given(st.binary(max_size=200))
def test_other_bytes_are_refused_even_behind_the_right_magic(data: bytes) -> None:
    for wrong in (data, manifest.MAGIC + data):
        with pytest.raises(DamagedError):
            manifest.decode(wrong, path="x")


@given(manifests(), manifests())
def test_the_seal_tells_manifests_apart(one: Manifest, other: Manifest) -> None:
    seals = {manifest.seal(manifest.encode(value)) for value in (one, other)}
    assert (len(seals) == 1) == (one == other)


@pytest.mark.parametrize("path", ["", "/a", "a/", "a//b", ".", "..", "a/../b", "../a", "a\0b"])
def test_paths_that_leave_the_folder_are_not_safe(path: str) -> None:
    assert not manifest.path_is_safe(path)
