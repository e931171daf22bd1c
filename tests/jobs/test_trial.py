"""Jobs in a process of their own, measured."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from tried_jobs import die, work

from bpe_beam.errors import DataError
from bpe_beam.jobs import trial


@pytest.mark.parametrize("fails", [False, True])
def test_a_job_is_measured(tmp_path: Path, fails: bool, capfd: pytest.CaptureFixture[str]) -> None:
    output = str(tmp_path / "output")
    found = trial.try_job(work, output, fails, output=output)
    assert found.files == {"deep/a.bin": 1000}
    assert found.bytes_of(".bin") == 1000
    assert found.bytes_of("x") == 0
    assert 0.3 <= found.stages["learn"] < found.seconds - found.start < found.seconds
    assert found.start > 0
    assert 1.9e8 < found.memory - found.memory_before < 2.5e8
    assert found.summary == ({} if fails else {"vocab_size": 7})
    assert capfd.readouterr() == ("", "")


def test_a_process_that_dies(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="exit code -9"):
        trial.try_job(die, output=str(tmp_path))


def test_documents(tmp_path: Path) -> None:
    path = tmp_path / "documents.jsonl"
    texts = ["a\n\u2028", "x" * 20_000, *["b"] * 50]
    batch = pa.RecordBatch.from_pydict({"text": texts, "source": ["s", None, *["t"] * 50]})
    trial.write_documents(batch, str(path))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert rows[0] == {"id": "0", "source": "s", "text": "a\n\u2028"}
    assert rows[1] == {"id": "1", "source": "a", "text": "x" * 10_000}
    assert len(rows) == 20
    trial.write_documents(None, str(path))
    assert json.loads(path.read_text())["text"]
