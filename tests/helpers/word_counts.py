"""Texts of odd fragments, and their words counted by the reference."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import pyarrow as pa
from reference_encoding import pretokenize, split_specials

from bpe_beam.counts.word_table import (
    WORD_SCHEMA,
)

FRAGMENTS = (
    *"abc'  \n\t1语é😀\u3000<>\0",
    "'ll", "<s>", "<s>>", "é ", " the", "x" * 15, "y" * 16, "语" * 5, "z" * 40, "---------------",
)  # fmt: skip


def random_texts(count: int, seed: int, longest: int = 60) -> list[str]:
    made = random.Random(seed)
    return ["".join(made.choices(FRAGMENTS, k=made.randint(0, longest))) for _ in range(count)]


def words_of(text: str, specials: Sequence[str] = ()) -> list[str]:
    """Return the reference's words: special tokens extracted, the rest split by the pattern."""
    pieces = split_specials(text, specials, specials)
    return [word for piece, special in pieces if not special for word in pretokenize(piece)]


def counts_in(blocks: Iterable[tuple[int, pa.RecordBatch]]) -> dict[str, int]:
    """Return all counts; check that no word occurs twice."""
    rows = [
        row
        for _, block in blocks
        for row in zip(
            block.column("word").to_pylist(), block.column("count").to_pylist(), strict=True
        )
    ]
    counts = dict(rows)
    assert len(counts) == len(rows)
    return counts


def block_of(*rows: tuple[str, int]) -> pa.RecordBatch:
    return pa.record_batch(
        [pa.array([word for word, _ in rows], pa.large_string()), [count for _, count in rows]],
        schema=WORD_SCHEMA,
    )
