"""`WriteTokens` on streams: window folders, each document once over restarts, twins, late data."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pipeline import PipelineVisitor
from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner
from apache_beam.testing.test_stream import TestStream
from apache_beam.transforms import trigger
from apache_beam.transforms.window import (
    FixedWindows,
    GlobalWindows,
    IntervalWindow,
    TimestampedValue,
)
from apache_beam.utils.windowed_value import PaneInfo, PaneInfoTiming
from command_line import run as run_command
from made_text import documents
from read_back import read_shards

from bpe_beam import Tokenizer, json_structs, shards
from bpe_beam.errors import DataError, UsageError
from bpe_beam.shards.manifest import read_manifest
from bpe_beam.shards.windows import windows_of
from bpe_beam.storage import Storage
from bpe_beam.transforms import Tokenize, WriteTokens, document_chunks, write_windows
from bpe_beam.transforms.pane_log import PaneShard

TestStream.__test__ = False  # pytest would take it for one of its own
DISCARDING = trigger.AccumulationMode.DISCARDING
MINUTE = 60

Message = dict[str, Any]


def messages(numbers: Sequence[int]) -> list[Message]:
    """Messages as a queue sends them: an id, a time in seconds, and a text."""
    texts = documents(200, seed=9)
    return [{"id": f"m{n}", "at": 7 * n, "text": texts[n]} for n in numbers]


def stream_of(*events: list[Message] | int) -> TestStream:
    """A stream of messages, and of watermarks in seconds."""
    stream = TestStream(coder=beam.coders.FastPrimitivesCoder())
    for event in events:
        if isinstance(event, int):
            stream = stream.advance_watermark_to(event)
        else:
            stream = stream.add_elements(
                [TimestampedValue(json.dumps(each), each["at"]) for each in event]
            )
    return stream.advance_watermark_to_infinity()


LATE = beam.WindowInto(
    FixedWindows(MINUTE),
    trigger=trigger.AfterWatermark(late=trigger.AfterCount(1)),
    allowed_lateness=24 * 3600,
    accumulation_mode=DISCARDING,
)


def run_stream(stream: Any, tokenizer: Tokenizer, write: WriteTokens, windows: Any = LATE) -> None:
    """Run the pipeline of a stream."""
    pipeline = beam.Pipeline(
        runner=BundleBasedDirectRunner(), options=PipelineOptions(["--streaming"])
    )
    _ = _written(pipeline, stream, tokenizer, write, windows)
    pipeline.run().wait_until_finish()


def _written(
    pipeline: beam.Pipeline, source: Any, tokenizer: Tokenizer, write: WriteTokens, windows: Any
) -> beam.PCollection:
    read = pipeline | source | beam.Map(json.loads) | windows
    return read | Tokenize(tokenizer, append="<|end|>") | write


def no_temporary_files(folder: Path) -> None:
    assert not [*(folder / "work" / "documents").iterdir()]
    assert not [*folder.glob("window-*/work")]


def texts_of(folder: Path, tokenizer: Tokenizer) -> list[str]:
    """The sorted texts of all windows, which must be whole and have no temporary files."""
    assert run_command("verify", folder).code == 0
    found = windows_of(Storage(), str(folder))
    assert not found.open
    no_temporary_files(folder)
    texts = []
    for name in found.finished:
        dataset = shards.open(folder / name)
        texts += [tokenizer.decode(dataset[at].tolist()[:-1]) for at in range(len(dataset))]
    return sorted(texts)


def expected(numbers: Sequence[int]) -> list[str]:
    return sorted(each["text"] for each in messages(numbers))


@pytest.fixture(autouse=True)
def forgetful() -> None:
    """Each test is a new process, as far as the log of windows goes."""
    write_windows._logs.clear()


@pytest.mark.parametrize("format_name", ["megatron", "parquet"])
def test_each_window_of_time_has_a_folder(
    tokenizer: Tokenizer, tmp_path: Path, format_name: str
) -> None:
    write = WriteTokens(tmp_path / "out", tokenizer, shards=2, format=format_name)
    stream = stream_of(messages(range(10)), 65, messages(range(10, 20)), 600)
    run_stream(stream, tokenizer, write)
    assert texts_of(tmp_path / "out", tokenizer) == expected(range(20))
    assert len(windows_of(Storage(), str(tmp_path / "out")).finished) == 3
    dataset = shards.open(tmp_path / "out")
    assert len(dataset) == 20
    assert run_command("inspect", tmp_path / "out").code == 0


def test_late_documents_have_a_folder_of_their_own(tokenizer: Tokenizer, tmp_path: Path) -> None:
    write = WriteTokens(tmp_path / "out", tokenizer)
    stream = stream_of(messages(range(8)), 300, messages([8]), messages([40]), 900)
    run_stream(stream, tokenizer, write)
    assert texts_of(tmp_path / "out", tokenizer) == expected([*range(9), 40])
    assert len(windows_of(Storage(), str(tmp_path / "out")).finished) == 3


def test_a_stream_that_begins_again_writes_nothing_twice(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    """In the same panes; and in others, by the ids of documents."""
    out = tmp_path / "out"
    for _ in range(2):
        write_windows._logs.clear()
        run_stream(stream_of(messages(range(10)), 300), tokenizer, WriteTokens(out, tokenizer))
        assert len(windows_of(Storage(), str(out)).finished) == 2
    write_windows._logs.clear()
    # The source sends again what it had sent, mixed with new messages, and some of it late.
    again = stream_of(messages([*range(5), 11]), 300, messages(range(3, 9)), messages([12]))
    run_stream(again, tokenizer, WriteTokens(out, tokenizer))
    assert texts_of(out, tokenizer) == expected([*range(10), 11, 12])


def test_counters_of_bounded_windows(run: Any, tokenizer: Tokenizer, tmp_path: Path) -> None:
    """Documents with timestamps, on any runner, also of a source that repeats some."""
    found = []
    for numbers in (range(20), [*range(5, 30), 29]):
        source = beam.Create([json.dumps(each) for each in messages(numbers)])
        windows = (
            "Time" >> beam.Map(lambda each: TimestampedValue(each, each["at"]))
            | beam.WindowInto(FixedWindows(MINUTE))
        )  # fmt: skip
        write = WriteTokens(tmp_path / "out", tokenizer, format="parquet")
        urls, counters = run(
            lambda p, s=source, t=windows, w=write: _written(p, s, tokenizer, w, t)
        )
        found.append((len(urls), counters))
    (first, counters), (second, again) = found
    assert (first, second) == (3, 3)  # one of the second run's was finished by the first
    assert counters["windows_finished"] == 3
    assert counters["documents_written"] == 20
    # The pane of the second minute is the same again, and not looked into.
    assert again["documents_repeated"] == 7
    assert texts_of(tmp_path / "out", tokenizer) == expected(range(30))


def test_two_jobs_at_once_write_each_document_once(tokenizer: Tokenizer, tmp_path: Path) -> None:
    out = tmp_path / "out"
    errors = []

    def job() -> None:
        try:
            stream = stream_of(messages(range(30)), 100, messages(range(30, 60)), 1_000)
            run_stream(stream, tokenizer, WriteTokens(out, tokenizer, format="parquet"))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=job) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert texts_of(out, tokenizer) == expected(range(60))


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"sequence_length": 16, "shuffle_seed": 1}])
@pytest.mark.parametrize("at", ["move", "write_bytes", "remove"])
def test_a_job_that_ends_anywhere_is_finished_by_the_next(
    tokenizer: Tokenizer,
    tmp_path: Path,
    at: str,
    options: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "out"
    plain = getattr(Storage, at)
    interrupted = 0
    for allowed in range(200):
        left = iter(range(allowed))

        def failing(*inner: Any, left: Any = left, **named: Any) -> Any:
            if next(left, None) is None:
                raise OSError("interrupted")
            return plain(*inner, **named)

        write_windows._logs.clear()
        stream = stream_of(messages(range(20)), 100, 1_000)
        write = WriteTokens(out, tokenizer, **options)
        with monkeypatch.context() as patched:
            patched.setattr(Storage, at, failing)
            patched.setattr(BundleBasedDirectRunner, "_max_attempts", 1, raising=False)
            try:
                run_stream(stream, tokenizer, write)
            except (OSError, RuntimeError, DataError):
                interrupted += 1
                continue
        break
    assert interrupted > 1
    no_temporary_files(out)
    if not options:
        assert texts_of(out, tokenizer) == expected(range(20))
        return
    found = windows_of(Storage(), str(out))
    assert not found.open
    tokens = sorted(t for name in found.finished for row in read_shards(out / name) for t in row)
    end = tokenizer.token_to_id("<|end|>")
    texts = [tokenizer.encode(text) for text in expected(range(20))]
    assert tokens == sorted([*(token for ids in texts for token in ids), *[end or 0] * 20])


def test_windows_of_packed_sequences(tokenizer: Tokenizer, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write = WriteTokens(
        out, tokenizer, sequence_length=32, packing="best_fit", pad_token="<|end|>", shuffle_seed=4
    )
    run_stream(stream_of(messages(range(40)), 100, 1_000), tokenizer, write)
    names = windows_of(Storage(), str(out)).finished
    assert len(names) == 5
    for name in names:
        manifest = read_manifest(Storage(), str(out / name))
        assert manifest.arranged.settings.sequence_length == 32
        assert {len(row) for row in read_shards(out / name)} == {32}
    assert run_command("verify", out).code == 0


def test_windows_without_tokens(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """Also of sequences: they are there, and are whole."""
    empty = [{"id": "1", "at": 5, "text": ""}]
    for name, options in (("plain", {}), ("packed", {"sequence_length": 8})):
        out = tmp_path / name
        pipeline = beam.Pipeline(
            runner=BundleBasedDirectRunner(), options=PipelineOptions(["--streaming"])
        )
        ids = pipeline | stream_of(empty) | beam.Map(json.loads) | LATE | Tokenize(tokenizer)
        _ = ids | WriteTokens(out, tokenizer, **options)
        pipeline.run().wait_until_finish()
        assert len(windows_of(Storage(), str(out)).finished) == 1
        assert run_command("verify", out).code == 0


def test_shards_with_few_documents(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """Shards without tokens, panes of one document, several panes of a shard in one folder."""
    rows = [{"id": f"m{n}", "at": n, "text": "" if n % 3 else f"a{n}"} for n in range(12)]
    for name, windows in (
        ("watermark", LATE),
        ("counts", _panes(trigger.Repeatedly(trigger.AfterCount(1)))),
    ):
        pipeline = beam.Pipeline(
            runner=BundleBasedDirectRunner(), options=PipelineOptions(["--streaming"])
        )
        stream = stream_of(rows[:5], 70, rows[5:])
        ids = pipeline | stream | beam.Map(json.loads) | windows | Tokenize(tokenizer)
        _ = ids | WriteTokens(tmp_path / name, tokenizer, shards=8)
        pipeline.run().wait_until_finish()
        assert run_command("verify", tmp_path / name).code == 0
        found = windows_of(Storage(), str(tmp_path / name))
        manifests = [read_manifest(Storage(), str(tmp_path / name / n)) for n in found.finished]
        assert sum(manifest.totals.documents for manifest in manifests) == 12
        assert run_command("inspect", tmp_path / name).code == 0
        dataset = shards.open(tmp_path / name)
        assert sum(dataset[at].size > 0 for at in range(len(dataset))) == 4


def _panes(firing: Any) -> Any:
    return beam.WindowInto(
        FixedWindows(MINUTE), trigger=firing, allowed_lateness=3600, accumulation_mode=DISCARDING
    )


def _added(
    out: Path, tokenizer: Tokenizer, numbers: Sequence[int], pane: int = 0
) -> tuple[write_windows.WindowWriter, list[PaneShard]]:
    """A writer of windows, and a shard of messages of a pane that waits."""
    pipeline = beam.Pipeline(options=PipelineOptions(["--streaming"]))
    _written(pipeline, stream_of(messages([1])), tokenizer, WriteTokens(out, tokenizer), LATE)
    found: list[Any] = []

    class Visitor(PipelineVisitor):
        def visit_transform(self, node: Any) -> None:
            step = getattr(node.transform, "fn", None)
            if isinstance(step, (write_windows._AddWindows, write_windows._WritePane)):
                found.append(step)

    pipeline.visit(Visitor())
    write, add = found
    split = document_chunks.SplitToChunks(1, False, whole=True)
    split.start_bundle()
    end = tokenizer.token_to_id("<|end|>")
    packed = [
        data
        for each in messages(numbers)
        for _, data in split.process({**each, "tokens": [*tokenizer.encode(each["text"]), end]})
    ]
    info = PaneInfo(True, True, PaneInfoTiming.ON_TIME, pane, 0)
    rows = write.process((0, packed), IntervalWindow(0, MINUTE), info)
    return add.writer, [json_structs.decode(row, PaneShard) for _, row in rows]


INTERVAL = (0, MINUTE * 10**6)


def test_a_pane_of_repeated_documents_may_be_sent_again(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    writer, first = _added(tmp_path / "out", tokenizer, range(5))
    urls = writer.add(first, INTERVAL)
    assert writer.add(first, INTERVAL) == urls  # a step that runs again returns them again
    for numbers in (range(3), range(7)):
        _, pane = _added(tmp_path / "out", tokenizer, numbers, 1)
        added = writer.add(pane, INTERVAL)
        write_windows._logs.clear()
        assert writer.add(pane, INTERVAL) == added
        assert len(added) == (len(numbers) > 5)
    assert texts_of(tmp_path / "out", tokenizer) == expected(range(7))


def test_a_folder_that_was_removed_begins_anew(tokenizer: Tokenizer, tmp_path: Path) -> None:
    for _ in range(2):
        stream = stream_of(messages(range(10)), 300)
        run_stream(stream, tokenizer, WriteTokens(tmp_path / "out", tokenizer))
        assert texts_of(tmp_path / "out", tokenizer) == expected(range(10))
        shutil.rmtree(tmp_path / "out")


def test_a_window_that_was_removed_is_sent_again(tokenizer: Tokenizer, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for _ in range(2):
        stream = stream_of(messages(range(30)), 1_000)
        run_stream(stream, tokenizer, WriteTokens(out, tokenizer))
        assert texts_of(out, tokenizer) == expected(range(30))
        shutil.rmtree(out / "window-00000001", ignore_errors=True)
        write_windows._logs.clear()


def test_verify_says_how_to_repair_a_window(tokenizer: Tokenizer, tmp_path: Path) -> None:
    run_stream(stream_of(messages(range(3)), 300), tokenizer, WriteTokens(tmp_path, tokenizer))
    (shard,) = (tmp_path / "window-00000000").glob("*.bin")
    shard.write_bytes(b"damaged")
    said = run_command("verify", tmp_path).message
    assert "Restore these files from a copy; or end the pipeline, remove the folder of this" in said
    assert "run the command" not in said


def test_sources_have_ids_of_their_own(run: Any, tokenizer: Tokenizer, tmp_path: Path) -> None:
    rows = [(name, {"id": 1, "text": f"{name} a"}) for name in ("wiki", "web", "wiki")]
    windows = (
        "Time" >> beam.Map(lambda each: TimestampedValue(each, 5))
        | beam.WindowInto(FixedWindows(MINUTE))
    )  # fmt: skip
    write = WriteTokens(tmp_path / "out", tokenizer)
    run(lambda p: p | beam.Create(rows) | windows | Tokenize(tokenizer, append="<|end|>") | write)
    assert texts_of(tmp_path / "out", tokenizer) == ["web a", "wiki a"]


def test_panes_of_the_global_window(tokenizer: Tokenizer, tmp_path: Path) -> None:
    windows = beam.WindowInto(
        GlobalWindows(),
        trigger=trigger.Repeatedly(trigger.AfterCount(5)),
        accumulation_mode=DISCARDING,
    )
    write = WriteTokens(tmp_path / "out", tokenizer)
    run_stream(stream_of(messages(range(15))), tokenizer, write, windows)
    found = texts_of(tmp_path / "out", tokenizer)
    assert len(found) in (10, 15)  # what a trigger has not fired for is the runner's
    assert set(found) <= set(expected(range(15)))


def _expand(write: WriteTokens, tokenizer: Tokenizer, *windows: Any) -> None:
    pipeline = beam.Pipeline(options=PipelineOptions(["--streaming"]))
    collection = pipeline | stream_of(messages([1])) | beam.Map(json.loads)
    for each in windows:
        collection = collection | each
    _ = collection | Tokenize(tokenizer) | write


def test_what_cannot_be(tokenizer: Tokenizer, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(UsageError, match="put it into windows"):
        _expand(WriteTokens(out, tokenizer), tokenizer)
    never = beam.WindowInto(
        GlobalWindows(), trigger=trigger.AfterWatermark(), accumulation_mode=DISCARDING
    )
    with pytest.raises(UsageError, match="put it into windows"):
        _expand(WriteTokens(out, tokenizer), tokenizer, never)
    accumulating = beam.WindowInto(
        FixedWindows(MINUTE),
        trigger=trigger.AfterWatermark(late=trigger.AfterCount(1)),
        accumulation_mode=trigger.AccumulationMode.ACCUMULATING,
    )
    with pytest.raises(UsageError, match="accumulate panes"):
        _expand(WriteTokens(out, tokenizer), tokenizer, accumulating)
    assert not out.exists()
    _expand(WriteTokens(out, tokenizer), tokenizer, LATE)
    _expand(WriteTokens(out, tokenizer), tokenizer, LATE)
    with pytest.raises(UsageError, match="a stream with other settings"):
        _expand(WriteTokens(out, tokenizer, format="flat"), tokenizer, LATE)
    with pytest.raises(UsageError, match="overwrite cannot be set"):
        _expand(WriteTokens(out, tokenizer, overwrite=True), tokenizer, LATE)
    with pytest.raises(UsageError, match="which has windows of a stream"):
        pipeline = beam.Pipeline()
        _ = pipeline | beam.Create(["a"]) | Tokenize(tokenizer) | WriteTokens(out, tokenizer)
