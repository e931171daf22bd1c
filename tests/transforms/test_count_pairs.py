"""`CountPairs` and its combiner in a user's pipeline, against a plain count."""

from __future__ import annotations

import itertools
import pickle
import random
from collections import Counter
from functools import partial
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.transforms import trigger
from apache_beam.transforms.window import FixedWindows, GlobalWindows, TimestampedValue
from counted_words import random_words
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe_beam.counts.round_files import PairCounts
from bpe_beam.counts.word_table import BLOCK_BYTES
from bpe_beam.errors import DataError, UsageError
from bpe_beam.tokenizer.components.byte_level import to_chars
from bpe_beam.transforms import CountPairs, CountWords, PairCountsFn, count_pairs
from bpe_beam.transforms.shuffles import PairCountsCoder, RecordBatchCoder, WindowTables

Counted = list[tuple[str, int]]

WORDS: Counted = [("aaa", 3), ("", 2), ("né", 4), ("é语😀", 1), (" the", 10), ("the", 2)]
SYMBOLS = {"bytes": lambda word: list(to_chars(word.encode())), "characters": list}


def batch_of(words: Counted, **more: Any) -> pa.RecordBatch:
    names, counts = ([row[i] for row in words] for i in (0, 1))
    columns = {"word": pa.array(names, pa.string()), "count": pa.array(counts, pa.int64())}
    return pa.RecordBatch.from_pydict({**more, **columns})


def plainly(words: Counted, symbols: str = "bytes") -> Counter[tuple[str, str]]:
    pairs: Counter[tuple[str, str]] = Counter()
    for word, count in words:
        for pair in itertools.pairwise(SYMBOLS[symbols](word)):
            pairs[pair] += count
    return pairs


def gathered(*batches: pa.RecordBatch) -> Counter[tuple[str, str]]:
    """All pairs; each may stand in one row only, and each batch is sorted."""
    found: Counter[tuple[str, str]] = Counter()
    for batch in batches:
        assert batch.schema == count_pairs.SCHEMA
        lefts, rights, counts = (column.to_pylist() for column in batch.columns)
        pairs = list(zip(lefts, rights, strict=True))
        assert pairs == sorted(pairs)
        assert not found.keys() & set(pairs)
        found.update(dict(zip(pairs, counts, strict=True)))
    return found


def some_words(seed: int, number: int) -> Counted:
    letters = [chr(code) for code in (*range(97, 123), *range(0x4E00, 0x4E00 + 700))]
    return random_words(random.Random(seed), letters, number=number, counts=range(1, 51))


