"""The `count` job: what its summary says of a run that resumed."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from made_text import documents, write

from bpe_beam.errors import DataError
from bpe_beam.folders.output_folder import OutputFolder
from bpe_beam.jobs import count
from bpe_beam.progress import Progress
from bpe_beam.settings.common import InputSettings, RunSettings
from bpe_beam.settings.count import CountSettings

QUIET = Progress(quiet=True, stream=io.StringIO())


def test_a_resumed_run_says_how_many_splits_it_kept(tmp_path: Path) -> None:
    inputs = [write(tmp_path / f"{name}.jsonl", documents(8, seed=1)) for name in "abc"]
    read = InputSettings(tuple(map(str, inputs)), range_bytes=inputs[0].stat().st_size)
    given = CountSettings(read, str(tmp_path / "counts"), RunSettings(workers=1, quiet=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OutputFolder, "finish", lambda *_: (_ for _ in ()).throw(DataError("stop")))
        with pytest.raises(DataError, match="stop"):
            count.run(given, QUIET)
    splits = len(json.loads((tmp_path / "counts" / "plan.json").read_bytes())["splits"])
    receipts = sorted((tmp_path / "counts" / "work").glob("counts-*.json"))
    assert len(receipts) == splits > 1
    receipts[0].unlink()
    summary = count.run(given, QUIET)
    assert summary["splits_kept_from_before"] == splits - 1
    assert not summary["was_finished_before"]
    again = count.run(given, QUIET)
    assert again["was_finished_before"]
    assert again["splits_kept_from_before"] is None
    fresh = CountSettings(read, str(tmp_path / "fresh"), given.run)
    assert count.run(fresh, QUIET)["splits_kept_from_before"] is None
