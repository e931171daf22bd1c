"""The log of windows: which stream it belongs to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from made_text import write
from stream_by_hand import (
    STORAGE,
    put,
    run_stream,
    windows,
)

from bpe_beam.corpus.new_files import Watched
from bpe_beam.errors import DataError, UsageError
from bpe_beam.workers.stream import window_log
from bpe_beam.workers.stream.watcher import Stream


def test_a_window_of_another_stream_is_refused(stream: Stream) -> None:
    put(stream, "a.jsonl", 0)
    run_stream(stream)
    with pytest.raises(DataError, match=r"__window is of another stream"):
        run_stream(replace(stream, fingerprint="0" * 64))
    (windows(stream)[0] / "__window").write_text("{")
    with pytest.raises(DataError, match=r"__window: cannot be read as JSON"):
        run_stream(stream)


class TestRoot:
    """A stream's folder knows from where its files are named."""

    @pytest.fixture
    def folders(self, tmp_path: Path) -> list[Path]:
        for name in ("one", "two"):
            write(tmp_path / name / "a.jsonl", ["x"])
        (tmp_path / "out").mkdir()
        return [tmp_path / name for name in ("one", "two", "out")]

    def test_another_root_with_the_same_names_is_refused(self, folders: list[Path]) -> None:
        one, two, out = folders
        first = Watched.of(STORAGE, [f"{one}/*.jsonl"])
        window_log.require_root(STORAGE, str(out), first)
        written = (out / window_log.INPUT_FILE).read_bytes()
        other = Watched.of(STORAGE, [f"{two}/*.jsonl"])
        (out / "window-00000000").mkdir()
        with pytest.raises(UsageError, match=r"files below another folder than .*two: windows"):
            window_log.require_root(STORAGE, str(out), other)
        window_log.require_root(STORAGE, str(out), first)
        assert (out / window_log.INPUT_FILE).read_bytes() == written
        assert str(one).encode() not in written, "no path of this machine in an artifact"

    def test_the_same_root_under_other_names_goes_on(
        self, folders: list[Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        one, two, out = folders
        window_log.require_root(STORAGE, str(out), Watched.of(STORAGE, [f"{one}/*.jsonl"]))
        (out / "window-00000000").mkdir()
        (one.parent / "link").symlink_to(one)
        monkeypatch.chdir(two)
        for pattern in ("../one/*.jsonl", f"{one.parent}/link/b*", f"file://{one}/**/*.gz"):
            window_log.require_root(STORAGE, str(out), Watched.of(STORAGE, [pattern]))

    def test_another_root_may_be_given_before_the_first_window(self, folders: list[Path]) -> None:
        one, two, out = folders
        for root in (one, two):
            window_log.require_root(STORAGE, str(out), Watched.of(STORAGE, [f"{root}/*.jsonl"]))

    def test_a_store_is_known_by_its_url(self) -> None:
        prints = [
            Watched(root, ()).root_fingerprint
            for root in ("s3://bucket/in", "s3://bucket/in/", "s3://bucket/other", "gs://bucket/in")
        ]
        assert prints[0] == prints[1]
        assert len(set(prints)) == 3
