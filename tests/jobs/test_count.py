"""The `count` job: what its summary says of a run that resumed, and tasks that write parts."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from made_text import documents, write
from msgspec import to_builtins
from msgspec.structs import replace
from read_back import tree

from bpe_beam.counts import part_files
from bpe_beam.errors import DataError
from bpe_beam.folders.output_folder import OutputFolder
from bpe_beam.jobs import count
from bpe_beam.progress import Progress
from bpe_beam.settings.common import InputSettings, RunSettings
from bpe_beam.settings.count import CountSettings
from bpe_beam.workers import count_split

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


@pytest.mark.parametrize("per_task", [1, 10, 32])
def test_parts_do_not_depend_on_the_tasks_that_write_them(
    job: CountSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, per_task: int
) -> None:
    """Also if a run broke off amid the parts, or a part is damaged later."""
    count.run(replace(job, output=str(tmp_path / "whole")), QUIET)
    monkeypatch.setattr(count, "_parts_per_task", lambda _: per_task)
    written: list[str] = []

    def first_parts(*args: Any) -> Any:
        written.append(args[2])
        if len(written) == 12:
            raise DataError("stop")
        return part_files.write_part(*args)

    monkeypatch.setattr(count_split, "write_part", first_parts)
    with pytest.raises(DataError, match="stop"):
        count.run(job, QUIET)
    kept = 11 - 11 % per_task
    count.run(job, QUIET)
    assert len(set(written)) == 32
    assert len(written) == 12 + 32 - kept
    assert tree(Path(job.output)) == tree(tmp_path / "whole")
    Path(job.output, written[0]).write_bytes(b"damaged")
    count.run(job, QUIET)
    assert tree(Path(job.output)) == tree(tmp_path / "whole")
