"""Hashes of documents against their definition, and the shares that they give."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pytest

from bpe_beam.corpus.batches import BATCH_SCHEMA
from bpe_beam.shards.formats.table_schema import ID_HASH, TEXT_HASH
from bpe_beam.workers import document_hashes
from bpe_beam.workers.document_hashes import (
    MAX_TEXTS,
    for_validation,
    overlap_of,
    sampled_texts,
    with_hashes,
)


def slowly(name: str | None, text: str, text_files: tuple[str, ...]) -> int:
    data = f"text {text}"
    if name is not None and not any(name.startswith(f"{file}:") for file in text_files):
        data = f"id {name}"
    key = b"bpe-beam validation"
    return int.from_bytes(hashlib.blake2b(data.encode(), digest_size=8, key=key).digest(), "big")


def test_each_hash_is_of_the_id_or_else_of_the_text() -> None:
    names = ["d1", None, "", "a.txt:0", "a.txt:9", "b.txt:0", "é", None, "a.txt"]
    texts = ["one", "", "two", "one", "one", "three", "four", "один", ""]
    rows = [
        {"id": name, "source": None, "place": None, "text": text}
        for name, text in zip(names, texts, strict=True)
    ]
    whole = pa.RecordBatch.from_pylist(rows, BATCH_SCHEMA)
    for batch, at in ((whole, 0), (whole.slice(3, 5), 3), (whole.slice(0, 0), 0)):
        for text_files in ((), ("a.txt",), ("a.txt", "c.txt")):
            made = with_hashes(batch, text_files)
            assert made.drop_columns([ID_HASH, TEXT_HASH]).equals(batch)
            some = rows[at : at + len(batch)]
            assert made.column(ID_HASH).to_pylist() == [
                slowly(row["id"], row["text"], text_files) for row in some
            ]
            assert made.column(TEXT_HASH).to_pylist() == [
                slowly(None, row["text"], ()) for row in some
            ]
    without = whole.drop_columns("id").add_column(
        0, BATCH_SCHEMA.field(0), pa.nulls(9, pa.large_string())
    )
    hashed = with_hashes(without)
    for column in (ID_HASH, TEXT_HASH):
        assert hashed.column(column).to_pylist() == [slowly(None, text, ()) for text in texts]


def test_a_share_is_that_of_all_hashes() -> None:
    edge = (1 << 64) // 10
    hashes = np.array([0, edge - 1, edge, edge + 1, (1 << 64) - 1], np.uint64)
    for share, expected in (
        ("10%", [True, True, False, False, False]),
        ("100%", [True] * 5),
        ("0.000000000000000001%", [False] * 5),
    ):
        assert for_validation(hashes, share).tolist() == expected
    drawn = np.random.default_rng(1).integers(0, 1 << 64, 100_000, np.uint64)
    assert abs(for_validation(drawn, "5%").mean() - 0.05) < 0.003


@pytest.mark.parametrize(("most", "tolerance"), [(MAX_TEXTS, 0), (1000, 0.2)])
def test_texts_in_both_parts_are_counted(
    most: int, tolerance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exactly, or of more documents than are compared about."""
    monkeypatch.setattr(document_hashes, "MAX_TEXTS", most)
    random = np.random.default_rng(2)
    texts = random.integers(0, 1 << 64, 4000, np.uint64)[random.integers(0, 4000, 8000)]
    validation = random.random(8000) < 0.3
    # Some parts are decided by the hash of the text itself, for which no text is in both.
    validation[:2000] = texts[:2000] < np.uint64((1 << 64) * 3 // 10)
    expected = np.isin(texts[validation] >> 1, texts[~validation] >> 1).sum()
    sampled = [
        sampled_texts(texts[at : at + 1000], validation[at : at + 1000], 8000)
        for at in range(0, 8000, 1000)
    ]
    assert sum(each.size for each in sampled) <= 1.3 * most
    assert abs(overlap_of(np.concatenate(sampled), 8000) - expected) <= tolerance * expected
