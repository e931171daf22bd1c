"""`WriteTokens` on each runner: sequences with the bytes of `tokenize`, and windows of streams."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from command_line import run as run_command
from command_line import run_whole
from engines import Engine
from made_text import documents, write

import bpe_beam
from bpe_beam import Tokenizer, shards
from bpe_beam.shards.windows import windows_of
from bpe_beam.storage import Storage
from bpe_beam.transforms import ReadDocuments, Tokenize, WriteTokens

pytestmark = pytest.mark.runners

END = "<|endoftext|>"
STEP = 0.3


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    corpus = write(folder / "train.jsonl", documents(80, seed=3))
    arguments = ("--input", corpus, "--vocab-size", "400", "--special-token", END)
    run_whole("train", *arguments, "--output", folder / "tok")
    return folder / "tok/tokenizer.json"


def test_sequences_have_the_bytes_of_tokenize(
    tmp_path: Path, engine: Engine, tokenizer: Path
) -> None:
    corpus = write(tmp_path / "a.jsonl", documents(120, seed=8))
    options = {"sequence_length": 32, "packing": "best_fit", "shuffle_seed": 3}
    options["shard_tokens"] = 2_000
    flags = [x for name, value in options.items() for x in (f"--{name.replace('_', '-')}", value)]
    run_whole(
        *("tokenize", "--input", corpus, "--range-bytes", "3KB", "--tokenizer", tokenizer),
        *("--append", END, "--output", tmp_path / "expected", *flags),
    )
    with beam.Pipeline(options=PipelineOptions(engine.beam_flags)) as pipeline:
        _ = (
            pipeline
            | "Read" >> ReadDocuments([corpus], range_bytes=3_000)
            | "Tokenize" >> Tokenize(tokenizer, append=END)
            | "Write" >> WriteTokens(tmp_path / "out", tokenizer, **options)
        )
    names = {path.name for path in (tmp_path / "expected").glob("shard-*")}
    assert len(names) > 2
    assert {path.name for path in (tmp_path / "out").glob("shard-*")} == names
    for name in names:
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "expected" / name).read_bytes()
    assert run_command("verify", tmp_path / "out").code == 0


STREAM = """
import json, sys
import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms import trigger
from apache_beam.transforms.periodicsequence import PeriodicImpulse
from apache_beam.transforms.window import FixedWindows
from bpe_beam.transforms import Tokenize, WriteTokens

flags, start, step, rows, tokenizer, out, firing = json.load(sys.stdin)
each = trigger.AfterCount(1)
windows = beam.WindowInto(
    FixedWindows(2),
    trigger=trigger.Repeatedly(each) if firing == "each" else trigger.AfterWatermark(late=each),
    allowed_lateness=3600,
    accumulation_mode=trigger.AccumulationMode.DISCARDING,
)
with beam.Pipeline(options=PipelineOptions([*flags, "--streaming"])) as pipeline:
    _ = (
        pipeline
        | PeriodicImpulse(start, start + step * len(rows) - step / 2, step, data=rows)
        | beam.Map(json.loads)
        | windows
        | Tokenize(tokenizer, append="<|endoftext|>")
        | WriteTokens(out, tokenizer, sequence_length=16)
    )
"""


def start_stream(
    engine: Engine, start: float, rows: list[str], tokenizer: Path, out: Path, firing: str = ""
) -> subprocess.Popen[bytes]:
    """Start the job of a stream in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", STREAM],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(bpe_beam.__file__).parents[1])},
        start_new_session=True,
    )
    assert process.stdin is not None
    values = engine.beam_flags, start, STEP, rows, str(tokenizer), str(out), firing
    process.stdin.write(json.dumps(values).encode())
    process.stdin.close()
    process.stdin = None
    return process


def end_of(process: subprocess.Popen[bytes]) -> None:
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said.decode()[-4000:]


def texts_of(out: Path, tokenizer: Tokenizer) -> list[str]:
    """The sorted texts of all windows, whose sequences are documents one after the other."""
    assert run_command("verify", out).code == 0
    found = windows_of(Storage(), str(out))
    assert not found.open
    end = tokenizer.token_to_id(END)
    texts = []
    for name in found.finished:
        ids = [token for row in shards.open(out / name) for token in row.tolist()]
        while ids:
            stop = ids.index(end)
            texts.append(tokenizer.decode(ids[:stop]))
            ids = ids[stop + 1 :]
    return sorted(texts)


def test_a_killed_stream_and_two_at_once_write_each_document_once(
    tmp_path: Path, streaming_engine: Engine, tokenizer: Path
) -> None:
    texts = documents(30, seed=5)
    rows = [json.dumps({"id": f"m{n}", "text": text}) for n, text in enumerate(texts)]
    out = tmp_path / "out"
    lead = 8 if streaming_engine.name == "prism" else 25
    start = time.time() + lead
    killed = start_stream(streaming_engine, start, rows, tokenizer, out)
    errors = threading.Thread(target=killed.communicate)  # its messages must not fill the pipe
    errors.start()
    give_up = time.time() + 120
    while not windows_of(Storage(), str(out)).finished and time.time() < give_up:
        time.sleep(0.2)
    os.killpg(killed.pid, signal.SIGKILL)
    errors.join()
    assert windows_of(Storage(), str(out)).finished
    twins = [start_stream(streaming_engine, start, rows, tokenizer, out) for _ in range(2)]
    for twin in twins:
        end_of(twin)
    assert texts_of(out, Tokenizer.from_file(tokenizer)) == sorted(texts)


def test_panes_of_single_documents(
    tmp_path: Path, streaming_engine: Engine, tokenizer: Path
) -> None:
    """A trigger that fires at each element does not divide a document."""
    texts = documents(12, seed=6)
    rows = [json.dumps({"id": f"m{n}", "text": text}) for n, text in enumerate(texts)]
    start = time.time() - 10
    end_of(start_stream(streaming_engine, start, rows, tokenizer, tmp_path / "out", "each"))
    assert texts_of(tmp_path / "out", Tokenizer.from_file(tokenizer)) == sorted(texts)
