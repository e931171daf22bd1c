"""The streaming job, without a runner: what it refuses before it begins."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import stream_by_hand
from made_text import write

from bpe_beam import Tokenizer
from bpe_beam.errors import UsageError
from bpe_beam.jobs import stream_tokenize
from bpe_beam.jobs.settings import InputSettings, RunSettings, TokenizeSettings
from bpe_beam.jobs.stream_settings import StreamTokenizeSettings
from bpe_beam.progress import Progress
from bpe_beam.training import reference


def test_another_input_with_files_of_the_same_names_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would pass for read."""
    monkeypatch.setattr(stream_tokenize, "run_pipeline", stream_by_hand.run_pipeline)
    vocab, merges = reference.learn_bpe([("Ġa", 2)], vocab_size=256)
    tokenizer = tmp_path / "tokenizer.json"
    Tokenizer.from_learned(vocab, merges, []).save(str(tokenizer))

    def run(folder: str) -> int:
        given = StreamTokenizeSettings(
            TokenizeSettings(
                InputSettings((str(tmp_path / folder / "*.jsonl"),)),
                str(tokenizer),
                str(tmp_path / "out"),
                RunSettings(runner="PrismRunner", quiet=True),
            ),
            window_seconds=0,
            until_idle_seconds=0,
        )
        summary = stream_tokenize.run(given, Progress(quiet=True, stream=io.StringIO()))
        return int(summary["files"])

    write(tmp_path / "one" / "a.jsonl", ["first"])
    write(tmp_path / "two" / "a.jsonl", ["another"])
    assert run("one") == 1
    with pytest.raises(UsageError, match=r"below another folder than .*two"):
        run("two")
    write(tmp_path / "one" / "b.jsonl", ["more"])
    assert run("one") == 1
