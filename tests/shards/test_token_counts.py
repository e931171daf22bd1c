"""`__token_counts`: what is written is read, and what is not of the folder is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from bpe_beam.errors import DataError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.shards.token_counts import (
    SourceCounts,
    joined_token_counts,
    read_token_counts,
    write_token_counts,
)
from bpe_beam.storage import Storage

STORAGE = Storage()
PRINT = "ab" * 32
IDS = np.array([0, 1, 5], np.uint32)


def counts(source: str | None, *amounts: int) -> SourceCounts:
    return SourceCounts(source, IDS, np.array(amounts, np.int64))


def plain(found: object) -> list[tuple[str | None, list[int], list[int]]]:
    return [(each.source, each.ids.tolist(), each.counts.tolist()) for each in found]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "rows",
    [
        [counts(None, 3, 0, 2**62)],
        [counts("de", 0, 0, 0), counts("en", 1, 2, 3), counts("zh", 0, 7, 0)],
    ],
    ids=["without sources", "sources"],
)
def test_what_is_written_is_read(rows: list[SourceCounts], tmp_path: Path) -> None:
    file = write_token_counts(STORAGE, str(tmp_path), PRINT, rows)
    assert file == FileInfo.of(file.name, (tmp_path / "__token_counts").read_bytes())
    tokens = {each.source: int(each.counts.sum()) for each in rows}
    assert plain(read_token_counts(STORAGE, str(tmp_path), PRINT, tokens, file)) == plain(rows)
    table = pq.read_table(tmp_path / "__token_counts").to_pydict()
    assert table["count"] == [amount for each in rows for amount in each.counts.tolist()]
    assert table["id"] == IDS.tolist() * len(rows)


def test_what_is_not_of_the_folder_is_refused(tmp_path: Path) -> None:
    folder = str(tmp_path)
    rows = [counts("de", 1, 2, 3), counts("en", 4, 0, 0)]
    file = write_token_counts(STORAGE, folder, PRINT, rows)
    for tokens in ({"de": 6, "en": 5}, {"de": 6, "fr": 4}, {"de": 6}, {None: 10}):
        with pytest.raises(DataError, match=r"other tokens|not of the tokenizer"):
            list(read_token_counts(STORAGE, folder, PRINT, tokens, file))
    with pytest.raises(DataError, match="not of the tokenizer"):
        list(read_token_counts(STORAGE, folder, "cd" * 32, {"de": 6, "en": 4}, file))


def test_damage_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "__token_counts"
    expected = write_token_counts(STORAGE, str(tmp_path), PRINT, [counts(None, 1, 2, 3)])
    whole = file.read_bytes()
    swapped = tmp_path / "swapped"
    swapped.mkdir()
    write_token_counts(STORAGE, str(swapped), PRINT, [counts(None, 3, 2, 1)])
    page = pq.ParquetFile(file).metadata.row_group(0).column(1)
    changed = bytearray(whole)
    changed[page.data_page_offset + page.total_compressed_size - 1] ^= 1
    others = (bytes(changed), whole[:-9], b"", (swapped / "__token_counts").read_bytes(), None)
    for data in others:
        file.unlink() if data is None else file.write_bytes(data)
        with pytest.raises(DataError, match="__token_counts is missing, or is not the file"):
            list(read_token_counts(STORAGE, str(tmp_path), PRINT, {None: 6}, expected))
    file.write_bytes(b"PAR1")
    described = FileInfo.of(file.name, b"PAR1")
    with pytest.raises(DataError, match="no Parquet file"):
        list(read_token_counts(STORAGE, str(tmp_path), PRINT, {None: 6}, described))


def test_sums_of_folders() -> None:
    parts = [[counts("de", 1, 0, 0), counts("zh", 0, 0, 5)], [counts("en", 0, 1, 0)], []]
    again = [counts("de", 2, 2, 2)]
    assert plain(joined_token_counts([*parts, again], by_source=True)) == plain(
        [counts("de", 3, 2, 2), counts("en", 0, 1, 0), counts("zh", 0, 0, 5)]
    )
    assert plain(joined_token_counts([*parts, again], by_source=False)) == plain(
        [counts(None, 3, 3, 7)]
    )
