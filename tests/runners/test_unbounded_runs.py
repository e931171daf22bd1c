"""`Tokenize` and `CountWords` on input without an end, in real time on Prism and Flink."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
import reference_bpe
import regex
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms import trigger
from apache_beam.transforms.periodicsequence import PeriodicImpulse
from apache_beam.transforms.window import FixedWindows, GlobalWindows
from engines import Engine
from kept_elements import Keep, Kept, kept_in
from made_text import documents

from bpe_beam import Tokenizer
from bpe_beam.tokenizer.components.patterns import GPT2_PATTERN
from bpe_beam.transforms import CountWords, Tokenize

pytestmark = pytest.mark.runners

TEXTS = [text for text in documents(30, seed=5) if text]
STEP = 0.4


def learned(texts: list[str]) -> Tokenizer:
    counts = Counter(f"Ġ{word}" for text in texts for word in text.split() if word.isascii())
    vocab, merges = reference_bpe.learn_bpe(list(counts.items()), vocab_size=290)
    return Tokenizer.from_learned(vocab, merges, [])


OLD, NEW = learned(TEXTS[:3]), learned(["the house of tokens and the tokens of houses"])


def over_time(pipeline: beam.Pipeline, label: str, start: float, rows: list[str], step: float):
    """An unbounded collection that gets a row every `step` seconds."""
    return (
        pipeline
        | label >> PeriodicImpulse(start, start + step * len(rows) - step / 2, step, data=rows)
        | f"{label}AsText" >> beam.Map(str).with_output_types(str)
    )


def run(engine: Engine, folder: Path, build: Any) -> list[Kept]:
    folder.mkdir()
    pipeline = beam.Pipeline(options=PipelineOptions([*engine.beam_flags, "--streaming"]))
    build(pipeline) | "Keep" >> beam.ParDo(Keep(folder))
    pipeline.run().wait_until_finish()
    return kept_in(folder)


def leads(engine: Engine) -> tuple[int, int]:
    """Seconds that a runner has until the first element, for it not to find all of them due; more
    for a second go, if it was so slow that it did."""
    return (3, 30) if engine.name == "prism" else (20, 80)


def test_the_newer_tokenizer_takes_over(
    tmp_path: Path, streaming_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Updates that count from when they come; each document is there once, in its window."""
    if streaming_engine.name == "prism":
        pytest.skip("Prism has no side inputs that fire before their window's end")
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "--add-opens=java.base/java.util=ALL-UNNAMED")
    newer = tmp_path / "newer.json"
    newer.write_text(NEW.to_json())

    def build(pipeline: beam.Pipeline, start: float) -> beam.PCollection:
        named = [OLD.to_json(), str(newer)]
        updates = over_time(pipeline, "Updates", start - 2, named, STEP * len(TEXTS) / 2)
        at_once = updates | "AtOnce" >> beam.WindowInto(
            GlobalWindows(),
            trigger=trigger.Repeatedly(trigger.AfterCount(1)),
            accumulation_mode=trigger.AccumulationMode.ACCUMULATING,
        )
        texts = over_time(pipeline, "Texts", start, TEXTS, STEP)
        return texts | beam.WindowInto(FixedWindows(2)) | Tokenize(OLD, updates=at_once)

    def last_ids(lead: int) -> list[int]:
        start, folder = time.time() + lead, tmp_path / f"kept-{lead}"
        found = run(streaming_engine, folder, lambda pipeline: build(pipeline, start))
        kept = sorted(found, key=lambda each: each.time)
        assert len(kept) == len(TEXTS)
        for number, (window, timestamp, _, ids) in enumerate(kept):
            assert abs(timestamp - (start + number * STEP)) < 0.01
            assert window == timestamp // 2 * 2
            either = (OLD.encode(TEXTS[number]), NEW.encode(TEXTS[number]))
            assert ids.to_pylist() in either
        return kept[-1].element.to_pylist()

    newest = NEW.encode(TEXTS[-1])
    assert newest != OLD.encode(TEXTS[-1])
    assert any(last_ids(lead) == newest for lead in leads(streaming_engine))


def test_each_window_has_its_latest_tokenizer(
    tmp_path: Path, streaming_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With updates in windows the answer does not depend on when anything came."""
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "--add-opens=java.base/java.util=ALL-UNNAMED")
    start = time.time() // 4 * 4 + 4
    named = [(OLD, 0), (NEW, 1.5), (OLD, 3), (OLD, 4.5), (NEW, 6), (NEW, 7.5)]

    def build(pipeline: beam.Pipeline) -> beam.PCollection:
        rows = [tokenizer.to_json() for tokenizer, _ in named]
        updates = over_time(pipeline, "Updates", start, rows, 1.5)
        texts = over_time(pipeline, "Texts", start, TEXTS, STEP)
        windows = beam.WindowInto(FixedWindows(4))
        return texts | windows | Tokenize(NEW, updates=updates | "UpdateWindows" >> windows)

    kept = sorted(run(streaming_engine, tmp_path / "kept", build), key=lambda each: each.time)
    assert len(kept) == len(TEXTS)
    for number, (window, _, _, ids) in enumerate(kept):
        # the last of each window; later ones have none, and what the step was given counts
        expected = {0: OLD, 4: NEW}.get(int(window - start), NEW)  # type: ignore[operator]
        assert ids.to_pylist() == expected.encode(TEXTS[number])


def test_the_panes_of_words_add_up(tmp_path: Path, streaming_engine: Engine) -> None:
    def build(pipeline: beam.Pipeline, start: float) -> beam.PCollection:
        return (
            over_time(pipeline, "Texts", start, TEXTS, STEP)
            | beam.WindowInto(
                FixedWindows(4),
                trigger=trigger.AfterWatermark(early=trigger.AfterCount(1)),
                accumulation_mode=trigger.AccumulationMode.DISCARDING,
            )
            | CountWords(partitions=2)
        )

    def fire_early(lead: int) -> bool:
        start, folder = time.time() + lead, tmp_path / f"kept-{lead}"
        kept = run(streaming_engine, folder, lambda pipeline: build(pipeline, start))
        found: dict[float, Counter[str]] = {}
        for window, _, _, batch in kept:
            rows = zip(batch["word"].to_pylist(), batch["count"].to_pylist(), strict=True)
            found.setdefault(window, Counter()).update(dict(rows))
        expected: dict[float, Counter[str]] = {}
        for number, text in enumerate(TEXTS):
            window = (start + number * STEP) // 4 * 4
            expected.setdefault(window, Counter()).update(regex.findall(GPT2_PATTERN, text))
        assert found == expected
        return len(kept) > 2 * len(expected)

    assert any(fire_early(lead) for lead in leads(streaming_engine)), "before a window's end"
