"""`LearnMerges`: counted words in, a trained tokenizer out, on one worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms import trigger
from msgspec.structs import replace

from bpe_beam.counts.manifest import SourceTotals
from bpe_beam.counts.part_files import added_up
from bpe_beam.counts.weights import Weights, parse_temperature, parse_weight, weights_of
from bpe_beam.counts.word_table import schema_of, string_bytes
from bpe_beam.errors import DataError, UsageError, require, require_whole
from bpe_beam.tokenizer.components.normalizers import normalizer_from_name
from bpe_beam.tokenizer.components.pretokenizers import pretokenizer_from_name
from bpe_beam.training.learn import learn, weighted_recipe
from bpe_beam.training.merges.symbols import ambiguous_tokens, refuse_spelled
from bpe_beam.training.merges.words import gather_words, memory_needed
from bpe_beam.training.recipe import MergingRecipe, Recipe
from bpe_beam.training.tokenizer_parts import check_parts, tokenizer_of
from bpe_beam.transforms.counted_words import (
    GatheredWords,
    Rules,
    blocks_in,
    special_tokens_of,
    to_block_chunks,
    without_files,
)
from bpe_beam.transforms.ids_and_sources import label_of
from bpe_beam.transforms.shuffles import Chunk
from bpe_beam.workers.source_tables import NO_SOURCE

MEMORY_BYTES = 8_000_000_000  # the default memory of the training worker, in bytes

Weight = str | int | float | Decimal
"""A weight or a temperature: a number, or as it is typed on a command line, such as "0.3"."""


@beam.typehints.with_input_types(pa.RecordBatch)
@beam.typehints.with_output_types(str)
class LearnMerges(beam.PTransform):
    """Trains a tokenizer on counted words: of `CountWords`, of `ReadCounts`, or of both.

    The output is one element per window: the text of `tokenizer.json`. Counts by source are added
    over all sources; with `weights` or a `temperature` each source is weighted first, with the same
    results as `bpe-beam train` has from the same counts.

    The words must have been counted with this normalizer and pre-tokenizer. Special tokens that
    counting extracted and that the recipe lacks become its first special tokens.

    Memory: one worker has all unique words, and with weights those of each source. The run fails
    with a message when training would take more than `memory_bytes`. No worker with this memory is
    requested: see "Memory of the training worker" in docs/transforms.md.

    Args:
        recipe: The training settings. `first_seen` needs words counted with places.
        normalizer: Name of the normalizer, the same as in `CountWords`.
        pretokenizer: Name of the pre-tokenizer, the same as in `CountWords`.
        weights: The weight of each source, by name; other sources have the weight 1, and a weight
            of 0 leaves a source out. Needs counts by source. Numbers of at most 18 digits, and 40
            after the point.
        temperature: From 0 (equal shares) to 1 (the shares as they are): computes the weights from
            the bytes of text of each source. Excludes `weights`.
        memory_bytes: Memory of the training worker in bytes, at least 1,000,000.

    Raises:
        UsageError: An argument of a wrong kind or out of its range; windows that fire more than
            once.
    """

    def __init__(
        self,
        recipe: Recipe,
        *,
        normalizer: str = "none",
        pretokenizer: str = "gpt2",
        weights: Mapping[Any, Weight] | None = None,
        temperature: Weight | None = None,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        super().__init__()
        require(
            isinstance(recipe, Recipe),
            f"must be a recipe, such as a BpeRecipe, got {recipe!r}",
            "recipe",
        )
        for name, value in (("normalizer", normalizer), ("pretokenizer", pretokenizer)):
            require(isinstance(value, str), f"must be a name, got {value!r}", name)
        normalizer_from_name(normalizer)
        pretokenizer_from_name(pretokenizer)
        check_parts(recipe, normalizer, pretokenizer)
        require_whole("memory_bytes", memory_bytes, 1_000_000)
        self.training = _Training(
            recipe, normalizer, pretokenizer, _Weighting.of(weights, temperature), memory_bytes
        )

    def display_data(self) -> dict[str, Any]:
        """Return the settings for monitoring interfaces."""
        training = self.training
        data: dict[str, Any] = {
            "recipe": type(training.recipe).__name__,
            "vocab_size": training.recipe.vocab_size,
            "min_frequency": training.recipe.min_frequency,
            "special_tokens": " ".join(training.recipe.specials),
            "normalizer": training.normalizer,
            "pretokenizer": training.pretokenizer,
            "memory_bytes": training.memory_bytes,
        }
        if training.weighting is not None:
            data |= training.weighting.display_data
        return data

    def expand(self, words: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        """Return the texts of the tokenizers."""
        if not _fires_once(words.windowing):
            raise UsageError(
                "LearnMerges: the windows of the words fire more than once, so that each tokenizer "
                "would see only some of the words; use windows without early and late firings "
                "and without allowed lateness"
            )
        encode = beam.FlatMap(self.training.encode).with_output_types(tuple[int, Chunk])
        return (
            words
            | "EncodeBlocks" >> encode
            | "GatherBlocks" >> beam.GroupByKey()
            | "Learn" >> beam.FlatMap(self.training.learn).with_output_types(str)
        )


class _Weighting(NamedTuple):
    """The weights of sources: numerators by name, or a temperature."""

    numerators: dict[str, int]
    temperature: Decimal | None

    @staticmethod
    def of(weights: Mapping[Any, Weight] | None, temperature: Weight | None) -> _Weighting | None:
        """Return the weighting of arguments, checked; None without weights."""
        require(
            weights is None or isinstance(weights, Mapping),
            f"must be a mapping of sources to numbers, got {weights!r}",
            "weights",
        )
        require(not (weights and temperature is not None), "exclude each other", *_WEIGHTS)
        if temperature is not None:
            return _Weighting({}, parse_temperature(_typed(temperature, "temperature")))
        names = {_name(key): weight for key, weight in (weights or {}).items()}
        numerators = {
            name: parse_weight(name, _typed(weight, "weights")) for name, weight in names.items()
        }
        return _Weighting(numerators, None) if numerators else None

    @property
    def display_data(self) -> dict[str, str]:
        if self.temperature is not None:
            return {"temperature": f"{self.temperature:f}"}
        weights = Weights(self.numerators).summary(dict.fromkeys(self.numerators, 1))
        return {"weights": " ".join(f"{name}={w['weight']}" for name, w in weights.items())}

    def weights(self, words: GatheredWords) -> Weights:
        """Return the weights of the sources of words."""
        totals = words.totals()
        if NO_SOURCE in words.tables or (totals is not None and totals.sources is None):
            raise DataError(
                "LearnMerges: weights and temperature need counts by source, and these are not: "
                "count with CountWords(by_source=True)"
            )
        if self.temperature is not None and totals is None:
            raise DataError(
                "LearnMerges: temperature needs the bytes of text of each source, which CountWords "
                "and ReadCounts give in a batch without rows: no step may drop it"
            )
        sources = dict((totals and totals.sources) or {})
        # The words themselves decide: a step of the user may have dropped some.
        for name in {*sources, *words.tables}:
            known = sources.get(name, SourceTotals(0, 0, 0, 0))
            sources[name] = replace(known, words=words.counted[name])
        return weights_of(self.numerators, self.temperature, dict(sorted(sources.items())))


_WEIGHTS = ("weights", "temperature")


def _name(key: Any) -> str:
    """Return the name of a source in `weights`, as `CountWords` names the source of a key."""
    name = label_of(key, "a source in weights", "LearnMerges")
    require(bool(name), f"must name sources, got {key!r}", "weights")
    return str(name)


def _typed(value: Any, parameter: str) -> str:
    """Return a number as text without an exponent, as it is typed on a command line."""
    if isinstance(value, str):
        return value
    require(
        isinstance(value, (int, float, Decimal)) and not isinstance(value, bool),
        f"must be numbers, got {value!r}"
        if parameter == "weights"
        else f"must be a number, got {value!r}",
        parameter,
    )
    return f"{Decimal(repr(float(value)) if isinstance(value, float) else value):f}"


class _Training(NamedTuple):
    """The settings of a training, and its steps on workers."""

    recipe: Recipe
    normalizer: str
    pretokenizer: str
    weighting: _Weighting | None
    memory_bytes: int

    @property
    def with_places(self) -> bool:
        recipe = self.recipe
        return isinstance(recipe, MergingRecipe) and recipe.tie_break == "first_seen"

    def encode(self, batch: pa.RecordBatch) -> Iterator[tuple[int, Chunk]]:
        """Yield the chunks of a batch of counted words under one key, for one worker."""
        by_source = self.weighting is not None
        for head, words in blocks_in(batch, "LearnMerges", self.with_places, by_source):
            self._check_rules(head.rules)
            if head.totals is not None and not by_source:
                continue
            totals = head.totals and without_files(head.totals)
            # Several names of a normalizer may mean the same.
            rules = {key: value for key, value in head.rules.items() if key == "special_tokens"}
            for chunk in to_block_chunks(replace(head, rules=rules, totals=totals), words):
                yield 0, chunk

    def _check_rules(self, rules: Rules) -> None:
        """Refuse words of another normalizer or pre-tokenizer, if the batch names them."""
        checks: tuple[tuple[str, str, Callable[[str], object]], ...] = (
            ("normalizer", self.normalizer, normalizer_from_name),
            ("pretokenizer", self.pretokenizer, partial(pretokenizer_from_name, byte_level=True)),
        )
        for name, ours, component in checks:
            theirs = rules.get(name, ours)
            # Several names may mean the same component.
            if theirs != ours and component(theirs) != component(ours):
                raise DataError(
                    f"the words were counted with {name}={theirs!r}, but LearnMerges has "
                    f"{name}={ours!r}; use the same for both"
                )

    def learn(self, element: tuple[int, Iterable[Chunk]]) -> list[str]:
        """Add up all blocks of a window, train, and return the text of the tokenizer.

        There is none of documents without words.
        """
        gathered = GatheredWords("LearnMerges")
        for _ in gathered.add_chunks(element[1]):
            if gathered.memory_bytes > self.memory_bytes:
                raise self._needs_more(sum(map(len, gathered.tables.values())))
        if not gathered.tables:
            return []
        weights = None if self.weighting is None else self.weighting.weights(gathered)
        words = gather_words([self._added_up(gathered, weights)], self.with_places)
        recipe = _with_tokens(self.recipe, special_tokens_of(gathered.rules))
        refuse_spelled(words, ambiguous_tokens(recipe))
        try:
            learned = learn(words, weighted_recipe(recipe, weights))
        except OverflowError as error:
            raise DataError(f"LearnMerges: the counts are too large: {error}") from error
        return [tokenizer_of(learned, recipe, self.normalizer, self.pretokenizer).to_json()]

    def _added_up(self, gathered: GatheredWords, weights: Weights | None) -> pa.Table:
        """Return all words, weighted, in order; they are removed from the tables."""
        schema = schema_of(self.with_places)
        tables: dict[str | None, pa.Table] = {
            source or None: pa.Table.from_batches(table.drain(), schema)
            for source, table in gathered.tables.items()
        }
        gathered.tables.clear()
        factors = None if weights is None else weights.factors
        words = added_up(tables, self.with_places, factors)
        word_bytes = sum(map(string_bytes, words["word"].chunks))
        if memory_needed(word_bytes, len(words), self.recipe) > self.memory_bytes:
            raise self._needs_more(len(words))
        return words

    def _needs_more(self, unique_words: int) -> DataError:
        return DataError(
            f"training on the unique words, {unique_words:,} so far, takes more than "
            f"memory_bytes ({self.memory_bytes:,}); set a greater memory_bytes in LearnMerges"
        )


def _with_tokens(recipe: Recipe, counted: tuple[str, ...]) -> Recipe:
    """Return the recipe with the special tokens that counting extracted, as `train` has them."""
    missing = tuple(token for token in counted if token not in recipe.special_tokens)
    if not missing:
        return recipe
    return replace(recipe, special_tokens=(*missing, *recipe.special_tokens))


def _fires_once(windowing: Any) -> bool:
    """Return whether all elements of a window arrive together."""
    fires = windowing.triggerfn
    once = isinstance(fires, trigger.DefaultTrigger) or (
        isinstance(fires, trigger.AfterWatermark) and not (fires.early or fires.late)
    )
    return once and windowing.allowed_lateness == 0
