"""`Tokenize` and `WriteTokens`, and the whole way `ReadDocuments | CountWords | LearnMerges`."""

from __future__ import annotations

import json
import random
from pathlib import Path

import apache_beam as beam
import pyarrow as pa
import pytest
import regex
from apache_beam.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark
from apache_beam.transforms.window import FixedWindows

from bpe_beam import Tokenizer
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.errors import DataError, UsageError
from bpe_beam.shards.formats.megatron import MegatronReader
from bpe_beam.shards.manifest import read_manifest
from bpe_beam.shards.verify import verify
from bpe_beam.storage import Storage
from bpe_beam.tokenizer import byte_level
from bpe_beam.tokenizer.patterns import GPT2_PATTERN
from bpe_beam.training import reference
from bpe_beam.training.recipe import BpeRecipe
from bpe_beam.transforms import (
    CountWords,
    LearnMerges,
    ReadDocuments,
    Tokenize,
    WriteTokens,
    coders,
    spread_tasks,
    write_tokens,
)
from bpe_beam.transforms.chunks import CHUNK_BYTES

TEXT = "the quick brown fox jumps over a lazy dog and the cat sat on the mat"


def sentences(count: int, seed: int = 1) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(TEXT.split(), k=rng.randint(0, 30))) for _ in range(count)]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    special = ["<|end|>", "<|begin|>"]
    counts: dict[str, int] = {}
    for word in " ".join(sentences(50)).split():
        counts[f"Ġ{word}"] = counts.get(f"Ġ{word}", 0) + 1
    vocab, merges = reference.learn_bpe(
        list(counts.items()), vocab_size=300, special_tokens=special
    )
    return Tokenizer.from_learned(vocab, merges, special)


@pytest.fixture
def corpus(tmp_path: Path) -> str:
    path = tmp_path / "corpus.jsonl"
    rows = [json.dumps({"id": str(i), "text": text}) for i, text in enumerate(sentences(200))]
    path.write_text("\n".join(rows) + "\n")
    return str(path)


def test_documents_to_a_tokenizer(run, corpus) -> None:
    """The pipeline learns what the reference learns from the same words."""
    recipe = BpeRecipe(vocab_size=300, special_tokens=("<|end|>",))
    kept, _ = run(
        lambda p: p | ReadDocuments([corpus], range_bytes=1000) | CountWords() | LearnMerges(recipe)
    )
    (text,) = kept
    counts: dict[str, int] = {}
    for document in sentences(200):
        for word in regex.findall(GPT2_PATTERN, document):
            chars = byte_level.to_chars(word.encode())
            counts[chars] = counts.get(chars, 0) + 1
    vocab, merges = reference.learn_bpe(
        list(counts.items()), vocab_size=300, special_tokens=["<|end|>"]
    )
    learned = Tokenizer.from_json(text)
    assert list(learned.vocab) == vocab
    assert learned.merges == merges


def test_first_seen_needs_places(run, corpus) -> None:
    recipe = BpeRecipe(vocab_size=270, tie_break="first_seen")
    kept, _ = run(
        lambda p: p | ReadDocuments([corpus]) | CountWords(with_places=True) | LearnMerges(recipe)
    )
    assert len(kept) == 1
    with pytest.raises(Exception, match="lack the columns first_document, first_word"):
        run(lambda p: p | ReadDocuments([corpus]) | CountWords() | LearnMerges(recipe), 1)


def test_learning_is_bounded(run) -> None:
    texts = [" ".join(f"word{i}" for i in range(40_000))]
    learn = LearnMerges(BpeRecipe(vocab_size=300), memory_bytes=2_000_000)
    with pytest.raises(Exception, match=r"takes more than memory_bytes \(2,000,000\)"):
        run(lambda p: p | beam.Create(texts) | CountWords() | learn, 1)


def test_rejects_go_to_their_folder_or_end_the_run(run, tmp_path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"text": "good"}\n{"text": 7}\n')
    with pytest.raises(Exception, match=r"bad.jsonl, byte 17: "):
        run(lambda p: p | ReadDocuments([str(path)]), 1)
    folder = tmp_path / "rejects"
    kept, counters = run(lambda p: p | ReadDocuments([str(path)], rejects=str(folder)))
    assert [batch.column("text").to_pylist() for batch in kept] == [["good"]]
    assert counters["records_rejected"] == 1
    (row,) = [json.loads(line) for file in folder.iterdir() for line in file.open()]
    assert (row["file"], row["offset"]) == ("bad.jsonl", 17)


