"""`LearnMerges`: counted words in, a trained tokenizer out, on one worker."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms import trigger

from bpe_beam.counts.word_table import WordTable, decode_block, encode_block, schema_of
from bpe_beam.errors import DataError, UsageError, require_between
from bpe_beam.tokenizer.components.normalizers import normalizer_from_name
from bpe_beam.tokenizer.components.pretokenizers import pretokenizer_from_name
from bpe_beam.training.learn import learn
from bpe_beam.training.merges.symbols import ambiguous_tokens, refuse_spelled
from bpe_beam.training.merges.words import gather_words, memory_needed
from bpe_beam.training.recipe import Recipe, WordLevelRecipe
from bpe_beam.training.tokenizer_parts import check_parts, tokenizer_of
from bpe_beam.transforms.elements import column_of, is_batch
from bpe_beam.transforms.shuffles import Chunk, from_chunks, to_chunks

MEMORY_BYTES = 8_000_000_000  # the default memory of the training worker, in bytes


@beam.typehints.with_input_types(pa.RecordBatch)
@beam.typehints.with_output_types(str)
class LearnMerges(beam.PTransform):
    """Trains a tokenizer on the words that `CountWords` counted.

    The output is one element per window: the text of `tokenizer.json`. One worker keeps all unique
    words in memory; the run fails with a message when they would take more than `memory_bytes`.
    Batches may also come from a counts folder with sources: the counts of a word are added over all
    sources.

    Args:
        recipe: The training settings. `first_seen` needs words counted with places.
        normalizer: Name of the normalizer, the same as in `CountWords`.
        pretokenizer: Name of the pre-tokenizer, the same as in `CountWords`.
        memory_bytes: Memory of the training worker in bytes, at least 1,000,000.

    Raises:
        UsageError: An argument out of its range; windows that fire more than once.
    """

    def __init__(
        self,
        recipe: Recipe,
        *,
        normalizer: str = "none",
        pretokenizer: str = "gpt2",
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        super().__init__()
        normalizer_from_name(normalizer)
        pretokenizer_from_name(pretokenizer)
        check_parts(recipe, normalizer, pretokenizer)
        require_between("memory_bytes", memory_bytes, 1_000_000, sys.maxsize)
        self.training = recipe, normalizer, pretokenizer
        self.memory_bytes = memory_bytes

    def expand(self, words: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        """Return the texts of the tokenizers."""
        if not _fires_once(words.windowing):
            raise UsageError(
                "LearnMerges: the windows of the words fire more than once, so that each tokenizer "
                "would see only some of the words; use windows without early and late firings "
                "and without allowed lateness"
            )
        learn_on_one = beam.FlatMap(_learn, *self.training, self.memory_bytes)
        return (
            words
            | "EncodeBlocks"
            >> beam.FlatMap(_encode_block, *self.training).with_output_types(tuple[int, Chunk])
            | "GatherBlocks" >> beam.GroupByKey()
            | "Learn"
            >> learn_on_one.with_output_types(str).with_resource_hints(
                min_ram=f"{self.memory_bytes}B"
            )
        )


def _encode_block(
    block: pa.RecordBatch, recipe: Recipe, normalizer: str, pretokenizer: str
) -> Iterator[tuple[int, Chunk]]:
    """Yield the chunks of a block of counted words under one key, for one worker."""
    if not is_batch(block):
        raise DataError(
            f"LearnMerges: an element must be a batch of CountWords, got {type(block).__name__}"
        )
    _check_words(block.schema.metadata or {}, normalizer, pretokenizer)
    with_places = _needs_places(recipe)
    columns = schema_of(with_places).names
    missing = set(columns).difference(block.schema.names)
    if missing:
        raise DataError(
            f"counted words lack the columns {', '.join(sorted(missing))}; count them with "
            f"CountWords(with_places={with_places})"
        )
    for name in columns:
        column_of(block, name)  # refuses several of one name
    for chunk in to_chunks(encode_block(block.select(columns))):
        yield 0, chunk


def _check_words(metadata: dict[bytes, bytes], normalizer: str, pretokenizer: str) -> None:
    """Refuse words of another normalizer or pre-tokenizer, if the batch names them."""
    checks: tuple[tuple[str, str, Callable[[str], object]], ...] = (
        ("normalizer", normalizer, normalizer_from_name),
        ("pretokenizer", pretokenizer, partial(pretokenizer_from_name, byte_level=True)),
    )
    for name, ours, component in checks:
        theirs = metadata.get(name.encode(), ours.encode()).decode()
        # Several names may mean the same component.
        if theirs != ours and component(theirs) != component(ours):
            raise DataError(
                f"the words were counted with {name}={theirs!r}, but LearnMerges has "
                f"{name}={ours!r}; use the same for both"
            )


def _learn(
    element: tuple[int, Iterable[Chunk]],
    recipe: Recipe,
    normalizer: str,
    pretokenizer: str,
    memory_bytes: int,
) -> Iterator[str]:
    """Add up all blocks of a window, train, and yield the text of the tokenizer."""
    with_places = _needs_places(recipe)
    table = WordTable(with_places=with_places)
    word_bytes = 0
    for data in from_chunks(element[1], "word"):
        table.add_block(decode_block(data, with_places))
        word_bytes += len(data)
        if memory_needed(word_bytes, len(table), recipe.vocab_size) > memory_bytes:
            raise DataError(
                f"training on the unique words, {len(table):,} so far, takes more than "
                f"memory_bytes ({memory_bytes:,}); set a greater memory_bytes in LearnMerges"
            )
    blocks = [block for _, block in table.blocks(partitions=1)]
    words = gather_words(blocks, in_order_of_place=with_places)
    refuse_spelled(words, ambiguous_tokens(recipe))
    yield tokenizer_of(learn(words, recipe), recipe, normalizer, pretokenizer).to_json()


def _needs_places(recipe: Recipe) -> bool:
    return not isinstance(recipe, WordLevelRecipe) and recipe.tie_break == "first_seen"


def _fires_once(windowing: Any) -> bool:
    """Return whether all elements of a window arrive together."""
    fires = windowing.triggerfn
    once = isinstance(fires, trigger.DefaultTrigger) or (
        isinstance(fires, trigger.AfterWatermark) and not (fires.early or fires.late)
    )
    return once and windowing.allowed_lateness == 0
