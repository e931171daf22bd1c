"""How documents become ids, as it travels to workers."""

from __future__ import annotations

import io
import json
import pickle
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import reference_bpe
from msgspec import to_builtins
from msgspec.structs import replace
from read_back import read_shards

from bpe_beam import Tokenizer
from bpe_beam.corpus.batches import BATCH_SCHEMA
from bpe_beam.errors import DataError, UsageError
from bpe_beam.jobs import tokenize, verify
from bpe_beam.progress import Progress
from bpe_beam.settings.common import InputSettings, RunSettings
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.settings.verify import VerifySettings
from bpe_beam.shards.formats import megatron
from bpe_beam.shards.shard_rows import DocumentChanges
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.components.byte_level import BYTE_TO_CHAR
from bpe_beam.workers.document_encoding import (
    DocumentRules,
    Encoding,
    apply_rules,
    cached_tokenizer,
)

pytestmark = pytest.mark.quick

QUIET = Progress("none", stream=io.StringIO())
TEXTS = ["four", "ten tokens", "eleven-long", "", "and a much longer one", "five5"]
LIMIT = 10


def tokenizer(number: int = 0) -> Tokenizer:
    token = f"<{number}>"
    return Tokenizer.from_learned([*BYTE_TO_CHAR, token], [], [token])


def test_the_tokenizer_is_one_object_a_process() -> None:
    made = tokenizer()
    encoding = Encoding.of(made)
    assert encoding.tokenizer() is made
    there = pickle.loads(pickle.dumps(encoding))
    assert there.tokenizer() is made
    assert cached_tokenizer(made.to_json()) is made


def test_a_token_that_the_tokenizer_lacks() -> None:
    with pytest.raises(
        UsageError, match=r"append must be a token of the tokenizer, got '<2>'; inspect "
    ):
        Encoding.of(tokenizer(), append="<2>").frame(tokenizer())


def test_no_more_than_some_tokenizers_are_kept() -> None:
    first = cached_tokenizer(tokenizer().to_json())
    for number in range(1, 10):
        cached_tokenizer(tokenizer(number).to_json())
    assert cached_tokenizer(tokenizer().to_json()) is not first


def test_a_file_travels_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = str(tmp_path / "tokenizer.json")
    made = tokenizer()
    made.save(url)
    encoding = Encoding.of(made, append="<0>").kept_at(Storage(), url)
    data = pickle.dumps(encoding)
    assert len(data) < 1000 < len(made.to_json())
    for number in range(1, 10):  # so that it is forgotten here
        cached_tokenizer(tokenizer(number).to_json())
    reads = []
    read = Storage.read_bytes

    def counted(self: Storage, url: str) -> bytes:
        reads.append(url)
        return read(self, url)

    monkeypatch.setattr(Storage, "read_bytes", counted)
    there = pickle.loads(data)
    assert pickle.loads(data).tokenizer() is there.tokenizer()
    assert reads == [url]
    assert there.encode(pa.array(["a"], pa.large_string())).to_pylist() == [[97, 256]]
    tokenizer(5).save(url)
    for number in range(1, 10):
        cached_tokenizer(tokenizer(number).to_json())
    with pytest.raises(DataError, match="has changed since the job began"):
        pickle.loads(data).tokenizer()
    Path(url).unlink()
    with pytest.raises(DataError, match="No such file"):
        pickle.loads(data).tokenizer()


@pytest.fixture(scope="module")
def bytes_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tokenizer without merges: its tokens are bytes."""
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    vocab, merges = reference_bpe.learn_bpe([("Ġa", 2)], vocab_size=256)
    Tokenizer.from_learned(vocab, merges, []).save(str(path))
    return str(path)


@pytest.mark.parametrize(
    ("kind", "places"),
    [
        ("jsonl", [{"offset": 40}, {"offset": 77}]),
        ("parquet", [{"offset": None, "row": 2}, {"offset": None, "row": 4}]),
    ],
)
def test_a_document_of_too_many_tokens_is_a_reject_with_its_place(
    tmp_path: Path,
    bytes_tokenizer: str,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    places: list[dict[str, Any]],
) -> None:
    monkeypatch.setattr(megatron, "FORMAT", replace(megatron.FORMAT, max_document_tokens=LIMIT))
    path = tmp_path / f"in.{kind}"
    if kind == "jsonl":
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    else:
        pq.write_table(pa.table({"text": TEXTS}), path)
    job = TokenizeSettings(
        InputSettings((str(path),), max_rejects="50%"),
        bytes_tokenizer,
        str(tmp_path / "out"),
        RunSettings(workers=1, quiet=True),
    )
    summary = to_builtins(tokenize.run(job, QUIET))
    assert (summary["documents"], summary["rejects"]) == (4, 2)
    kept = [text for text in TEXTS if len(text) <= LIMIT]
    read = Tokenizer.from_file(bytes_tokenizer)
    assert [read.decode(ids) for ids in read_shards(tmp_path / "out")] == kept
    (rejects,) = (tmp_path / "out" / "__rejects").iterdir()
    rows = [json.loads(line) for line in rejects.read_text().splitlines()]
    found = [{key: row[key] for key in place} for row, place in zip(rows, places, strict=True)]
    assert found == places
    assert {row["file"] for row in rows} == {f"in.{kind}"}
    assert {row["reason"] for row in rows} == {"too many tokens"}
    assert "has 11 tokens; a shard holds at most 10 a document" in rows[0]["detail"]
    assert rows[1]["bytes_total"] == len("and a much longer one")
    # Who reads the corpus again finds the same documents and the same rejects.
    verify.run(VerifySettings((job.output,), full=True, input=job.input), QUIET)


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