def test_documents_are_read_whatever_the_settings(run, tmp_path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one||two||three")
    settings = ReadSettings(document_separator="||")
    kept, _ = run(lambda p: p | ReadDocuments([str(path)], settings, range_bytes=4))
    assert sorted(t for batch in kept for t in batch.column("text").to_pylist()) == [
        "one",
        "three",
        "two",
    ]


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


@pytest.mark.parametrize("shards", [1, 5])
def test_written_tokens_are_whole(run, tokenizer, tmp_path, shards, monkeypatch) -> None:
    """Equal documents, empty ones and those that travel in pieces all arrive, in any order."""
    monkeypatch.setattr(write_tokens, "CHUNK_TOKENS", 7)
    texts = [*sentences(60), *sentences(10), "", ""]
    folders = []
    for name, order, workers in (("a", texts, 1), ("b", texts[::-1], 2)):
        folder = str(tmp_path / name)
        write = WriteTokens(folder, tokenizer, shards=shards)
        kept, counters = run(
            lambda p, t=order, w=write: p | beam.Create(t) | Tokenize(tokenizer) | w, workers
        )
        assert kept == [f"{folder}/manifest.json"]
        assert counters["documents_written"] == len(texts)
        assert verify(Storage(), folder).problems == ()
        folders.append({path.name: path.read_bytes() for path in Path(folder).iterdir()})
    assert folders[0] == folders[1]
    manifest = read_manifest(Storage(), folder)
    assert len(manifest.shards) == shards
    found = []
    for shard in manifest.shards:
        with MegatronReader(Storage(), folder, shard.name) as reader:
            found += [reader.document(i).tolist() for i in range(len(reader))]
    assert sorted(found) == sorted(map(tokenizer.encode, texts))


@pytest.mark.parametrize(("texts", "most"), [(["a", "b c", "", "b c"], 3), (["", ""], 0), ([], 0)])
def test_shards_without_tokens_are_not_written(run, tokenizer, tmp_path, texts, most) -> None:
    """More shards are asked for than there are documents."""
    folders = []
    for name, workers in (("a", 1), ("b", 2)):
        folder = tmp_path / name
        write = WriteTokens(str(folder), tokenizer, shards=9)
        run(
            lambda p, w=write: p | beam.Create(texts, reshuffle=False) | Tokenize(tokenizer) | w,
            workers,
        )
        folders.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert folders[0] == folders[1]
    manifest = read_manifest(Storage(), str(folder))
    assert verify(Storage(), str(folder)).problems == ()
    count = len(manifest.shards)
    assert (count > 0) == (most > 0)
    assert count <= most
    assert [shard.name for shard in manifest.shards] == [
        f"shard-{index:05}-of-{count:05}" for index in range(count)
    ]
    names = {file.name for shard in manifest.shards for file in shard.files}
    assert folders[0].keys() == names | {"manifest.json", "tokenizer.json"}
    assert len(manifest.shards) + len(manifest.tokenless) == 9
    assert manifest.totals.documents == len(texts)


def test_batches_are_written_as_documents_are(run, tokenizer, tmp_path) -> None:
    texts = sentences(30)
    batch = pa.RecordBatch.from_pydict({"text": texts})
    for name, elements in (
        ("one", beam.Create(texts)),
        ("many", beam.Create([batch]).with_output_types(pa.RecordBatch)),
    ):
        write = WriteTokens(str(tmp_path / name), tokenizer, shards=2)
        run(lambda p, e=elements, w=write: p | e | Tokenize(tokenizer) | w)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "many" / path.name).read_bytes()


