"""Transforms of one pipeline that write to the same folder."""

from __future__ import annotations

from pathlib import Path

import apache_beam as beam
import pytest

from bpe_beam import Tokenizer
from bpe_beam.errors import UsageError
from bpe_beam.transforms import ReadDocuments, Tokenize, WriteTokens


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
