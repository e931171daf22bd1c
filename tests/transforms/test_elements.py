"""Every kind of element that `CountWords` and `Tokenize` take, and what becomes of bad ones."""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.transforms.window import FixedWindows, TimestampedValue
from apache_beam.typehints.row_type import RowTypeConstraint

from bpe_beam import Tokenizer
from bpe_beam.errors import DataError, UsageError
from bpe_beam.transforms import CountWords, Tokenize
from bpe_beam.transforms.elements import document_utf8, text_column, tokens_type


class Page(typing.NamedTuple):
    id: int
    body: str


TOKENIZER = Tokenizer.from_learned([*map(chr, range(33, 127)), "ab", "Ġ"], [("a", "b")])
"""Knows ASCII only: other characters cannot be encoded."""

TEXT = "ab c"
IDS = TOKENIZER.encode(TEXT)

ELEMENTS: list[tuple[str, Any, Any]] = [
    ("str", TEXT, IDS),
    ("bytes", TEXT.encode(), IDS),
    ("dict", {"id": 7, "body": TEXT}, {"id": 7, "tokens": IDS}),
    ("row", beam.Row(id=7, body=TEXT), {"id": 7, "tokens": IDS}),
    ("named tuple", Page(7, TEXT), {"id": 7, "tokens": IDS}),
    (
        "batch",
        pa.RecordBatch.from_pydict({"id": [7, 8], "body": [TEXT, ""]}),
        {"id": [7, 8], "tokens": [IDS, []]},
    ),
    (
        "table",
        pa.concat_tables([pa.table({"id": [7], "body": [TEXT]})] * 2),
        {"id": [7, 7], "tokens": [IDS, IDS]},
    ),
    (
        "dictionary column",
        pa.table({"body": pa.array([TEXT, TEXT]).dictionary_encode()}),
        {"tokens": [IDS, IDS]},
    ),
]


def plain(value: Any) -> Any:
    """What a test can compare."""
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(map(plain, value))
    for name in ("to_pylist", "to_pydict", "_asdict"):
        if hasattr(value, name) and not isinstance(value, pa.Table | pa.RecordBatch):
            return getattr(value, name)()
    return value.to_pydict() if hasattr(value, "to_pydict") else value


