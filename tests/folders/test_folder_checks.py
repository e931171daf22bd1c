"""Folders that are read: one under two names is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from bpe_beam.errors import UsageError
from bpe_beam.folders.folder_checks import refuse_own_folder, refuse_twice, same_folder


def test_a_folder_under_two_names(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to("a")
    a, link = str(tmp_path / "a"), f"file://{tmp_path}/link"
    assert same_folder(a, link)
    assert not same_folder(a, str(tmp_path))
    assert same_folder("s3://b/a", "s3://b/a/")
    assert not same_folder("s3://b/a", "s3://b/b")
    with pytest.raises(UsageError, match="link is named twice: harm"):
        refuse_twice([a, str(tmp_path), link], "harm")
    with pytest.raises(UsageError, match="must be a folder other than those that are read"):
        refuse_own_folder(link, (str(tmp_path), a))
    for output, folder in ((str(tmp_path), link), ("s3://b/a/", "s3://b/a/train")):
        with pytest.raises(UsageError, match="must not have a folder that is read"):
            refuse_own_folder(output, (folder,))
        refuse_own_folder(output, (folder,), inside=True)
    refuse_own_folder("s3://b/a", ("s3://b/another",))
    refuse_twice([a, str(tmp_path)], "harm")
    refuse_own_folder(str(tmp_path / "new"), (a,))


def test_an_output_that_cannot_be_looked_for_is_no_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    refuse_own_folder(str(tmp_path / "loop" / "x"), (str(tmp_path / "a"),))

    def denied(path: object, **_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.stat", denied)
    assert not same_folder(str(tmp_path / "secret" / "x"), str(tmp_path / "a"))
