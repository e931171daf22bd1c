"""The `count` job: what its summary says of a run that resumed."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from made_text import documents, write
from msgspec import to_builtins

from bpe_beam.errors import DataError
from bpe_beam.folders.output_folder import OutputFolder
from bpe_beam.jobs import count
from bpe_beam.progress import Progress
from bpe_beam.settings.common import InputSettings, RunSettings
from bpe_beam.settings.count import CountSettings

QUIET = Progress("none", stream=io.StringIO())


@pytest.fixture
def job(tmp_path: Path) -> CountSettings:
    inputs = [write(tmp_path / f"{name}.jsonl", documents(8, seed=1)) for name in "abc"]
    read = InputSettings(tuple(map(str, inputs)), range_bytes=inputs[0].stat().st_size)
    return CountSettings(
        input=read, output=str(tmp_path / "counts"), run=RunSettings(workers=1, quiet=True)
    )


def receipts_of_stopped_run(job: CountSettings) -> list[Path]:
    """Run a job up to its manifest; return the receipts of its splits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OutputFolder, "finish", lambda *_: (_ for _ in ()).throw(DataError("stop")))
        with pytest.raises(DataError, match="stop"):
            count.run(job, QUIET)
    splits = len(json.loads((Path(job.output) / "__plan").read_bytes())["splits"])
    receipts = sorted((Path(job.output) / "work").glob("counts-*.json"))
    assert len(receipts) == splits > 1
    return receipts


def test_a_resumed_run_says_how_many_splits_it_kept(job: CountSettings, tmp_path: Path) -> None:
    receipts = receipts_of_stopped_run(job)
    receipts[0].unlink()
    summary = to_builtins(count.run(job, QUIET))
    assert summary["splits_kept_from_before"] == len(receipts) - 1
    assert not summary["was_finished_before"]
    again = to_builtins(count.run(job, QUIET))
    assert again["was_finished_before"]
    assert again["splits_kept_from_before"] is None
    fresh = replace(job, output=str(tmp_path / "fresh"))
    assert to_builtins(count.run(fresh, QUIET))["splits_kept_from_before"] is None
