"""Rules for empty and long documents, against a definition of one document at a time."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

from bpe_beam.corpus.batches import BATCH_SCHEMA
from bpe_beam.shards.shard_rows import DocumentChanges
from bpe_beam.workers.document_encoding import DocumentRules, apply_rules

Row = tuple[int, str, list[int]]
"""A document's number, its text, and its ids."""


def slowly(
    rules: DocumentRules, texts: list[list[int]], before: list[int], after: list[int]
) -> tuple[list[Row], DocumentChanges]:
    found: list[Row] = []
    dropped = cut = split = doubled = 0
    for number, ids in enumerate(texts):
        if not ids and rules.empty_documents == "drop":
            dropped += 1
            continue
        whole, most = [*before, *ids, *after], rules.max_document_tokens
        own = ids
        if most is not None and rules.long_documents == "cut":
            own = ids[: most - len(before) - len(after)]
        doubled += bool(own) and (own[0] in before or own[-1] in after)
        if most is None or len(whole) <= most:
            found.append((number, f"text {number}", whole))
        elif rules.long_documents == "cut":
            cut += 1
            found.append((number, f"text {number}", [*before, *own, *after]))
        else:
            split += 1
            for start in range(0, len(whole), most):
                text = "" if start else f"text {number}"
                found.append((number, text, whole[start : start + most]))
    return found, DocumentChanges(dropped, cut, split, doubled)


def test_each_rule_does_what_its_definition_says() -> None:
    draw = random.Random(5)
    for _ in range(400):
        texts = [
            [draw.randrange(9) for _ in range(draw.choice((0, 0, 1, 3, 20)))]
            for _ in range(draw.randrange(6))
        ]
        before = [draw.choice((90, 3, 4)) for _ in range(draw.randrange(3))]
        after = [draw.choice((91, 3, 5)) for _ in range(draw.randrange(3))]
        rules = DocumentRules(
            draw.choice(("keep", "drop")),
            draw.choice((None, 1 + len(before) + len(after), 7, 20)),
            draw.choice(("split", "cut")),
        )
        rows: list[dict[str, Any]] = [
            {"place": number, "source": "s", "id": f"{number}", "text": f"text {number}"}
            for number in range(len(texts))
        ]
        batch = pa.RecordBatch.from_pylist(rows, BATCH_SCHEMA)
        made = apply_rules(rules, batch, pa.array(texts, pa.large_list(pa.uint32())), before, after)
        expected, changes = slowly(rules, texts, before, after)
        assert made.changes == changes
        assert made.ids.to_pylist() == [ids for _, _, ids in expected]
        offsets = made.ids.offsets.to_numpy()
        assert (offsets[0], offsets[-1]) == (0, len(made.ids.values))
        assert made.batch.schema.equals(BATCH_SCHEMA)
        assert made.batch.column("text").to_pylist() == [text for _, text, _ in expected]
        assert made.batch.column("id").to_pylist() == [f"{number}" for number, _, _ in expected]


def test_a_long_text_is_not_copied_for_each_of_its_parts() -> None:
    ids = pa.array([list(range(500))], pa.large_list(pa.uint32()))
    row = {"place": 0, "source": "s", "id": "0", "text": "x" * 100_000}
    batch = pa.RecordBatch.from_pylist([row], BATCH_SCHEMA)
    made = apply_rules(DocumentRules(max_document_tokens=1), batch, ids, [], [])
    assert made.batch["text"].to_pylist() == [row["text"], *[""] * 499]
    assert made.batch["text"].buffers()[2].address == batch["text"].buffers()[2].address
