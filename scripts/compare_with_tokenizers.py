"""Compare training and encoding with Hugging Face's tokenizers on any corpus.

    python scripts/compare_with_tokenizers.py english.jsonl.gz chinese.jsonl.gz

For each corpus and vocabulary size: trains with `bpe-beam train` and with `BpeTrainer` (GPT-2's
pattern, all 256 bytes), compares the merges one by one, loads our tokenizer.json there, and
compares the ids of every document, decoded text included. Then every Unicode code point, between
letters, spaces and digits: code points that differ are listed with their category. Exits with 1 if
anything differs that both engines' Unicode versions do not explain.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
import unicodedata
from pathlib import Path

import fsspec
import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from bpe_beam import Tokenizer, _native
from bpe_beam.cli import main as cli
from bpe_beam.tokenizer.components.byte_level import to_chars

_CONTEXTS = ("a{}b", " {} ", "1{}2", "!{0}{0}!")


def documents_of(path: Path) -> list[str]:
    """Return the texts of a corpus in JSON Lines."""
    with fsspec.open(str(path), "rb", compression="infer") as lines:
        return [json.loads(line)["text"] for line in lines]


def train_there(texts: list[str], vocab_size: int) -> tokenizers.Tokenizer:
    """Train a tokenizer by Hugging Face's trainer."""
    theirs = tokenizers.Tokenizer(models.BPE())
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    theirs.train_from_iterator(texts, trainer)
    return theirs


def merges_of(theirs: tokenizers.Tokenizer) -> list[tuple[str, str]]:
    """Return a tokenizer's merges by rank."""
    rows = json.loads(theirs.to_str())["model"]["merges"]
    return [tuple(row.split(" ")) if isinstance(row, str) else tuple(row) for row in rows]


def compare_corpus(path: Path, vocab_size: int, folder: Path) -> tuple[Tokenizer, int]:
    """Train both ways and compare; return our tokenizer and the number of differences."""
    texts = documents_of(path)
    output = folder / f"{path.name}-{vocab_size}"
    sizes = ["--vocab-size", str(vocab_size), "--output", str(output), "--quiet"]
    if cli.main(["train", "--input", str(path), *sizes]):
        sys.exit(1)
    ours = Tokenizer.from_file(str(output / "tokenizer.json"))
    theirs = merges_of(train_there(texts, vocab_size))
    pairs = zip(ours.merges, theirs, strict=False)
    first = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
    merges_differ = first is not None or len(ours.merges) != len(theirs)
    loaded = tokenizers.Tokenizer.from_file(str(output / "tokenizer.json"))
    ids = ours.encode_batch(texts)
    encodings = loaded.encode_batch(texts, add_special_tokens=False)
    wrong = sum(a != b.ids for a, b in zip(ids, encodings, strict=True))
    lost = sum(ours.decode(a) != text for a, text in zip(ids, texts, strict=True))
    where = f"first at {first}" if merges_differ else "all equal"
    print(
        f"{path.name}, vocabulary {vocab_size:,}: {len(ours.merges):,} merges here, "
        f"{len(theirs):,} there, {where}; {len(texts):,} documents, {sum(map(len, ids)):,} ids: "
        f"{wrong} documents differ, {lost} do not decode to themselves"
    )
    return ours, merges_differ + wrong + lost


def compare_code_points(ours: Tokenizer) -> int:
    """Compare every code point in every context; return how many differ unexplained."""
    loaded = tokenizers.Tokenizer.from_str(ours.to_json())
    points = [chr(point) for point in range(sys.maxunicode + 1) if not 0xD800 <= point <= 0xDFFF]
    differing: dict[str, None] = {}
    for context in _CONTEXTS:
        texts = [context.format(point) for point in points]
        ids = ours.encode_batch(texts)
        encodings = loaded.encode_batch(texts, add_special_tokens=False)
        for point, text, a, b in zip(points, texts, ids, encodings, strict=True):
            words = [word for word, _ in loaded.pre_tokenizer.pre_tokenize_str(text)]
            data = text.encode()
            ends = _native.scan_words(data, "gpt2")[:, 1].tolist()
            here = [to_chars(data[i:j]) for i, j in itertools.pairwise([0, *ends])]
            if a != b.ids or words != here:
                differing[point] = None
    print(f"code points: {len(points):,} in {len(_CONTEXTS)} contexts, {len(differing):,} differ")
    for category, ranges in ranges_by_category(sorted(map(ord, differing))).items():
        print(f"  {category} here: {' '.join(ranges)}")
    # A code point that this Python does not know yet (Cn) may be new to one of the engines only.
    return sum(unicodedata.category(point) != "Cn" for point in differing)


def ranges_by_category(points: list[int]) -> dict[str, list[str]]:
    """Return ascending code points as ranges, by this Python's category."""
    categories: dict[str, list[list[int]]] = {}
    for point in points:
        ranges = categories.setdefault(unicodedata.category(chr(point)), [])
        if ranges and ranges[-1][1] == point - 1:
            ranges[-1][1] = point
        else:
            ranges.append([point, point])
    return {
        category: [f"U+{a:04X}" if a == b else f"U+{a:04X}-{b:04X}" for a, b in ranges]
        for category, ranges in categories.items()
    }


def main() -> int:
    """Run all comparisons."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--vocab-size", nargs="+", type=int, default=[8000, 32000])
    arguments = parser.parse_args()
    different = 0
    ours = None
    with tempfile.TemporaryDirectory() as temporary:
        for path in arguments.corpora:
            for vocab_size in arguments.vocab_size:
                ours, found = compare_corpus(path, vocab_size, Path(temporary))
                different += found
    if ours is not None:
        different += compare_code_points(ours)
    print("equal" if not different else f"{different:,} differences")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
