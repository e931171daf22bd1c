"""Measure WordPiece beside `tokenizers`: one thread, the same texts, the same run.

    python benchmarks/wordpiece.py CORPUS.jsonl [--vocab-size 30000] [--runs 3]

Encoding: a BERT-like tokenizer that `tokenizers` reads from the same file, its fastest call
(`encode_batch_fast`, without offsets). Training: counting and learning, prefix BPE on either side,
which is what `tokenizers` calls WordPiece. And by itself: learning by likelihood beside learning
BPE from the same word counts.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import pyarrow as pa
import tokenizers
from kernels import texts_of

from bpe_beam import Tokenizer
from bpe_beam.counts.word_counter import WordCounter, WordRules
from bpe_beam.training.recipe import BpeRecipe, Recipe, WordPieceRecipe
from bpe_beam.training.tokenizer_parts import learn, tokenizer_of
from bpe_beam.training.words import Words, gather_words

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that `work` takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def compare(name: str, ours: Callable[[], object], theirs: Callable[[], object], runs: int) -> None:
    """Print medians and the ratio of two that take turns."""
    pairs = [(timed(ours), timed(theirs)) for _ in range(runs)]
    mine, other = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(f"{name:34} {mine:8.2f} s {other:8.2f} s   {other / mine:5.1f} times", flush=True)


def count(texts: pa.Array) -> Words:
    """Return the corpus's words as BERT's pre-tokenizer splits them."""
    counts = WordCounter(WordRules(normalizer="bert", pretokenizer="bert", special_tokens=SPECIAL))
    counts.add_texts(texts)
    return gather_words((block for _, block in counts.blocks()), in_order_of_place=False)


def train_theirs(texts: list[str], vocab_size: int) -> None:
    """Train with `tokenizers`."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=vocab_size, special_tokens=list(SPECIAL), show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)


def main() -> None:
    """Measure encoding and training."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path, help="JSON Lines with a field text, .gz or not")
    parser.add_argument("--vocab-size", type=int, default=30_000)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    texts = texts_of(arguments.corpus)
    strings = texts.to_pylist()
    size = arguments.vocab_size
    prefix = BpeRecipe(
        size, symbols="characters", continuing_subword_prefix="##", unk_token="[UNK]",
        special_tokens=SPECIAL,
    )  # fmt: skip
    recipes: dict[str, Recipe] = {
        "prefix BPE": prefix,
        "BPE of characters": BpeRecipe(size, symbols="characters", special_tokens=SPECIAL),
        "likelihood": WordPieceRecipe(size, unk_token="[UNK]", special_tokens=SPECIAL),
    }
    print(f"{len(strings):,} documents, vocabulary {size:,}{'':12} ours   tokenizers")
    words = count(texts)
    tokenizer = tokenizer_of(learn(words, recipes["prefix BPE"]), prefix, "bert", "bert")
    theirs = tokenizers.Tokenizer.from_str(tokenizer.to_json())
    same = sum(
        tokenizer.encode(text) == theirs.encode(text, add_special_tokens=False).ids
        for text in strings[:2000]
    )
    print(f"equal ids: {same} of {len(strings[:2000])} documents")

    def encode_cold() -> None:
        Tokenizer.from_json(tokenizer.to_json()).encode_batch(texts)

    def encode_theirs() -> None:
        theirs.encode_batch_fast(strings, add_special_tokens=False)

    compare("encode, a new tokenizer", encode_cold, encode_theirs, arguments.runs)
    compare("encode", lambda: tokenizer.encode_batch(texts), encode_theirs, arguments.runs)
    compare(
        "train prefix BPE from text",
        lambda: learn(count(texts), recipes["prefix BPE"]),
        lambda: train_theirs(strings, size),
        arguments.runs,
    )
    for name, recipe in recipes.items():
        seconds = [timed(lambda: learn(words, recipe)) for _ in range(arguments.runs)]  # noqa: B023
        print(f"learn {name:28} {statistics.median(seconds):8.2f} s")


if __name__ == "__main__":
    main()
