"""`CountWords` in a user's pipeline: any kind of element, any size of table, any window."""

from __future__ import annotations

import datetime
from collections import Counter
from functools import partial
from operator import attrgetter
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
import regex
from apache_beam.transforms.display import DisplayData
from apache_beam.transforms.window import FixedWindows, GlobalWindows, TimestampedValue

from bpe_beam.counts.word_table import BLOCK_BYTES, encode_block
from bpe_beam.errors import DataError, UsageError
from bpe_beam.tokenizer.components.patterns import GPT2_PATTERN
from bpe_beam.transforms import CountWords, count_words
from bpe_beam.transforms.counted_words import blocks_in
from bpe_beam.transforms.elements import utf8_of
from bpe_beam.transforms.shuffles import RecordBatchCoder, WindowTables
from bpe_beam.workers.source_tables import SourceTables

TEXTS = [
    "Hello hello, world!  It's 2026.\n",
    "",
    "héllo wörld — 你好 世界",
    "\t tabs\n\nand lines ",
] * 7


def counted(texts: list[str]) -> Counter[str]:
    return Counter(word for text in texts for word in regex.findall(GPT2_PATTERN, text))


def gathered(batches: list[pa.RecordBatch]) -> Counter[str]:
    """The words of all batches; each may stand in one row only."""
    total: Counter[str] = Counter()
    for batch in batches:
        for word, count in zip(
            batch.column("word").to_pylist(), batch.column("count").to_pylist(), strict=True
        ):
            assert word not in total
            total[word] = count
    return total


def batch_of(texts: list[str], first: int = 0) -> pa.RecordBatch:
    places = pa.array(range(first, first + len(texts)), pa.uint64())
    return pa.RecordBatch.from_arrays([pa.array(texts), places], ["text", "place"])


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    "elements",
    [TEXTS, [text.encode() for text in TEXTS], [batch_of(TEXTS[:9]), batch_of(TEXTS[9:], 9)]],
    ids=["str", "bytes", "batches"],
)
def test_counts_as_the_pattern_does(run, elements, workers) -> None:
    kept, counters = run(lambda p: p | beam.Create(elements) | CountWords(), workers)
    expected = counted(TEXTS)
    assert gathered(kept) == expected
    assert counters["words_counted"] == expected.total()
    assert counters["documents_read"] == len(TEXTS)
    assert counters["unique_words"] == len(expected)


def test_special_tokens_are_cut(run) -> None:
    texts = ["a<|end|>b", "<|end|>", "a b"]
    kept, _ = run(lambda p: p | beam.Create(texts) | CountWords(special_tokens=["<|end|>"]))
    assert gathered(kept) == Counter({"a": 2, "b": 1, " b": 1})
    kept, _ = run(lambda p: p | beam.Create(texts) | CountWords())
    assert gathered(kept)["<|"] == 2


def test_small_tables_and_few_partitions_change_nothing(run) -> None:
    """Some hundred thousand words through tables of 1 MB are handed on many times."""
    texts = [
        " ".join(f"w{i * 7919 % 100_003}" for i in range(n, n + 5000))
        for n in range(0, 60_000, 5000)
    ]
    elements = [batch_of([text]) for text in texts]
    whole, few = run(lambda p: p | beam.Create(elements) | CountWords())
    small, many = run(
        lambda p: p | beam.Create(elements) | CountWords(table_bytes=1_000_000, partitions=3)
    )
    assert gathered(whole) == gathered(small) == counted(texts)
    assert few["count_blocks"] > 3
    assert many["count_blocks"] > 3
    assert max(len(encode_block(batch)) for batch in whole + small) <= BLOCK_BYTES


@pytest.mark.slow
def test_a_block_holds_at_most_a_megabyte_or_one_word(run) -> None:
    long_word = "x" * 3_000_000
    texts = [" ".join(f"w{i}" for i in range(200_000)), long_word]
    kept, _ = run(lambda p: p | beam.Create(texts) | CountWords(partitions=1))
    assert gathered(kept) == counted(texts)
    for batch in kept:
        assert len(encode_block(batch)) <= BLOCK_BYTES or batch.num_rows == 1
    assert len(kept) > 3


