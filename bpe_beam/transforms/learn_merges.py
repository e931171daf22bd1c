"""`LearnMerges`: counted words in, a trained tokenizer out, on one worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms import trigger

from bpe_beam.counts.word_table import WordTable, decode_block, encode_block, schema_of
from bpe_beam.errors import DataError, UsageError
from bpe_beam.tokenizer.normalizers import normalizer_from_name
from bpe_beam.tokenizer.pretokenizers import pretokenizer_from_name
from bpe_beam.training.recipe import Recipe, WordLevelRecipe
from bpe_beam.training.special_token_conflicts import ambiguous_tokens, refuse_spelled
from bpe_beam.training.tokenizer_parts import check_parts, learn, tokenizer_of
from bpe_beam.training.words import gather_words, memory_needed
from bpe_beam.transforms.chunks import Chunk, from_chunks, to_chunks
from bpe_beam.transforms.elements import is_batch

MEMORY_BYTES = 8_000_000_000
"""The default memory of the training worker, in bytes."""

_MIN_MEMORY_BYTES = 1_000_000


@beam.typehints.with_input_types(pa.RecordBatch)
@beam.typehints.with_output_types(str)
class LearnMerges(beam.PTransform):
    """Trains a tokenizer on the words that `CountWords` counted.

    The output is one element a window: the text of `tokenizer.json`. One worker keeps all unique
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
        if memory_bytes < _MIN_MEMORY_BYTES:
            raise UsageError(
                f"memory_bytes must be at least {_MIN_MEMORY_BYTES:,}, got {memory_bytes:,}"
            )
        self.recipe = recipe
        self.normalizer = normalizer
        self.pretokenizer = pretokenizer
        self.memory_bytes = memory_bytes

    def expand(self, words: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        """Return the texts of the tokenizers."""
        if not _fires_once(words.windowing):
            raise UsageError(
                "LearnMerges: the windows of the words fire more than once, so that each tokenizer "
                "would see only a part of the words; use windows without early and late firings "
                "and without allowed lateness"
            )
        return (
            words
            | "EncodeBlocks"
            >> beam.ParDo(_EncodeBlocks(self.recipe, self.normalizer, self.pretokenizer))
            | "GatherBlocks" >> beam.GroupByKey()
            | "Learn"
            >> beam.ParDo(
                _Learn(self.recipe, self.normalizer, self.pretokenizer, self.memory_bytes)
            ).with_resource_hints(min_ram=f"{self.memory_bytes}B")
        )


_COMPONENT_OF: dict[str, Callable[[str], object]] = {
    "normalizer": normalizer_from_name,
    "pretokenizer": lambda name: pretokenizer_from_name(name, byte_level=True),
}
"""From a name to the component: several names may mean the same component."""


@beam.typehints.with_input_types(pa.RecordBatch)
@beam.typehints.with_output_types(tuple[int, tuple[bool, Chunk]])
class _EncodeBlocks(beam.DoFn):
    """Counted words to blocks under one key, for one worker.

    Each block has a flag: whether it is of one source among several, so that other blocks may have
    the same word.
    """

    def __init__(self, recipe: Recipe, normalizer: str, pretokenizer: str) -> None:
        self.with_places = _needs_places(recipe)
        self.names = {"normalizer": normalizer, "pretokenizer": pretokenizer}

    def process(self, block: pa.RecordBatch) -> Iterator[tuple[int, tuple[bool, Chunk]]]:
        """Encode one block."""
        if not is_batch(block):
            raise DataError(
                f"LearnMerges: an element must be a batch of CountWords, got {type(block).__name__}"
            )
        self._check_names(block.schema.metadata or {})
        columns = schema_of(self.with_places).names
        missing = set(columns).difference(block.schema.names)
        if missing:
            raise DataError(
                f"counted words lack the columns {', '.join(sorted(missing))}; count them with "
                f"CountWords(with_places={self.with_places})"
            )
        of_source = "source" in block.schema.names
        for chunk in to_chunks(encode_block(block.select(columns))):
            yield 0, (of_source, chunk)

    def _check_names(self, metadata: dict[bytes, bytes]) -> None:
        """Refuse words of another normalizer or pre-tokenizer, if the batch names them."""
        for name, ours in self.names.items():
            theirs = metadata.get(name.encode(), ours.encode()).decode()
            if theirs != ours and _COMPONENT_OF[name](theirs) != _COMPONENT_OF[name](ours):
                raise DataError(
                    f"the words were counted with {name}={theirs!r}, but LearnMerges has "
                    f"{name}={ours!r}; use the same for both"
                )


@beam.typehints.with_input_types(tuple[int, Iterable[tuple[bool, Chunk]]])
@beam.typehints.with_output_types(str)
class _Learn(beam.DoFn):
    """All blocks of a window to one tokenizer."""

    def __init__(
        self, recipe: Recipe, normalizer: str, pretokenizer: str, memory_bytes: int
    ) -> None:
        self.recipe = recipe
        self.normalizer = normalizer
        self.pretokenizer = pretokenizer
        self.memory_bytes = memory_bytes

    def process(self, element: tuple[int, Iterable[tuple[bool, Chunk]]]) -> Iterator[str]:
        """Collect the words and train."""
        in_order = _needs_places(self.recipe)
        blocks = []
        word_bytes = unique_words = 0
        of_sources: set[bool] = set()
        for data in from_chunks(_chunks_of(element[1], of_sources), "word"):
            block = decode_block(data, in_order)
            blocks.append(block)
            word_bytes += len(data)
            unique_words += block.num_rows
            needed = memory_needed(word_bytes, unique_words, self.recipe.vocab_size)
            if needed > self.memory_bytes:
                raise DataError(
                    f"training on the unique words, {unique_words:,} so far, takes more than "
                    f"memory_bytes ({self.memory_bytes:,}); set a greater memory_bytes in "
                    "LearnMerges"
                )
        if True in of_sources:
            blocks = _merged(blocks, in_order)
        # Blocks arrive in any order; words are sorted by their bytes, or by their places.
        words = gather_words(blocks, in_order_of_place=in_order)
        refuse_spelled(words, ambiguous_tokens(self.recipe))
        learned = learn(words, self.recipe)
        yield tokenizer_of(learned, self.recipe, self.normalizer, self.pretokenizer).to_json()


def _chunks_of(rows: Iterable[tuple[bool, Chunk]], of_sources: set[bool]) -> Iterator[Chunk]:
    """Yield the chunks of rows; add the flags of the rows to `of_sources`."""
    for of_source, chunk in rows:
        of_sources.add(of_source)
        yield chunk


def _merged(blocks: list[pa.RecordBatch], with_places: bool) -> list[pa.RecordBatch]:
    """Return the same words, each once."""
    words = WordTable(with_places=with_places)
    for block in blocks:
        words.add_block(block)
    return [block for _, block in words.blocks(partitions=1)]


def _needs_places(recipe: Recipe) -> bool:
    return not isinstance(recipe, WordLevelRecipe) and recipe.tie_break == "first_seen"


def _fires_once(windowing: Any) -> bool:
    """Whether all elements of a window arrive together."""
    fires = windowing.triggerfn
    once = isinstance(fires, trigger.DefaultTrigger) or (
        isinstance(fires, trigger.AfterWatermark) and not (fires.early or fires.late)
    )
    return once and windowing.allowed_lateness == 0