def created(*elements: Any) -> Callable[[beam.Pipeline], beam.PCollection]:
    """Elements of which Beam does not know the type, since Create would look at them."""
    return lambda p: (
        p | beam.Create([0]) | beam.FlatMap(lambda _: elements).with_output_types(typing.Any)
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("keyed", [False, True], ids=["without key", "with key"])
@pytest.mark.parametrize(
    ("element", "made"), [row[1:] for row in ELEMENTS], ids=[r[0] for r in ELEMENTS]
)
def test_each_kind_is_tokenized(run, element: Any, made: Any, keyed: bool) -> None:
    element, made = (("k", element), ("k", made)) if keyed else (element, made)
    (kept,), _ = run(lambda p: created(element)(p) | Tokenize(TOKENIZER, text_field="body"), 1)
    assert plain(kept) == made


@pytest.mark.parametrize("dead_letters", [False, True])
def test_each_kind_is_counted(run, dead_letters: bool) -> None:
    elements = [row[1] for row in ELEMENTS]
    elements += [("k", element) for element in elements]
    count = CountWords(text_field="body")

    def build(p: beam.Pipeline) -> beam.PCollection:
        if not dead_letters:
            return created(*elements)(p) | count
        words, dead = created(*elements)(p) | count.with_dead_letters()
        dead | beam.Map(lambda letter: pytest.fail(str(letter)))
        return words

    kept, counted = run(build)
    found = dict(row.values() for batch in kept for row in batch.to_pylist())
    assert found == {"ab": 20, " c": 20}
    assert counted["documents_read"] == 22


def twice(kind: Any, *texts: str) -> Any:
    """A batch or table with two columns `body`."""
    return kind.from_arrays([pa.array([text, text]) for text in texts], ["body", "body"])


BAD: list[tuple[str, Any, str]] = [
    ("null", {"body": None}, "the field 'body' of a document must be text, got null"),
    ("number", {"body": 3}, "must be text, got int"),
    ("no field", {"id": 3, "text": "x"}, "no field 'body', only id, text; set text_field"),
    ("no document", 3, "a document must be str, bytes, a dict, .*, got int"),
    ("list", ["a"], "a document must be str, .*, got list"),
    ("triple", ("k", "a", "b"), "a document must be str, .*, got tuple"),
    ("utf8", b"a\xff", "not valid text: .*position 1"),
    ("no column", pa.table({"text": ["a"]}), "no column 'body', only text"),
    ("column of numbers", pa.table({"body": [1]}), "must have strings, got int64"),
    ("two columns", twice(pa.Table, "a", "b"), "a batch has 2 columns 'body': rename or drop all"),
    ("two in a batch", twice(pa.RecordBatch, "c", "d"), "a batch has 2 columns 'body': rename or"),
    ("null row", pa.table({"body": [None]}, pa.schema([("body", pa.string())])), "1 nulls"),
]  # fmt: skip


@pytest.mark.parametrize("keyed", [False, True], ids=["without key", "with key"])
@pytest.mark.parametrize(
    "transform",
    [Tokenize(TOKENIZER, text_field="body"), CountWords(text_field="body")],
    ids=["Tokenize", "CountWords"],
)
def test_bad_elements_are_dead_letters(run, transform: Any, keyed: bool) -> None:
    """All at once: each with its reason, and none of the others is lost."""
    bad = [("k", element) if keyed else element for _, element, _ in BAD]

    def build(p: beam.Pipeline) -> beam.PCollection:
        good, dead = created(TEXT, *bad, TEXT)(p) | transform.with_dead_letters()
        return (good | beam.Map(lambda e: (e, ""))), dead

    def both(p: beam.Pipeline) -> beam.PCollection:
        return build(p) | beam.Flatten()

    kept, counted = run(both)
    letters = [letter for letter in kept if letter[1]]
    assert len(letters) == len(BAD) == counted["dead_letters"]
    for element, (_, _, reason) in zip(bad, BAD, strict=True):
        found = [told for each, told in letters if plain(each) == plain(element)]
        assert len(found) == 1
        assert re.search(reason, found[0]), found
    good = [each for each, told in kept if not told]
    if isinstance(transform, Tokenize):
        assert list(map(plain, good)) == [IDS, IDS]
    else:
        counts = [row.values() for each in good for row in each.to_pylist()]
        assert dict(counts) == {"ab": 2, " c": 2}


@pytest.mark.parametrize(("element", "message"), [row[1:] for row in BAD], ids=[r[0] for r in BAD])
def test_a_bad_element_fails_the_pipeline_with_its_reason(element: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        if isinstance(element, (pa.Table, pa.RecordBatch)):
            text_column(element, "body")
        else:
            document_utf8(element, "body")


def test_rows_that_cannot_be_used_are_taken_out_of_their_batch(run) -> None:
    """A character that the vocabulary lacks, and a null: the rest of the batch goes on whole."""
    batch = pa.RecordBatch.from_pydict({"id": [1, 2, 3, 4], "text": ["ab", None, "é", "c"]})

    def build(p: beam.Pipeline) -> beam.PCollection:
        tokens, dead = created(("k", batch))(p) | Tokenize(TOKENIZER).with_dead_letters()
        return (tokens | beam.Map(lambda e: (e, ""))), dead

    kept, counted = run(lambda p: build(p) | beam.Flatten(), 1)
    dead = sorted((plain(e)[1]["id"], why) for e, why in kept if why)
    assert [ids for ids, _ in dead] == [[2], [3]]
    assert "1 nulls" in dead[0][1]
    assert "U+00E9" in dead[1][1]
    ids = [TOKENIZER.encode("ab"), TOKENIZER.encode("c")]
    assert [plain(e) for e, why in kept if not why] == [("k", {"id": [1, 4], "tokens": ids})]
    assert (counted["documents_tokenized"], counted["dead_letters"]) == (2, 2)


def test_a_document_that_already_has_tokens_is_not_counted(run) -> None:
    elements = [{"text": "ab", "tokens": [1]}, {"text": "ab"}]

    def build(p: beam.Pipeline) -> Any:
        return created(*elements)(p) | Tokenize(TOKENIZER).with_dead_letters() | beam.Flatten()

    kept, counted = run(build, 1)
    ids = TOKENIZER.encode("ab")
    reason = "a document already has a field 'tokens': rename it first"
    assert sorted(kept, key=str) == sorted([(elements[0], reason), {"tokens": ids}], key=str)
    assert (counted["documents_tokenized"], counted["tokens_made"]) == (1, len(ids))


def test_a_document_that_cannot_be_encoded_among_others(run) -> None:
    texts = [{"text": "ab"}, {"text": "é"}, {"text": "c"}]

    def build(p: beam.Pipeline) -> beam.PCollection:
        stamped = created(*texts)(p) | beam.Map(lambda e: TimestampedValue(e, 25))
        windows = stamped | beam.WindowInto(FixedWindows(10))
        return windows | Tokenize(TOKENIZER).with_dead_letters()

    def placed(element: Any, at=beam.DoFn.TimestampParam, window=beam.DoFn.WindowParam) -> Any:
        return element, float(at), float(window.start)

    kept, _ = run(lambda p: build(p) | beam.Flatten() | beam.Map(placed), 1)
    good = [each for each, _, _ in kept if isinstance(each, dict)]
    dead = [each for each, _, _ in kept if isinstance(each, tuple)]
    ids = [TOKENIZER.encode(text) for text in ("ab", "c")]
    assert sorted(each["tokens"] for each in good) == sorted(ids)
    assert [each for each, _ in dead] == [{"text": "é"}]
    assert {place[1:] for place in kept} == {(25.0, 20.0)}


def test_types_follow_from_the_input() -> None:
    row = RowTypeConstraint.from_fields([("id", int), ("text", str)])
    made = RowTypeConstraint.from_fields([("id", int), ("tokens", Sequence[int])])
    hints = beam.typehints
    for element_type, expected in [
        (str, pa.UInt32Array),
        (bytes, pa.UInt32Array),
        (pa.RecordBatch, pa.RecordBatch),
        (pa.Table, pa.Table),
        (hints.Dict[str, str], dict[str, typing.Any]),
        (hints.Tuple[int, str], hints.Tuple[int, pa.UInt32Array]),
        (row, made),
        (hints.Any, hints.Any),
    ]:
        assert tokens_type(element_type, "text") == expected, element_type


def test_elements_that_are_known_to_be_no_documents_are_refused_at_once() -> None:
    for make in (
        lambda: Tokenize(TOKENIZER, text_field="body"),
        lambda: CountWords(text_field="body"),
    ):
        for elements, message in [
            (beam.Create([1]), "got int"),
            (beam.Create([("k", 1)]), "got int"),
            (beam.Create([beam.Row(text="a")]), "a row has no field 'body', only text"),
            (beam.Create([beam.Row(body="a", tokens="b")]), "already has a field 'tokens'"),
        ]:
            with pytest.raises(UsageError, match=message):
                _ = beam.Pipeline() | elements | make()