def test_each_window_is_counted_by_itself(run) -> None:
    class Named(beam.DoFn):
        def process(self, batch, window=beam.DoFn.WindowParam):
            yield int(window.start), batch

    def timed(row: tuple[str, int]) -> TimestampedValue:
        return TimestampedValue(*row)

    rows = [("a b", 1), ("a", 11), ("a c", 12)]
    kept, _ = run(
        lambda p: (
            p
            | beam.Create(rows)
            | beam.Map(timed).with_output_types(str)
            | beam.WindowInto(FixedWindows(10))
            | CountWords()
            | beam.ParDo(Named())
        )
    )
    by_window: dict[int, Counter[str]] = {}
    for start, batch in kept:
        by_window.setdefault(start, Counter()).update(gathered([batch]))
    assert by_window == {0: Counter({"a": 1, " b": 1}), 10: Counter({"a": 2, " c": 1})}


def by_source(batches: list[pa.RecordBatch]) -> dict[str, Counter[str]]:
    """The words of each source; each may stand in one row only."""
    total: dict[str, Counter[str]] = {}
    for batch in batches:
        assert len(batch.column("source").unique()) <= 1
        for row in batch.to_pylist():
            words = total.setdefault(row["source"], Counter())
            assert row["word"] not in words
            words[row["word"]] = row["count"]
    return total


DAY = datetime.date(2026, 1, 2)
KEYED = [
    (("en", "a b"), "en"),
    ((b"en", b"a"), "en"),
    ((7, "a"), "7"),
    ((DAY, "a"), "2026-01-02"),
    ((None, "a"), "other"),
    (("", {"text": "a", "source": "not this"}), "other"),
    (("en", {"text": "a", "source": "not this"}), "en"),
    ({"text": "a", "source": "de"}, "de"),
    ({"text": "a", "source": 7}, "7"),
    (beam.Row(text="a c", source=None), "other"),
    ({"text": "a"}, "other"),
    ("a", "other"),
    (("de", pa.table({"text": ["a", "b"], "source": ["not", "these"]})), "de"),
]


@pytest.mark.parametrize("dead_letters", [False, True])
@pytest.mark.parametrize("workers", [1, 2])
def test_keys_are_sources(run, workers, dead_letters) -> None:
    batch = pa.table(
        {"text": ["a", "b", "c", "d"], "source": pa.array(["en", None, "", "de"], pa.string_view())}
    )
    expected: dict[str, Counter[str]] = {}
    for element, source in KEYED:
        value = element[1] if isinstance(element, tuple) and len(element) == 2 else element
        texts = [value["text"]] if isinstance(value, dict) else [getattr(value, "text", value)]
        texts = value["text"].to_pylist() if isinstance(value, pa.Table) else texts
        texts = [text.decode() if isinstance(text, bytes) else text for text in texts]
        expected.setdefault(source, Counter()).update(counted(texts))
    for text, source in (("a", "en"), ("b", "other"), ("c", "other"), ("d", "de")):
        expected[source][text] += 1
    count = CountWords(by_source=True)
    elements = [*(element for element, _ in KEYED), batch]

    def build(pipeline: beam.Pipeline) -> beam.PCollection:
        documents = pipeline | beam.Create(elements).with_output_types(Any)
        if not dead_letters:
            return documents | count
        good, dead = documents | count.with_dead_letters()
        _ = dead | beam.Map(pytest.fail)
        return good

    kept, _ = run(build, workers)
    assert by_source(kept) == expected


@pytest.mark.slow
def test_sources_in_small_tables(run) -> None:
    """Many sources, one of them with a name whose block is more than a megabyte with it."""
    names = [*(f"s{i}" for i in range(24)), "ä" * 1000]
    texts = [" ".join(f"{n % 7}w{i * 7919 % 9973}" for i in range(1500)) for n in range(25)]
    batches = [pa.record_batch({"text": texts, "source": names})] * 3
    kept, counters = run(
        lambda p: p | beam.Create(batches) | CountWords(by_source=True, table_bytes=1_000_000)
    )
    assert by_source(kept) == {
        name: counted([text] * 3) for name, text in zip(names, texts, strict=True)
    }
    assert counters["count_blocks"] > len(names) * 32 * 2


