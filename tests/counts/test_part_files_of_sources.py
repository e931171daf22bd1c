"""Parts with sources: what is written is read back and added up, and nothing else passes for it."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from bpe_beam.counts import part_files
from bpe_beam.counts.manifest import (
    MAX_SOURCES,
    CountsManifest,
    Filtered,
    SourceTotals,
    check_sources,
    read_manifest,
)
from bpe_beam.counts.part_files import (
    added_up,
    iter_words,
    read_part,
    words_of,
    write_part,
)
from bpe_beam.counts.word_table import WordCounter, WordRules, schema_of
from bpe_beam.errors import DataError, UsageError
from bpe_beam.storage import Storage
from bpe_beam.storage.json_file import with_checksum

pytestmark = pytest.mark.quick

STORAGE = Storage()
NAME = "part-00000-of-00001.parquet"


def some_texts(seed: int = 3) -> dict[str, list[str]]:
    made = random.Random(seed)
    words = ["the", "größe", "語", "w" * 30, "12", "x", "y"]
    # Not in the order of their names' bytes.
    return {
        name: [" ".join(made.choices(words[i : i + 5], k=7)) for _ in range(20)]
        for i, name in enumerate(["zh", "größe", "en"])
    }


def tables_of(texts: dict[str, list[str]], with_places: bool = False) -> dict[str, WordCounter]:
    tables = {}
    for number, (source, lines) in enumerate(texts.items()):
        tables[source] = WordCounter(
            WordRules(pretokenizer="whitespace_split", with_places=with_places)
        )
        places = pa.array(range(number * 100, number * 100 + len(lines)), pa.uint64())
        tables[source].add_texts(pa.array(lines), places if with_places else None)
    return tables


def write_folder(folder: Path, with_places: bool = False) -> CountsManifest:
    """A finished counts folder of one part, as the job leaves it."""
    texts = some_texts()
    part = write_part(
        STORAGE, str(folder), NAME, words_of(tables_of(texts, with_places), True), with_places
    )
    totals = {
        name: SourceTotals(
            len(lines),
            sum(len(line.encode()) for line in lines),
            sum(len(line.split()) for line in lines),
            (part.sources or {})[name],
        )
        for name, lines in sorted(texts.items())
    }
    manifest = CountsManifest(
        normalizer="none",
        pretokenizer="whitespace_split",
        special_tokens=(),
        with_places=with_places,
        documents=60,
        text_bytes=sum(row.text_bytes for row in totals.values()),
        words=sum(row.words for row in totals.values()),
        unique_words=part.unique_words,
        word_bytes=part.word_bytes,
        rejects={},
        inputs=(("a", 1),),
        parts=(part,),
        sources=totals,
    )
    (folder / "__manifest").write_bytes(manifest.to_bytes())
    return manifest


def expected(texts: dict[str, list[str]]) -> dict[str, Counter[str]]:
    return {name: Counter(" ".join(lines).split()) for name, lines in texts.items()}


def rewrite(folder: Path, table: pa.Table, **changes: Any) -> CountsManifest:
    """Puts another table there, with the hash that it has."""
    manifest = read_manifest(STORAGE, str(folder))
    pq.write_table(table, folder / NAME)
    data = (folder / NAME).read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    part = replace(manifest.parts[0], bytes=len(data), sha256=digest, **changes)
    return replace(manifest, parts=(part,))


@pytest.mark.parametrize("with_places", [False, True])
def test_read_back(tmp_path: Path, with_places: bool) -> None:
    """Rows by source, then word, in the order of their bytes."""
    manifest = write_folder(tmp_path, with_places)
    assert read_manifest(STORAGE, str(tmp_path)) == manifest
    words = read_part(STORAGE, str(tmp_path), manifest, manifest.parts[0])
    assert {table.schema for table in words.values()} == {schema_of(with_places)}
    rows = [
        (source, *row)
        for source, table in words.items()
        for row in zip(table["word"].to_pylist(), table["count"].to_pylist(), strict=True)
    ]
    counted = expected(some_texts())
    assert rows == sorted(
        ((source, word, n) for source, words in counted.items() for word, n in words.items()),
        key=lambda row: (row[0].encode(), row[1].encode()),
    )
    assert manifest.parts[0].sources == {name: len(counted[name]) for name in sorted(counted)}
    assert manifest.parts[0].rows == len(rows)


@pytest.mark.parametrize("with_places", [False, True])
def test_added_up_it_is_what_counting_without_sources_gives(
    tmp_path: Path, with_places: bool
) -> None:
    manifest = write_folder(tmp_path, with_places)
    (table,) = iter_words(STORAGE, str(tmp_path), manifest)
    every = WordCounter(WordRules(pretokenizer="whitespace_split", with_places=with_places))
    for counts in tables_of(some_texts(), with_places).values():
        every.add(counts)
    blocks = [block for _, block in every.blocks(1)]
    assert table == pa.Table.from_batches(blocks)
    assert manifest.unique_words == len(every)
    assert manifest.word_bytes == sum(len(word.encode()) for word in table["word"].to_pylist())


def test_weighted(tmp_path: Path) -> None:
    """Against a dict: each source's counts times its factor; 0 leaves its words out."""
    manifest = write_folder(tmp_path)
    part = manifest.parts[0]
    words = read_part(STORAGE, str(tmp_path), manifest, part)
    factors = {"zh": 3, "en": 0, "größe": 7}
    found = added_up(words, False, factors)
    twin: Counter[str] = Counter()
    for source, words in expected(some_texts()).items():
        for word, count in words.items():
            twin[word] += count * factors[source]
    twin = +twin
    assert dict(zip(found["word"].to_pylist(), found["count"].to_pylist(), strict=True)) == twin
    assert found["word"].to_pylist() == sorted(twin, key=str.encode)


