"""`Tokenize` and `WriteTokens`, and the whole way `ReadDocuments | CountWords | LearnMerges`."""

from __future__ import annotations

import json
import random
from pathlib import Path

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.transforms.window import FixedWindows
from sentences import sentences

from bpe_beam.errors import DataError, UsageError
from bpe_beam.shards.formats.megatron import MegatronReader
from bpe_beam.shards.manifest import read_manifest
from bpe_beam.shards.verify import verify
from bpe_beam.storage import Storage
from bpe_beam.transforms import (
    Tokenize,
    WriteTokens,
    write_tokens,
)


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
        assert kept == [f"{folder}/__manifest"]
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


def test_write_tokens_wants_all_documents_at_once(tokenizer, tmp_path) -> None:
    with pytest.raises(UsageError, match="bounded input in the global window"):
        _ = (
            beam.Pipeline()
            | beam.Create(["a"])
            | beam.WindowInto(FixedWindows(10))
            | Tokenize(tokenizer)
            | WriteTokens(str(tmp_path / "out"), tokenizer)
        )


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
    with MegatronReader(Storage(), str(tmp_path / "out"), "shard-00000-of-00001") as reader:
        ids = [reader.document(number).tolist() for number in range(len(reader))]
    assert ids == [tokenizer.encode("the cat")] * 8


def _sent(documents: list[list[int]]) -> list[tuple[int, write_tokens.Chunk]]:
    """The chunks of documents on their way to one shard."""
    arrays = [pa.array(ids, pa.uint32()) for ids in documents]
    return [chunk for ids in arrays for chunk in write_tokens._to_chunks(ids, 1)]


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
    random.Random(gone).shuffle(chunks)
    (row,) = write_tokens._write_shard((0, [*chunks, name, name]), target)
    assert json.loads(row[1])["tokens"] == 11
    other = (b"", 0, b"shard-00000-of-00002")
    for wrong in (
        [*chunks[:gone], *chunks[gone + 1 :], name],
        [*chunks, chunks[gone], name],
        chunks,
        [*chunks, name, other],
        [name],
    ):
        with pytest.raises(DataError, match="the runner lost a part"):
            list(write_tokens._write_shard((0, wrong), target))


def test_a_lost_shard_is_not_passed_over(tokenizer, tmp_path) -> None:
    target = write_tokens._Target(Storage(), str(tmp_path), 2, tokenizer.to_json())
    named = [(0, "shard-00000-of-00002"), (1, "shard-00001-of-00002"), (1, "shard-00000-of-00001")]
    rows = [
        row
        for shard, name in named
        for row in write_tokens._write_shard(
            (shard, [*(c for _, c in _sent([[1]])), (b"", 0, name.encode())]), target
        )
    ]
    misnamed = rows.pop()
    for wrong in ([rows[1]], [rows[0], rows[0]], [rows[0], misnamed]):
        with pytest.raises(DataError, match="the runner lost a part"):
            list(write_tokens._write_manifest((0, [row for _, row in wrong]), target))
    assert not (tmp_path / "__manifest").exists()
    gone = tmp_path / "shard-00001-of-00002.bin"
    data = gone.read_bytes()
    gone.unlink()
    with pytest.raises(DataError, match=gone.name):
        list(write_tokens._write_manifest((0, [row for _, row in rows]), target))
    assert not (tmp_path / "__manifest").exists()
    gone.write_bytes(data)
    assert list(write_tokens._write_manifest((0, [row for _, row in rows]), target))
