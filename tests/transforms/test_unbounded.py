"""`Tokenize` and `CountWords` on streams: windows, panes, late data, newer tokenizers."""

from __future__ import annotations

import pickle
import threading
import uuid
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
import reference_bpe
import regex
from apache_beam.options.pipeline_options import PipelineOptions, TypeOptions
from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner
from apache_beam.testing.test_stream import TestStream
from apache_beam.transforms import trigger
from apache_beam.transforms.window import FixedWindows, GlobalWindows, TimestampedValue
from kept_elements import Keep, Kept, kept_in

from bpe_beam import Tokenizer
from bpe_beam.corpus.new_files import Watched
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.errors import UsageError
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.components.patterns import GPT2_PATTERN
from bpe_beam.transforms import CountWords, Tokenize, count_words, document_fn, tokenize
from bpe_beam.transforms.shuffles import WindowTables
from bpe_beam.transforms.tokenize_new_files import TokenizeNewFiles
from bpe_beam.workers import document_encoding as encoding
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.source_tables import SourceTables
from bpe_beam.workers.stream.watcher import Stream as StreamOfFiles

DISCARDING = trigger.AccumulationMode.DISCARDING
ACCUMULATING = trigger.AccumulationMode.ACCUMULATING


TestStream.__test__ = False  # pytest would take it for one of its own
Stream = Callable[[Callable[[beam.Pipeline], beam.PCollection]], list[Kept]]


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    """Runs a stream by the events of its `TestStream`; gives (window, time, pane, element)."""

    def run(build: Callable[[beam.Pipeline], beam.PCollection]) -> list[Kept]:
        folder = tmp_path / uuid.uuid4().hex
        folder.mkdir()
        pipeline = beam.Pipeline(
            runner=BundleBasedDirectRunner(), options=PipelineOptions(["--streaming"])
        )
        build(pipeline) | "Keep" >> beam.ParDo(Keep(folder))
        pipeline.run().wait_until_finish()
        return kept_in(folder)

    return run


def learned(text: str, size: int = 275) -> Tokenizer:
    counts = Counter(f"Ġ{word}" for word in text.split())
    vocab, merges = reference_bpe.learn_bpe(
        list(counts.items()), vocab_size=size, special_tokens=["<|end|>"]
    )
    return Tokenizer.from_learned(vocab, merges, ["<|end|>"])


OLD = learned("the cat sat on the mat and the cat ran " * 5)
NEW = learned("a dog dug a hole and the dog hid in the hole " * 5)
THIRD = learned("birds sing songs and the birds fly " * 5)


def events() -> TestStream:
    """Documents in time, out of order, and late."""
    return (
        TestStream(coder=beam.coders.StrUtf8Coder())
        .add_elements([TimestampedValue("the cat", 1), TimestampedValue("a dog", 12)])
        .add_elements([TimestampedValue("the dog", 3)])
        .advance_watermark_to(11)
        .add_elements([TimestampedValue("late cat", 4), TimestampedValue("the end", 15)])
        .advance_watermark_to(31)
        .add_elements([TimestampedValue("too late", 2), TimestampedValue("late hole", 19)])
        .advance_watermark_to_infinity()
    )


TIMED = [
    ("the cat", 1),
    ("a dog", 12),
    ("the dog", 3),
    ("late cat", 4),
    ("the end", 15),
    ("too late", 2),
    ("late hole", 19),
]