def test_products_and_sums_beyond_64_bits_are_refused(tmp_path: Path) -> None:
    most = 2**63 - 1
    tables = {}
    for source in "ab":
        tables[source] = WordCounter()
        words = pa.record_batch([pa.array(["x"], pa.large_string()), [most]], schema_of(False))
        tables[source].add_block(words)
    with pytest.raises(DataError, match="beyond 64 bits"):
        write_part(STORAGE, str(tmp_path), NAME, words_of(tables, True), False)
    assert list(tmp_path.iterdir()) == []
    words = {"a": pa.Table.from_batches(_one("x", most).drain())}
    assert added_up(words, False, {"a": 1})["count"].to_pylist() == [most]
    with pytest.raises(DataError, match="a count multiplied by 2 is beyond 64 bits"):
        added_up(words, False, {"a": 2})
    with pytest.raises(DataError, match="beyond 64 bits"):
        added_up(words, False, {"a": 2**70})


def _one(word: str, count: int) -> WordCounter:
    counts = WordCounter()
    row = [pa.array([word], pa.large_string()), pa.array([count], pa.int64())]
    counts.add_block(pa.record_batch(row, schema=schema_of(False)))
    return counts


@pytest.mark.parametrize("row_group", [1, 7, 1 << 20])
def test_the_same_bytes_in_any_order_of_sources(
    tmp_path: Path, row_group: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_files, "_ROW_GROUP", row_group)
    texts = some_texts()
    parts = set()
    for names in (["zh", "größe", "en"], ["en", "größe", "zh"], ["größe", "zh", "en"]):
        words = words_of(tables_of({name: texts[name] for name in names}), True)
        parts.add(msgspec.json.encode(write_part(STORAGE, str(tmp_path), NAME, words, False)))
    assert len(parts) == 1


def test_a_source_without_words_in_a_part(tmp_path: Path) -> None:
    part = write_part(STORAGE, str(tmp_path), NAME, {"a": WordCounter().drain()}, False)
    assert (part.rows, part.sources) == (0, {})
    assert pq.read_table(tmp_path / NAME).schema == schema_of(False, with_sources=True)


class TestHostileParts:
    """Hashes that fit, and content that no job writes."""

    @pytest.mark.parametrize(
        ("edit", "said"),
        [
            (lambda t: t.set_column(2, "count", _counts([0], t)), "a count is below 1"),
            (lambda t: t.set_column(2, "count", _counts([-5], t)), "a count is below 1"),
            (lambda t: t.set_column(2, "count", _counts([None], t)), "count has nulls"),
            (lambda t: t.set_column(1, "word", _texts([None], t)), "word has nulls"),
            (lambda t: t.set_column(1, "word", _texts([""], t)), "a word is empty"),
            (lambda t: t.set_column(1, "word", _texts(["\U0010ffff"], t)), "out of order"),
            (lambda t: t.take(list(range(len(t)))[::-1]), "differ from the sources"),
            (lambda t: t.set_column(0, "source", _texts(["no"], t)), "differ from the sources"),
            (lambda t: t.slice(1), r"expected \d+ rows"),
            (lambda t: t.drop_columns(["source"]), r"expected \d+ rows of .*'source'"),
            (lambda t: t.set_column(2, "count", t["count"].cast("int32")), "expected"),
            (lambda t: t.append_column("more", t["count"]), "expected"),
        ],
    )  # fmt: skip
    def test_it_is_refused(
        self, tmp_path: Path, edit: Callable[[pa.Table], pa.Table], said: str
    ) -> None:
        manifest = write_folder(tmp_path)
        table = pq.read_table(tmp_path / NAME)
        manifest = rewrite(tmp_path, edit(table))
        with pytest.raises(DataError, match=said):
            list(iter_words(STORAGE, str(tmp_path), manifest))
        with pytest.raises(DataError, match=said):
            read_part(STORAGE, str(tmp_path), manifest, manifest.parts[0])

    def test_a_word_twice_in_a_source(self, tmp_path: Path) -> None:
        manifest = write_folder(tmp_path)
        table = pq.read_table(tmp_path / NAME)
        table = pa.concat_tables([table.slice(0, 1), table])
        sources = dict(manifest.parts[0].sources or {})
        sources["en"] += 1
        manifest = rewrite(tmp_path, table, sources=sources)
        with pytest.raises(DataError, match="its words are out of order"):
            read_part(STORAGE, str(tmp_path), manifest, manifest.parts[0])

    def test_words_that_are_no_utf_8(self, tmp_path: Path) -> None:
        manifest = write_folder(tmp_path)
        table = pq.read_table(tmp_path / NAME)
        words = [word.encode() for word in table["word"].to_pylist()]
        words[-1] = b"\xff\xfe"
        broken = pa.array(words, pa.large_binary()).view(pa.large_string())
        manifest = rewrite(tmp_path, table.set_column(1, "word", broken))
        with pytest.raises(DataError, match="is no Parquet file of words"):
            read_part(STORAGE, str(tmp_path), manifest, manifest.parts[0])

    @pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" * 50, b"\0" * 1000])
    def test_no_parquet(self, tmp_path: Path, data: bytes) -> None:
        manifest = write_folder(tmp_path)
        (tmp_path / NAME).write_bytes(data)
        part = replace(manifest.parts[0], sha256=hashlib.sha256(data).hexdigest())
        with pytest.raises(DataError, match="is no Parquet file of words"):
            read_part(STORAGE, str(tmp_path), manifest, part)

    def test_another_hash(self, tmp_path: Path) -> None:
        manifest = write_folder(tmp_path)
        with (tmp_path / NAME).open("ab") as file:
            file.write(b"x")
        with pytest.raises(DataError, match="is not the file that was written"):
            read_part(STORAGE, str(tmp_path), manifest, manifest.parts[0])


