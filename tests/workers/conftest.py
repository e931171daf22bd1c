"""A stream of files, for the tests of its watcher."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from stream_by_hand import DOCUMENTS

from bpe_beam import Tokenizer
from bpe_beam.corpus.new_files import Watched
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.storage import Storage
from bpe_beam.training import reference
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.stream.tokenize_window import Stream

STORAGE = Storage()


@pytest.fixture(scope="module")
def stream_tokenizer() -> Tokenizer:
    counts = Counter(f"Ġ{word}" for text in DOCUMENTS for word in text.split() if word.isascii())
    vocab, merges = reference.learn_bpe(list(counts.items()), vocab_size=280)
    return Tokenizer.from_learned(vocab, merges, [])


@pytest.fixture
def stream(tmp_path: Path, stream_tokenizer: Tokenizer) -> Stream:
    """Watches `in/`, writes to `out/`, and ends as soon as nothing is left."""
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    return Stream(
        storage=STORAGE,
        output=str(tmp_path / "out"),
        fingerprint="f" * 64,
        watched=Watched.of(STORAGE, [str(tmp_path / "in" / "**" / "*.jsonl")]),
        reading=ReadSettings(),
        encoding=Encoding.of(stream_tokenizer),
        settings={"append": None, "prepend": None, "allowed_special": "none"},
        range_bytes=None,
        max_rejects="0.1%",
        max_lost="0",
        poll_seconds=1,
        window_seconds=0,
        until_idle_seconds=0,
    )
