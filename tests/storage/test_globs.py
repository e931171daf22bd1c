"""One rule for globs: a store lists what a local folder lists, and keys that no folder can have."""

from __future__ import annotations

import tempfile
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stored_files import fill

from bpe_beam.storage import Storage
from bpe_beam.storage.globs import matches, parts_of

STORAGE = Storage()
NAMES = st.sampled_from(["a", "ab", "b", ".c", "a.txt"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PARTS = st.sampled_from(["*", "**", "a*", "?", "[ab]", "[!a]", ".*", "a", "ab", "a[.]txt", "[*]"])
GLOBS = st.lists(PARTS, min_size=1, max_size=4).map("/".join)


def without_files_as_folders(paths: list[str]) -> list[str]:
    folders = {"/".join(parts) for path in paths for parts in _folders(path.split("/"))}
    return sorted(set(paths) - folders)


def _folders(parts: list[str]) -> list[list[str]]:
    return [parts[:count] for count in range(1, len(parts))]


@settings(max_examples=60, deadline=None)
@given(st.lists(PATHS, max_size=8).map(without_files_as_folders), GLOBS)
def test_a_store_lists_what_a_local_folder_lists(paths: list[str], glob: str) -> None:
    store = f"memory://{uuid.uuid4().hex}"
    with tempfile.TemporaryDirectory() as folder:
        for top in (folder, store):
            fill(STORAGE, top, *paths)
        here, there = (
            [file.url.removeprefix(f"{top}/") for file in STORAGE.expand(f"{top}/{glob}")]
            for top in (folder, store)
        )
    assert here == there


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("*.txt", ["x.txt"]),
        ("/*.txt", ["/x.txt"]),
        ("*/*.txt", ["/x.txt", "a/x.txt", "./x.txt"]),
        ("**/*.txt", ["x.txt", "/x.txt", "//x.txt", "a/x.txt", "a//b/x.txt", "./x.txt"]),
        ("a/**/x.txt", ["a/x.txt", "a//b/x.txt"]),
        ("a//**", ["a//b/x.txt"]),
        ("**/", ["x.txt/"]),
    ],
)
def test_names_that_no_folder_has(glob: str, expected: list[str]) -> None:
    keys = [
        "x.txt",
        "/x.txt",
        "//x.txt",
        "a/x.txt",
        "a//b/x.txt",
        "./x.txt",
        "x.txt/",
        "a/.h/x.txt",
    ]
    parts = parts_of(glob.split("/"))
    found = [key for key in keys if matches(key.split("/"), parts)]
    assert sorted(found) == sorted(expected)
