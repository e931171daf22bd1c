"""Transforms of one pipeline that write to the same folder."""

from __future__ import annotations

from pathlib import Path

import apache_beam as beam
import pytest

from bpe_beam import Tokenizer
from bpe_beam.errors import DataError, UsageError
from bpe_beam.storage import Storage
from bpe_beam.transforms import (
    CountWords,
    ReadCounts,
    ReadDocuments,
    Tokenize,
    WriteCounts,
    WriteTokens,
    claimed_folder,
)
from bpe_beam.transforms.write_counts import CountsFolder


def test_transforms_of_a_pipeline_have_folders_of_their_own(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    """The second one would replace the files of the first."""
    (tmp_path / "a.jsonl").write_text('{"text": "the cat"}\n{}\n')
    out = tmp_path / "out"
    pipeline = beam.Pipeline()
    documents = pipeline | ReadDocuments([tmp_path / "a.jsonl"], rejects=out)
    with pytest.raises(UsageError, match="rejects must be different for each transform"):
        _ = pipeline | "Again" >> ReadDocuments([tmp_path / "a.jsonl"], rejects=f"{out}/")
    ids = documents | Tokenize(tokenizer)
    with pytest.raises(UsageError, match=r"folder must be different .*, got .*/out twice"):
        _ = ids | "Tokens" >> WriteTokens(out, tokenizer)
    _ = ids | "Elsewhere" >> WriteTokens(tmp_path / "other", tokenizer)
    _ = beam.Pipeline() | ReadDocuments([tmp_path / "a.jsonl"], rejects=out)


def test_no_message_shows_the_password_of_a_folder(tokenizer: Tokenizer, tmp_path: Path) -> None:
    storage, out = Storage(), f"memory://me:hunter2@{tmp_path.name}/out"
    folder = CountsFolder(storage, out, "1")
    storage.write_bytes(f"{out}/foreign", b"x")

    def twice() -> None:
        words = beam.Pipeline() | beam.Create(["a"]) | CountWords()
        for label in ("One", "Two"):
            _ = words | label >> WriteCounts(f"{out}-new")

    calls = {
        "must be empty or new, got": lambda: WriteTokens(out, tokenizer),
        "folder must be empty or new": lambda: WriteCounts(out),
        "must have only files that bpe-beam wrote": lambda: (
            beam.Pipeline() | beam.Create(["a"]) | CountWords() | WriteCounts(out, overwrite=True)
        ),
        "must be different": twice,
        "is no counts folder": lambda: ReadCounts(out),
        "which came after the pipeline was built": folder.require_free,
        "while this one ran": folder.require_claimed,
        "changed after it was written": lambda: claimed_folder._check_file(
            storage, f"{out}/foreign", 2
        ),
    }
    for said, call in calls.items():
        with pytest.raises((UsageError, DataError), match=said) as caught:
            call()
        assert "hunter2" not in str(caught.value), said
        assert f"memory://{tmp_path.name}/out" in str(caught.value), said
    storage.write_bytes(f"{out}/__job", b"{}")
    with pytest.raises(UsageError, match="another run has claimed the folder memory://test"):
        folder.require_free()
