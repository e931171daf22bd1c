"""The evaluation of one tokenizer, on texts or on counts, from Python."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import msgspec

from bpe_beam.counts.manifest import read_manifest
from bpe_beam.counts.word_counts import WordCounts
from bpe_beam.evaluation.counted import CountedParts, tallies_of_counts
from bpe_beam.evaluation.report import report_of
from bpe_beam.evaluation.texts import tally_of_texts
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.evaluation.word_encoding import WordEncoder
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.tokenizer import Tokenizer

TextsOrCounts: TypeAlias = "Iterable[str] | WordCounts | str"
"""Texts, counts in memory, or the path or URL of a counts folder."""


def figures_of(
    tokenizer: Tokenizer,
    texts_or_counts: TextsOrCounts,
    vocab_sizes: Sequence[int],
    pretokenizer: str,
    storage: Storage | None,
) -> dict[str, Any]:
    """Return the report of a tokenizer as JSON values; see `Tokenizer.evaluate`.

    Args:
        tokenizer: The tokenizer.
        texts_or_counts: Texts, counts in memory, or the path or URL of a counts folder.
        vocab_sizes: The sizes of smaller vocabularies.
        pretokenizer: The pre-tokenizer, by name, of the words of texts.
        storage: The storage client; None: one without options.

    Raises:
        UsageError: As `Tokenizer.evaluate`.
        DataError: As `Tokenizer.evaluate`.
    """
    vocabulary = Vocabulary(tokenizer)
    exact = True
    if isinstance(texts_or_counts, WordCounts | str):
        if isinstance(texts_or_counts, str):
            storage = storage or Storage()
            manifest = read_manifest(storage, texts_or_counts)
            words = CountedParts.of_folder(storage, texts_or_counts, manifest)
        else:
            words = CountedParts.in_memory(texts_or_counts)
        rules = words.manifest.normalizer, words.manifest.pretokenizer
        encoder = WordEncoder(tokenizer, *rules)
        tallies = tallies_of_counts(words, vocabulary, encoder)
        exact = encoder.exact
    else:
        tallies = iter([(None, tally_of_texts(vocabulary, texts_or_counts, pretokenizer))])
    report = report_of(tokenizer.fingerprint[:12], vocabulary, tallies, vocab_sizes, exact=exact)
    figures: dict[str, Any] = msgspec.to_builtins(report)
    return figures
