"""Evaluation on texts in memory: their words are counted, and their tokens are those of the texts.

Memory: the unique words of all texts, and some MB of texts at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from bpe_beam.counts.word_counter import WordCounter, WordRules
from bpe_beam.errors import UsageError
from bpe_beam.evaluation.counted import encoded_words
from bpe_beam.evaluation.tally import Tally
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.evaluation.word_encoding import WordEncoder

_BATCH_CHARACTERS = 1 << 20


def tally_of_texts(vocabulary: Vocabulary, texts: Iterable[str], pretokenizer: str) -> Tally:
    """Return the tally of texts.

    Args:
        vocabulary: The tokens of the tokenizer.
        texts: The texts, which are read once.
        pretokenizer: The pre-tokenizer, by name, whose words are counted.

    Raises:
        UsageError: The texts are a single text, one of them is no str, or the pre-tokenizer is
            unknown.
        DataError: The vocabulary lacks a symbol of a text.
    """
    encoder = WordEncoder(vocabulary.tokenizer, "none", pretokenizer)
    counter = WordCounter(WordRules(pretokenizer=pretokenizer))
    tally = Tally.empty(len(vocabulary))
    for batch in _batches(texts):
        counter.add_texts(batch)
        if not encoder.exact:
            tally.add_ids(vocabulary, vocabulary.tokenizer.encode_batch(batch))
    for block in counter.drain():
        for words, counts, encoded in encoded_words(pa.Table.from_batches([block]), encoder):
            tally.add_words(vocabulary, words, counts, encoded, with_tokens=encoder.exact)
    return tally


def _batches(texts: Iterable[str]) -> Iterator[pa.Array]:
    """Yield texts as large_string, about a million characters at a time."""
    if isinstance(texts, (str, bytes)):
        raise UsageError("texts must be a sequence of texts, got a single text")
    batch: list[str] = []
    characters = 0
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise UsageError(f"text {number} must be a str, got {type(text).__name__}")
        batch.append(text)
        characters += len(text)
        if characters >= _BATCH_CHARACTERS:
            yield _array(batch)
            batch, characters = [], 0
    if batch:
        yield _array(batch)


def _array(texts: list[str]) -> pa.Array:
    try:
        return pa.array(texts, pa.large_string())
    except (pa.ArrowException, UnicodeEncodeError) as error:
        raise UsageError(f"a text cannot be written as UTF-8: {error}") from None
