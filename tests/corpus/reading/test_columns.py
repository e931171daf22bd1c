"""Parquet and Arrow: any type of column, any cut, any damage."""

from __future__ import annotations

import datetime
import decimal
import io
import itertools
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpus_reading import STORAGE, Found, cut, read, read_file
from some_of import SomeOf

from bpe_beam.corpus.batches import PLACE_BITS
from bpe_beam.corpus.plan import InputFile, Plan, Slice, Split
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.read_split import read_split
from bpe_beam.errors import DataError
from bpe_beam.storage import Storage, StoredFile

pytestmark = pytest.mark.quick

KINDS = ("parquet", "arrow", "arrows")
STRINGS = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.large_binary(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.uint32(), pa.large_string()),
]


def write(path: Path, table: pa.Table, rows: int = 10, **options: Any) -> Path:
    """The table in groups or batches of so many rows."""
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=rows, write_page_checksum=True, **options)
        return path
    make = pa.ipc.new_file if path.suffix == ".arrow" else pa.ipc.new_stream
    with make(path, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for start in range(0, len(table), rows):
            writer.write_batch(table.slice(start, rows).combine_chunks().to_batches()[0])
    return path


def raw_strings(values: list[bytes | None]) -> pa.Array:
    """A column of strings that need not be UTF-8."""
    return pa.Array.from_buffers(pa.string(), len(values), pa.array(values, pa.binary()).buffers())


def table_of(count: int, **columns: Any) -> pa.Table:
    texts = [f"text {i} é" * (i % 4) for i in range(count)]
    return pa.table({"id": [f"no {i}" for i in range(count)], "text": texts, **columns})


def read_damaged(path: Path, cuts: Iterable[int] = (), **options: Any) -> Found:
    """Reads a file of which nobody looked at the first bytes."""
    kind = "parquet" if path.suffix == ".parquet" else "arrow"
    file = InputFile(path.name, path.stat().st_size, kind, "none")
    plan = Plan(str(path.parent), (file,), ())
    return read(plan, cut(plan, cuts), ReadSettings(**options), 1 << 20)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text_type", STRINGS, ids=str)
def test_types_of_texts_and_ids(tmp_path: Path, kind: str, text_type: pa.DataType) -> None:
    texts = ["a", "", "é€😀\0", "a", "x" * 3000]
    for id_type in (*STRINGS, pa.int64(), pa.uint8()):
        names: list[Any] = ["7", None, "", "é", "7"]
        ids = names
        if pa.types.is_integer(id_type):
            names, ids = [7, None, 0, 1, 2], ["7", None, "0", "1", "2"]
        table = pa.table(
            {
                "other": [1] * 5,
                "text": pa.array(texts).cast(text_type),
                "id": pa.array(names).cast(id_type),
            }
        )
        path = write(tmp_path / f"x.{kind}", table, rows=2)
        for batch in (1, 1 << 20):
            found = read_file(path, batch=batch)
            assert found.texts == texts
            assert found.ids == ids
            assert not found.rejects
            assert set(found.sources) == {path.name}


def in_struct(array: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([array], ["value"])


JSONS = [pa.json_(), pa.json_(pa.large_string()), pa.opaque(pa.string(), "citext", "PostgreSQL")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("text_type", JSONS, ids=str)
def test_logical_types_that_are_stored_as_text(
    tmp_path: Path, kind: str, text_type: pa.DataType, nested: bool
) -> None:
    texts = ['{"a": 1}', "[2]", '"é"'] * 8
    stored = pa.array(texts, text_type.storage_type)
    column: pa.Array = pa.ExtensionArray.from_storage(text_type, stored)
    table = pa.table({"c": in_struct(column) if nested else column})
    name = "c.value" if nested else "c"
    path = write(tmp_path / f"a.{kind}", table)
    found = read_file(path, text_field=name, id_field=name, source_field=name)
    assert (found.texts, found.ids, found.sources) == (texts, texts, texts)
    assert not found.rejects


MOMENT = datetime.datetime(2026, 1, 2, 3, 4, 5)
NAMES: list[tuple[pa.Array, str]] = [
    (pa.array([bytes(range(16)), None], pa.uuid()), "00010203-0405-0607-0809-0a0b0c0d0e0f"),
    (pa.array([decimal.Decimal("1.50"), None]), "1.50"),
    (pa.array([2.5, None]), "2.5"),
    (pa.array([0.1, None], pa.float32()), "0.1"),
    (pa.array([True, None]), "true"),
    (pa.array([MOMENT.date(), None]), "2026-01-02"),
    (pa.array([MOMENT, None], pa.timestamp("ms")), "2026-01-02 03:04:05.000"),
    (pa.array([MOMENT, None], pa.timestamp("ms", "Asia/Tokyo")), "2026-01-02 03:04:05.000Z"),
    (pa.array([MOMENT.time(), None], pa.time64("us")), "03:04:05.000000"),
    (pa.array([b"abc", None], pa.binary(3)), "abc"),
    (pa.array([7, None]).dictionary_encode(), "7"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(("column", "name"), NAMES, ids=[str(each.type) for each, _ in NAMES])
def test_ids_and_sources_of_any_simple_type(
    tmp_path: Path, kind: str, column: pa.Array, name: str, nested: bool
) -> None:
    table = pa.table({"text": ["a", "b"], "c": in_struct(column) if nested else column})
    path = write(tmp_path / f"a.{kind}", table)
    field = "c.value" if nested else "c"
    found = read_file(path, id_field=field, source_field=field)
    assert (found.ids, found.sources) == ([name, None], [name, "other"])


def test_a_file_with_a_type_that_pyarrow_lacks_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise pa.ArrowNotImplementedError("Integers with more than 64 bits not implemented")

    path = write(tmp_path / "a.arrow", table_of(2))
    monkeypatch.setattr(pa.ipc, "open_file", fail)
    (reject,) = read_file(path).rejects
    assert reject.reason == "type or encoding that is not read"
    assert "64 bits" in reject.detail
    assert reject.lost_bytes == path.stat().st_size


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("field", ["id_field", "source_field"])
def test_a_column_that_cannot_be_an_id_is_refused(tmp_path: Path, kind: str, field: str) -> None:
    path = write(tmp_path / f"a.{kind}", pa.table({"text": ["a"], "c": [[1]]}))
    with pytest.raises(DataError, match=r"names a column of list<.*> in a\..*got 'c'") as raised:
        read_file(path, **{field: "c"})
    assert raised.value.parameters == (field,)
    settings = ReadSettings(id_field="c")
    plan = Plan(
        str(tmp_path),
        (InputFile(path.name, path.stat().st_size, kind[:7].rstrip("s"), "none"),),
        (),
    )
    assert next(read_split(STORAGE, plan, cut(plan, [])[0], settings, print, only_text=True))


@pytest.mark.parametrize("kind", KINDS)
def test_every_cut_gives_the_same_documents(tmp_path: Path, kind: str) -> None:
    table = table_of(37)
    path = write(tmp_path / f"x.{kind}", table, rows=5)
    whole = read_file(path)
    assert whole.texts == table.column("text").to_pylist()
    assert whole.ids == table.column("id").to_pylist()
    places = [place for place, _ in whole.documents]
    if kind == "arrow":
        stride = (1 << PLACE_BITS) // 8
        assert places == [i // 5 * stride + i % 5 for i in range(37)]
    else:
        assert places == list(range(37))
    size = path.stat().st_size
    used = 0
    for step in (1, 2, 7, 100, size // 2):
        cuts = range(step, size, step)
        if len(cuts) > 500:
            cuts = range(size - 600, size - 100)
        again = read_file(path, cuts=cuts)
        assert again.documents == whole.documents
        assert again.ids == whole.ids
    plan = Plan(str(tmp_path), (InputFile(path.name, size, kind.removesuffix("s"), "none"),), ())
    for split in cut(plan, [size // 3, size // 2]):
        used += bool(list(read_split(STORAGE, plan, split, ReadSettings(), lambda _: None)))
    assert used == (1 if kind == "arrows" else 3)


@pytest.mark.parametrize("kind", KINDS)
def test_paths_into_structs_and_sources(tmp_path: Path, kind: str) -> None:
    rows = [
        {"body": "a", "no": 1, "at": {"site": "web"}},
        {"body": "b", "no": None, "at": {"site": None}},
        {"body": "c", "no": 3, "at": None},
        None,
        {"body": None, "no": 4, "at": {"site": "lost"}},
        {"body": "d", "no": 5, "at": {"site": ""}},
    ]
    table = pa.table({"meta": rows, "meta.body": ["flat"] * 6, "n": [4] * 6})
    path = write(tmp_path / f"x.{kind}", table)
    fields = {"text_field": "meta.body", "id_field": "meta.no"}
    found = read_file(path, source_field="meta.at.site", **fields)
    assert found.texts == ["a", "b", "c", "d"]
    assert found.ids == ["1", None, "3", "5"]
    assert found.sources == ["web", "other", "other", "other"]
    assert [(r.row, r.offset, r.reason) for r in found.rejects] == [
        (3, None, "field missing"),
        (4, None, "field missing"),
    ]
    assert found.rejects[0].detail.startswith("'meta.body' is null")
    assert set(read_file(path, source_field="n", **fields).sources) == {"4"}
    assert set(read_file(path, source_field="no such", **fields).sources) == {"other"}
    assert read_file(path, text_field=r"meta\.body").texts == ["flat"] * 6
    if kind != "parquet":
        return
    table = pa.table({"text": pa.array(["a", "b"]), "more": [1, 2]})
    table = pa.table([table["text"], table["more"], pa.array(["c", "d"])], ["text", "more", "text"])
    assert read_file(write(tmp_path / "x.parquet", table)).texts == ["c", "d"]


@pytest.mark.parametrize("kind", KINDS)
def test_bad_rows_alone_are_rejected(tmp_path: Path, kind: str) -> None:
    texts = raw_strings([b"a", b"\xff", None, b"b\xc3", b"c", b"d", b"e"])
    ids = raw_strings([b"0", b"1", b"2", b"3", b"\xfe", None, b"6"])
    sources = raw_strings([b"s", b"s", b"s", b"s", b"s", b"\xfd", None])
    table = pa.table({"text": texts, "id": ids, "from": sources})
    path = write(tmp_path / f"x.{kind}", table, rows=3)
    found = read_file(path, source_field="from")
    assert (found.texts, found.ids, found.sources) == (["a", "e"], ["0", "6"], ["s", "other"])
    within = "" if kind == "parquet" else ", record batch "
    assert [(r.row, r.reason, r.detail, r.data) for r in found.rejects] == [
        (1, "invalid UTF-8", "at byte 0 of 'text'" + within + "0" * bool(within), b"\xff"),
        (2, "field missing", "'text' is null" + within + "0" * bool(within), b""),
        *(
            (
                row if kind == "parquet" else row - 3,
                "invalid UTF-8",
                detail + within + "1" * bool(within),
                data,
            )
            for row, detail, data in (
                (3, "at byte 1 of 'text'", b"b\xc3"),
                (4, "at byte 0 of 'id'", b"\xfe"),
                (5, "at byte 0 of 'from'", b"\xfd"),
            )
        ),
    ]
    assert [len(batch) for batch in read_file(path, batch=1).batches] == [1, 1, 1]
    table = pa.table({"text": pa.array([b"a", b"\xff", b"b"], pa.binary())})
    assert read_file(write(path, table)).texts == ["a", "b"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("field", "why"),
    [
        ("nothing", "'nothing' names no column in"),
        ("text.x", "'text.x' names no column in"),
        ("n", "'n' names a column of int64, not of strings, in"),
    ],
)
def test_a_file_without_texts_ends_the_job(tmp_path: Path, kind: str, field: str, why: str) -> None:
    path = write(tmp_path / f"x.{kind}", table_of(3, n=[1, 2, 3]))
    with pytest.raises(DataError, match=why) as caught:
        read_file(path, text_field=field)
    assert f"x.{kind}; it has id (string), text (string), n (int64)." in str(caught.value)


def test_files_without_rows(tmp_path: Path) -> None:
    for kind in KINDS:
        for empty in (table_of(0), table_of(3).slice(0, 0), pa.table({"text": []})):
            found = read_file(write(tmp_path / f"x.{kind}", empty))
            assert (found.texts, found.rejects) == ([], [])
        found = read_file(write(tmp_path / f"x.{kind}", pa.table({"text": [None, None]})))
        assert (found.texts, [r.row for r in found.rejects]) == ([], [0, 1])
        (tmp_path / f"x.{kind}").write_bytes(b"")
        (reject,) = read_file(tmp_path / f"x.{kind}").rejects
        assert reject.reason.startswith("broken ")
        assert reject.position == "the whole file"


def test_a_broken_row_group_costs_no_other(tmp_path: Path) -> None:
    table = pa.table({"text": [f"{i}" * 50 for i in range(40)], "id": list(range(40))})
    for compression in ("none", "snappy", "zstd"):
        options = {"use_dictionary": False, "write_statistics": False}
        path = write(tmp_path / "x.parquet", table, compression=compression, **options)
        chunk = pq.read_metadata(path).row_group(2).column(0)
        content = bytearray(path.read_bytes())
        content[chunk.data_page_offset + chunk.total_compressed_size * 2 // 3] ^= 1
        path.write_bytes(content)
        for cuts in ((), (len(content) // 2, len(content) // 2 + 1)):
            found = read_file(path, cuts=cuts)
            assert found.ids == [f"{i}" for i in range(40) if i // 10 != 2]
            (reject,) = found.rejects
            assert (reject.reason, reject.row, reject.offset) == ("broken row group", 20, None)
            assert reject.detail.startswith("row group 2: 10 of its 10 rows are lost: ")


def test_a_broken_page_costs_what_lies_behind_it_in_its_row_group(tmp_path: Path) -> None:
    texts = [f"{i:05}" * 400 for i in range(400)]
    table = pa.table({"text": texts})
    pages = {"use_dictionary": False, "data_page_size": 20_000, "write_batch_size": 5}
    path = write(
        tmp_path / "x.parquet", table, rows=200, compression="none", write_statistics=False, **pages
    )
    content = bytearray(path.read_bytes())
    content[content.index(texts[150].encode()) + 1000] ^= 1
    path.write_bytes(content)
    found = read(
        Plan(str(tmp_path), (InputFile("x.parquet", len(content), "parquet", "none"),), ()),
        [Split(0, (Slice(0, 0, len(content)),))],
        ReadSettings(),
        40_000,
    )
    (reject,) = found.rejects
    assert 100 < reject.row <= 150  # type: ignore[operator]
    assert found.texts == texts[: reject.row] + texts[200:]
    assert f"{200 - reject.row} of its 200 rows are lost" in reject.detail  # type: ignore[operator]


def test_a_broken_record_batch(tmp_path: Path) -> None:
    table = pa.table({"text": [f"{i}" * 50 for i in range(40)], "id": list(range(40))})
    for kind, compression in itertools.product(("arrow", "arrows"), (None, "zstd")):
        path = write(tmp_path / f"x.{kind}", table, compression=compression)
        content = bytearray(path.read_bytes())
        starts = [at for at in range(len(content)) if content.startswith(b"\xff\xff\xff\xff", at)]
        # a schema, then record batches: the message of the third
        content[starts[3] + 8 : starts[3] + 24] = b"\xff" * 16
        path.write_bytes(content)
        found = read_file(path)
        lost = 40 if kind == "arrows" else 30
        assert found.ids == [f"{i}" for i in range(40) if not 20 <= i < lost]
        (reject,) = found.rejects
        assert (reject.reason, reject.row) == ("broken record batch", 0)
        assert "record batch 2" in reject.detail


@pytest.mark.parametrize("kind", KINDS)
def test_truncation_anywhere(tmp_path: Path, kind: str, some_of: SomeOf) -> None:
    table = table_of(12)
    content = write(tmp_path / f"x.{kind}", table, rows=4).read_bytes()
    texts = table.column("text").to_pylist()
    path = tmp_path / f"y.{kind}"
    for size in some_of(range(len(content))):
        path.write_bytes(content[:size])
        found = read_damaged(path, cuts=[size // 2] if size > 1 else [])
        assert found.texts == texts[: len(found.texts)]
        if kind != "arrows":
            assert found.texts == []
            assert [r.reason[:7] for r in found.rejects] == ["broken "]
        else:
            assert len(found.texts) % 4 == 0
            assert len(found.rejects) <= 1


@pytest.mark.parametrize("kind", KINDS)
def test_damage_anywhere(tmp_path: Path, kind: str, some_of: SomeOf) -> None:
    """What is found or lost is reported, and only our own errors are raised."""
    table = table_of(20)
    content = write(tmp_path / f"x.{kind}", table, rows=5).read_bytes()
    path = tmp_path / f"y.{kind}"
    same = 0
    for seed in some_of(range(300)):
        drawn = random.Random(seed)
        damaged = bytearray(content)
        at = drawn.randrange(len(content))
        for place in range(at, min(len(content), at + drawn.choice([1, 1, 4, 20]))):
            damaged[place] = drawn.choice([0, 255, drawn.randrange(256)])
        path.write_bytes(damaged)
        try:
            found = read_damaged(path, cuts=sorted(drawn.sample(range(1, len(content)), 2)))
        except DataError as error:
            assert "text_field" in str(error)  # its name was hit
            continue
        assert len(found.texts) <= 20
        assert len(found.texts) == 20 or found.rejects or kind != "parquet"
        same += found.texts == table.column("text").to_pylist()
    assert 0 < same < 300


def test_a_short_column_of_long_texts(tmp_path: Path) -> None:
    """A long text that is stored once and named by many rows is never in memory for all."""
    long = "long" * 50_000
    texts = [long, "short"] * 2000
    for kind in ("parquet", "arrow"):
        column = pa.DictionaryArray.from_arrays(
            pa.array([0, 1] * 2000, pa.int32()), pa.array([long, "short"])
        )
        path = write(tmp_path / f"x.{kind}", pa.table({"text": column}), rows=4000)
        assert path.stat().st_size < 500_000
        before = pa.default_memory_pool().bytes_allocated()
        plan = Plan(str(tmp_path), (InputFile(path.name, path.stat().st_size, kind, "none"),), ())
        split = Split(0, (Slice(0, 0, path.stat().st_size),))
        rows, most = 0, 0
        for batch in read_split(STORAGE, plan, split, ReadSettings(), lambda _: None):
            assert batch.nbytes < 9 << 20
            assert batch.column("text").to_pylist() == texts[rows : rows + len(batch)]
            rows += len(batch)
            most = max(most, pa.default_memory_pool().bytes_allocated() - before)
        assert rows == 4000
        assert most < 30 << 20


def test_a_batch_is_about_as_large_as_it_was_asked_for(tmp_path: Path) -> None:
    texts = [f"{i} " * 500 for i in range(4000)]
    path = write(tmp_path / "x.parquet", pa.table({"text": texts}), rows=4000)
    found = read_file(path, batch=100_000)
    assert found.texts == texts
    assert max(batch.nbytes for batch in found.batches) < 200_000
    assert len(found.batches) < sum(batch.nbytes for batch in found.batches) // 30_000


class _Failing(Storage, frozen=True):
    """Storage that breaks off after so many reads."""

    reads: ClassVar[int]

    def open_with_stat(self, url: str) -> tuple[StoredFile, Any]:
        class File(io.BytesIO):
            def read(self, count: int | None = -1) -> bytes:
                _Failing.reads -= 1
                if _Failing.reads < 0:
                    raise OSError(5, "the line is down")
                return super().read(count)

        return self.stat(url), File(Path(url).read_bytes())


@pytest.mark.parametrize("kind", KINDS)
def test_a_failure_of_storage_is_no_reject(tmp_path: Path, kind: str) -> None:
    table = pa.table({"text": [f"{random.Random(i).random()}" * 10 for i in range(100)]})
    path = write(tmp_path / f"x.{kind}", table)
    size = path.stat().st_size
    kind = path.suffix[1:].removesuffix("s")

    def read_all(storage: Storage, expected: int) -> int:
        plan = Plan(str(tmp_path), (InputFile(path.name, expected, kind, "none"),), ())
        split = Split(0, (Slice(0, 0, expected),))
        rejects: list[Any] = []
        try:
            batches = read_split(storage, plan, split, ReadSettings(), rejects.append)
            return sum(map(len, batches))
        finally:
            assert not rejects

    with pytest.raises(DataError, match=f"had {size - 1} bytes when the job was planned, and has"):
        read_all(Storage(), size - 1)
    failed = 0
    while True:
        _Failing.reads = failed
        try:
            assert read_all(_Failing(), size) == 100
            break
        except DataError as error:
            assert "the line is down" in str(error)
        failed += 1
    assert failed > 5
