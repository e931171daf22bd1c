"""`Tokenize` and `WriteTokens`, and the whole way `ReadDocuments | CountWords | LearnMerges`."""

from __future__ import annotations

import datetime
import itertools
import json
import random
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apache_beam as beam
import command_line
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from msgspec.structs import astuple
from sentences import sentences

from bpe_beam import Tokenizer, shards
from bpe_beam.errors import DataError, UsageError
from bpe_beam.shards.formats.megatron import MegatronStream
from bpe_beam.shards.manifest import read_manifest
from bpe_beam.shards.verify import verify
from bpe_beam.storage import Storage
from bpe_beam.transforms import Tokenize, WriteTokens, claimed_folder, document_chunks, write_tokens
from bpe_beam.transforms.token_origin import WrittenTokens
from bpe_beam.transforms.tokens_folder import TokensFolder
from bpe_beam.workers.document_encoding import Encoding


@pytest.mark.parametrize("shards", [1, 5])
def test_written_tokens_are_whole(run, tokenizer, tmp_path, shards, monkeypatch) -> None:
    """Equal documents, empty ones and those that travel in pieces all arrive, in any order."""
    monkeypatch.setattr(document_chunks, "CHUNK_TOKENS", 7)
    texts = [*sentences(60), *sentences(10), "", ""]
    folders = []
    for name, order, workers in (("a", texts, 1), ("b", texts[::-1], 2)):
        folder = str(tmp_path / name)
        write = WriteTokens(folder, tokenizer, shards=shards)
        kept, counters = run(
            lambda p, t=order, w=write: p | beam.Create(t) | Tokenize(tokenizer) | w, workers
        )
        assert kept == [f"{folder}/__manifest"]
        assert counters["documents_written"] == len(texts)
        assert verify(Storage(), folder).problems == ()
        folders.append({path.name: path.read_bytes() for path in Path(folder).iterdir()})
    assert folders[0] == folders[1]
    manifest = read_manifest(Storage(), folder)
    assert len(manifest.shards) == shards
    found = []
    for shard in manifest.shards:
        with MegatronStream.open(Storage(), folder, shard.name) as reader:
            found += [reader.document(i).tolist() for i in range(len(reader))]
    assert sorted(found) == sorted(map(tokenizer.encode, texts))


def test_shards_of_another_format(run, tokenizer, tmp_path) -> None:
    texts = [*sentences(20), "", "a"]
    for name in ("flat", "parquet"):
        write = WriteTokens(str(tmp_path / name), tokenizer, shards=2, format=name)
        run(lambda p, w=write: p | beam.Create(texts) | Tokenize(tokenizer) | w)
        assert verify(Storage(), str(tmp_path / name)).problems == ()
        assert read_manifest(Storage(), str(tmp_path / name)).format == name
    rows = [
        row
        for path in (tmp_path / "parquet").glob("*.parquet")
        for row in pq.read_table(path)["input_ids"].to_pylist()
    ]
    assert sorted(rows) == sorted(map(tokenizer.encode, texts))
    with pytest.raises(UsageError, match="format must be one of megatron"):
        WriteTokens(str(tmp_path / "none"), tokenizer, format="mosaic")


@pytest.mark.sampled(3)
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
    assert folders[0].keys() == names | {"__manifest", "__tokenizer"}
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
    with pytest.raises(UsageError, match="shards must be at least 1, got 0"):
        WriteTokens(str(tmp_path / "new"), tokenizer, shards=0)


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
        elements_in = p | beam.Create([0]) | beam.FlatMap(lambda _: elements)
        return elements_in | Tokenize(tokenizer) | WriteTokens(str(tmp_path / "out"), tokenizer)

    run(build)
    with MegatronStream.open(Storage(), str(tmp_path / "out"), "shard-00000-of-00001") as reader:
        ids = [reader.document(number).tolist() for number in range(len(reader))]
    assert ids == [tokenizer.encode("the cat")] * 8


