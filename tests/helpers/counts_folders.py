"""A finished counts folder of made-up text."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from bpe_beam.counts.manifest import CountsManifest, part_name
from bpe_beam.counts.part_files import write_part
from bpe_beam.counts.word_table import WordCounter, WordRules
from bpe_beam.storage import Storage

STORAGE = Storage()
PARTITIONS = 3


def some_counts(with_places: bool = False, texts: int = 400) -> WordCounter:
    made = random.Random(1)
    counts = WordCounter(WordRules(with_places=with_places))
    lines = [
        " ".join(made.choices(["the", "größe", "語", "w" * 30, "12"], k=9)) for _ in range(texts)
    ]
    lines += ["".join(made.choices("abcdef", k=made.randint(1, 20))) for _ in range(texts)]
    counts.add_texts(pa.array(lines), pa.array(range(len(lines)), pa.uint64()))
    return counts


def blocks_of(counts: WordCounter, partition: int, max_bytes: int) -> Iterator[pa.RecordBatch]:
    return (b for p, b in counts.blocks(PARTITIONS, max_bytes) if p == partition)


def write_folder(folder: Path, with_places: bool = False, max_bytes: int = 5000) -> CountsManifest:
    """Write a finished counts folder, as the job does."""
    counts = some_counts(with_places)
    parts = tuple(
        write_part(
            STORAGE,
            str(folder),
            part_name(partition, PARTITIONS),
            {None: blocks_of(counts, partition, max_bytes)},
            with_places,
        )
        for partition in range(PARTITIONS)
    )
    manifest = CountsManifest(
        normalizer="none",
        pretokenizer="gpt2",
        special_tokens=("<s>", "é "),
        with_places=with_places,
        documents=800,
        text_bytes=2**53 + 1,
        words=2**62,
        unique_words=len(counts),
        word_bytes=sum(part.word_bytes for part in parts),
        rejects={"invalid UTF-8": 2},
        inputs=(("a/b #1.txt", 12), ("语.jsonl.gz", 2**40)),
        parts=parts,
    )
    (folder / "__manifest").write_bytes(manifest.to_bytes())
    return manifest
