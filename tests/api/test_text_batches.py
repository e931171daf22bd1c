"""Texts come in batches: all of them, in order, from lists, Arrow arrays and generators."""

from __future__ import annotations

import pyarrow as pa
import pytest
from made_text import documents

from bpe_beam.api import text_batches
from bpe_beam.api.text_batches import batches_of

TEXTS = [*documents(200, seed=3), "x" * 3000, "é" * 999]


@pytest.fixture
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_batches, "BATCH_CHARACTERS", 500)


@pytest.mark.usefixtures("_small_batches")
def test_batches_have_all_texts_in_order() -> None:
    for texts in (TEXTS, [TEXTS[:7], [], pa.array(TEXTS[7:90]), *TEXTS[90:]], pa.array(TEXTS)[3:]):
        batches = [*batches_of(texts)]
        flat = [
            text
            for batch in batches
            for text in (batch.to_pylist() if isinstance(batch, pa.Array) else batch)
        ]
        assert flat == (TEXTS if not isinstance(texts, pa.Array) else TEXTS[3:])
        assert all(sum(map(len, map(str, batch[:-1]))) < 500 for batch in batches)


def test_text_beyond_its_batch_is_not_copied() -> None:
    texts = pa.array(["a" * 10] * 5, pa.large_string())
    (batch,) = batches_of(texts)
    assert batch.buffers()[2].address == texts.buffers()[2].address