def test_blocks_of_short_words_with_sources(run) -> None:
    words = [chr(0x4E00 + i // 300) + chr(0x4E00 + i % 300) for i in range(90_000)]
    count = CountWords(by_source=True, pretokenizer="whitespace_split", partitions=1)
    kept, _ = run(lambda p: p | beam.Create([("ä" * 1000, " ".join(words))]) | count)
    assert by_source(kept) == {"ä" * 1000: Counter(words)}
    sizes = [len(RecordBatchCoder().encode(batch)) for batch in kept]
    assert BLOCK_BYTES * 0.8 < max(sizes) <= BLOCK_BYTES


def test_tables_of_all_sources_are_limited_together() -> None:
    count = CountWords(by_source=True, table_bytes=1_000_000)
    tables = []

    class Recorded(SourceTables):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            tables.append(self)

    make = partial(Recorded, count.rules, True, max_bytes=count.table_bytes)
    step = count_words._CountInTables(count, partial(WindowTables, make, count.table_bytes, None))
    step.start_bundle()
    (window,) = GlobalWindows().assign(None)
    sent = 0
    for number in range(300):
        text = " ".join(f"{number}w{i}" for i in range(500))
        sent += len(list(step.process((f"s{number % 100}", text), 0, window, None)))
        step._since = 0.0  # documents do not wait
        assert sum(each.memory_bytes for each in tables[-1:]) <= 1_200_000
    assert sent > 1000


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dead_letters", [False, True])
def test_too_many_sources_fail_the_run(run, dead_letters) -> None:
    """No document is at fault, whichever comes last: none is a dead letter."""
    documents = [(number, "a") for number in range(1001)]

    def build(pipeline: beam.Pipeline) -> beam.PCollection:
        texts = pipeline | beam.Create(documents)
        if not dead_letters:
            return texts | CountWords(by_source=True)
        return (texts | CountWords(by_source=True).with_dead_letters())[0]

    for workers in (1, 2):
        with pytest.raises(Exception, match="have more than 1,000 sources"):
            run(build, workers)


def test_unusable_sources_are_dead_letters(run) -> None:
    bad = [((1, 2), "a"), ("x" * 1001, "b"), {"text": "c", "source": [1]}]
    good = [("k", "a b"), {"text": "d", "source": "k"}]
    batch = pa.record_batch({"text": ["e"], "source": pa.array([[1]])})

    def build(pipeline: beam.Pipeline) -> beam.PCollection:
        documents = pipeline | beam.Create([*bad, *good, batch]).with_output_types(Any)
        count = CountWords(by_source=True).with_dead_letters()
        words, dead = documents | count
        return (
            words,
            dead | beam.Map(lambda pair: pair[1]).with_output_types(str),
        ) | beam.Flatten().with_output_types(Any)

    kept, counters = run(build)
    reasons = sorted(each for each in kept if isinstance(each, str))
    assert counters["dead_letters"] == 4
    wanted = "must have strings, numbers, dates or UUIDs, got"
    assert reasons == sorted(
        [
            f"CountWords: the key of a document {wanted} tuple: convert or rename it",
            f"CountWords: the field 'source' of a document {wanted} list: convert or rename it",
            f"CountWords: the column 'source' of a batch {wanted} list<item: int64>: convert or "
            "rename it",
            next(each for each in reasons if "1,001 characters" in each),
        ]
    )
    words = by_source([each for each in kept if not isinstance(each, str)])
    assert words == {"k": Counter({"a": 1, " b": 1, "d": 1})}


def test_rows_of_a_batch_with_a_key_are_checked_by_the_key(run) -> None:
    """Not by their column of sources, which the key replaces."""
    source = pa.array([[1], [2], [3]])
    batch = pa.record_batch({"text": pa.array(["a b", None, "d"]), "source": source})

    def build(pipeline: beam.Pipeline) -> beam.PCollection:
        count = CountWords(by_source=True).with_dead_letters()
        words, dead = pipeline | beam.Create([("k", batch)]) | count
        whys = dead | beam.Map(lambda pair: pair[1]).with_output_types(str)
        return (words, whys) | beam.Flatten().with_output_types(Any)

    kept, counters = run(build)
    (reason,) = (each for each in kept if isinstance(each, str))
    assert "1 nulls" in reason
    assert counters["dead_letters"] == 1
    words = by_source([each for each in kept if not isinstance(each, str)])
    assert words == {"k": Counter({"a": 1, " b": 1, "d": 1})}


def test_totals_travel_in_a_batch_of_their_own(run) -> None:
    """One for each window, also of one without words; by source, if sources are counted."""
    rows = [(("k", "a b"), 1), (("l", "ä"), 2), (("k", ""), 11)]
    for by, sources in (
        (True, [{"k": (1, 3, 2), "l": (1, 2, 1)}, {"k": (1, 0, 0)}]),
        (False, None),
    ):
        kept, _ = run(
            lambda p, by=by: (
                p
                | beam.Create(rows)
                | beam.MapTuple(TimestampedValue).with_output_types(tuple[str, str])
                | beam.WindowInto(FixedWindows(10))
                | CountWords(by_source=by, special_tokens=["<x>"])
            )
        )
        totals = [head.totals for batch in kept for head, _ in blocks_in(batch, "") if head.totals]
        totals.sort(key=lambda each: -each.documents)
        found = [(each.documents, each.text_bytes, each.words) for each in totals]
        assert found == [(2, 5, 3), (1, 0, 0)]
        if sources is not None:
            amounts = attrgetter("documents", "text_bytes", "words")
            assert [
                {name: amounts(source) for name, source in (each.sources or {}).items()}
                for each in totals
            ] == sources
        assert totals[0].special_tokens == ("<x>",)
        schemas = {batch.schema.remove_metadata() for batch in kept}
        assert len(schemas) == 1


def test_places_are_the_least(run) -> None:
    elements = [batch_of(["b c", "a b"], 5), batch_of(["x a"], 2)]
    kept, _ = run(lambda p: p | beam.Create(elements) | CountWords(with_places=True))
    places = {
        row["word"]: (row["first_document"], row["first_word"])
        for batch in kept
        for row in batch.to_pylist()
    }
    assert places == {
        "x": (2, 0),
        " a": (2, 1),
        "b": (5, 0),
        " c": (5, 1),
        "a": (6, 0),
        " b": (6, 1),
    }


@pytest.mark.parametrize(
    ("element", "message"),
    [
        (b"\xff", "not valid text"),
        (pa.RecordBatch.from_pydict({"words": ["a"]}), "no column 'text'"),
        (pa.RecordBatch.from_pydict({"text": ["a", None]}), "1 nulls"),
        (pa.RecordBatch.from_pydict({"text": [1]}), "must have strings, got int64"),
        (
            pa.RecordBatch.from_arrays(
                [pa.array([b"\xff"]).cast(pa.string(), safe=False)], ["text"]
            ),
            "invalid texts",
        ),
    ],
    ids=["utf8", "column", "null", "type", "utf8 in Arrow"],
)
def test_what_is_no_text_fails_with_its_reason(run, element, message) -> None:
    with pytest.raises(Exception, match=message):
        run(lambda p: p | beam.Create([0]) | beam.Map(lambda _: element) | CountWords(), 1)


def test_settings_are_checked_before_a_pipeline_runs() -> None:
    for settings, message in [
        ({"partitions": 0}, "partitions must be at least 1, got 0"),
        ({"table_bytes": 10}, "table_bytes must be at least 1,000,000, got 10"),
        ({"pretokenizer": "none such"}, "none such"),
        ({"normalizer": "none such"}, "none such"),
        ({"normalizer": None}, "normalizer must be a name, got None"),
        ({"by_source": "lang"}, "by_source must be True or False, got 'lang'"),
        ({"partitions": "4"}, "partitions must be at least 1, got '4', which is not a whole numb"),
        ({"table_bytes": "1GB"}, "table_bytes must be at least 1,000,000, got '1GB'"),
        ({"special_tokens": 5}, "special_tokens must be a list of tokens, got 5"),
        ({"special_tokens": [5]}, r"special_tokens must be a list of tokens, got \[5\]"),
    ]:
        with pytest.raises(UsageError, match=message):
            CountWords(**settings)


def test_half_a_surrogate_pair_is_no_text() -> None:
    """Beam's own coder for str refuses it between steps; within one, we do."""
    with pytest.raises(DataError, match="not valid text"):
        utf8_of("a\ud800")
    assert utf8_of("é") == "é".encode() == utf8_of("é".encode())


def test_special_tokens_are_a_list() -> None:
    with pytest.raises(UsageError, match="special_tokens must be a list of tokens, got '<x>'"):
        CountWords(special_tokens="<x>")


def test_display_data() -> None:
    count = CountWords(special_tokens=["<a>", "<b>"], by_source=True)
    shown = {item.key: item.value for item in DisplayData.create_from(count).items}
    assert shown["special_tokens"] == "<a> <b>"
    assert shown["by_source"] is True
    assert shown["table_bytes"] == count.table_bytes