class TestCountPairs:
    @pytest.mark.parametrize("workers", [1, 2])
    @pytest.mark.parametrize("symbols", ["bytes", "characters"])
    def test_counts_as_plain_python_does(self, run, symbols: str, workers: int) -> None:
        elements = [batch_of(WORDS), batch_of([]), batch_of(WORDS[2:], source=["s"] * 4)]
        kept, _ = run(lambda p: p | beam.Create(elements) | CountPairs(symbols=symbols), workers)
        assert gathered(*kept) == plainly([*WORDS, *WORDS[2:]], symbols)

    def test_after_count_words(self, run) -> None:
        texts = ["the cat", "the the"]
        for with_places in (False, True):
            batch = pa.RecordBatch.from_pydict(
                {"text": texts, "place": pa.array([0, 1], pa.uint64())}
            )
            kept, _ = run(
                lambda p, batch=batch, with_places=with_places: (
                    p | beam.Create([batch]) | CountWords(with_places=with_places) | CountPairs()
                )
            )
            assert gathered(*kept) == plainly([("the", 2), (" cat", 1), (" the", 1)])

    def test_small_tables_and_few_shards_change_nothing(self, run, monkeypatch) -> None:
        """Some hundred thousand pairs through tables of 1 MB are handed on many times."""
        words = some_words(1, 20_000)
        elements = [batch_of(words[i : i + 2000]) for i in range(0, 20_000, 2000)]
        expected = plainly(words, "characters")
        assert len(expected) > 70_000
        for how in ({}, {"table_bytes": 1_000_000, "shards": 1}):
            kept, _ = run(
                lambda p, how=how: (
                    p | beam.Create(elements) | CountPairs(symbols="characters", **how)
                )
            )
            assert gathered(*kept) == expected
            sizes = [len(RecordBatchCoder().encode(batch)) for batch in kept]
            assert max(sizes) <= BLOCK_BYTES
            if how.get("shards") == 1:
                assert max(sizes) > BLOCK_BYTES / 2

    def test_tables_are_sent_on_at_their_limit(self) -> None:
        """Within a batch as well."""
        words = some_words(2, 80_000)
        tables = partial(WindowTables, PairCounts, 1_000_000, None)
        do_fn = count_pairs._CountInTables(PairCountsFn("characters"), 1, tables)
        do_fn.start_bundle()
        window = GlobalWindows().assign(None)[0]
        made = list(do_fn.process(batch_of(words), window))
        assert len(made) > 2
        assert do_fn.tables.take() == []
        assert list(do_fn.finish_bundle()) == []
        assert max(len(value.value[1]) for value in made) < BLOCK_BYTES

    def test_pairs_of_a_stream_are_not_kept_for_long(self) -> None:
        for seconds, sent in ((0.0, True), (None, False)):
            tables = partial(WindowTables, PairCounts, 10**8, seconds)
            do_fn = count_pairs._CountInTables(PairCountsFn(), 1, tables)
            do_fn.start_bundle()
            made = list(do_fn.process(batch_of(WORDS), GlobalWindows().assign(None)[0]))
            assert bool(made) == sent
            assert bool(list(do_fn.finish_bundle())) != sent

    def test_each_window_is_counted_by_itself(self, run) -> None:
        class Named(beam.DoFn):
            def process(self, batch, window=beam.DoFn.WindowParam):
                yield int(window.start), batch

        rows = [([("ab", 1)], 1), ([("ab", 2)], 11), ([("abc", 5)], 12)]
        elements = [(batch_of(words), time) for words, time in rows]
        kept, _ = run(
            lambda p: (
                p
                | beam.Create([0])
                | beam.FlatMap(lambda _: [TimestampedValue(*row) for row in elements])
                .with_output_types(pa.RecordBatch)
                | beam.WindowInto(FixedWindows(10))
                | CountPairs()
                | beam.ParDo(Named())
            )
        )  # fmt: skip
        found: dict[int, Counter[Any]] = {}
        for start, batch in kept:
            found.setdefault(start, Counter()).update(gathered(batch))
        assert found == {0: {("a", "b"): 1}, 10: {("a", "b"): 7, ("b", "c"): 5}}

    @pytest.mark.parametrize(
        ("batch", "message"),
        [
            (pa.RecordBatch.from_pydict({"words": ["a"]}), "no column 'word', only words"),
            (pa.RecordBatch.from_pydict({"word": ["a"]}), "no column 'count', only word"),
            (
                pa.record_batch([pa.array([1]), pa.array([2])], ["count", "count"]).add_column(
                    0, "word", pa.array(["a"])
                ),
                "a batch has 2 columns 'count'",
            ),
            (
                pa.RecordBatch.from_pydict({"word": [b"a"], "count": [1]}),
                "must have strings, got binary",
            ),
            (pa.RecordBatch.from_pydict({"word": ["a"], "count": [1.5]}), "double with 0 nulls"),
            (pa.RecordBatch.from_pydict({"word": ["a", None], "count": [1, 1]}), "1 nulls"),
            (pa.RecordBatch.from_pydict({"word": ["a", "b"], "count": [1, None]}), "1 nulls"),
            (
                pa.RecordBatch.from_pydict(
                    {"word": pa.array([b"\xc3"]).cast(pa.string(), safe=False), "count": [1]}
                ),
                "invalid texts",
            ),
            (batch_of([("ab", 0)]), "the count of word 0 must be at least 1"),
            (batch_of([("aaa", 2**62)]), "beyond 64 bits"),
        ],
        ids=str,
    )
    def test_what_is_no_batch_of_words(self, run, batch: pa.RecordBatch, message: str) -> None:
        with pytest.raises(DataError, match=message):
            PairCountsFn().add_input(PairCounts(), batch)
        with pytest.raises(Exception, match=message):
            run(lambda p: p | beam.Create([batch]) | CountPairs(), 1)

    def test_a_block_that_is_none(self) -> None:
        with pytest.raises(DataError, match="cannot be read"):
            list(count_pairs._add_blocks((0, [b"hostile"])))

    def test_settings_are_checked_before_a_pipeline_runs(self) -> None:
        for refused, message in [
            ({"symbols": "letters"}, "symbols must be one of bytes, characters, got 'letters'"),
            ({"shards": 0}, "shards must be at least 1, got 0"),
            ({"table_bytes": 10}, "table_bytes must be at least 1,000,000, got 10"),
        ]:
            with pytest.raises(UsageError, match=message):
                CountPairs(**refused)
        accumulating = beam.WindowInto(
            FixedWindows(10),
            trigger=trigger.AfterWatermark(early=trigger.AfterCount(1)),
            accumulation_mode=trigger.AccumulationMode.ACCUMULATING,
        )
        with pytest.raises(UsageError, match=r"AccumulationMode\.DISCARDING"):
            beam.Pipeline() | beam.Create([batch_of(WORDS)]) | accumulating | CountPairs()