def _sent(documents: list[list[int]]) -> list[tuple[int, document_chunks.Chunk]]:
    """The chunks of documents on their way to one shard."""
    arrays = [pa.array(ids, pa.uint32()) for ids in documents]
    return [(0, chunk) for ids in arrays for chunk in document_chunks.chunks_of(ids, 1)[1]]


def _known(tokenizer: Tokenizer) -> WrittenTokens:
    return WrittenTokens.of(tokenizer, {}, ())


def _finish(rows: list[bytes], target: TokensFolder, tokenizer: Tokenizer) -> list[str]:
    """Write the manifest."""
    return list(write_tokens._End(target, Encoding.of(tokenizer), ()).of_hashes((0, rows)))


@pytest.mark.parametrize("gone", [0, 1, 2, 3, 5, 6])
def test_a_lost_part_of_a_document_is_not_passed_over(
    tokenizer, tmp_path, monkeypatch, gone
) -> None:
    monkeypatch.setattr(document_chunks, "CHUNK_TOKENS", 2)
    chunks = [
        (document, number, ids)
        for _, (document, number, ids) in _sent([[1, 2, 3, 4, 5], [7, 8, 9], [7, 8, 9]])
    ]
    assert len(chunks) == 7
    name = (b"", 0, b"shard-00000-of-00001")
    target = _target(str(tmp_path), "ours")
    target.claim(["shard-00000-of-00001"])
    random.Random(gone).shuffle(chunks)
    known = _known(tokenizer)
    (row,) = document_chunks.write_shard((0, [*chunks, name, name]), target, known)
    assert json.loads(row[1])["shard"]["tokens"] == 11
    other = (b"", 0, b"shard-00000-of-00002")
    for wrong in (
        [*chunks[:gone], *chunks[gone + 1 :], name],
        [*chunks, chunks[gone], name],
        chunks,
        [*chunks, name, other],
        [name],
    ):
        with pytest.raises(DataError, match="the runner lost some of the tokens"):
            list(document_chunks.write_shard((0, wrong), target, known))


def test_a_lost_shard_is_not_passed_over(tokenizer, tmp_path) -> None:
    target = _target(str(tmp_path), "ours", 2)
    target.claim(["shard-00000-of-00002.bin"])
    named = [(0, "shard-00000-of-00002"), (1, "shard-00001-of-00002"), (1, "shard-00000-of-00001")]
    rows = [
        row
        for shard, name in named
        for row in document_chunks.write_shard(
            (shard, [*(c for _, c in _sent([[1]])), (b"", 0, name.encode())]),
            target,
            _known(tokenizer),
        )
    ]
    misnamed = rows.pop()
    for wrong in ([rows[1]], [rows[0], rows[0]], [rows[0], misnamed]):
        with pytest.raises(DataError, match="the runner lost some of the tokens"):
            _finish([row for _, row in wrong], target, tokenizer)
    assert not (tmp_path / "__manifest").exists()
    gone = tmp_path / "shard-00001-of-00002.bin"
    data = gone.read_bytes()
    gone.unlink()
    with pytest.raises(DataError, match=gone.name):
        _finish([row for _, row in rows], target, tokenizer)
    assert not (tmp_path / "__manifest").exists()
    gone.write_bytes(data)
    assert _finish([row for _, row in rows], target, tokenizer)