def test_a_folder_that_holds_something_is_refused(tokenizer, tmp_path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(UsageError, match="must be empty"):
        WriteTokens(str(tmp_path), tokenizer)
    with pytest.raises(UsageError, match="shards must be from 1 to 100,000, got 0"):
        WriteTokens(str(tmp_path / "new"), tokenizer, shards=0)


def test_no_collection_falls_back_to_pickling(coders_of, tokenizer, corpus, tmp_path) -> None:
    def build(p: beam.Pipeline) -> None:
        documents = p | ReadDocuments([corpus])
        documents | CountWords() | LearnMerges(BpeRecipe(vocab_size=300))
        documents | "Batches" >> Tokenize(tokenizer) | WriteTokens(str(tmp_path / "t"), tokenizer)
        p | beam.Create(["a"]) | "Single" >> Tokenize(tokenizer)

    urns = coders_of(build)
    pickled = [urn for urn in urns if "pickled_python" in urn]
    ours = ("RecordBatchCoder", "TokensCoder")
    assert all(any(name in urn for name in ours) for urn in pickled), pickled
    assert any("RecordBatchCoder" in urn for urn in urns)
    for coder in (coders.RecordBatchCoder(), coders.TokensCoder()):
        assert coder.is_deterministic()


def test_coders_give_back_what_they_took() -> None:
    batch = pa.RecordBatch.from_pydict({"text": ["a", "é"], "place": [1, 2]})
    coder = coders.RecordBatchCoder()
    assert coder.decode(coder.encode(batch)).equals(batch)
    assert coder.encode(batch.slice(1)) == coder.encode(batch.slice(1))
    assert coder.decode(coder.encode(batch.slice(1))).to_pydict() == {"text": ["é"], "place": [2]}
    tokens = pa.array([1, 2**32 - 1, 0], pa.uint32())
    tokens_coder = coders.TokensCoder()
    for ids in (tokens, tokens.slice(1), tokens.slice(0, 0)):
        assert tokens_coder.decode(tokens_coder.encode(ids)).equals(ids)


def test_write_tokens_wants_all_documents_at_once(tokenizer, tmp_path) -> None:
    with pytest.raises(UsageError, match="bounded input in the global window"):
        _ = (
            beam.Pipeline()
            | beam.Create(["a"])
            | beam.WindowInto(FixedWindows(10))
            | Tokenize(tokenizer)
            | WriteTokens(str(tmp_path / "out"), tokenizer)
        )


def test_learning_wants_all_words_at_once() -> None:
    early = AfterWatermark(early=AfterCount(1))
    for more in ({"trigger": early}, {"allowed_lateness": 10}):
        windows = beam.WindowInto(
            FixedWindows(10), accumulation_mode=AccumulationMode.DISCARDING, **more
        )
        words = beam.Pipeline() | beam.Create(["a"]) | windows | CountWords()
        with pytest.raises(UsageError, match="fire more than once"):
            _ = words | LearnMerges(BpeRecipe(vocab_size=300))


def test_special_tokens_are_a_list() -> None:
    with pytest.raises(UsageError, match="special_tokens must be a list of tokens, got '<x>'"):
        CountWords(special_tokens="<x>")


def test_inputs_are_a_list(corpus) -> None:
    with pytest.raises(UsageError, match=r"inputs must be a list, such as \['.*got '.*jsonl'"):
        ReadDocuments(corpus)
    with pytest.raises(UsageError, match=r"exclude must be a list, such as \['a'\]"):
        ReadDocuments([corpus], exclude="a")


def test_write_tokens_wants_ids(run, tokenizer, tmp_path) -> None:
    """What Beam knows the type of is refused at once, the rest where it comes."""
    with pytest.raises(UsageError, match="UInt32Array"):
        _ = beam.Pipeline() | beam.Create(["a"]) | WriteTokens(str(tmp_path / "out"), tokenizer)
    ids = pa.array([[1, 2]], pa.large_list(pa.int64()))
    for element, said in (
        ("a", "must be a pyarrow.UInt32Array, got str"),
        (ids.values, "got Int64Array"),
        (pa.record_batch([ids], ["tokens"]), "got Int64Array"),
        (pa.record_batch([pa.array(["a"])], ["tokens"]), "got StringScalar"),
        (pa.record_batch([ids], ["text"]), "no column 'tokens', only text"),
    ):
        write = WriteTokens(str(tmp_path / "out"), tokenizer)
        untyped = beam.Map(lambda _, element=element: element)
        with pytest.raises(Exception, match=said):
            run(lambda p, w=write, u=untyped: p | beam.Create(["a"]) | u | w)


def test_whatever_tokenize_gives_is_written(run, tokenizer, tmp_path) -> None:
    table = pa.table({"id": [1], "text": ["the cat"]})
    elements = ["the cat", {"id": 1, "text": "the cat"}, beam.Row(text="the cat"), table]
    elements += [("key", element) for element in elements]

    def build(p: beam.Pipeline) -> beam.PCollection:
        given = p | beam.Create([0]) | beam.FlatMap(lambda _: elements)
        return given | Tokenize(tokenizer) | WriteTokens(str(tmp_path / "out"), tokenizer)

    run(build)
    with MegatronReader(Storage(), str(tmp_path / "out"), "shard-00000-of-00001") as reader:
        ids = [reader.document(number).tolist() for number in range(len(reader))]
    assert ids == [tokenizer.encode("the cat")] * 8


def test_words_that_were_counted_otherwise_are_refused(run) -> None:
    recipe = BpeRecipe(vocab_size=260)

    def build(counted: str, learned: str):
        words = CountWords(pretokenizer=counted)
        return lambda p: p | beam.Create([TEXT]) | words | LearnMerges(recipe, pretokenizer=learned)

    with pytest.raises(Exception, match="counted with pretokenizer='qwen2', but LearnMerges has"):
        run(build("qwen2", "gpt2"))
    assert len(run(build("llama3", "cl100k"))[0]) == 1  # two names of one


def test_a_path_is_no_tokenizer() -> None:
    with pytest.raises(UsageError, match=r"must be a Tokenizer, got str: Tokenizer.from_file"):
        Tokenize("tokenizer.json")


def test_batches_that_nobody_announced(run, tokenizer) -> None:
    """Of an untyped step, whose output Beam takes for anything: they pass a shuffle."""

    def batch(text: str):
        return pa.record_batch([pa.array([text])], ["text"])

    (kept,), _ = run(
        lambda p: p | beam.Create(["a"]) | beam.Map(batch) | Tokenize(tokenizer) | beam.Reshuffle()
    )
    assert kept.to_pydict() == {"tokens": [tokenizer.encode("a")]}


def _sent(documents: list[list[int]]) -> list[tuple[int, write_tokens.Chunk]]:
    """The chunks of documents on their way to one shard."""
    cut = write_tokens._SplitToChunks(1)
    return [chunk for ids in documents for chunk in cut.process(pa.array(ids, pa.uint32()))]


@pytest.mark.parametrize("gone", [0, 1, 2, 3, 5, 6])
def test_a_lost_part_of_a_document_is_not_passed_over(
    tokenizer, tmp_path, monkeypatch, gone
) -> None:
    monkeypatch.setattr(write_tokens, "CHUNK_TOKENS", 2)
    chunks = [
        (document, number, ids)
        for _, (document, number, ids) in _sent([[1, 2, 3, 4, 5], [7, 8, 9], [7, 8, 9]])
    ]
    assert len(chunks) == 7
    name = (b"", 0, b"shard-00000-of-00001")
    target = write_tokens._Target(Storage(), str(tmp_path), 1, tokenizer.to_json())
    write = write_tokens._WriteShard(target)
    random.Random(gone).shuffle(chunks)
    (row,) = write.process((0, [*chunks, name, name]))
    assert write_tokens._ShardRow.from_json(row[1]).tokens == 11
    other = (b"", 0, b"shard-00000-of-00002")
    for wrong in (
        [*chunks[:gone], *chunks[gone + 1 :], name],
        [*chunks, chunks[gone], name],
        chunks,
        [*chunks, name, other],
        [name],
    ):
        with pytest.raises(DataError, match="the runner lost a part"):
            list(write.process((0, wrong)))


def test_a_lost_shard_is_not_passed_over(tokenizer, tmp_path) -> None:
    target = write_tokens._Target(Storage(), str(tmp_path), 2, tokenizer.to_json())
    write = write_tokens._WriteShard(target)
    named = [(0, "shard-00000-of-00002"), (1, "shard-00001-of-00002"), (1, "shard-00000-of-00001")]
    rows = [
        row
        for shard, name in named
        for row in write.process((shard, [*(c for _, c in _sent([[1]])), (b"", 0, name.encode())]))
    ]
    misnamed = rows.pop()
    manifest = write_tokens._WriteManifest(target)
    for wrong in ([rows[1]], [rows[0], rows[0]], [rows[0], misnamed]):
        with pytest.raises(DataError, match="the runner lost a part"):
            list(manifest.process((0, [row for _, row in wrong])))
    assert not (tmp_path / "manifest.json").exists()
    gone = tmp_path / "shard-00001-of-00002.bin"
    data = gone.read_bytes()
    gone.unlink()
    with pytest.raises(DataError, match=gone.name):
        list(manifest.process((0, [row for _, row in rows])))
    assert not (tmp_path / "manifest.json").exists()
    gone.write_bytes(data)
    assert list(manifest.process((0, [row for _, row in rows])))


def test_tasks_that_lack_a_chunk_are_refused() -> None:
    task = "long" * CHUNK_BYTES
    spread = spread_tasks.SpreadTasks(["short \udcff", task])
    join = spread_tasks._JoinChunks()
    long = [chunk for number, chunk in spread.chunks if number == 1]
    assert len(long) == 4
    assert list(join.process((1, reversed(long)))) == [task]
    assert list(join.process((0, [spread.chunks[0][1]]))) == ["short \udcff"]
    for wrong in (long[1:], long[:-1], [*long, long[2]], [*long, *long]):
        with pytest.raises(DataError, match=r"the runner (lost one|delivered a task twice)"):
            list(join.process((1, wrong)))
