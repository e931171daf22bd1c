"""Two runs of one job that finish their folder at the same moment."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from read_back import tree
from twins import SECONDS, LateWriter

from bpe_beam.errors import DataError
from bpe_beam.folders.claim import claim_folder
from bpe_beam.folders.output_folder import OutputFolder
from bpe_beam.storage import Storage

JOB = {"job": "tokenize", "append": None}


def claim(folder: Path, storage: Storage | None = None) -> OutputFolder:
    return claim_folder(storage or Storage(), str(folder), JOB, ["shard.bin"], False)


@pytest.mark.parametrize("removed", [False, True])
def test_both_end_well(tmp_path: Path, removed: bool) -> None:
    """Also where the other one has removed the file that this one was writing."""
    late = LateWriter()
    with ThreadPoolExecutor(1) as pool:
        first = claim(tmp_path, late)
        ending = pool.submit(first.finish, "__manifest", b"{}\n")
        assert late.writing.wait(SECONDS)
        # A run that is started now takes what it finds for left behind.
        other = OutputFolder(Storage(), str(tmp_path), first.record)
        other = claim(tmp_path) if removed else other
        other.finish("__manifest", b"{}\n")
        left = list(tmp_path.glob("__manifest.attempt-*"))
        late.other_is_done.set()
        ending.result(SECONDS)
    assert len(left) == (0 if removed else 1)
    assert tree(tmp_path).keys() == {"__job", "__manifest"}
    assert claim(tmp_path).finished


def test_a_run_whose_file_is_gone_says_why(tmp_path: Path) -> None:
    late = LateWriter()
    with ThreadPoolExecutor(1) as pool:
        ending = pool.submit(claim(tmp_path, late).finish, "__manifest", b"{}\n")
        assert late.writing.wait(SECONDS)
        for attempt in tmp_path.glob("__manifest.attempt-*"):
            attempt.unlink()
        late.other_is_done.set()
        with pytest.raises(DataError, match="another run of this job works in the same folder"):
            ending.result(SECONDS)