GROUPS = st.lists(
    st.lists(st.tuples(st.text("abé语", max_size=8), st.integers(1, 2**40)), max_size=5), max_size=6
)  # fmt: skip


class TestCombiner:
    @settings(deadline=None)
    @given(GROUPS, st.randoms(use_true_random=False), st.sampled_from(sorted(SYMBOLS)))
    def test_any_grouping(self, groups: list[Counted], order: Any, symbols: str) -> None:
        """Through empty accumulators, coders and pickles; in any order and nesting."""
        combiner, coder = PairCountsFn(symbols), PairCountsCoder()
        accumulators = [combiner.create_accumulator()]
        for words in groups:
            accumulator = combiner.create_accumulator()
            for row in words:
                accumulator = combiner.add_input(accumulator, batch_of([row]))
            accumulators.append(accumulator)
        order.shuffle(accumulators)
        while len(accumulators) > 1:
            taken = [accumulators.pop() for _ in range(min(len(accumulators), order.randint(1, 3)))]
            merged = combiner.compact(combiner.merge_accumulators(taken))
            way = order.randrange(3)
            if way == 0:
                merged = coder.decode(coder.encode(merged))
            elif way == 1:
                merged = pickle.loads(pickle.dumps(merged))
            accumulators.insert(0, merged)
        words = [row for group in groups for row in group]
        assert gathered(combiner.extract_output(accumulators[0])) == plainly(words, symbols)
        at_once = combiner.add_input(combiner.create_accumulator(), batch_of(words))
        assert coder.encode(accumulators[0]) == coder.encode(at_once)

    def test_nothing_at_all(self) -> None:
        combiner = PairCountsFn()
        assert gathered(combiner.extract_output(combiner.merge_accumulators([]))) == {}

    def test_its_coder(self) -> None:
        coder = PairCountsFn().get_accumulator_coder()
        assert coder.is_deterministic()
        assert coder == beam.coders.registry.get_coder(PairCounts)
        with pytest.raises(DataError, match="cannot be read"):
            coder.decode(b"hostile")

    @pytest.mark.parametrize("per_key", [True, False])
    def test_in_pipelines(self, run, caplog, per_key: bool) -> None:
        """Beam merges and encodes the accumulators; none of it falls back to pickling."""
        words = some_words(3, 3500)[:3000]
        elements = [batch_of(words[i : i + 100]) for i in range(0, 3000, 100)]

        def build(pipeline: beam.Pipeline) -> beam.PCollection:
            batches = pipeline | beam.Create(elements)
            if not per_key:
                return batches | beam.CombineGlobally(PairCountsFn())
            keyed = beam.Map(lambda batch: (batch.num_columns, batch))
            return (
                batches
                | keyed.with_output_types(tuple[int, pa.RecordBatch])
                | beam.CombinePerKey(PairCountsFn())
                | beam.Values()
            )

        kept, _ = run(build)
        assert gathered(*kept) == plainly(words)
        assert len(kept) == 1
        assert not [record for record in caplog.records if "fallback" in record.message.lower()]

    def test_globally_of_nothing(self, run) -> None:
        kept, _ = run(
            lambda p: (
                p
                | beam.Create([batch_of(WORDS)])
                | beam.Filter(lambda batch: False)
                | beam.CombineGlobally(PairCountsFn())
            )
        )
        assert [gathered(batch) for batch in kept] == [{}]

    def test_no_collection_is_pickled(self, coders_of) -> None:
        def build(pipeline: beam.Pipeline) -> None:
            words = pipeline | beam.Create([batch_of(WORDS)]).with_output_types(pa.RecordBatch)
            words | CountPairs()
            # Not globally: there Beam's own key, of no type, is pickled.
            keyed = words | beam.Map(lambda batch: (1, batch)).with_output_types(
                tuple[int, pa.RecordBatch]
            )
            keyed | beam.CombinePerKey(PairCountsFn())

        pickled = [urn for urn in coders_of(build) if "pickled_python" in urn]
        assert pickled
        assert all("RecordBatchCoder" in urn for urn in pickled), pickled
