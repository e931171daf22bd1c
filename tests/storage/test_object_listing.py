"""Objects by glob: each once, and without a request for folders that cannot match."""

from __future__ import annotations

import itertools
import uuid

import pytest
from stored_files import fill

from bpe_beam.storage import Storage
from bpe_beam.storage.globs import parts_of
from bpe_beam.storage.object_listing import Bucket, is_folder_marker, open_bucket

pytestmark = pytest.mark.quick

STORAGE = Storage()


def test_many_slashes_in_a_row() -> None:
    folder = f"memory://{uuid.uuid4().hex}/in"
    keys = ["".join(parts) for parts in itertools.product(["", "/", "//"], ["a"], ["/b", "//b"])]
    for key in keys:
        STORAGE.write_bytes(f"{folder}/{key}", key.encode())
    for glob in ("**", "**/*", "**/b"):
        found = STORAGE.expand(f"{folder}/{glob}")
        assert [file.url for file in found] == sorted(f"{folder}/{key}" for key in keys)
        assert all(file.url.endswith(STORAGE.read_bytes(file.url).decode()) for file in found)


@pytest.mark.parametrize(
    ("glob", "found", "requests"),
    [
        ("*.txt", ["a.txt", "b.txt"], [("", "/")]),
        ("a*", ["a.txt"], [("a", "/")]),
        ("in/[*]*", ["in/*x"], [("in/*", "/")]),
        ("*/deep/x.txt", ["in/deep/x.txt"], [("", "/"), ("in/deep/x.txt", "/")]),
        ("i*/*/x.txt", ["in/deep/x.txt"], [("i", "/"), ("in/", "/"), ("in/deep/x.txt", "/")]),
        ("in/**/x.txt", ["in/deep/x.txt"], [("in/", "")]),
    ],
)
def test_only_folders_that_may_match_are_listed(
    glob: str, found: list[str], requests: list[tuple[str, str]]
) -> None:
    top = f"memory://{uuid.uuid4().hex}"
    fill(STORAGE, top, "a.txt", "b.txt", "in/*x", "in/deep/x.txt", "in/deep/er/y.txt")
    fs, path = STORAGE.remote.connect(top)
    objects = open_bucket(fs, "memory", "")
    assert objects is not None
    asked = []

    def request(wanted):
        asked.append((wanted.prefix.removeprefix(f"{path}/"), wanted.delimiter))
        return objects.request(wanted)

    listed = Bucket(request).matching(f"{path}/", parts_of(glob.split("/")))
    assert sorted(key.removeprefix(f"{path}/") for key, _ in listed) == found
    assert asked == requests


def test_which_objects_show_a_folder() -> None:
    assert is_folder_marker("in/", {"size": 0})
    assert is_folder_marker("in/", {"size": "0"})
    assert is_folder_marker("in", {"size": 0, "is_folder": True})
    assert not is_folder_marker("in/", {"size": 1})
    assert not is_folder_marker("in", {"size": 0})
    assert not is_folder_marker("in/", {})
