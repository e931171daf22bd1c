"""A stream of files, for the tests of its watcher."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import reference_bpe
from stream_by_hand import DOCUMENTS, STORAGE, stream_of

from bpe_beam import Tokenizer
from bpe_beam.corpus.new_files import Watched
from bpe_beam.workers.stream.watcher import Stream


@pytest.fixture(scope="module")
def stream_tokenizer() -> Tokenizer:
    counts = Counter(f"Ġ{word}" for text in DOCUMENTS for word in text.split() if word.isascii())
    vocab, merges = reference_bpe.learn_bpe(list(counts.items()), vocab_size=280)
    return Tokenizer.from_learned(vocab, merges, [])


@pytest.fixture
def stream(tmp_path: Path, stream_tokenizer: Tokenizer) -> Stream:
    """Return a stream that watches `in/`, writes to `out/`, and ends as soon as nothing is left."""
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    watched = Watched.of(STORAGE, [str(tmp_path / "in" / "**" / "*.jsonl")])
    return stream_of(watched, tmp_path / "out", stream_tokenizer)
