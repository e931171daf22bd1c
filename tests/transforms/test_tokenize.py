"""`Tokenize` in a user's pipeline."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.ml.transforms.base import MLTransform
from sentences import sentences

from bpe_beam import Tokenizer
from bpe_beam.errors import DataError, UsageError
from bpe_beam.transforms import Tokenize, beam_yaml
from bpe_beam.transforms.ml_transform import TokenizeColumns
from bpe_beam.workers import document_encoding


def test_each_element_becomes_its_ids(run, tokenizer) -> None:
    texts = sentences(20)
    kept, counters = run(lambda p: p | beam.Create(texts) | Tokenize(tokenizer))
    assert sorted(ids.to_pylist() for ids in kept) == sorted(map(tokenizer.encode, texts))
    assert counters["documents_tokenized"] == 20
    assert counters["tokens_made"] == sum(len(tokenizer.encode(text)) for text in texts)


def test_batches_keep_their_other_columns(run, tokenizer) -> None:
    batch = pa.RecordBatch.from_pydict({"id": ["x", "y"], "text": ["the cat", ""], "n": [1, 2]})
    elements = beam.Create([batch]).with_output_types(pa.RecordBatch)
    (kept,), _ = run(lambda p: p | elements | Tokenize(tokenizer, append="<|end|>"))
    end = tokenizer.token_to_id("<|end|>")
    assert kept.to_pydict() == {
        "id": ["x", "y"],
        "tokens": [[*tokenizer.encode("the cat"), end], [end]],
        "n": [1, 2],
    }


def test_each_option_of_tokenize_shows(run, tokenizer) -> None:
    text = "the<|end|>cat"
    end, begin = tokenizer.token_to_id("<|end|>"), tokenizer.token_to_id("<|begin|>")
    plain = tokenizer.encode(text)
    for options, expected in [
        ({}, plain),
        ({"append": "<|end|>"}, [*plain, end]),
        ({"prepend": "<|begin|>"}, [begin, *plain]),
        ({"prepend": "<|begin|>", "append": "<|end|>"}, [begin, *plain, end]),
        ({"allowed_special": "all"}, tokenizer.encode(text, allowed_special="all")),
        ({"allowed_special": ["<|begin|>"]}, plain),
        ({"allowed_special": ["<|end|>"]}, tokenizer.encode(text, allowed_special="all")),
    ]:
        (ids,), _ = run(lambda p, o=options: p | beam.Create([text]) | Tokenize(tokenizer, **o), 1)
        assert ids.to_pylist() == expected, options


def test_a_token_that_is_not_there_is_refused(tokenizer) -> None:
    for options in ({"append": "<none>"}, {"prepend": "<none>"}, {"allowed_special": ["<none>"]}):
        with pytest.raises(UsageError, match="<none>"):
            Tokenize(tokenizer, **options)


@pytest.fixture(scope="module")
def framing(tokenizer) -> Tokenizer:
    """The tokenizer with a post-processor that begins each text with a token."""
    begin = {"id": "<|begin|>", "type_id": 0}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    ids = [tokenizer.token_to_id("<|begin|>")]
    processor = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": begin}, text],
        "pair": [text, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<|begin|>": {"id": "<|begin|>", "ids": ids, "tokens": ["<|begin|>"]}},
    }
    content = json.loads(tokenizer.to_json()) | {"post_processor": processor}
    return Tokenizer.from_json(json.dumps(content))


def _makers(tokenizer: Tokenizer, tmp_path) -> list[Callable[..., Any]]:
    """Each transform that encodes, as a function of its options."""
    path = str(tmp_path / "framing.json")
    tokenizer.save(path)
    return [
        partial(Tokenize, tokenizer),
        partial(TokenizeColumns, ["text"], tokenizer),
        partial(beam_yaml.Tokenize, path),
    ]


def test_tokens_of_the_post_processor_are_not_left_out_in_silence(framing, tmp_path) -> None:
    """As in the command `tokenize`, which has the same option and the same warning."""
    begins = r"post-processor has <\|begin\|> before each text; .* set add_special_tokens=True"
    for make in _makers(framing, tmp_path):
        with pytest.warns(UserWarning, match=begins) as warned:
            make()
        assert [each.filename for each in warned] == [__file__]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            make(add_special_tokens=True)
            make(append="<|end|>")
        with pytest.raises(UsageError, match=r"prepend must not be <\|begin\|>, which the post-pr"):
            make(add_special_tokens=True, prepend="<|begin|>")


def test_tokens_of_the_post_processor_on_request(run, framing, tmp_path) -> None:
    begin, *text = framing.encode("the cat", add_special_tokens=True)
    assert begin == framing.token_to_id("<|begin|>")
    end = framing.token_to_id("<|end|>")
    options = {"add_special_tokens": True, "append": "<|end|>"}
    documents, columns, yaml = (make(**options) for make in _makers(framing, tmp_path))
    artifacts = MLTransform(write_artifact_location=str(tmp_path / "artifacts"))
    served = MLTransform(read_artifact_location=str(tmp_path / "artifacts"))
    for source, step, field in (
        ({"text": "the cat"}, documents, "tokens"),
        ({"text": "the cat"}, artifacts.with_transform(columns), "text"),
        ({"text": "the cat"}, served, "text"),
        (beam.Row(text="the cat"), yaml, "tokens"),
    ):
        (kept,), _ = run(lambda p, row=source, s=step: p | beam.Create([row]) | s, 1)
        found = kept[field] if isinstance(kept, dict) else getattr(kept, field)
        assert list(found) == [begin, *text, end]


def test_a_post_processor_without_tokens_is_refused(tokenizer, tmp_path) -> None:
    for make in _makers(tokenizer, tmp_path):
        with pytest.raises(UsageError, match="add_special_tokens has no effect: the post-proc"):
            make(add_special_tokens=True)


def test_a_tokenizer_that_is_none() -> None:
    with pytest.raises(UsageError, match=r"none.json: no such file"):
        Tokenize("none.json")
    with pytest.raises(UsageError, match=r"tokenizer must be a path or a URL, got 3"):
        Tokenize(3)


def test_batches_that_nobody_announced(run, tokenizer) -> None:
    """Of an untyped step, whose output Beam takes for anything: they pass a shuffle."""

    def batch(text: str):
        return pa.record_batch([pa.array([text])], ["text"])

    (kept,), _ = run(
        lambda p: p | beam.Create(["a"]) | beam.Map(batch) | Tokenize(tokenizer) | beam.Reshuffle()
    )
    assert kept.to_pydict() == {"tokens": [tokenizer.encode("a")]}


def test_a_tokenizer_that_cannot_be_read_is_no_fault_of_a_document(
    run, tokenizer, tmp_path, monkeypatch
) -> None:
    file = str(tmp_path / "tokenizer.json")
    other = Tokenizer.from_learned(["a", "b"], [])

    def changed(p: beam.Pipeline) -> Any:
        tokenizer.save(file)
        tokens = p | beam.Create(["a"]) | Tokenize(file).with_dead_letters() | beam.Flatten()
        other.save(file)
        monkeypatch.setattr(document_encoding, "_cached", {})
        return tokens

    with pytest.raises(Exception, match="the tokenizer has changed since the job began"):
        run(changed)

    def updated(p: beam.Pipeline, update: str) -> Any:
        updates = p | "Updates" >> beam.Create([update])
        tokenize = Tokenize(tokenizer, updates=updates).with_dead_letters()
        return p | beam.Create(["a"]) | tokenize | beam.Flatten()

    def no_access(path: str, **_: Any) -> Tokenizer:
        raise DataError(f"cannot read {path}: no access")

    with pytest.raises(Exception, match=r"tokenizer\.json"):
        run(lambda p: updated(p, '{"model": 3}'))
    monkeypatch.setattr(Tokenizer, "from_file", no_access)
    with pytest.raises(Exception, match=r"the tokenizer cannot be used: .*: no access"):
        run(lambda p: updated(p, file))


def test_outputs_by_name_and_error_handlers(run, tokenizer) -> None:
    """As Beam's own `with_exception_handling` and error handlers have them."""
    from apache_beam.transforms import error_handling

    rows = [{"text": "the cat"}, {"text": None}]

    def ids(collection: beam.PCollection) -> beam.PCollection:
        return collection | "Ids" >> beam.Map(lambda row: row["tokens"])

    def why(collection: beam.PCollection) -> beam.PCollection:
        return collection | "Why" >> beam.MapTuple(lambda row, why: (row, why[0].__name__, why[1]))

    def named(p: beam.Pipeline) -> beam.PCollection:
        transform = Tokenize(tokenizer).with_exception_handling("yes", "no")
        outputs = p | beam.Create(rows) | transform
        with pytest.raises(AttributeError, match="no output 'bad', only yes, no"):
            outputs.bad  # noqa: B018
        return (ids(outputs.yes), why(outputs["no"])) | beam.Flatten()

    def handled(p: beam.Pipeline) -> beam.PCollection:
        letters = error_handling.CollectingErrorHandler()
        with letters:
            transform = Tokenize(tokenizer).with_error_handler(letters)
            good = p | beam.Create(rows) | transform
        return (ids(good), why(letters.output())) | "Both" >> beam.Flatten()

    unusable = (rows[1], "DataError", "the field 'text' of a document must be text, got null")
    for build in (named, handled):
        kept, counters = run(build)
        assert sorted(kept, key=str) == sorted([tokenizer.encode("the cat"), unusable], key=str)
        assert counters["dead_letters"] == 1