@pytest.fixture(params=["local", "memory"])
def out(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new folder, on a local disk and on a store."""
    return str(tmp_path / "out") if request.param == "local" else f"memory://{uuid.uuid4().hex}/out"


def _pipeline(folder: str, tokenizer: Tokenizer, texts: list[Any], **options: Any) -> beam.Pipeline:
    pipeline = beam.Pipeline(runner=FnApiRunner())
    write = WriteTokens(folder, tokenizer, **options)
    _ = pipeline | beam.Create(texts) | Tokenize(tokenizer) | write
    return pipeline


def _run(pipeline: beam.Pipeline) -> None:
    pipeline.run().wait_until_finish()


def _documents(folder: str, tokenizer: Tokenizer) -> list[str]:
    """The sorted texts of a folder, which must be whole and have no other files."""
    storage = Storage()
    assert verify(storage, folder).problems == ()
    names = {file.name for shard in read_manifest(storage, folder).shards for file in shard.files}
    assert {*storage.list_names(folder)} == names | {"__manifest", "__tokenizer"}
    return sorted(tokenizer.decode(ids.tolist()) for ids in shards.open(folder))


def test_a_pipeline_writes_a_folder_once(tokenizer, out: str) -> None:
    pipeline = _pipeline(out, tokenizer, ["the cat"])
    texts = pipeline | "More" >> beam.Create(["the dog"])
    for again in (out, f"{out}/"):
        ids = texts | f"Tokenize {again}" >> Tokenize(tokenizer)
        with pytest.raises(UsageError, match="folder must be different for each transform"):
            _ = ids | f"Write {again}" >> WriteTokens(again, tokenizer, overwrite=True)
    _run(pipeline)
    assert _documents(out, tokenizer) == ["the cat"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("most", [1, 3])
def test_the_second_of_two_pipelines_fails(tokenizer, out: str, most: int) -> None:
    """Both are built before one has run: nothing is there yet."""
    first = _pipeline(out, tokenizer, ["the cat"])
    second = _pipeline(out, tokenizer, ["the dog", "a cat", "a dog"], shards=most)
    _run(first)
    with pytest.raises(Exception, match=r"must be empty or new, got __manifest, .*CheckFolder"):
        _run(second)
    assert _documents(out, tokenizer) == ["the cat"]


def test_one_of_two_pipelines_at_once_fails(tokenizer, tmp_path: Path) -> None:
    corpora = {1: ["the cat"], 3: ["the dog", "a cat", "a dog"]}
    out = str(tmp_path / "out")
    pipelines = {most: _pipeline(out, tokenizer, corpora[most], shards=most) for most in corpora}
    with ThreadPoolExecutor() as pool:
        runs = {most: pool.submit(_run, pipelines[most]) for most in corpora}
    errors = {most: str(run.exception()) for most, run in runs.items() if run.exception()}
    (failed,) = errors
    assert (
        "another run has claimed the folder" in errors[failed] or "must be empty" in errors[failed]
    )
    assert _documents(out, tokenizer) == sorted(corpora[4 - failed])


def _target(folder: str, claim: str, most: int = 1) -> TokensFolder:
    return TokensFolder(Storage(), folder, most, "megatron", claim)


def _written(target: TokensFolder, numbers: list[int], tokenizer: Tokenizer) -> list[bytes]:
    """The rows of shards with tokens, of these numbers."""
    with_tokens = [2 * number + 1 for number in numbers]
    names = dict(write_tokens._name_shards((0, [-1, *with_tokens]), target))
    documents = {number: _sent([[1]]) if number in numbers else [] for number in names}
    gathered = {n: [*(c for _, c in documents[n]), name] for n, name in names.items()}
    return [
        row
        for each in gathered.items()
        for _, row in document_chunks.write_shard(each, target, _known(tokenizer))
    ]


def test_steps_that_a_runner_repeats_go_on(tokenizer, out: str) -> None:
    """With other shards, too, as if the documents had changed: only the last ones stay."""
    Storage().make_folder(out)
    ours = _target(out, "ours", 2)
    for numbers in ([0, 1], [0, 1], [1]):
        ours.require_free()
        rows = _written(ours, numbers, tokenizer)
    assert Storage().exists(f"{out}/shard-00000-of-00002.bin")
    for _ in range(2):  # the second time all is done
        assert _finish(rows, ours, tokenizer) == [f"{out}/__manifest"]
        assert _documents(out, tokenizer) == [tokenizer.decode([1])]


def test_steps_of_another_run_fail(tokenizer, out: str) -> None:
    Storage().make_folder(out)
    ours, other = (_target(out, claim) for claim in ("ours", "other"))
    rows = _written(ours, [0], tokenizer)
    steps: list[Callable[[], Any]] = [
        other.require_free,
        lambda: list(write_tokens._name_shards((0, [-1]), other)),
    ]
    for step in steps:
        with pytest.raises(
            UsageError, match=r"another run has claimed the folder .*overwrite=True"
        ):
            step()
    taken = "another run took the folder"
    with pytest.raises(DataError, match=taken):
        list(document_chunks.write_shard((0, [(b"", 0, b"")]), other, _known(tokenizer)))
    with pytest.raises(DataError, match=taken):
        _finish(rows, other, tokenizer)
    _finish(rows, ours, tokenizer)
    for step in steps:
        with pytest.raises(UsageError, match="must be empty or new, got __manifest"):
            step()
    assert _documents(out, tokenizer) == [tokenizer.decode([1])]


def test_a_failed_run_can_be_repeated(tokenizer, out: str, monkeypatch) -> None:
    with pytest.raises(Exception, match="must be text, got null"):
        _run(_pipeline(out, tokenizer, [{"text": None}]))
    assert Storage().list_names(out) == []  # it failed before it wrote

    def fail(*_: Any) -> None:
        raise DataError("the store is full")

    with monkeypatch.context() as patched:
        patched.setattr(claimed_folder, "_check_file", fail)
        with pytest.raises(Exception, match="the store is full"):
            _run(_pipeline(out, tokenizer, ["the dog", "a dog", "a cat"], shards=3))
    assert "__job" in Storage().list_names(out)
    with pytest.raises(UsageError, match=r"has files: __job.*set overwrite=True to remove"):
        WriteTokens(out, tokenizer)
    _run(_pipeline(out, tokenizer, ["the cat"], overwrite=True))
    assert _documents(out, tokenizer) == ["the cat"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("format_name", ["megatron", "mds", "parquet"])
def test_a_finished_run_is_overwritten(tokenizer, out: str, format_name: str) -> None:
    _run(_pipeline(out, tokenizer, ["the dog", "a dog", "a cat"], shards=3, format=format_name))
    _run(_pipeline(out, tokenizer, ["the cat"], overwrite=True))
    assert _documents(out, tokenizer) == ["the cat"]


def test_a_folder_of_a_command_is_refused_or_overwritten(tokenizer, tmp_path: Path) -> None:
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "a.txt").write_text("the dog\na dog\n")
    out = str(tmp_path / "out")
    files = ["--input", str(tmp_path / "a.txt"), "--tokenizer", str(tmp_path / "tokenizer.json")]
    assert command_line.run("tokenize", *files, "--output", out).code == 0
    with pytest.raises(UsageError, match=r"must be empty or new, got .*__job.*overwrite=True"):
        WriteTokens(out, tokenizer)
    _run(_pipeline(out, tokenizer, ["the cat"], overwrite=True))
    assert _documents(out, tokenizer) == ["the cat"]


def test_a_folder_work_in_a_finished_folder_is_not_ours(tokenizer, tmp_path: Path) -> None:
    out = tmp_path / "out"
    _run(_pipeline(str(out), tokenizer, ["a"]))
    (out / "work").mkdir()
    (out / "work" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="with work"):
        _pipeline(str(out), tokenizer, ["a"], overwrite=True)
    assert (out / "work" / "mine.txt").exists()


def test_what_is_not_ours_is_not_overwritten(tokenizer, out: str) -> None:
    _run(_pipeline(out, tokenizer, ["the dog"]))
    Storage().write_bytes(f"{out}/mine", b"")
    before = Storage().list_names(out)
    with pytest.raises(UsageError, match=r"only files that bpe-beam wrote, got .* with mine; "):
        _pipeline(out, tokenizer, ["the cat"], overwrite=True)
    assert Storage().list_names(out) == before


def _labels(folder: Path) -> list[tuple[Any, Any, list[int]]]:
    """Id, source and ids of each document, sorted."""
    assert verify(Storage(), str(folder)).problems == ()
    found = shards.open(str(folder))
    rows = [(found.labels(at), found[at].tolist()) for at in range(len(found))]
    return sorted(((row["id"], row["source"], ids) for row, ids in rows), key=str)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("format_name", ["parquet", "arrow"])
def test_ids_and_sources_are_written(run, tokenizer, tmp_path, format_name, monkeypatch) -> None:
    """Of every kind of element, also of equal, empty and long texts, in any order."""
    monkeypatch.setattr(document_chunks, "CHUNK_TOKENS", 7)
    long = " ".join(sentences(9))
    rows: list[dict[str, Any]] = [
        {"id": "1", "source": "a", "text": "the cat"},
        {"id": "2", "source": "b", "text": "the cat"},
        {"id": "1", "source": "a", "text": "the cat"},
        {"id": "é", "source": None, "text": ""},
        {"id": None, "source": "b", "text": ""},
        {"id": None, "source": None, "text": "the cat"},
        {"id": "3", "source": "a", "text": long},
        {"id": "4", "source": "a", "text": long},
    ]
    whole = pa.Table.from_pylist(rows)
    kinds = {
        "dict": rows,
        "row": [beam.Row(**row) for row in rows],
        "key": [("k", row) for row in rows],
        "table": [whole],
        "batch": whole.to_batches(max_chunksize=3),
        "chunks": [pa.concat_tables([whole[:3], whole[3:]])],
    }
    ids = {text: tokenizer.encode(text) for text in ("the cat", "", long)}
    expected = sorted(((row["id"], row["source"], ids[row["text"]]) for row in rows), key=str)
    written = []
    for kind, elements in kinds.items():
        write = WriteTokens(str(tmp_path / kind), tokenizer, shards=2, format=format_name)
        shuffled = random.Random(kind).sample(elements, len(elements))
        create = beam.FlatMap(lambda _, e=shuffled: e)
        run(lambda p, c=create, w=write: p | beam.Create([0]) | c | Tokenize(tokenizer) | w)
        keyed = [(id_, "k", ids) for id_, _, ids in expected]
        assert _labels(tmp_path / kind) == (sorted(keyed, key=str) if kind == "key" else expected)
        if kind == "key":
            continue
        written.append({path.name: path.read_bytes() for path in (tmp_path / kind).iterdir()})
    assert all(each == written[0] for each in written)


def test_an_empty_text_with_an_id_makes_no_shard(run, tokenizer, tmp_path) -> None:
    write = WriteTokens(str(tmp_path / "out"), tokenizer, format="parquet")
    rows = [{"id": "1", "text": ""}]
    run(lambda p: p | beam.Create(rows) | Tokenize(tokenizer) | write)
    manifest = read_manifest(Storage(), str(tmp_path / "out"))
    assert (manifest.shards, manifest.totals.documents) == ((), 1)


def test_formats_without_a_place_for_ids_stay_as_they_are(run, tokenizer, tmp_path, caplog) -> None:
    """What the folder has no place for is said, once."""
    for name, fields, said in (
        ("plain", {}, ""),
        ("labelled", {"id": "1", "source": {"any": "thing"}}, "documents: id, source ("),
        ("others", {"url": "a", "score": 1, "nothing": None}, "documents: score, url ("),
    ):
        caplog.clear()
        write = WriteTokens(str(tmp_path / name), tokenizer)
        rows = [{**fields, "text": text} for text in ("the cat", "a dog")]
        run(lambda p, r=rows, w=write: p | beam.Create(r) | Tokenize(tokenizer) | w)
        messages = [r.getMessage() for r in caplog.records if "WriteTokens" in r.getMessage()]
        assert [said in each for each in messages] == ([True] if said else [])
        for path in (tmp_path / "plain").iterdir():
            assert path.read_bytes() == (tmp_path / name / path.name).read_bytes()


def test_the_manifest_has_the_totals_of_sources(run, tokenizer, tmp_path) -> None:
    """If all documents have a source, by a field, a column or a key, in any format."""
    texts = {"a": ["the cat", "the cat", "a dog"], "b": ["a dog", ""]}
    rows = [{"source": name, "text": text} for name, each in texts.items() for text in each]
    kinds: dict[str, list[Any]] = {
        "fields": rows,
        "keys": [(row["source"], row["text"]) for row in rows],
        "columns": [pa.Table.from_pylist(rows)],
        "some": [*rows, {"text": "the bird"}],
    }
    for kind, each in kinds.items():
        write = WriteTokens(str(tmp_path / kind), tokenizer, shards=3)
        create = beam.FlatMap(lambda _, e=each: e)
        run(lambda p, c=create, w=write: p | beam.Create([0]) | c | Tokenize(tokenizer) | w)
        assert verify(Storage(), str(tmp_path / kind)).problems == ()
        sources = read_manifest(Storage(), str(tmp_path / kind)).sources
        expected: dict[str, tuple[int, ...]] = {
            name: (len(each), 0, sum(len(tokenizer.encode(text)) for text in each))
            for name, each in texts.items()
        }
        found = None if sources is None else {n: astuple(row) for n, row in sources.items()}
        assert found == (None if kind == "some" else expected)


DAY = datetime.date(2024, 2, 29)
NUMBER = uuid.UUID(int=7)
VALUES: list[tuple[Any, pa.DataType, str]] = [
    ("a", pa.string_view(), "a"),
    ("a", pa.dictionary(pa.int8(), pa.string()), "a"),
    (b"a", pa.binary(), "a"),
    (7, pa.int32(), "7"),
    (2**63, pa.uint64(), "9223372036854775808"),
    (1.5, pa.float64(), "1.5"),
    (True, pa.bool_(), "true"),
    (DAY, pa.date32(), "2024-02-29"),
    (NUMBER, pa.uuid(), str(NUMBER)),
]


def _split(element: Any) -> Iterator[tuple[int, document_chunks.Chunk]]:
    """The chunks of an element for a format with labels."""
    split = document_chunks.SplitToChunks(1, True)
    split.start_bundle()
    return split.process(element)


@pytest.mark.parametrize("name", ["id", "source"])
def test_labels_of_other_types_become_text(name: str) -> None:
    ids = pa.array([1], pa.uint32())
    lists = pa.array([[1]], pa.large_list(pa.uint32()))
    other = {"id": "source", "source": "id"}[name]
    expected = {name: "", other: None, "text_bytes": None}
    for value, kind, text in VALUES:
        raw = value.bytes if isinstance(value, uuid.UUID) else value
        column = pa.array([raw], kind.storage_type) if kind == pa.uuid() else pa.array([raw], kind)
        if kind == pa.uuid():
            column = pa.ExtensionArray.from_storage(kind, column)
        expected[name] = text
        for element in ({"tokens": ids, name: value}, pa.table({"tokens": lists, name: column})):
            chunks = list(_split(element))
            (label,) = (chunk for _, chunk in chunks if chunk[0] and chunk[1] < 0)
            assert dict(zip(document_chunks.LABELS, json.loads(label[2]), strict=True)) == expected


def test_labels_that_cannot_be_text_are_refused() -> None:
    ids = pa.array([1], pa.uint32())
    lists = pa.array([[1]], pa.large_list(pa.uint32()))
    structs = pa.array([{"a": 1}])
    broken = pa.array([b"\xff"])
    for element, said in (
        ({"tokens": ids, "source": {"a": 1}}, "field 'source' of a document must have .*got dict"),
        ({"tokens": ids, "id": ["a"]}, "field 'id' of a document must have .*got list: convert"),
        ({"tokens": ids, "id": b"\xff"}, "the field 'id' of a document is not valid text"),
        ({"tokens": ids, "id": "\ud800"}, "the field 'id' of a document is not valid text"),
        (pa.table({"tokens": lists, "id": structs}), "column 'id' of a batch must have .*struct"),
        (pa.table({"tokens": lists, "id": broken}), "column 'id' of a batch is not valid text"),
        (pa.table([lists, lists], ["tokens", "tokens"]), "a batch has 2 columns 'tokens'"),
        *(
            (kind.from_arrays([lists, broken, broken], ["tokens", name, name]), f"2 .* '{name}'")
            for kind, name in itertools.product((pa.Table, pa.RecordBatch), ("id", "source"))
        ),
    ):
        with pytest.raises(DataError, match=said):
            list(_split(element))
