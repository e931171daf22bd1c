"""Compare every model and named pattern with `tokenizers` on whole corpora: ids, offsets, text.

    python scripts/compare_models.py english.jsonl.gz chinese.jsonl.gz multilingual.jsonl.gz

It counts the corpora's words once for each pre-tokenizer and normalizer, trains on them,
lets `tokenizers` read its tokenizer.json, and compares each document. Exits with 1 if one differs.
"""

from __future__ import annotations

import argparse
import json
import sys

import fsspec
import pyarrow as pa
import tokenizers

from bpe_beam.counts.word_table import WordCounter, WordRules
from bpe_beam.training.learn import learn
from bpe_beam.training.merges.words import gather_words
from bpe_beam.training.recipe import BpeRecipe, Recipe, WordLevelRecipe, WordPieceRecipe
from bpe_beam.training.tokenizer_parts import tokenizer_of

SIZE = 8_000
LARGE = 40_000  # with Chinese characters alone ten thousand
IN_CHARACTERS = BpeRecipe(LARGE, symbols="characters", unk_token="<unk>")
SUFFIXED = BpeRecipe(LARGE, symbols="characters", unk_token="<unk>", end_of_word_suffix="</w>")
FALLING_BACK = BpeRecipe(LARGE, symbols="characters", byte_fallback=True, limit_alphabet=500)
PREFIXED = BpeRecipe(
    LARGE,
    symbols="characters",
    unk_token="[UNK]",
    continuing_subword_prefix="##",
    for_wordpiece=True,
)
# (normalizer, pre-tokenizer, recipe)
CASES: list[tuple[str, str, Recipe]] = [
    *(("none", name, BpeRecipe(SIZE)) for name in ("gpt2", "cl100k", "llama3", "o200k", "qwen2")),
    ("nfc", "qwen2", BpeRecipe(SIZE)),
    ("nfkc+lowercase", "o200k", BpeRecipe(SIZE)),
    ("none", "digits", BpeRecipe(SIZE)),
    ("none", r"regex:\p{N}|[^\p{N}]+", BpeRecipe(SIZE)),
    ("none", "metaspace", IN_CHARACTERS),
    ("nfkd", "metaspace", FALLING_BACK),
    ("none", "whitespace", IN_CHARACTERS),
    ("none", "punctuation", IN_CHARACTERS),
    ("nfd+strip_accents", "whitespace_split", SUFFIXED),
    ("bert", "bert", WordPieceRecipe(LARGE)),
    ("bert", "bert", PREFIXED),
    ("lowercase", "whitespace", WordLevelRecipe(LARGE)),
]


def texts_of(path: str) -> list[str]:
    """Yield the texts of a corpus in JSON Lines."""
    with fsspec.open(path, "rt", encoding="utf-8", compression="infer") as lines:
        return [json.loads(line)["text"] for line in lines]


def compare(normalizer: str, pretokenizer: str, recipe: Recipe, texts: list[str]) -> int:
    """Train, and compare every text; return how many differ."""
    counts = WordCounter(WordRules(normalizer=normalizer, pretokenizer=pretokenizer))
    counts.add_texts(pa.array(texts, pa.large_string()))
    words = gather_words((block for _, block in counts.blocks()), in_order_of_place=False)
    ours = tokenizer_of(learn(words, recipe), recipe, normalizer, pretokenizer)
    theirs = tokenizers.Tokenizer.from_str(ours.to_json())
    differ = tokens = 0
    for text in texts:
        _, ids, offsets = ours.encode_with_offsets(text)
        expected = theirs.encode(text, add_special_tokens=False)
        tokens += len(ids)
        differ += (
            ids != expected.ids
            or offsets != expected.offsets
            or ids != ours.encode(text)
            or ours.decode(ids) != theirs.decode(ids, skip_special_tokens=False)
        )
    kind = type(recipe).__name__.removesuffix("Recipe")
    print(f"{kind:10} {normalizer:18} {pretokenizer:22} {tokens:>11,} tokens, {differ} differ")
    sys.stdout.flush()
    return differ


def main() -> None:
    """Compare everything; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="+", help="JSON Lines with a field text, .gz or not")
    texts = [text for path in parser.parse_args().corpora for text in texts_of(path)]
    print(f"{len(texts):,} texts, {sum(len(text.encode()) for text in texts) / 1e6:.1f} MB")
    sys.exit(bool(sum(compare(*case, texts) for case in CASES)))


if __name__ == "__main__":
    main()
