"""Files that come over time: what is watched, and under which names."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_text import write

from bpe_beam.corpus.new_files import Watched
from bpe_beam.errors import UsageError
from bpe_beam.storage import Storage

STORAGE = Storage()


def test_names_do_not_depend_on_what_is_there(tmp_path: Path) -> None:
    def root(*patterns: str) -> str:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Storage, "is_folder", lambda *_: False)
            return Watched.of(STORAGE, patterns).root

    assert root("gcs://bucket/in/", "gs://bucket/in/more/*") == "gs://bucket/in"
    assert root("gs://bucket/") == "gs://bucket"
    assert root(f"{tmp_path}/in/", f"{tmp_path}/in/*/x") == f"{tmp_path}/in"

    assert root(f"{tmp_path}/in/*/a*.jsonl") == f"{tmp_path}/in"
    assert root(f"{tmp_path}/in/a.jsonl", f"{tmp_path}/in/b/**") == f"{tmp_path}/in"
    assert root("/*.jsonl") == "/"
    assert root("s3://bucket/in/*.gz", "s3://bucket/more/*.gz") == "s3://bucket"
    assert root("gcs://bucket/in/[ab]/*") == "gs://bucket/in"
    write(tmp_path / "x.jsonl", ["a"])
    write(tmp_path / "deep" / "y.jsonl", ["a"])
    watched = Watched.of(STORAGE, [f"{tmp_path}/**/*.jsonl"], [f"{tmp_path}/deep/*"])
    assert [name for name, _ in watched.look(STORAGE)] == ["x.jsonl"]
    assert sorted(name for name, _ in Watched.of(STORAGE, ["/*"]).look(STORAGE)) == sorted(
        path.name
        for path in Path("/").iterdir()
        if path.is_file() and path.stat().st_size and not path.name.startswith(".")
    )


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        (["@list"], "a list does not grow"),
        (["https://host/*.jsonl"], "the web cannot be watched"),
        (["{tmp}/*", "s3://bucket/*"], "on several stores"),
    ],
)
def test_what_cannot_be_watched_is_refused(tmp_path, patterns, message) -> None:
    with pytest.raises(UsageError, match=message):
        Watched.of(STORAGE, [pattern.format(tmp=tmp_path) for pattern in patterns])


@pytest.mark.parametrize("name", ["in", "in/", "[a]*"])
def test_of_a_folder_all_visible_files_are_watched(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    watched = Watched.of(STORAGE, [f"{tmp_path}/{name}"]) if name[-1] == "/" else None
    for file in ("a.jsonl", "deep/er/b.txt", ".hidden", "_SUCCESS", "_temp/c.txt", "deep/.d/e"):
        write(folder / file, ["a"])
    for file in ("skip/f.txt", "out/window-00000000/g.bin"):
        write(folder / file, ["a"])
    (folder / "empty.txt").write_text("")
    if watched is None:
        watched = Watched.of(STORAGE, [str(folder)])
    names = ["a.jsonl", "deep/er/b.txt", "out/window-00000000/g.bin", "skip/f.txt"]
    assert watched.root == str(folder)
    assert sorted(found for found, _ in watched.look(STORAGE)) == names
    other = Watched.of(STORAGE, [str(folder)], [f"{folder}/skip"], f"{folder}/out")
    assert sorted(found for found, _ in other.look(STORAGE)) == names[:2]
    assert other.root_fingerprint == watched.root_fingerprint
    with pytest.raises(UsageError, match="is in the output folder"):
        Watched.of(STORAGE, [str(folder)], output=str(folder))


@pytest.mark.parametrize("pattern", ["data/*/", "data/[e-f]*/", "data/**/"])
def test_files_of_a_glob_of_folders_have_different_names(tmp_path: Path, pattern: str) -> None:
    for file in ("en/x.txt", "fr/deep/x.txt", "fr/x.txt", "fr/skip/y.txt"):
        write(tmp_path / "data" / file, ["a"])
    write(tmp_path / "data" / "z.txt", ["a"])
    watched = Watched.of(STORAGE, [f"{tmp_path}/{pattern}"], [f"{tmp_path}/data/*/s*/"])
    names = ["en/x.txt", "fr/deep/x.txt", "fr/x.txt", *(["z.txt"] if "**" in pattern else [])]
    assert watched.root == f"{tmp_path}/data"
    assert sorted({name for name, _ in watched.look(STORAGE)}) == names


def test_a_folder_with_the_name_of_a_glob(tmp_path: Path) -> None:
    write(tmp_path / "data" / "a" / "x.txt", ["a"])
    watched = Watched.of(STORAGE, [f"{tmp_path}/data/[a]/"])
    assert (watched.root, [*dict(watched.look(STORAGE))]) == (f"{tmp_path}/data", ["a/x.txt"])
    write(tmp_path / "data" / "[a]" / "y.txt", ["a"])
    watched = Watched.of(STORAGE, [f"{tmp_path}/data/[a]/"])
    assert (watched.root, [*dict(watched.look(STORAGE))]) == (f"{tmp_path}/data/[a]", ["y.txt"])


def test_a_relative_glob_that_is_watched_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers look for it from a working directory of their own."""
    root = tmp_path / "a[1] *?"
    write(root / "a.jsonl", ["x"])
    write(root / "deep" / "er" / "b.txt", ["x"])
    monkeypatch.chdir(root)
    watched = Watched.of(STORAGE, ["**/*.jsonl", "deep/*/b.txt"])
    folders = Watched.of(STORAGE, ["d*/"], ["deep/*/c*/"])
    monkeypatch.chdir("/")
    found = [file for _, file in watched.look(STORAGE)]
    assert sorted(file.url for file in found) == [f"{root}/a.jsonl", f"{root}/deep/er/b.txt"]
    assert [file.url for _, file in folders.look(STORAGE)] == [f"{root}/deep/er/b.txt"]
