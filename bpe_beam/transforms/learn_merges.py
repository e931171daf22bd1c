"""`LearnMerges`: counted words in, a tokenizer out, on one worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms import trigger

from bpe_beam.counts.word_counts import WordCounts, decode_block, encode_block, schema_of
from bpe_beam.errors import DataError, UsageError
from bpe_beam.tokenizer.normalizers import normalizer_from_name
from bpe_beam.tokenizer.pretokenizers import check_pretokenizer_name, pretokenizer_from_name
from bpe_beam.training.recipe import Recipe, WordLevelRecipe
from bpe_beam.training.special_token_conflicts import ambiguous_tokens, refuse_spelled
from bpe_beam.training.tokenizer_parts import check_parts, learn, tokenizer_of
from bpe_beam.training.words import gather_words, memory_needed
from bpe_beam.transforms.chunks import Piece, from_pieces, to_pieces
from bpe_beam.transforms.elements import is_batch

MEMORY_BYTES = 8_000_000_000


@beam.typehints.with_input_types(pa.RecordBatch)
@beam.typehints.with_output_types(str)
class LearnMerges(beam.PTransform):
    """Learns a tokenizer from the words that `CountWords` counted.

    The output is one element a window: the text of `tokenizer.json`. One worker holds all unique
    words; when they would take more than `memory_bytes` the run fails and says so. Batches may come
    from a counts folder with sources too: the same word of several sources is added up.

    Args:
        recipe: The training settings. `first_seen` needs words counted with places.
        normalizer: That of `CountWords`, by name.
        pretokenizer: That of `CountWords`, by name.
        memory_bytes: What the learning worker may hold.

    Raises:
        UsageError: A setting out of its range; windows that fire more than once.
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
        check_pretokenizer_name(pretokenizer)
        check_parts(recipe, normalizer, pretokenizer)
        if memory_bytes < 1_000_000:
            raise UsageError(f"memory_bytes is {memory_bytes}: at least 1,000,000")
        self.recipe = recipe
        self.normalizer = normalizer
        self.pretokenizer = pretokenizer
        self.memory_bytes = memory_bytes

    def expand(self, words: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        """Wires the steps."""
        if not _fires_once(words.windowing):
            raise UsageError(
                "LearnMerges: the windows of the words fire more than once, and each time only a "
                "part of the words would be learned from: window them without early and late "
                "firings, and without allowed lateness"
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


_PARTS: dict[str, Callable[[str], object]] = {
    "normalizer": normalizer_from_name,
    "pretokenizer": lambda name: pretokenizer_from_name(name, byte_level=True),
}
"""What a name stands for, since several may stand for the same."""


@beam.typehints.with_input_types(pa.RecordBatch)
@beam.typehints.with_output_types(tuple[int, tuple[bool, Piece]])
class _EncodeBlocks(beam.DoFn):
    """Counted words to bytes under one key, for one worker to gather; and whether they are of one
    source among several, so that the same word may come again."""

    def __init__(self, recipe: Recipe, normalizer: str, pretokenizer: str) -> None:
        self.with_places = _needs_places(recipe)
        self.made_by = {"normalizer": normalizer, "pretokenizer": pretokenizer}

    def process(self, block: pa.RecordBatch) -> Iterator[tuple[int, tuple[bool, Piece]]]:
        """Encodes one block."""
        if not is_batch(block):
            raise DataError(
                f"LearnMerges takes the counted words of CountWords, not a {type(block).__name__}"
            )
        self._check_made_by(block.schema.metadata or {})
        columns = schema_of(self.with_places).names
        missing = set(columns).difference(block.schema.names)
        if missing:
            raise DataError(
                f"counted words lack the columns {', '.join(sorted(missing))}: take them from "
                f"CountWords(with_places={self.with_places})"
            )
        of_source = "source" in block.schema.names
        for piece in to_pieces(encode_block(block.select(columns))):
            yield 0, (of_source, piece)

    def _check_made_by(self, metadata: dict[bytes, bytes]) -> None:
        """Refuse words that were made otherwise, if the batch says how they were made."""
        for name, ours in self.made_by.items():
            theirs = metadata.get(name.encode(), ours.encode()).decode()
            if theirs != ours and _PARTS[name](theirs) != _PARTS[name](ours):
                raise DataError(
                    f"the words were counted with {name}={theirs!r}, and LearnMerges has "
                    f"{name}={ours!r}: give both the same"
                )


@beam.typehints.with_input_types(tuple[int, Iterable[tuple[bool, Piece]]])
@beam.typehints.with_output_types(str)
class _Learn(beam.DoFn):
    """All blocks to one tokenizer."""

    def __init__(
        self, recipe: Recipe, normalizer: str, pretokenizer: str, memory_bytes: int
    ) -> None:
        self.recipe = recipe
        self.text_steps = (normalizer, pretokenizer)
        self.memory_bytes = memory_bytes

    def process(self, element: tuple[int, Iterable[tuple[bool, Piece]]]) -> Iterator[str]:
        """Gathers the words and learns."""
        in_order = _needs_places(self.recipe)
        blocks = []
        word_bytes = unique_words = 0
        of_sources: set[bool] = set()
        for data in from_pieces(_pieces(element[1], of_sources)):
            block = decode_block(data, in_order)
            blocks.append(block)
            word_bytes += len(data)
            unique_words += block.num_rows
            needed = memory_needed(word_bytes, unique_words, self.recipe.vocab_size)
            if needed > self.memory_bytes:
                raise DataError(
                    f"the unique words, {unique_words:,} so far, take more than memory_bytes "
                    f"({self.memory_bytes:,}) to learn from: give LearnMerges more"
                )
        if True in of_sources:
            blocks = _added_up(blocks, in_order)
        # Blocks come in any order; words are put into that of their bytes, or of their places.
        words = gather_words(blocks, in_order_of_place=in_order)
        refuse_spelled(words, ambiguous_tokens(self.recipe))
        learned = learn(words, self.recipe)
        yield tokenizer_of(learned, self.recipe, *self.text_steps).to_json()


def _pieces(rows: Iterable[tuple[bool, Piece]], of_sources: set[bool]) -> Iterator[Piece]:
    """The pieces of rows; what is said of sources is gathered by the way."""
    for of_source, piece in rows:
        of_sources.add(of_source)
        yield piece


def _added_up(blocks: list[pa.RecordBatch], with_places: bool) -> list[pa.RecordBatch]:
    """Each word once."""
    words = WordCounts(pretokenizer="none", with_places=with_places)
    for block in blocks:
        words.add_block(block)
    return [block for _, block in words.blocks(partitions=1)]


def _needs_places(recipe: Recipe) -> bool:
    return not isinstance(recipe, WordLevelRecipe) and recipe.tie_break == "first_seen"


def _fires_once(windowing: Any) -> bool:
    """Whether all of a window comes together."""
    fires = windowing.triggerfn
    once = isinstance(fires, trigger.DefaultTrigger) or (
        isinstance(fires, trigger.AfterWatermark) and not (fires.early or fires.late)
    )
    return once and windowing.allowed_lateness == 0
