"""Vocabularies and their summaries, by threads that run while words are counted and encoded."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import NamedTuple

from bpe_beam.evaluation.report import VocabularySummary, summarize
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.tokenizer.tokenizer import Tokenizer


class _Begun(NamedTuple):
    vocabulary: Future[Vocabulary]
    summary: Future[VocabularySummary]


class Summaries:
    """The vocabularies of tokenizers, with their summaries, as a context manager.

    Memory: about 1,000 bytes for each token of a vocabulary that is begun.
    """

    def __init__(self, tokenizers: Sequence[Tokenizer], threads: int) -> None:
        self._tokenizers = tokenizers
        self._threads = ThreadPoolExecutor(max(1, threads), "vocabulary")
        self._begun = {number: self._begin(number) for number in range(threads)}

    def take(self, number: int) -> tuple[Vocabulary, Future[VocabularySummary]]:
        """Return a vocabulary, and its summary when it is there; each once."""
        begun = self._begun.pop(number, None) or self._begin(number)
        return begun.vocabulary.result(), begun.summary

    def _begin(self, number: int) -> _Begun:
        vocabulary = self._threads.submit(Vocabulary, self._tokenizers[number])
        # Threads begin calls in their order, so no thread waits for a call that none runs.
        summary = self._threads.submit(lambda: summarize(vocabulary.result()))
        return _Begun(vocabulary, summary)

    def __enter__(self) -> Summaries:
        """Return the object itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the threads; what they have begun is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)
