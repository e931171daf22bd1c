"""The time left of an evaluation, by the moments of a real one that are played again.

They were recorded with one thread, in CPU seconds: counts with 3.6 million words, and three
tokenizers of 64,000, 64,000 and 32,000 tokens, the second of another pattern than the counts. A
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
    (0.03, 0, 0), (0.15, 2, 0), (0.25, 4, 0), (0.37, 7, 0), (0.5, 9, 0), (0.63, 12, 0),
    (0.75, 15, 0), (0.88, 17, 0), (1.01, 20, 0), (1.14, 23, 0), (1.27, 26, 0), (1.39, 29, 0),
    (1.51, 32, 0), (1.66, 32, 0), (1.77, 32, 1), (1.88, 33, 1), (2.0, 35, 1), (2.13, 36, 1),
    (2.26, 38, 1), (2.39, 40, 1), (2.52, 41, 1), (2.64, 43, 1), (2.77, 44, 1), (2.9, 46, 1),
    (3.02, 47, 1), (3.15, 49, 1), (3.28, 51, 1), (3.4, 52, 1), (3.52, 54, 1), (3.64, 55, 1),
    (3.77, 57, 1), (3.89, 58, 1), (4.02, 60, 1), (4.14, 61, 1), (4.27, 63, 1), (4.39, 64, 1),
    (4.51, 64, 2), (4.64, 67, 2), (4.78, 70, 2), (4.89, 73, 2), (5.01, 77, 2), (5.14, 79, 2),
    (5.26, 81, 2), (5.38, 84, 2), (5.5, 88, 2), (5.63, 91, 2), (5.75, 95, 2), (5.85, 96, 3),
]
# fmt: on


def words(unique: int, sources: tuple[int, ...] = (), workers: int = 1) -> Any:
    """Return counted words of which only the numbers are known."""
    rows = {str(number): SimpleNamespace(unique_words=n) for number, n in enumerate(sources)}
    manifest = SimpleNamespace(unique_words=unique, sources=rows or None)
    return SimpleNamespace(manifest=manifest, workers=workers)


WORKS = [
    TokenizerWork.of(words(3_553_234), 32, size, 1, exact=exact)
    for size, exact in ((64_000, True), (64_000, False), (32_000, True))
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
    # Parts alone expect that each takes as long as those of the first tokenizer.
    assert max(map(abs, errors_of(None, monkeypatch))) > 0.2


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
    assert threads == plain._replace(of_part=plain.of_part // 2)
    both = TokenizerWork.of(words(64_000), 32, 1000, 2, exact=True)
    assert both == plain._replace(before=plain.before // 2, of_tokens=plain.of_tokens // 2)
    assert TokenizerWork.of(words(64_000), 32, 1000, 1, exact=False).of_part > plain.of_part
