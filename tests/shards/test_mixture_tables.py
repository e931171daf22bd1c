"""Tables of mixtures give what the definition gives, however documents are divided."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import chain

import numpy as np
import pyarrow as pa
import pytest
import reference_mix
from reference_mix import Document, Part

from bpe_beam.shards import mixture_tables as tables
from bpe_beam.shards.document_batches import DocumentBatch, bounds_of
from bpe_beam.shards.mixture import SourcePart

CASES = 50  # of each test


def table_of(documents: Sequence[Document], names: Sequence[str], by: Sequence[str]) -> np.ndarray:
    """Return the table of documents, whose index is their position."""
    rows = [np.empty(0, tables.DOCUMENT)]
    for source, name in enumerate(names):
        at = [number for number, each in enumerate(documents) if each.source == name]
        own = [documents[number] for number in at]
        lengths = np.array([len(each.tokens) for each in own], np.int64)
        tokens = np.array([token for each in own for token in each.tokens], np.uint32)
        ids = pa.array([each.id for each in own], pa.string())
        identities = (
            tables.hashes_of_ids(ids)
            if by[source] == "id"
            else tables.hashes_of_tokens(DocumentBatch(tokens, bounds_of(lengths), None), 99)
        )
        sources = np.full(len(own), source)
        rows.append(tables.identified(identities, ids, lengths, sources, 0, np.array(at)))
    return np.concatenate(rows)


def mixed(
    documents: Sequence[Document],
    parts: dict[str, Part],
    seed: int,
    duplicates: str,
    made: random.Random,
) -> list[Document]:
    """Return the documents that the tables take, in any number of groups and of ranges of keys."""
    names = sorted(parts)
    by = []
    for name in names:
        own = [each for each in documents if each.source == name]
        unique = reference_mix.has_unique_ids(own) and duplicates == "keep"
        by.append("id" if unique else "tokens")
    table = table_of(documents, names, by)
    groups, ranges_of_keys = made.randint(1, 4), made.randint(1, 4)
    group = tables.partitions_of(table, groups)
    numbered = np.concatenate(
        [tables.numbered(table[group == at], duplicates, names, seed) for at in range(groups)]
    )
    tokens = tables.sums_by_source(numbered, len(names))[0, :, 1].tolist()
    ranges = []
    for name, total in zip(names, tokens, strict=True):
        part = SourcePart(parts[name].target, parts[name].skip, parts[name].max_epochs)
        if part.end > total * part.max_epochs:
            raise ValueError(name)
        ranges.append(tables.SourceRange(part, total))
    keyed = np.concatenate(
        [
            tables.keyed(numbered, source, tables.TRAIN, epoch, name, seed)
            for source, name in enumerate(names)
            for epoch in ranges[source].epochs
        ]
    )
    sums = tables.tokens_by_slot(keyed, ranges, ranges_of_keys)
    before = np.cumsum(sums, axis=1) - sums
    key_range = tables.partitions_of(keyed, ranges_of_keys)
    taken = [
        tables.taken(keyed[key_range == at], ranges, before[:, at]) for at in range(ranges_of_keys)
    ]
    return [documents[at] for at in np.concatenate(taken)["index"].tolist()]


def random_case(made: random.Random) -> tuple[list[Document], dict[str, Part]]:
    documents = []
    for name in ("a", "b", "çc")[: made.randint(1, 3)]:
        with_ids = made.random() < 0.5
        for number in range(made.randint(1, 30)):
            tokens = tuple(made.randrange(5) for _ in range(made.choice([0, 1, 2, 5, 9])))
            other = made.choice([None, "x", "y", f"file:{number}"])
            documents.append(Document(name, tokens, f"{name}{number}" if with_ids else other))
    made.shuffle(documents)
    parts = {}
    for name in sorted({each.source for each in documents}):
        total = sum(len(each.tokens) for each in documents if each.source == name)
        epochs = made.randint(1, 3)
        skip = made.choice([0, 0, total, made.randrange(total + 1)])
        target = made.randint(1, max(1, total * epochs - skip))
        if total:
            parts[name] = Part(target, skip, epochs)
    return documents, parts


@pytest.mark.sampled(10)
@pytest.mark.parametrize("first", range(0, 2000, CASES))
def test_equals_the_definition(first: int) -> None:
    refused = 0
    for seed in range(first, first + CASES):
        made = random.Random(seed)
        documents, parts = random_case(made)
        if not parts:  # no document of any source has a token
            continue
        duplicates = made.choice(["keep", "keep", "drop", "drop_within_sources"])
        try:
            expected = reference_mix.mixed(documents, parts, seed, duplicates)
        except ValueError:
            refused += 1
            with pytest.raises(ValueError, match=r"^(a|b|çc)$"):
                mixed(documents, parts, seed, duplicates, made)
            continue
        assert mixed(documents, parts, seed, duplicates, made) == [
            each.document for each in expected
        ], seed
    assert refused < CASES // 2


def taken_of(documents: list[Document], parts: dict[str, Part]) -> list[tuple[bytes, Document]]:
    return [(each.key, each.document) for each in reference_mix.mixed(documents, parts, 3)]


@pytest.mark.quick
def test_the_consequences_of_the_definition() -> None:
    """Budgets are nested, sources independent, stages apart, and additions move few documents."""
    made = random.Random(1)
    documents = [
        Document(name, tuple(made.randrange(99) for _ in range(made.randint(1, 9))), f"{name}{at}")
        for name in "ab"
        for at in range(60)
    ]
    small, large = (taken_of(documents, {"a": Part(n), "b": Part(60)}) for n in (50, 120))
    assert {*small} < {*large}
    assert [each for each in large if each in {*small}] == small
    alone = taken_of(documents, {"a": Part(50)})
    assert alone == [each for each in small if each[1].source == "a"]
    assert 0 <= sum(len(each.tokens) for _, each in alone) - 50 < 9
    stages = [taken_of(documents, {"a": Part(40, skip)}) for skip in (0, 40, 80)]
    assert sorted(chain.from_iterable(stages)) == taken_of(documents, {"a": Part(120)})
    added = [*documents, *(Document("a", (1, 2, 3), f"new{at}") for at in range(5))]
    after = taken_of(added, {"a": Part(50)})
    new = [each for each in after if each[1].id and each[1].id.startswith("new")]
    pushed_out = {*alone} - {*after}
    assert {*after} - {*alone} == {*new}
    kept = [key for key, _ in alone if key not in {key for key, _ in pushed_out}]
    assert all(key > max(kept) for key, _ in pushed_out)


@pytest.mark.quick
def test_an_epoch_has_every_document_once_in_an_order_of_its_own() -> None:
    documents = [Document("a", (at,), str(at)) for at in range(40)]
    taken = reference_mix.mixed(documents, {"a": Part(100, 0, 3)}, 7)
    orders = [[each.document for each in taken if each.epoch == epoch] for epoch in range(3)]
    assert [len(each) for each in orders] == [40, 40, 20]
    assert {*orders[0]} == {*orders[1]} == {*documents} > {*orders[2]}
    assert orders[0] != orders[1]


@pytest.mark.quick
@pytest.mark.parametrize(
    ("name", "usable"),
    [
        ("d1", True),
        ("<urn:uuid:1>", True),
        ("a.txt:17", False),
        ("a.gz:5+17", False),
        (None, False),
    ],
)
def test_which_ids_are_positions(name: str | None, usable: bool) -> None:
    assert tables.usable_ids(pa.array([name], pa.string())).tolist() == [usable]


@pytest.mark.quick
def test_the_hashes_stay_as_they_are() -> None:
    """Keys of today must choose the same documents for ever."""
    batch = DocumentBatch(np.array([1, 2, 300], np.uint32), np.array([0, 0, 3]), None)
    empty, ids = tables.hashes_of_tokens(batch, 400).tolist()
    assert [f"{high:016x}{low:016x}" for high, low in (empty, ids)] == [
        "8c8f8af8093e2428618de3720a706051",
        "9bbfa10f7a0238d53a74bae7397a1006",
    ]
    (wide,) = tables.hashes_of_tokens(batch, 1 << 17).tolist()[1:]
    assert f"{wide[0]:016x}{wide[1]:016x}" == "15e65a9ffb88e6184a8d4ae174c7bf19"
    (name,) = tables.hashes_of_ids(pa.array(["d1"])).tolist()
    numbered = np.zeros(1, tables.NUMBERED)
    (numbered["high"], numbered["low"]), numbered["counter"] = name, 2
    (key,) = tables.keys_of(5, 1, "web", numbered).tolist()
    assert f"{key[0]:016x}{key[1]:016x}" == "91d4c3274ee95eb6f4cb351521a32f14"
    expected = reference_mix.key(
        5, 1, "web", reference_mix.identity(Document("", (), "d1"), "id"), 2
    )
    assert expected.hex() == f"{key[0]:016x}{key[1]:016x}"
