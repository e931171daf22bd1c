"""`Tokenizer.evaluate`: the figures of one tokenizer on texts or on counts.

The words of texts are counted, and their tokens are those of the texts. Memory: the unique words
of one source, and some MB of its texts at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from bpe_beam.api.arguments import values_of
from bpe_beam.api.count_texts import count_batch
from bpe_beam.api.inputs import FirstArgument, paths_of, sources_of
from bpe_beam.api.text_batches import batches_of
from bpe_beam.counts.manifest import check_sources, read_manifest
from bpe_beam.counts.word_counter import WordCounter, WordRules
from bpe_beam.counts.word_counts import WordCounts
from bpe_beam.errors import UsageError, require
from bpe_beam.evaluation.counted import CountedParts, encoded_words, tallies_of_counts
from bpe_beam.evaluation.report import check_parallel, report_of
from bpe_beam.evaluation.tally import Tally
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.evaluation.word_encoding import WordEncoder
from bpe_beam.settings.evaluate import EvaluateSettings
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.tokenizer import Tokenizer

TextsOrCounts: TypeAlias = (
    "Iterable[Any] | Mapping[str, Iterable[Any]] | WordCounts | str | os.PathLike[str]"
)
"""Texts, texts by source, counts in memory, or the path or URL of a counts folder."""

_COUNT_FILES = "to evaluate on files, count them with bpe_beam.count and give the counts"

_FIRST = FirstArgument(
    "texts_or_counts",
    "texts, counts, or the path of a counts folder",
    files=f"{_COUNT_FILES}; iter([...]) for names as texts",
    files_by_source=_COUNT_FILES,
)


def figures_of(
    tokenizer: Tokenizer,
    texts_or_counts: TextsOrCounts,
    options: Mapping[str, Any],
    storage: Storage | None,
) -> dict[str, Any]:
    """Return the report of a tokenizer as JSON values; see `Tokenizer.evaluate`.

    Args:
        tokenizer: The tokenizer.
        texts_or_counts: As in `Tokenizer.evaluate`.
        options: The keyword arguments of `Tokenizer.evaluate` but for the storage client.
        storage: The storage client; None: one without options.

    Raises:
        UsageError: As `Tokenizer.evaluate`.
        DataError: As `Tokenizer.evaluate`.
    """
    values = values_of("evaluate", EvaluateSettings, options)
    sizes, pretokenizer = values.get("vocab_sizes", ()), values.get("pretokenizer", "gpt2")
    named = next((one for one in sizes if not isinstance(one, int)), None)
    require(named is None, f"must be sizes without names, got {named!r}", "vocab_sizes")
    parallel = values.get("parallel")
    vocabulary = Vocabulary(tokenizer)
    words = _words_of(texts_or_counts, storage or Storage())
    if words is not None:
        check_parallel(parallel, words.manifest.sources)
        encoder = WordEncoder(tokenizer, words.manifest.normalizer, words.manifest.pretokenizer)
        tallies = tallies_of_counts(words, vocabulary, encoder)
        exact = encoder.exact
    else:
        sources = sources_of(texts_or_counts, _FIRST)
        check_parallel(parallel, {str(name) for name in sources if name is not None})
        tallies = tallies_of_texts(vocabulary, sources, pretokenizer)
        exact = True
    name = tokenizer.fingerprint[:12]
    report = report_of(name, vocabulary, tallies, sizes, exact=exact, parallel=parallel)
    figures: dict[str, Any] = msgspec.to_builtins(report)
    return figures


def _words_of(texts_or_counts: TextsOrCounts, storage: Storage) -> CountedParts | None:
    """Return the words of counts; None of texts.

    Raises:
        UsageError: The argument is something else, or the folder has no counts.
    """
    if isinstance(texts_or_counts, WordCounts):
        return CountedParts.in_memory(texts_or_counts)
    paths = paths_of(texts_or_counts, _FIRST)
    if paths is None:
        return None
    if not isinstance(texts_or_counts, (str, os.PathLike)):
        raise UsageError(
            f"must be {_FIRST.kinds}, got a list of paths", (_FIRST.name,), _FIRST.files_by_source
        )
    (folder,) = paths
    return CountedParts.of_folder(storage, folder, read_manifest(storage, folder))


def tallies_of_texts(
    vocabulary: Vocabulary, sources: Mapping[str | None, Iterable[Any]], pretokenizer: str
) -> Iterator[tuple[str | None, Tally]]:
    """Yield each source of texts with its tally.

    Args:
        vocabulary: The tokens of the tokenizer.
        sources: The texts by source, which are read once; without sources, the only key is None.
        pretokenizer: The pre-tokenizer, by name, whose words are counted.

    Raises:
        UsageError: A text is neither str nor bytes, or the pre-tokenizer is unknown.
        DataError: A text is not UTF-8, or the vocabulary lacks a symbol of a text.
    """
    if None not in sources:
        check_sources(map(str, sources))
    encoder = WordEncoder(vocabulary.tokenizer, "none", pretokenizer)
    for source, texts in sources.items():
        counter = WordCounter(WordRules(pretokenizer=pretokenizer))
        tally = Tally.empty(len(vocabulary))
        number = 0
        for batch in batches_of(texts):
            count_batch(counter, batch, number)
            number += len(batch)
            if not encoder.exact:
                if not isinstance(batch, pa.Array):
                    batch = pa.array(batch, pa.large_string())
                ids = vocabulary.tokenizer.encode_batch(batch, output="arrow")
                tally.add_ids(vocabulary, ids)
        for block in counter.drain():
            for words, counts, encoded in encoded_words(pa.Table.from_batches([block]), encoder):
                tally.add_words(vocabulary, words, counts, encoded, with_tokens=encoder.exact)
        yield source, tally
