"""How often ids occur, by split and source, against a count of each id."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from msgspec.structs import replace
from small_tokenizers import learn

from bpe_beam.errors import DataError
from bpe_beam.folders.receipts import TaskFolder
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.components.models import WordLevel
from bpe_beam.tokenizer.spec import TokenizerSpec
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.workers import token_counter
from bpe_beam.workers.token_counter import IdColumns, TokenCounter, added_up

SOURCES = ["de", "en", "fr", "zh"]
DENSE = learn("bytes", ("<s>",), 300)
SPARSE = Tokenizer(TokenizerSpec(WordLevel({"a": 3, "b": 70_000, "[UNK]": 2**31 - 1}, "[UNK]")))


@pytest.mark.parametrize("tokenizer", [DENSE, SPARSE], ids=["dense", "sparse"])
@pytest.mark.parametrize("rows", [1, 2, 9])
@pytest.mark.parametrize("by_source", [False, True])
def test_counts_against_a_count_of_each_id(
    tokenizer: Tokenizer,
    rows: int,
    by_source: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = random.Random(rows)
    columns = IdColumns(tokenizer)
    monkeypatch.setattr(token_counter, "TABLE_BYTES", rows * columns.width * 8)
    folder = TaskFolder(Storage(), str(tmp_path), "")
    (tmp_path / "work").mkdir()
    ids = columns.ids.tolist()
    expected: Counter[tuple[str, int]] = Counter()
    files = []
    for split in range(3):
        counter = TokenCounter(columns, by_source)
        for _ in range(5):
            sources = [made.choice(SOURCES[:3]) for _ in range(made.randint(0, 12))]
            documents = [made.choices(ids, k=made.randint(0, 6)) for _ in sources]
            counter.add(
                pa.record_batch({"source": pa.array(sources, pa.large_string())}),
                pa.array(documents, pa.large_list(pa.uint32())),
            )
            for source, document in zip(sources, documents, strict=True):
                expected.update((source if by_source else "", token) for token in document)
        files.append(counter.write(folder, f"shard-{split}"))
    found = list(added_up(folder, files, columns, SOURCES if by_source else None))
    assert [each.source for each in found] == (SOURCES if by_source else [None])
    for each in found:
        assert each.ids.tolist() == ids
        assert each.counts.tolist() == [expected[each.source or "", token] for token in ids]
    damaged = [replace(files[0], sha256="0" * 64)]
    with pytest.raises(DataError, match="shard-0"):
        list(added_up(folder, damaged, columns, None))
