"""The tokens of texts in memory, which are read once, by several tokenizers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from bpe_beam.api.count_texts import count_batch
from bpe_beam.api.text_batches import batches_of
from bpe_beam.counts.manifest import check_sources
from bpe_beam.counts.word_counter import WordCounter, WordRules
from bpe_beam.evaluation.counted import encoded_words
from bpe_beam.evaluation.tally import Tally
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.evaluation.word_encoding import WordEncoder


def tallies_of_texts(
    vocabularies: Sequence[Vocabulary],
    sources: Mapping[str | None, Iterable[Any]],
    pretokenizer: str,
) -> Iterator[tuple[str | None, list[Tally]]]:
    """Yield each source of texts, which are read once, with the tally of each vocabulary.

    Without sources, the only key is None. The named pre-tokenizer makes the words.
    """
    if None not in sources:
        check_sources(map(str, sources))
    encoders = [WordEncoder(one.tokenizer, "none", pretokenizer) for one in vocabularies]
    pairs = [*zip(vocabularies, encoders, strict=True)]
    for source, texts in sources.items():
        counter = WordCounter(WordRules(pretokenizer=pretokenizer))
        tallies = [Tally.empty(len(vocabulary)) for vocabulary in vocabularies]
        number = 0
        for batch in batches_of(texts):
            count_batch(counter, batch, number)
            number += len(batch)
            for (vocabulary, encoder), tally in zip(pairs, tallies, strict=True):
                if not encoder.exact:
                    if not isinstance(batch, pa.Array):
                        batch = pa.array(batch, pa.large_string())
                    ids = vocabulary.tokenizer.encode_batch(batch, output="arrow")
                    tally.add_ids(vocabulary, ids)
        for block in counter.drain():
            table = pa.Table.from_batches([block])
            for (vocabulary, encoder), tally in zip(pairs, tallies, strict=True):
                for words, counts, encoded in encoded_words(table, encoder):
                    tally.add_words(vocabulary, words, counts, encoded, with_tokens=encoder.exact)
        yield source, tallies
