"""`CountWords` in a user's pipeline: any kind of element, any size of table, any window."""

from __future__ import annotations

from collections import Counter

import apache_beam as beam
import pyarrow as pa
import pytest
import regex
from apache_beam.transforms.window import FixedWindows, TimestampedValue

from bpe_beam.counts.word_table import BLOCK_BYTES, encode_block
from bpe_beam.errors import DataError, UsageError
from bpe_beam.tokenizer.components.patterns import GPT2_PATTERN
from bpe_beam.transforms import CountWords
from bpe_beam.transforms.elements import utf8_of

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
