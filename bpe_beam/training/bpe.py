"""Byte-level BPE from word counts, over the native learner.

The learner holds every unique word: about `BYTES_PER_SYMBOL` bytes for each byte of them and
`BYTES_PER_WORD` for each word. Nothing else grows with the corpus.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bpe_beam import _native
from bpe_beam.counts.word_counts import string_buffers
from bpe_beam.errors import UsageError
from bpe_beam.tokenizer import byte_level
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.recipe import BpeRecipe

# Measured on the unique words of English, Chinese and 46 languages, 32,000 merges; see
# benchmarks/learner_memory.py.
BYTES_PER_SYMBOL = 80
BYTES_PER_WORD = 60

_NO_ID = 0xFFFFFFFF
_MERGES_A_STEP = 500


@dataclass(frozen=True)
class LearnedBpe:
    """What training gives.

    Attributes:
        tokens: The bytes of every token, by id; a special token's UTF-8.
        merges: uint32[n, 3], a row a merge in the order learned: left id, right id, joined id.
        counts: int64[n], how often each pair occurred when it was merged.
    """

    tokens: tuple[bytes, ...]
    merges: np.ndarray
    counts: np.ndarray


@dataclass(frozen=True)
class Words:
    """Unique words one after another: word i is data[offsets[i]:offsets[i + 1]].

    Attributes:
        data: uint8, the words' bytes.
        offsets: int64[words + 1].
        counts: int64[words].
    """

    data: np.ndarray
    offsets: np.ndarray
    counts: np.ndarray


def memory_needed(word_bytes: int, unique_words: int) -> int:
    """Bytes that learning takes, about, by the unique words' bytes and number."""
    return BYTES_PER_SYMBOL * word_bytes + BYTES_PER_WORD * unique_words


def gather_words(tables: Iterable[pa.Table | pa.RecordBatch], in_order_of_place: bool) -> Words:
    """Puts counted words together.

    Args:
        tables: Columns `word` and `count`, and places (see `schema_of`) when their order counts.
        in_order_of_place: Sort the words by their first occurrence in the corpus, as `first_seen`
            needs it; else they stay in the order given.

    Raises:
        UsageError: An order is asked for that the counts do not tell.
    """
    batches = [batch for table in tables for batch in _batches(table)]
    if in_order_of_place:
        batches = [_sorted_by_place(batches)]
    pieces, counts = [], []
    offsets = [np.zeros(1, np.int64)]
    end = 0
    for batch in batches:
        data, bounds = string_buffers(batch.column("word"))
        first, last = int(bounds[0]), int(bounds[-1])
        pieces.append(np.frombuffer(data, np.uint8)[first:last])
        offsets.append(bounds[1:] - first + end)
        counts.append(batch.column("count").to_numpy())
        end += last - first
    return Words(
        np.concatenate(pieces) if pieces else np.zeros(0, np.uint8),
        np.concatenate(offsets),
        np.concatenate(counts) if counts else np.zeros(0, np.int64),
    )


def _batches(table: pa.Table | pa.RecordBatch) -> list[pa.RecordBatch]:
    return [table] if isinstance(table, pa.RecordBatch) else table.to_batches()


def _sorted_by_place(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if batches and "first_document" not in batches[0].schema.names:
        raise UsageError(
            "tie_break is 'first_seen', but these counts do not tell where words occurred first: "
            "train from the corpus itself, or count again with --tie-break first_seen"
        )
    table = pa.Table.from_batches(batches).combine_chunks()
    keys = [("first_document", "ascending"), ("first_word", "ascending")]
    return table.sort_by(keys).combine_chunks().to_batches()[0]


def learn_bpe(
    words: Words, recipe: BpeRecipe, on_progress: Callable[[int], None] | None = None
) -> LearnedBpe:
    """Learns merges; exactly those of `training.reference.learn_bpe`.

    Args:
        words: Unique words; for `first_seen` in the order of their first occurrence.
        recipe: The settings.
        on_progress: Called with how many more merges have been learned.

    Raises:
        UsageError: The vocabulary is smaller than the special tokens and the alphabet.
        OverflowError: Counts whose sum is beyond 64 bits.
    """
    tokens, byte_ids = _initial_vocabulary(words, recipe)
    if recipe.vocab_size < len(tokens):
        raise UsageError(
            f"vocab_size is {recipe.vocab_size}, below the {len(recipe.special_tokens)} special "
            f"tokens and the alphabet: give at least {len(tokens)}"
        )
    learner = _native.BpeLearner(
        byte_ids[words.data],
        words.offsets,
        words.counts,
        [_mergeable_bytes(token) for token in tokens],
        recipe.vocab_size,
        recipe.min_frequency,
        recipe.tie_break,
    )
    merges, counts = [np.zeros((0, 3), np.uint32)], [np.zeros(0, np.int64)]
    while True:
        step, step_counts = learner.learn(_MERGES_A_STEP)
        if not len(step):
            break
        merges.append(step)
        counts.append(step_counts)
        if on_progress:
            on_progress(len(step))
    specials = [token.encode() for token in recipe.special_tokens]
    return LearnedBpe(
        (*specials, *learner.tokens()[len(specials) :]),
        np.concatenate(merges),
        np.concatenate(counts),
    )


def tokenizer_of(learned: LearnedBpe, recipe: BpeRecipe) -> Tokenizer:
    """The tokenizer that was learned, with the recipe's special tokens."""
    specials = len(recipe.special_tokens)
    vocab = [*recipe.special_tokens, *map(byte_level.to_chars, learned.tokens[specials:])]
    merges = [(vocab[left], vocab[right]) for left, right, _ in learned.merges.tolist()]
    return Tokenizer.from_learned(vocab, merges, recipe.special_tokens)


def _initial_vocabulary(words: Words, recipe: BpeRecipe) -> tuple[list[str], np.ndarray]:
    """The special tokens and the alphabet by id, and each byte's id (uint32[256])."""
    characters = byte_level.BYTE_TO_CHAR
    if recipe.alphabet == "seen":
        seen = np.bincount(words.data, minlength=256)
        characters = tuple(c for byte, c in enumerate(characters) if seen[byte])
    tokens = list(recipe.special_tokens)
    tokens += sorted(set(characters).difference(tokens))
    ids = {token: i for i, token in enumerate(tokens)}
    byte_ids = [ids.get(c, _NO_ID) for c in byte_level.BYTE_TO_CHAR]
    return tokens, np.array(byte_ids, np.uint32)


def _mergeable_bytes(token: str) -> bytes:
    """The bytes whose token reads like `token`; empty if no merge can make it."""
    return byte_level.to_bytes(token) if byte_level.is_byte_level(token) else b""
