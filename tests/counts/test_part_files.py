"""A counts folder: what is written is read back, and nothing else passes for it."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from counts_folders import PARTITIONS, blocks_of, some_counts, write_folder
from msgspec.structs import replace

from bpe_beam.counts import part_files
from bpe_beam.counts.manifest import CountsManifest, CountsPart, read_manifest
from bpe_beam.counts.part_files import read_part, write_part
from bpe_beam.counts.word_table import PLACED_SCHEMA, WORD_SCHEMA
from bpe_beam.errors import DataError
from bpe_beam.storage import Storage

pytestmark = pytest.mark.quick

STORAGE = Storage()


def iter_parts(folder: Path, manifest: CountsManifest) -> Iterator[pa.Table]:
    """Yield the parts, one after another."""
    for part in manifest.parts:
        yield read_part(STORAGE, str(folder), manifest, part)[None]


class TestParts:
    @pytest.mark.parametrize("with_places", [False, True])
    def test_read_back(self, tmp_path: Path, with_places: bool) -> None:
        manifest = write_folder(tmp_path, with_places)
        assert read_manifest(STORAGE, str(tmp_path)) == manifest
        tables = list(iter_parts(tmp_path, manifest))
        expected = [
            pa.Table.from_batches(blocks_of(some_counts(with_places), partition, 10**6))
            for partition in range(PARTITIONS)
        ]
        assert tables == expected
        assert tables[0].schema == (PLACED_SCHEMA if with_places else WORD_SCHEMA)

    def test_facts(self, tmp_path: Path) -> None:
        manifest = write_folder(tmp_path)
        for number, part in enumerate(manifest.parts):
            data = (tmp_path / part.name).read_bytes()
            words = pq.read_table(tmp_path / part.name)["word"].to_pylist()
            assert part == CountsPart(
                name=f"part-{number:05}-of-00003.parquet",
                unique_words=len(words),
                word_bytes=sum(len(word.encode()) for word in words),
                bytes=len(data),
                sha256=hashlib.sha256(data).hexdigest(),
            )
        assert sum(part.unique_words for part in manifest.parts) == len(some_counts())

    @pytest.mark.parametrize("row_group", [1, 7, 100, 1 << 20])
    def test_the_same_bytes_from_blocks_of_any_size(
        self, tmp_path: Path, row_group: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Row groups are a function of the words, not of the blocks that brought them."""
        monkeypatch.setattr(part_files, "_ROW_GROUP", row_group)
        parts = set()
        for max_bytes in (1100, 1500, 4000, 10**6):
            folder = tmp_path / str(max_bytes)
            folder.mkdir()
            blocks = blocks_of(some_counts(), 0, max_bytes)
            parts.add(write_part(STORAGE, str(folder), "part", {None: blocks}, False))
            file = pq.ParquetFile(folder / "part")
            sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
            assert sizes[:-1] == [row_group] * (len(sizes) - 1)
        assert len(parts) == 1

    def test_a_partition_without_words(self, tmp_path: Path) -> None:
        part = write_part(STORAGE, str(tmp_path), "part", {None: []}, False)
        assert (part.unique_words, part.word_bytes) == (0, 0)
        table = pq.read_table(tmp_path / "part")
        assert table.schema == WORD_SCHEMA
        assert table.num_rows == 0

    def test_nothing_is_left_of_a_part_that_failed(self, tmp_path: Path) -> None:
        def blocks() -> Iterator[pa.RecordBatch]:
            yield next(blocks_of(some_counts(), 0, 2000))
            raise RuntimeError("the shuffle broke")

        with pytest.raises(RuntimeError, match="the shuffle broke"):
            write_part(STORAGE, str(tmp_path), "part", {None: blocks()}, False)
        assert list(tmp_path.iterdir()) == []

    def test_large_counts(self, tmp_path: Path) -> None:
        large = [2**31, 2**53 + 1, 2**63 - 1]
        block = pa.record_batch([pa.array("abc", pa.large_string()), large], schema=WORD_SCHEMA)
        write_part(STORAGE, str(tmp_path), "part", {None: [block]}, False)
        assert pq.read_table(tmp_path / "part")["count"].to_pylist() == large


class TestThreads:
    def test_the_reading_thread_releases_the_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        manifest = write_folder(tmp_path)
        reader, elsewhere = threading.get_ident(), []

        class Data(bytes):
            def __del__(self) -> None:
                if threading.get_ident() != reader:
                    elsewhere.append(threading.current_thread().name)

        whole = Data((tmp_path / manifest.parts[0].name).read_bytes())
        monkeypatch.setattr(Storage, "read_bytes", lambda self, url: Data(whole))
        # With threads, some forty of three hundred reads were released by another.
        for _ in range(300):
            read_part(STORAGE, str(tmp_path), manifest, manifest.parts[0])
        assert elsewhere == []


class TestChangedParts:
    @pytest.mark.parametrize("place", [0, 0.5, 0.999])
    def test_a_byte(self, tmp_path: Path, place: float) -> None:
        manifest = write_folder(tmp_path)
        path = tmp_path / manifest.parts[1].name
        data = bytearray(path.read_bytes())
        data[int(place * len(data))] ^= 1
        path.write_bytes(data)
        parts = iter_parts(tmp_path, manifest)
        next(parts)
        with pytest.raises(DataError, match=r"part-00001-of-00003\.parquet is not the file"):
            next(parts)

    def test_cut_off_or_emptied(self, tmp_path: Path) -> None:
        manifest = write_folder(tmp_path)
        path = tmp_path / manifest.parts[0].name
        for data in (path.read_bytes()[:-1], b""):
            path.write_bytes(data)
            with pytest.raises(DataError, match="is not the file"):
                next(iter_parts(tmp_path, manifest))

    def test_missing(self, tmp_path: Path) -> None:
        manifest = write_folder(tmp_path)
        (tmp_path / manifest.parts[2].name).unlink()
        with pytest.raises(DataError, match=r"part-00002-of-00003\.parquet"):
            list(iter_parts(tmp_path, manifest))

    def test_exchanged(self, tmp_path: Path) -> None:
        manifest = write_folder(tmp_path)
        first, second = (tmp_path / part.name for part in manifest.parts[:2])
        first.rename(tmp_path / "aside")
        second.rename(first)
        (tmp_path / "aside").rename(second)
        with pytest.raises(DataError, match="is not the file"):
            list(iter_parts(tmp_path, manifest))

    def test_other_rows_than_the_manifest_says(self, tmp_path: Path) -> None:
        manifest = write_folder(tmp_path)
        wrong = replace(manifest.parts[0], unique_words=1)
        with pytest.raises(DataError, match="expected 1 rows"):
            list(iter_parts(tmp_path, replace(manifest, parts=(wrong,))))

    def test_other_columns_than_the_manifest_says(self, tmp_path: Path) -> None:
        manifest = replace(write_folder(tmp_path), with_places=True)
        with pytest.raises(DataError, match=r"expected \d+ rows of .*'first_document'"):
            list(iter_parts(tmp_path, manifest))
