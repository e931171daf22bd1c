"""Any documents of any sources, in any batches: as a dict counts them."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe_beam.corpus.batches import BATCH_SCHEMA
from bpe_beam.counts.manifest import CountsManifest, SourceTotals
from bpe_beam.counts.part_files import added_up, read_part, words_of, write_part
from bpe_beam.counts.word_table import WordRules, WordTable
from bpe_beam.storage import Storage
from bpe_beam.workers.source_tables import SourceTables

NAMES = st.sampled_from(["a", "b", "ä", "", "A", "\U0001f600", "a b"]).map(lambda n: f"s{n}")
DOCUMENTS = st.lists(st.tuples(NAMES, st.text("ab é\n語", max_size=12)), max_size=30)


@settings(deadline=None)
@given(
    batches=st.lists(DOCUMENTS, max_size=4),
    flush=st.lists(st.booleans(), min_size=4, max_size=4),
    factors=st.fixed_dictionaries({}, optional={"sa": st.integers(0, 2**40), "sb": st.just(0)}),
)
def test_a_part_of_them(
    batches: list[list[tuple[str, str]]], flush: list[bool], factors: dict[str, int]
) -> None:
    """Written, read back by source, and added up by factors."""
    rules = WordRules(pretokenizer="whitespace_split")
    tables = SourceTables(rules, True, max_bytes=1 << 40, on_full=pytest.fail)
    gathered: dict[str, WordTable] = {}
    for rows, empty in zip(batches, flush, strict=False):
        if not rows:
            continue
        sources, texts = (list(column) for column in zip(*rows, strict=True))
        tables.add(
            pa.record_batch([[None] * len(rows), sources, [0] * len(rows), texts], BATCH_SCHEMA)
        )
        if empty:
            _gather(tables, gathered)
    _gather(tables, gathered)
    storage = Storage()
    part = write_part(storage, "memory://parts", "part", words_of(gathered, True), False)
    twin: dict[str, Counter[str]] = {}
    for source, text in (row for rows in batches for row in rows):
        twin.setdefault(source, Counter()).update(text.split())
    manifest = CountsManifest(
        "none", "whitespace_split", (), False, 0, 0, 0, part.unique_words, part.word_bytes, {}, (),
        (part,), {name: SourceTotals(0, 0, 0, 0) for name in part.sources or {}},
    )  # fmt: skip
    read = read_part(storage, "memory://parts", manifest, part)
    assert [
        (source, *row)
        for source, table in read.items()
        for row in zip(table["word"].to_pylist(), table["count"].to_pylist(), strict=True)
    ] == [
        (source, word, twin[source][word])
        for source in sorted(twin)
        for word in sorted(twin[source], key=str.encode)
    ]
    every = {name: factors.get(name, 1) for name in twin}
    total: Counter[str] = Counter()
    for source, words in twin.items():
        for word, count in words.items():
            total[word] += count * every[source]
    found = added_up(read, False, every)
    assert dict(zip(found["word"].to_pylist(), found["count"].to_pylist(), strict=True)) == +total
    assert part.unique_words == len({word for words in twin.values() for word in words})


def _gather(tables: SourceTables, into: dict[str, WordTable]) -> None:
    """Empties the tables as the job does: by blocks."""
    for source, table in tables.tables():
        kept = into.setdefault(source, WordTable())
        for _, block in table.blocks(3, 1100):
            kept.add_block(block)
        table.clear()