@pytest.mark.parametrize("gathered", [1024, 1, 2])
def test_windows_and_times_stay(stream: Stream, monkeypatch, gathered: int) -> None:
    monkeypatch.setattr(document_fn, "GATHERED_DOCUMENTS", gathered)
    kept = stream(lambda p: p | events() | beam.WindowInto(FixedWindows(10)) | Tokenize(OLD))
    expected = [(time // 10 * 10, float(time), OLD.encode(text)) for text, time in TIMED]
    assert sorted((w, t, ids.to_pylist()) for w, t, _, ids in kept) == sorted(expected)


def test_what_is_too_late_is_dropped_behind_it_as_before_it(stream: Stream) -> None:
    """Late elements come out late: a grouping behind drops the same as one in front would."""

    def grouped(step: Any) -> Callable[[beam.Pipeline], beam.PCollection]:
        return lambda p: (
            p
            | events()
            | beam.WindowInto(
                FixedWindows(10),
                trigger=trigger.AfterWatermark(late=trigger.AfterCount(1)),
                accumulation_mode=DISCARDING,
                allowed_lateness=15,
            )
            | step
            | "Key" >> beam.Map(lambda element: (0, element))
            | beam.GroupByKey()
            | "Values" >> beam.FlatMap(lambda row: row[1])
        )

    plain = stream(grouped(beam.Map(lambda text: text)))
    encoded = stream(grouped(Tokenize(OLD)))
    assert sorted(row[3] for row in plain) == sorted(
        text for text, _ in TIMED if text != "too late"
    )
    assert sorted(ids.to_pylist() for *_, ids in encoded) == sorted(
        OLD.encode(text) for *_, text in plain
    )


def test_gathering_is_bounded_within_a_bundle(monkeypatch) -> None:
    """By number, bytes and time, whatever the runner's bundles."""
    text = "the cat sat"

    def sent(count: int) -> list[int]:
        do_fn = tokenize._Encode(Tokenize(OLD))
        do_fn.start_bundle()
        sizes = [len(list(do_fn.process(text, 0, 0, 0))) for _ in range(count)]
        return [*sizes, len(list(do_fn.finish_bundle()))]

    assert sent(3) == [0, 0, 0, 3]
    monkeypatch.setattr(document_fn, "GATHERED_BYTES", 2 * len(text))
    assert sent(3) == [0, 2, 0, 1]
    monkeypatch.setattr(document_fn, "GATHERED_BYTES", 1 << 20)
    monkeypatch.setattr(document_fn, "GATHERED_SECONDS", 0.0)
    assert sent(2) == [1, 1, 0]
    monkeypatch.setattr(document_fn, "GATHERED_SECONDS", 60.0)
    monkeypatch.setattr(document_fn, "GATHERED_DOCUMENTS", 3)
    assert sent(4) == [0, 0, 3, 0, 1]


def test_a_process_makes_a_tokenizer_once(monkeypatch) -> None:
    """For all steps, their copies and their threads, and though another is used in between."""
    made: list[bytes] = []
    from_json = Tokenizer.from_json

    def counting(data: bytes) -> Tokenizer:
        made.append(data)
        return from_json(data)

    encodings = [Encoding.of(OLD), Encoding.of(NEW, append="<|end|>"), Encoding.of(OLD)]
    copies = [pickle.loads(pickle.dumps(each)) for each in encodings * 2]
    monkeypatch.setattr(encoding, "_cached", {})
    monkeypatch.setattr(Tokenizer, "from_json", staticmethod(counting))
    found: list[Tokenizer] = []
    threads = [threading.Thread(target=lambda e=e: found.append(e.tokenizer())) for e in copies * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 24
    assert len({id(each) for each in found}) == 2
    assert sorted(made) == sorted([OLD.to_json().encode(), NEW.to_json().encode()])


def test_a_few_are_held(monkeypatch) -> None:
    monkeypatch.setattr(encoding, "_cached", {})
    monkeypatch.setattr(encoding, "_MAX_CACHED", 2)
    made: list[str] = []

    def make(name: str) -> Tokenizer:
        made.append(name)
        return OLD

    for name in "abacab":
        encoding.cached_under(name, lambda name=name: make(name))  # type: ignore[misc]
    assert made == ["a", "b", "c", "b"], "the one that was not asked for the longest goes"


# ---- newer tokenizers ----


def test_the_latest_update_of_the_window_counts(stream: Stream, tmp_path: Path) -> None:
    """By the time that updates have, not by their order; from texts or paths."""
    third = tmp_path / "third.json"
    third.write_text(THIRD.to_json())
    texts = [("the dog", 1), ("the dog", 12), ("the dog", 8), ("the birds", 25), ("the cat", 39)]

    def build(pipeline: beam.Pipeline) -> beam.PCollection:
        test = TestStream(coder=beam.coders.StrUtf8Coder(), output_tags={"texts", "updates"})
        test.add_elements([TimestampedValue(*texts[0])], tag="texts")
        test.add_elements([TimestampedValue(NEW.to_json(), 13)], tag="updates")
        test.add_elements([TimestampedValue(OLD.to_json(), 12)], tag="updates")
        test.add_elements([TimestampedValue(*row) for row in texts[1:3]], tag="texts")
        test.add_elements([TimestampedValue(NEW.to_json(), 21)], tag="updates")
        test.add_elements([TimestampedValue(str(third), 28)], tag="updates")
        test.advance_watermark_to(30, tag="updates")
        test.add_elements([TimestampedValue(*row) for row in texts[3:]], tag="texts")
        test.advance_watermark_to_infinity(tag="updates")
        test.advance_watermark_to_infinity(tag="texts")
        both = pipeline | test
        windows = beam.WindowInto(FixedWindows(10))
        updates = both["updates"] | "UpdateWindows" >> windows
        return both["texts"] | windows | Tokenize(OLD, append="<|end|>", updates=updates)

    kept = stream(build)
    by_time = {1: OLD, 8: OLD, 12: NEW, 25: THIRD, 39: OLD}
    assert {time: ids.to_pylist() for _, time, _, ids in kept} == {
        time: [*by_time[time].encode(text), OLD.token_to_id("<|end|>")] for text, time in texts
    }
    assert OLD.encode("the dog") != NEW.encode("the dog")
    assert OLD.encode("the birds") != THIRD.encode("the birds")


def test_what_waits_is_encoded_by_what_was_known_then() -> None:
    """An update in the middle of a bundle is for the elements that follow."""
    do_fn = tokenize._Encode(Tokenize(OLD))
    do_fn.start_bundle()
    none: list[tuple[int, str]] = []
    new, still_new = [(5, NEW.to_json())], [(5, NEW.to_json()), (2, OLD.to_json())]
    made = [
        [row.value.to_pylist() for row in do_fn.process("the dog", 0, 0, 0, updates)]
        for updates in (none, none, new, still_new)
    ]
    old, newer = OLD.encode("the dog"), NEW.encode("the dog")
    assert made == [[], [], [old, old], []]
    assert [row.value.to_pylist() for row in do_fn.finish_bundle()] == [newer, newer]


def test_updates_of_a_window_are_for_that_window(stream: Stream) -> None:
    def build(pipeline: beam.Pipeline) -> beam.PCollection:
        windows = beam.WindowInto(FixedWindows(10))
        rows = [("the dog", 1), ("the dog", 11), ("the dog", 21)]
        texts = pipeline | "Texts" >> beam.Create(rows)
        texts = texts | beam.MapTuple(TimestampedValue).with_output_types(str)
        updates = pipeline | "Updates" >> beam.Create([(NEW.to_json(), 13), (OLD.to_json(), 12)])
        updates = updates | "Timed" >> beam.MapTuple(TimestampedValue).with_output_types(str)
        return texts | "W" >> windows | Tokenize(OLD, updates=updates | "V" >> windows)

    kept = stream(build)
    assert {window: ids.to_pylist() for window, _, _, ids in kept} == {
        0: OLD.encode("the dog"),
        10: NEW.encode("the dog"),
        20: OLD.encode("the dog"),
    }


def test_an_update_without_a_needed_token_fails(stream: Stream) -> None:
    other = Tokenizer.from_learned(list(OLD.vocab)[1:], OLD.merges, [])
    with pytest.raises(
        Exception, match=r"append must be a token of the tokenizer, got '<\|end\|>'"
    ):
        stream(
            lambda p: (
                p
                | "Texts" >> beam.Create(["a"]).with_output_types(str)
                | Tokenize(
                    OLD,
                    append="<|end|>",
                    updates=p | "Updates" >> beam.Create([other.to_json()]),
                )
            )
        )


# ---- counting ----


def windowed(early: Any, late: Any, lateness: float, mode: Any = DISCARDING) -> beam.PTransform:
    return beam.WindowInto(
        FixedWindows(10),
        trigger=trigger.AfterWatermark(early=early, late=late),
        accumulation_mode=mode,
        allowed_lateness=lateness,
    )


def panes(kept: list[Kept]) -> dict[tuple[int, int], list[Counter[str]]]:
    """Words by window and pane."""
    found: dict[tuple[int, int], list[Counter[str]]] = {}
    for window, _, pane, batch in kept:
        rows = zip(batch["word"].to_pylist(), batch["count"].to_pylist(), strict=True)
        found.setdefault((window, pane), []).append(Counter(dict(rows)))
    return found


def counted(window: int, without: tuple[str, ...] = ()) -> Counter[str]:
    texts = [text for text, time in TIMED if time // 10 * 10 == window and text not in without]
    return Counter(word for text in texts for word in regex.findall(GPT2_PATTERN, text))


@pytest.mark.parametrize(("lateness", "lost"), [(100, ()), (15, ("too late",))])
@pytest.mark.parametrize("early", [trigger.AfterCount(1), None])
def test_panes_add_up_to_the_batch_answer(
    stream: Stream, early: Any, lateness: float, lost: tuple[str, ...]
) -> None:
    late = trigger.AfterCount(1)
    kept = stream(
        lambda p: p | events() | windowed(early, late, lateness) | CountWords(partitions=1)
    )
    found = panes(kept)
    for batches in found.values():
        words = [word for batch in batches for word in batch]
        assert len(words) == len(set(words)), "a word stands in a pane once"
    for window in (0, 10):
        total = sum((b for (w, _), bs in found.items() if w == window for b in bs), Counter())
        assert total == counted(window, lost)
        assert len([pane for w, pane in found if w == window]) >= 2, "it fired more than once"


def test_panes_that_accumulate_are_refused() -> None:
    pipeline = beam.Pipeline(runner=BundleBasedDirectRunner())
    with pytest.raises(UsageError, match=r"AccumulationMode\.DISCARDING"):
        (
            pipeline
            | beam.Create(["a"])
            | windowed(trigger.AfterCount(1), trigger.AfterCount(1), 0, ACCUMULATING)
            | CountWords()
        )


def test_words_of_a_stream_are_not_held_for_long(monkeypatch) -> None:
    """If a runner's bundle lasts, words are handed on in the middle of it; not those of a batch."""
    for seconds, sent in ((0.0, True), (None, False)):
        count = CountWords(partitions=1)
        tables = partial(
            WindowTables, partial(SourceTables, count.rules, False, max_bytes=10**8), 10**8, seconds
        )
        do_fn = count_words._CountInTables(count, tables)
        do_fn.start_bundle()
        made = list(do_fn.process("a b", 0, GlobalWindows().assign(None)[0], 0))
        assert bool(made) == sent
        assert bool(list(do_fn.finish_bundle())) != sent


# ---- the pipelines themselves ----


def test_no_collection_of_a_stream_is_pickled(coders_of, tmp_path: Path) -> None:
    """Nor is one without a type, which a runner's strict check would refuse."""
    storage = Storage()
    jobs_stream = StreamOfFiles(
        storage=storage,
        output=str(tmp_path),
        fingerprint="f",
        watched=Watched.of(storage, [f"{tmp_path}/*"]),
        reading=ReadSettings(),
        encoding=Encoding.of(OLD),
        settings={},
        range_bytes=None,
        max_rejects="0",
        max_lost="0",
        poll_seconds=1,
        window_seconds=1,
        until_idle_seconds=None,
    )

    def build(pipeline: beam.Pipeline) -> None:
        strict = pipeline.options.view_as(TypeOptions)
        strict.type_check_strictness = "ALL_REQUIRED"
        pipeline | "Files" >> TokenizeNewFiles(jobs_stream)
        updates = pipeline | "Updates" >> beam.Create(["u"]).with_output_types(str)
        texts = pipeline | "Texts" >> beam.Create(["a"]).with_output_types(str)
        texts | Tokenize(OLD, updates=updates)

    urns = coders_of(build)
    pickled = [urn for urn in urns if "pickled_python" in urn]
    assert all("TokensCoder" in urn for urn in pickled), pickled
    assert urns