def _counts(first: list[int | None], table: pa.Table) -> pa.Array:
    return pa.array([*first, *table["count"].to_pylist()[len(first) :]], pa.int64())


def _texts(first: list[str | None], table: pa.Table) -> pa.Array:
    return pa.array([*first, *table["word"].to_pylist()[len(first) :]], pa.large_string())


class TestManifests:
    @pytest.mark.parametrize(
        "change",
        [
            {"sources": None}, {"sources": {}}, {"sources": {"en": 5}}, {"sources": [1]},
            {"sources": {"en": {"documents": 1}}}, {"filtered": None},
            {"filtered": [{}]}, {"filtered": [{"min_count": 1}]}, {"filtered": [5]},
            {"documents": -1}, {"words": "5"}, {"unique_words": True}, {"word_bytes": 2**63},
            {"with_places": 1}, {"normalizer": 5}, {"special_tokens": [5]},
            {"rejects": {"a": -1}}, {"inputs": [[5, 5]]}, {"inputs": [["a", -5]]},
        ],
        ids=str,
    )  # fmt: skip
    def test_what_is_none(self, tmp_path: Path, change: dict[str, Any]) -> None:
        write_folder(tmp_path)
        path = tmp_path / "__manifest"
        document = {**json.loads(path.read_bytes()), **change}
        del document["sha256"]
        path.write_bytes(with_checksum(document))
        with pytest.raises(DataError, match=r"__manifest: (?!the checksum)"):
            read_manifest(STORAGE, str(tmp_path))

    @pytest.mark.parametrize(
        "change",
        [
            {"name": "../secret"}, {"name": "a/b"}, {"name": ""}, {"name": 5}, {"rows": 5},
            {"unique_words": -1}, {"bytes": 1.5}, {"sha256": None}, {"sources": None},
            {"sources": {"no": 1}}, {"sources": {"en": -1}}, {"sources": 5},
        ],
        ids=str,
    )  # fmt: skip
    def test_parts_that_are_none(self, tmp_path: Path, change: dict[str, Any]) -> None:
        write_folder(tmp_path)
        path = tmp_path / "__manifest"
        document = json.loads(path.read_bytes())
        document["parts"][0] |= change
        del document["sha256"]
        path.write_bytes(with_checksum(document))
        with pytest.raises(DataError, match=r"__manifest: .*part"):
            read_manifest(STORAGE, str(tmp_path))

    def test_what_was_filtered_stands_there(self, tmp_path: Path) -> None:
        manifest = write_folder(tmp_path)
        filtered = (Filtered(2, ("en",), 5, 9), Filtered(3, None, 0, 0))
        manifest = replace(manifest, filtered=filtered)
        (tmp_path / "__manifest").write_bytes(manifest.to_bytes())
        assert read_manifest(STORAGE, str(tmp_path)) == manifest


def test_so_many_sources_and_no_more() -> None:
    names = [f"s{i}" for i in range(MAX_SOURCES)]
    check_sources([*names, "s1"])
    with pytest.raises(DataError, match=r"more than 1,000 sources.*source_field"):
        check_sources([*names, "one more"])
    check_sources(["a" * 1000])
    with pytest.raises(DataError, match=r"has 1,001 characters, 'aaa.*does source_field name"):
        check_sources(["b", "a" * 1001])


def test_counts_without_a_manifest_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no counts folder"):
        read_manifest(STORAGE, str(tmp_path))
