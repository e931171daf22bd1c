"""What `Tokenize` and `WriteTokens` must agree on: the tokenizer, and the tokens around
documents."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path
from typing import Any

import apache_beam as beam
import command_line
import pyarrow as pa
import pytest
from sentences import sentences

from bpe_beam import Tokenizer
from bpe_beam.errors import DataError, UsageError
from bpe_beam.shards.manifest import read_manifest
from bpe_beam.shards.verify import verify
from bpe_beam.storage import Storage
from bpe_beam.training.recipe import BpeRecipe
from bpe_beam.transforms import CountWords, LearnMerges, Tokenize, WriteTokens
from bpe_beam.workers import document_encoding

END = "<|end|>"


@pytest.fixture
def other() -> Tokenizer:
    return Tokenizer.from_learned(["a", "b", "c", END], [], special_tokens=[END])


def _ids(*texts: str) -> beam.PTransform:
    return beam.Create([*texts])


def _settings(folder: Path) -> dict[str, Any]:
    assert verify(Storage(), str(folder)).problems == ()
    return read_manifest(Storage(), str(folder)).settings


PLAIN = {"append": None, "prepend": None, "allowed_special": "none"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "framing",
    [
        {"append": END},
        {"prepend": "<|begin|>", "append": END},
        {"allowed_special": "all"},
        {"prepend": END, "allowed_special": (END,)},
    ],
)
def test_the_manifest_has_what_tokenize_put_around_documents(
    run, tokenizer, tmp_path, framing
) -> None:
    """Also if steps of the user are between."""
    write = WriteTokens(str(tmp_path / "out"), tokenizer)
    run(
        lambda p: (
            p
            | beam.Create([("k", "the cat"), ("k", "a dog")])
            | Tokenize(tokenizer, **framing)
            | beam.GroupByKey()
            | beam.FlatMapTuple(lambda key, ids: [(key, each) for each in ids])
            | beam.Filter(lambda row: len(row[1]) > 0)
            | write
        )
    )
    expected = {**PLAIN, **framing}
    if isinstance(expected["allowed_special"], tuple):
        expected["allowed_special"] = [*expected["allowed_special"]]
    assert _settings(tmp_path / "out") == expected


def test_llmc_after_tokenize(run, tokenizer, tmp_path) -> None:
    """Its readers know a document by its first token: written at once, or by convert."""

    def ids(p: beam.Pipeline, **framing: str) -> beam.PCollection:
        return p | _ids("the cat", "a dog") | Tokenize(tokenizer, **framing)

    write = WriteTokens(str(tmp_path / "no"), tokenizer, format="llmc")
    with pytest.raises(UsageError, match=r"prepend must be given for shards of llmc"):
        run(lambda p: ids(p, append=END) | write)
    for format_name in ("llmc", "megatron"):
        write = WriteTokens(str(tmp_path / format_name), tokenizer, format=format_name)
        run(lambda p, w=write: ids(p, prepend=END) | w)
    out = str(tmp_path / "converted")
    done = command_line.run(
        "convert", str(tmp_path / "megatron"), "--format", "llmc", "--output", out
    )
    assert done.code == 0, done.err
    for path in Path(out).glob("shard*"):
        assert path.read_bytes() == (tmp_path / "llmc" / path.name).read_bytes()


def test_other_tokenizers_are_refused(run, tokenizer, other, tmp_path) -> None:
    out = str(tmp_path / "out")
    with pytest.raises(UsageError, match=r"WriteTokens has another tokenizer .* than Mine before"):
        run(lambda p: p | _ids("a") | "Mine" >> Tokenize(other) | WriteTokens(out, tokenizer))
    batch = pa.RecordBatch.from_pydict({"text": ["a"]})
    (tokens,), _ = run(
        lambda p: p | beam.Create([batch]).with_output_types(pa.RecordBatch) | Tokenize(other)
    )
    with pytest.raises(Exception, match="made the ids of some batches"):
        run(lambda p: p | beam.Create([tokens]) | WriteTokens(out, tokenizer))
    run(lambda p: p | beam.Create([tokens]) | WriteTokens(out, other, overwrite=True))


def test_different_framings_are_refused(run, tokenizer, tmp_path) -> None:
    def build(p: beam.Pipeline, **given: Any) -> beam.PCollection:
        one = p | "A" >> _ids("the cat") | "One" >> Tokenize(tokenizer, append=END)
        two = p | "B" >> _ids("a dog") | "Two" >> Tokenize(tokenizer, prepend="<|begin|>")
        write = WriteTokens(str(tmp_path / "out"), tokenizer, **given)
        return (one, two) | beam.Flatten() | write

    with pytest.raises(UsageError, match=r"One, Two put different tokens around documents"):
        run(build)
    with pytest.raises(Exception, match=r"each document must end with <\|end\|>, got one of"):
        run(lambda p: build(p, append=END))
    run(lambda p: build(p, append=None, overwrite=True))
    assert _settings(tmp_path / "out") == PLAIN


def test_documents_that_lost_their_tokens_are_found(run, tokenizer, tmp_path) -> None:
    out = tmp_path / "out"

    def build(p: beam.Pipeline, **given: Any) -> beam.PCollection:
        ids = p | _ids("the cat", "a dog") | Tokenize(tokenizer, append=END)
        cut = ids | beam.Map(lambda each: each[:2]).with_output_types(pa.UInt32Array)
        return cut | WriteTokens(str(out), tokenizer, **given)

    with pytest.raises(Exception, match="a step after Tokenize has changed the ids"):
        run(build)
    run(lambda p: build(p, append=None, overwrite=True))
    assert _settings(out) == PLAIN


def test_ids_of_elsewhere(run, tokenizer, tmp_path) -> None:
    end = tokenizer.token_to_id(END)
    rows = [{"tokens": [1, 2, end]}, {"tokens": [end]}]
    write = WriteTokens(str(tmp_path / "out"), tokenizer, append=END)
    run(lambda p: p | beam.Create(rows) | write)
    assert _settings(tmp_path / "out") == {**PLAIN, "append": END}
    with pytest.raises(UsageError, match="append must be a token of the tokenizer"):
        WriteTokens(str(tmp_path / "new"), tokenizer, append="none")


def test_a_tokenizer_of_the_same_pipeline(run, tmp_path) -> None:
    """One graph from text to shards: equal to a pipeline that gets the tokenizer."""
    texts = sentences(40)
    learned: list[str] = []

    def learn(p: beam.Pipeline) -> tuple[beam.PCollection, beam.PCollection]:
        documents = p | "Texts" >> beam.Create(texts)
        recipe = BpeRecipe(vocab_size=280, special_tokens=(END,))
        return documents, documents | CountWords(special_tokens=[END]) | LearnMerges(recipe)

    def whole(p: beam.Pipeline) -> beam.PCollection:
        documents, tokenizers = learn(p)
        one = beam.pvalue.AsSingleton(tokenizers)
        ids = documents | Tokenize(one, append=END)
        return ids | WriteTokens(str(tmp_path / "whole"), one, shards=2)

    run(whole)
    learned, _ = run(lambda p: learn(p)[1])
    tokenizer = Tokenizer.from_json(learned[0])
    write = WriteTokens(str(tmp_path / "known"), tokenizer, shards=2)
    run(lambda p: p | beam.Create(texts) | Tokenize(tokenizer, append=END) | write)
    for path in (tmp_path / "known").iterdir():
        assert path.read_bytes() == (tmp_path / "whole" / path.name).read_bytes()

    def mixed(p: beam.Pipeline) -> beam.PCollection:
        documents, tokenizers = learn(p)
        again = p | "Again" >> beam.Create(learned)
        ids = documents | Tokenize(beam.pvalue.AsSingleton(tokenizers))
        out = str(tmp_path / "mixed")
        return ids | WriteTokens(out, beam.pvalue.AsSingleton(again))

    with pytest.raises(UsageError, match="has another tokenizer"):
        run(mixed)


def test_tokenizers_by_name_do_not_travel(run, tokenizer, tmp_path, monkeypatch) -> None:
    """Also a file of another program, whose bytes are not those of `save`."""
    file = tmp_path / "tokenizer.json"
    tokenizer.save(file)
    file.write_bytes(file.read_bytes().replace(b"{", b"{ ", 1))
    monkeypatch.chdir(tmp_path)
    graphs = {}
    for name, given in (("named", "tokenizer.json"), ("path", file), ("value", tokenizer)):
        write = WriteTokens(str(tmp_path / name), given)
        pipeline = beam.Pipeline()
        _ = pipeline | _ids("the cat", "a dog") | Tokenize(given, append=END) | write
        graphs[name] = len(pipeline.to_runner_api().SerializeToString())
        write = WriteTokens(str(tmp_path / name), given)
        run(lambda p, g=given, w=write: p | _ids("the cat") | Tokenize(g, append=END) | w)
    names = ("named", "path", "value")
    made = [{f.name: f.read_bytes() for f in (tmp_path / name).iterdir()} for name in names]
    assert made[0] == made[1] == made[2]
    assert graphs["value"] > graphs["named"]
    letters = "abcdefghijklmnop"
    many = [*letters, *map("".join, itertools.product(letters, repeat=3)), END]
    larger = Tokenizer.from_learned(many, [], special_tokens=[END])
    larger.save(file)
    pipeline = beam.Pipeline()
    write = WriteTokens(str(tmp_path / "larger"), file)
    _ = pipeline | _ids("the cat") | Tokenize(file, append=END) | write
    size = len(pipeline.to_runner_api().SerializeToString())
    assert size < graphs["named"] + 1000
    travelled = pickle.dumps(Tokenize(file, append=END).encoding)
    tokenizer.save(file)
    monkeypatch.setattr(document_encoding, "_cached", {})
    with pytest.raises(DataError, match="the tokenizer has changed since the job began"):
        pickle.loads(travelled).tokenizer()


def test_updates_before_write_tokens_are_refused(run, tokenizer, tmp_path) -> None:
    def build(p: beam.Pipeline) -> beam.PCollection:
        updates = p | "Updates" >> beam.Create([tokenizer.to_json()])
        ids = p | _ids("the cat") | Tokenize(tokenizer, updates=updates)
        return ids | WriteTokens(str(tmp_path / "out"), tokenizer)

    with pytest.raises(UsageError, match="the ids may be of several tokenizers"):
        run(build)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("view", [lambda x: x, beam.pvalue.AsList, beam.pvalue.AsSingleton])
def test_updates_may_be_views_and_demanded(run, tokenizer, other, view) -> None:
    def build(p: beam.Pipeline, first: Tokenizer | None, sent: list[str]) -> Any:
        updates = p | "Updates" >> beam.Create(sent).with_output_types(str)
        tokenize = Tokenize(first, append=END, updates=view(updates)).with_dead_letters()
        tokens, dead = p | _ids("abc") | tokenize
        ids = tokens | "Ids" >> beam.Map(lambda each: each.to_pylist())
        return (ids, dead | beam.MapTuple(lambda _, why: why)) | beam.Flatten()

    expected = [*other.encode("abc"), other.token_to_id(END)]
    for first in (tokenizer, None):
        kept, counters = run(lambda p, f=first: build(p, f, [other.to_json()]))
        assert kept == [expected]
        assert counters.get("documents_before_update", 0) == 0
    kept, counters = run(lambda p: build(p, tokenizer, []))
    assert kept == [[*tokenizer.encode("abc"), tokenizer.token_to_id(END)]]
    assert counters["documents_before_update"] == 1
    (why,), counters = run(lambda p: build(p, None, []))
    assert "there is no tokenizer for this document" in why
    with pytest.raises(UsageError, match="tokenizer must be given where there are no updates"):
        Tokenize(None)


def test_a_collection_is_no_tokenizer(tokenizer) -> None:
    some = beam.Pipeline() | beam.Create([tokenizer.to_json()])
    for wrong in (some, beam.pvalue.AsList(some)):
        with pytest.raises(UsageError, match=r"give beam.pvalue.AsSingleton of a collection"):
            Tokenize(wrong)


def test_display_data_names_the_tokenizer(tokenizer, tmp_path) -> None:
    from apache_beam.transforms.display import DisplayData

    for transform in (
        Tokenize(tokenizer, append=END),
        WriteTokens(str(tmp_path / "out"), tokenizer, shards=3),
    ):
        items = {item.key: item.value for item in DisplayData.create_from(transform).items}
        assert tokenizer.fingerprint[:12] in str(items["tokenizer"])
        assert items.get("append", END) == END
