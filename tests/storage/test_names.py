"""Names: joined, and hidden where they hold a secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from bpe_beam.errors import DataError, UsageError
from bpe_beam.storage import Storage, named_errors, redact
from bpe_beam.storage.names import absolute, absolute_glob, parent

pytestmark = pytest.mark.quick


def test_join() -> None:
    join = Storage().join
    assert join("a", "b", "c") == "a/b/c"
    assert join("/", "a") == "/a"
    assert join("s3://", "bucket", "key") == "s3://bucket/key"
    assert join("s3://bucket/", "key") == "s3://bucket/key"
    assert join("", "a") == "a"
    assert join("a?b", "c") == "a?b/c"
    assert join("https://host/a?sig=1", "c") == "https://host/a/c?sig=1"


def test_parent() -> None:
    assert parent("/a/b/c") == "/a/b"
    assert parent("c") == str(Path.cwd())
    assert parent("file:///a/c") == "/a"
    assert parent("s3://bucket/a/c") == "s3://bucket/a"
    assert parent("s3://bucket/c") == "s3://bucket"
    assert parent("s3://bucket/a?b/c") == "s3://bucket/a?b"
    assert parent("https://host/a/c?sig=1/2") == "https://host/a?sig=1/2"


def test_redact() -> None:
    assert redact("https://me:pw@host/a/b?sig=1") == "https://host/a/b"
    assert redact("https://token@host/a") == "https://host/a"
    assert redact("s3://key:secret@bucket/a?b") == "s3://bucket/a?b"
    assert redact("abfss://container@account/a") == "abfss://container@account/a"
    assert redact("/a/me:pw@host?x") == "/a/me:pw@host?x"
    url = "https://me:hunter2@127.0.0.1:1/x?sig=hunter2"
    for error in (RuntimeError, OSError):
        with (
            pytest.raises(DataError, match=r"cannot read https://127") as caught,
            named_errors("read", url),
        ):
            raise error(f"{url} does not answer")
        assert "hunter2" not in str(caught.value)


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "h[1]"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(tmp_path)
    assert absolute("~") == absolute("file://~/") == str(home)
    assert absolute("~/a/~") == f"{home}/a/~"
    assert absolute("./~/a") == f"{tmp_path}/~/a"
    assert absolute("~no-such-user/a") == f"{tmp_path}/~no-such-user/a"
    assert absolute_glob("~/*.txt") == f"{tmp_path}/h[[]1]/*.txt"
    storage = Storage()
    storage.make_folder("~/out")
    storage.write_bytes("~/out/x", b"y")
    assert (home / "out" / "x").read_bytes() == b"y"
    assert [file.url for file in storage.expand("~/*/x")] == [f"{home}/out/x"]
    assert not (tmp_path / "~").exists()
    # As for a user without HOME whom the system does not know.
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("os.getuid", lambda: 2**30)
    with pytest.raises(UsageError, match="~/a: the home folder is unknown; set HOME"):
        absolute("~/a")
