"""Summaries of vocabularies by threads: begun ahead, a few at a time, each taken once."""

from __future__ import annotations

import threading
from contextlib import closing

import pytest

from bpe_beam import Tokenizer
from bpe_beam.evaluation.report import VocabularySummary, summarize
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.jobs import evaluate
from bpe_beam.jobs.evaluate import Summaries
from bpe_beam.tokenizer.components.models import BPE
from bpe_beam.tokenizer.spec import TokenizerSpec


def tokenizer_of(tokens: str) -> Tokenizer:
    return Tokenizer(TokenizerSpec(BPE({token: i for i, token in enumerate(tokens)}, ())))


TOKENIZERS = [tokenizer_of(tokens) for tokens in ("a", "a\u0431", "a\u0431\u03b3")]


def test_each_tokenizer_has_its_own() -> None:
    for threads in (0, 1, 2):
        with closing(Summaries(TOKENIZERS, threads)) as ahead:
            for number, tokenizer in enumerate(TOKENIZERS):
                vocabulary, summary = ahead.take(number)
                assert vocabulary.tokenizer is tokenizer
                assert sum(summary.result().tokens_by_script.values()) == number + 1


def test_only_some_are_begun_before_they_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []
    seen = threading.Semaphore(0)

    def noted(vocabulary: Vocabulary) -> VocabularySummary:
        begun.append(len(vocabulary))
        seen.release()
        return summarize(vocabulary)

    monkeypatch.setattr(evaluate, "summarize", noted)
    with closing(Summaries(TOKENIZERS, 1)) as ahead:
        assert seen.acquire(timeout=60)
        assert begun == [1]
        ahead.take(2)[1].result()
        assert begun == [1, 3]
        ahead.take(0)[1].result()
        assert begun == [1, 3], "it was summarized before"
