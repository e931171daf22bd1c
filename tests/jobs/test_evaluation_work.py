"""The time left of an evaluation, by the moments of a real one that are played again.

They were recorded with one thread, in CPU seconds: counts with 3.6 million words, and three
tokenizers of 64,000, 100,261 and 32,000 tokens, the second of another pattern than the counts. A
moment is the seconds, and the parts and the tokenizers that were finished.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bpe_beam import progress
from bpe_beam.jobs.evaluation_work import EvaluationWork, TokenizerWork
from bpe_beam.progress import Progress

pytestmark = pytest.mark.quick

# fmt: off
MOMENTS = [
    (0.17, 1, 0), (0.25, 2, 0), (0.36, 4, 0), (0.47, 6, 0), (0.59, 8, 0), (0.70, 10, 0),
    (0.81, 12, 0), (0.92, 14, 0), (1.03, 16, 0), (1.12, 18, 0), (1.22, 20, 0), (1.32, 22, 0),
    (1.41, 24, 0), (1.52, 26, 0), (1.62, 28, 0), (1.72, 30, 0), (1.81, 32, 0), (1.90, 32, 1),
    (2.10, 33, 1), (2.17, 34, 1), (2.33, 36, 1), (2.48, 38, 1), (2.62, 40, 1), (2.77, 42, 1),
    (2.91, 44, 1), (3.05, 46, 1), (3.19, 48, 1), (3.33, 50, 1), (3.48, 52, 1), (3.62, 54, 1),
    (3.75, 56, 1), (3.91, 58, 1), (4.05, 60, 1), (4.19, 62, 1), (4.33, 64, 1), (4.40, 64, 2),
    (4.49, 65, 2), (4.60, 67, 2), (4.69, 69, 2), (4.78, 71, 2), (4.88, 73, 2), (4.96, 75, 2),
    (5.06, 77, 2), (5.19, 79, 2), (5.28, 81, 2), (5.36, 83, 2), (5.45, 85, 2), (5.54, 87, 2),
    (5.62, 89, 2), (5.71, 91, 2), (5.80, 93, 2), (5.88, 95, 2), (5.92, 96, 2), (5.95, 96, 3),
]
# fmt: on


def words(unique: int, sources: tuple[int, ...] = (), workers: int = 1) -> Any:
    """Return counted words of which only the numbers are known."""
    rows = {str(number): SimpleNamespace(unique_words=n) for number, n in enumerate(sources)}
    manifest = SimpleNamespace(unique_words=unique, sources=rows or None)
    return SimpleNamespace(manifest=manifest, workers=workers)


WORKS = [
    TokenizerWork.of(words(3_553_234), 32, size, 1, exact=exact)
    for size, exact in ((64_000, True), (100_261, False), (32_000, True))
]


def errors_of(work: EvaluationWork | None, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return how far each estimate after the first tenth is off, over all time."""
    now = [0.0]
    monkeypatch.setattr(progress, "_now", lambda: now[0])
    end = MOMENTS[-1][0]
    found = []
    with Progress("none").stage("evaluate", 96, "parts") as stage:
        parts_before = tokenizers_before = 0
        for seconds, parts, tokenizers in MOMENTS:
            now[0] = seconds
            if work is None:
                stage.at_least(parts)
            else:
                for part in range(parts_before, parts):
                    work.end_part(part // 32)
                for tokenizer in range(tokenizers_before, tokenizers):
                    work.end(tokenizer)
                stage.step(0, work.amounts)
                parts_before, tokenizers_before = parts, tokenizers
            left = stage.snapshot().eta_seconds
            if seconds >= end / 10:
                assert left is not None
                found.append((left - (end - seconds)) / end)
    return found


def test_a_tokenizer_of_another_pattern_takes_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = errors_of(EvaluationWork(WORKS), monkeypatch)
    assert max(map(abs, errors)) < 0.15
    later = len(errors) // 4
    assert max(map(abs, errors[later:])) < 0.09
    # Parts alone expect that each takes as long as those of the first tokenizer.
    assert max(map(abs, errors_of(None, monkeypatch)[later:])) > 0.12


def test_all_work_is_done_in_the_end() -> None:
    work = EvaluationWork([TokenizerWork(4, 3, 20, 7), TokenizerWork(0, 2, 1, 3)])
    assert work.amounts() == (0, 95)
    for done in (3 + 20, 43, 63, 83):
        work.end_part(0)
        assert work.amounts() == (done, 95)
    work.end(0)
    assert work.amounts() == (90, 95)
    work.end(1)
    assert work.amounts() == (95, 95)


def test_sources_and_threads() -> None:
    """Each source has its own words, and threads share them; two tokenizers share the time."""
    plain = TokenizerWork.of(words(64_000), 32, 1000, 1, exact=True)
    by_source = TokenizerWork.of(words(64_000, (60_000, 36_000)), 32, 1000, 1, exact=True)
    empty = TokenizerWork.of(words(0), 32, 1000, 1, exact=True)
    of_words = plain.of_part - empty.of_part
    assert by_source.of_part == pytest.approx(empty.of_part + 1.5 * of_words)
    assert by_source.of_tokens > plain.of_tokens
    threads = TokenizerWork.of(words(64_000, workers=2), 32, 1000, 1, exact=True)
    assert threads.of_part == plain.of_part // 2
    # One thread looks at the vocabulary first, of two threads one does so beside the words.
    assert threads.before + 2 * threads.beside == plain.before
    assert plain.beside == 0
    both = TokenizerWork.of(words(64_000, workers=2), 32, 1000, 2, exact=True)
    assert both == threads._replace(before=threads.before // 2, of_tokens=plain.of_tokens // 2)
    assert TokenizerWork.of(words(64_000), 32, 1000, 1, exact=False).of_part > plain.of_part


def test_a_vocabulary_is_looked_at_beside_the_first_words() -> None:
    work = TokenizerWork(4, 3, 20, 7, beside=25)
    assert [work.done(parts) for parts in (1, 2, 3, 4)] == [3 + 42, 3 + 65, 3 + 85, 3 + 105]
    assert work.all == 3 + 4 * 20 + 25 + 7
