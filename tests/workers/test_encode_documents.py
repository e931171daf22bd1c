"""Documents of more tokens than a shard can say are rejects, and end no job."""

from __future__ import annotations

import io
import json
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
from bpe_beam.jobs import tokenize, verify
from bpe_beam.progress import Progress
from bpe_beam.settings.common import InputSettings, RunSettings
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.settings.verify import VerifySettings
from bpe_beam.shards.formats import megatron

QUIET = Progress("none", stream=io.StringIO())
TEXTS = ["four", "ten tokens", "eleven-long", "", "and a much longer one", "five5"]
LIMIT = 10


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
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
    tokenizer: str,
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
        tokenizer,
        str(tmp_path / "out"),
        RunSettings(workers=1, quiet=True),
    )
    summary = to_builtins(tokenize.run(job, QUIET))
    assert (summary["documents"], summary["rejects"]) == (4, 2)
    kept = [text for text in TEXTS if len(text) <= LIMIT]
    read = Tokenizer.from_file(tokenizer)
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
