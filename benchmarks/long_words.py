"""Write a counts folder of long words, nearly all of them unique, for `bpe-beam train`.

    python benchmarks/long_words.py COUNTS_FOLDER --words 20000000 --seed 1
    bpe-beam train --counts COUNTS_FOLDER --vocab-size 32000 --output TOKENIZER

Such words come from text without spaces, or from superwords: three to eight made-up units in a row,
20 to 60 bytes together. The units, 2 to 10 letters each, are drawn by a law like Zipf's; most words
occur once to three times. The folder is as the count job writes it. The same seed gives the same
bytes, as long as numpy's generator and Arrow's Parquet stay the same.

It takes two passes: words are drawn and written by partition, then each partition is added up and
reduced to its share. 20 million words take 50 CPU seconds, 330 MB of memory, 900 MB of disk for a
while, and 340 MB for good.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bpe_beam.counts.manifest import CountsManifest, CountsPart, part_name
from bpe_beam.counts.part_files import write_part
from bpe_beam.counts.word_table import PARTITIONS, WORD_SCHEMA, WordTable
from bpe_beam.folders.artifact_names import MANIFEST_FILE
from bpe_beam.storage import Storage

UNITS = 50_000
UNIT_LETTERS = (2, 10)
WORD_UNITS = (3, 8)
WORD_BYTES = (20, 60)
_LETTERS = "etaoinsrhldcumfpgwybvkxjqz"
_MOST_OFTEN = 1_000
_DRAWN = 100_000


def ranks(rng: np.random.Generator, size: int, shift: float, power: float, many: int) -> np.ndarray:
    """Draw `size` numbers from 0 to `many` - 1, number i with the weight (i + shift)^-power."""
    sums = np.cumsum((np.arange(many) + shift) ** -power)
    return np.minimum(np.searchsorted(sums, rng.random(size) * sums[-1]), many - 1)


def make_units(rng: np.random.Generator) -> pa.Array:
    """Return the made-up units, the most frequent first; these are mostly shorter."""
    least, most = UNIT_LETTERS
    found: dict[str, None] = {}
    while len(found) < UNITS:
        for length in rng.integers(least, most + 1, UNITS):
            letters = ranks(rng, length, 3.0, 1.0, len(_LETTERS))
            found["".join(_LETTERS[i] for i in letters)] = None
    every = list(found)[:UNITS]
    nearly = rng.random(UNITS) * 12
    order = np.argsort([len(unit) + nearly[i] for i, unit in enumerate(every)], kind="stable")
    return pa.array([every[i] for i in order])


def drawn(rng: np.random.Generator, units: pa.Array) -> pa.RecordBatch:
    """Return some words with counts; a word may occur twice."""
    many = rng.integers(WORD_UNITS[0], WORD_UNITS[1] + 1, _DRAWN)
    offsets = np.concatenate([[0], np.cumsum(many)]).astype(np.int32)
    chosen = units.take(pa.array(ranks(rng, int(offsets[-1]), 20.0, 1.0, UNITS)))
    words = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), chosen), "")
    words = words.cast(pa.large_string())
    counts = pa.array(1 + ranks(rng, _DRAWN, 1.0, 2.5, _MOST_OFTEN))
    rows = pa.RecordBatch.from_arrays([words, counts], schema=WORD_SCHEMA)
    lengths = pc.binary_length(words)
    fit = pc.and_(pc.greater_equal(lengths, WORD_BYTES[0]), pc.less_equal(lengths, WORD_BYTES[1]))
    return rows.filter(fit)


def spill(folder: Path, words: int, seed: int) -> None:
    """Draw somewhat more than `words` words, and write them by partition, in the order drawn."""
    rng = np.random.default_rng(seed)
    units = make_units(rng)
    # For words that come twice, and partitions that get fewer than others.
    wanted = words * 1.06 + 8 * (PARTITIONS * words) ** 0.5
    sinks = [pa.OSFile(str(folder / str(i)), "wb") for i in range(PARTITIONS)]
    writers = [pa.ipc.new_stream(sink, WORD_SCHEMA) for sink in sinks]
    rows = 0
    while rows < wanted:
        batch = drawn(rng, units)
        rows += batch.num_rows
        table = WordTable()
        table.add_block(batch)
        for partition, block in table.blocks():
            writers[partition].write_batch(block)
    for writer, sink in zip(writers, sinks, strict=True):
        writer.close()
        sink.close()


def thinned(path: Path, keep: int) -> Iterator[pa.RecordBatch]:
    """Return exactly `keep` words of a partition in order, each once."""
    table = WordTable()
    with pa.OSFile(str(path)) as source, pa.ipc.open_stream(source) as stream:
        for block in stream:
            table.add_block(block)
    have = len(table)
    if have < keep:
        raise SystemExit(f"only {have:,} words came to partition {path.name}, not {keep:,}")
    taken = np.arange(keep) * have // max(1, keep)
    begun = 0
    for _, block in table.blocks(partitions=1):
        end = begun + block.num_rows
        first, last = np.searchsorted(taken, [begun, end])
        yield block.take(pa.array(taken[first:last] - begun))
        begun = end


def write_folder(storage: Storage, folder: str, words: int, seed: int) -> CountsManifest:
    """Write the parts and the manifest."""
    occurrences = text_bytes = 0

    def summed(blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        nonlocal occurrences, text_bytes
        for block in blocks:
            counts = block["count"].to_numpy()
            occurrences += int(counts.sum())
            text_bytes += int(counts @ pc.binary_length(block["word"]).to_numpy())
            yield block

    parts: list[CountsPart] = []
    with tempfile.TemporaryDirectory(dir=folder) as spilled:
        spill(Path(spilled), words, seed)
        for i in range(PARTITIONS):
            keep = words * (i + 1) // PARTITIONS - words * i // PARTITIONS
            blocks = summed(thinned(Path(spilled, str(i)), keep))
            name = part_name(i, PARTITIONS)
            parts.append(write_part(storage, folder, name, {None: blocks}, with_places=False))
            Path(spilled, str(i)).unlink()
    manifest = CountsManifest(
        normalizer="none",
        pretokenizer="gpt2",
        special_tokens=(),
        with_places=False,
        documents=occurrences,
        text_bytes=text_bytes,
        words=occurrences,
        unique_words=sum(part.unique_words for part in parts),
        word_bytes=sum(part.word_bytes for part in parts),
        rejects={},
        inputs=((f"seed {seed}", text_bytes),),
        parts=tuple(parts),
    )
    storage.write_bytes(storage.join(folder, MANIFEST_FILE), manifest.to_bytes())
    return manifest


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a new folder")
    parser.add_argument("--words", type=int, default=20_000_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True)
    made = write_folder(Storage(), str(arguments.folder), arguments.words, arguments.seed)
    stored = sum(part.bytes for part in made.parts)
    print(
        f"{made.unique_words:,} words of {made.word_bytes / max(1, made.unique_words):.1f} bytes "
        f"on average, {made.words:,} occurrences; {stored / 1e6:,.0f} MB"
    )


if __name__ == "__main__":
    main()
