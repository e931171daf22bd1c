"""Unigram training by SentencePiece's own rules, where they differ from ours.

From equal seeds it gives SentencePiece's pieces, but for some that are expected equally often,
between which sums of floats decide. This shows that all other rules of docs/algorithm.md are
SentencePiece's. The passes over the words are the package's.

- A character that is expected less than half a time, or is in no best path, is *dead*: it has a
  low score, and its counts are added to those of the first piece.
- So are the characters that are not kept.
- There is a pruning at least, and training ends with the one that leaves few enough pieces.
- Losses and scores are floats. Between equal losses the piece that came first stays: first come
  the pieces of the greatest weight, after a pruning the characters, then those of greatest loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from reference_unigram import SCORE_UNIT, UNIT, best_path, digamma, log

from bpe_beam import _native
from bpe_beam.training.merges.words import Words
from bpe_beam.training.recipe import UnigramRecipe
from bpe_beam.training.unigram.segments import kept_characters, segments_of


class Imitation:
    """The state of a training: pieces in the order of bytes, and their scores."""

    def __init__(self, words: Words, recipe: UnigramRecipe, threads: int = 2) -> None:
        self.recipe, self.threads = recipe, threads
        alphabet = kept_characters(words, recipe)
        self.segments = segments_of(words, alphabet, recipe)
        self.pieces, weights = self.segments.seeds(
            alphabet.points, alphabet.counts, recipe.max_piece_length, recipe.seed_size,
            recipe.reserved, threads,
        )  # fmt: skip
        self.texts = [text.decode() for text in self.pieces.texts()]
        self.weights = [low + (high << 64) for low, high in weights.tolist()]
        ranked = sorted(zip(self.weights, self.texts, strict=True), key=lambda p: (-p[0], p[1]))
        self.ranks = {text: rank for rank, (_, text) in enumerate(ranked)}
        self.first = ranked[0][1]
        _, numbers = _native.count_characters(words.data, words.offsets, words.counts)
        self.unknown = int(numbers.sum()) - int(alphabet.counts.sum())
        self.word_counts = words.counts.tolist()
        self.dead: set[str] = set()
        self.scores: dict[str, float] = {}

    @property
    def seeds(self) -> list[tuple[str, int]]:
        """The seeds of several characters, and how often each occurs."""
        weights = zip(self.texts, self.weights, strict=True)
        return [(text, weight // len(text)) for text, weight in weights if len(text) > 1]

    def train(self) -> dict[str, float]:
        """Return the pieces of the vocabulary and their scores."""
        desired = self.recipe.vocab_size * 11 // 10
        total = sum(self.weights)
        probabilities = np.array([weight / total for weight in self.weights])
        while True:
            for _ in range(self.recipe.sub_iterations):
                counts = self._estimate(probabilities)
                probabilities = self._probabilities()
            self._prune(desired)
            counts = {text: counts[text] for text in self.texts}
            probabilities = self._probabilities()
            if len(self.texts) - len(self.dead) <= desired:
                break
        floats = {text: np.float32(self.scores[text]) for text in counts}
        order = sorted(counts, key=lambda t: (len(t) > 1, -floats[t], t.encode()))
        room = self.recipe.vocab_size - len(self.recipe.reserved)
        return {text: self.scores[text] for text in order[:room]}

    def _probabilities(self) -> np.ndarray:
        values = np.array([self.scores[text] for text in self.texts])
        return _native.exact_exp(values.view(np.uint64)).view(np.float64)

    def _keep(self, kept: Sequence[bool]) -> None:
        self.pieces = self.pieces.subset(np.array(kept, np.uint8))
        self.texts = [text for text, keep in zip(self.texts, kept, strict=True) if keep]

    def _estimate(self, probabilities: np.ndarray) -> dict[str, int]:
        rows = self.pieces.expected_counts(
            self.segments, probabilities.view(np.uint64), self.threads
        )
        counts = dict(zip(self.texts, (low + (high << 64) for low, high in rows.tolist()),
                          strict=True))  # fmt: skip
        counts[self.first] += sum(counts[text] for text in self.dead) + self.unknown * UNIT
        low = {text for text in self.texts if counts[text] < UNIT // 2}
        self.dead |= {text for text in low if len(text) == 1}
        self._keep([text not in low or len(text) == 1 for text in self.texts])
        counts = {text: max(counts[text], UNIT // 2) for text in self.texts}
        total = digamma(sum(n for text, n in counts.items() if text not in self.dead) * 2.0**-52)
        self.scores = {text: digamma(n * 2.0**-52) - total for text, n in counts.items()}
        self._bury()
        return counts

    def _bury(self) -> None:
        lowest = min(score for text, score in self.scores.items() if text not in self.dead)
        self.scores |= {text: lowest - 10.0 for text in self.dead}

    def _prune(self, desired: int) -> None:
        units = {text: round(self.scores[text] * SCORE_UNIT) for text in self.texts}
        in_paths = self.pieces.path_counts(
            self.segments, np.array(list(units.values()), np.int64), self.threads
        )
        counts = dict(zip(self.texts, in_paths.tolist(), strict=True))
        counts[self.first] += sum(counts[text] for text in self.dead) + self.unknown
        counts |= dict.fromkeys(self.dead, 0)
        losses = self._losses(units, counts)
        live = len(self.texts) - len(self.dead)
        self.dead |= {text for text, n in counts.items() if n == 0 and len(text) == 1}
        characters = sum(len(text) == 1 for text in self.texts) - len(self.dead)
        room = max(desired, live * 3 // 4) - characters
        order = sorted(losses, key=lambda t: (-losses[t], self.ranks[t]))[: max(0, room)]
        alone = sorted((text for text in self.texts if len(text) == 1), key=self.ranks.__getitem__)
        self.ranks = {text: rank for rank, text in enumerate([*alone, *order])}
        self._keep([text in self.ranks for text in self.texts])
        self.scores = {text: self.scores[text] for text in self.texts}
        self._bury()

    def _losses(self, units: Mapping[str, int], counts: Mapping[str, int]) -> dict[str, np.float32]:
        of_dead = counts[self.first]
        total = float(sum(counts.values()))
        words = float(sum(self.word_counts))
        losses = {}
        for text in self.texts:
            f = float(counts[text])
            if len(text) == 1 or f == 0:
                continue
            other = best_path(text, units, without=text)
            assert other is not None
            if other[0] > units[text]:
                continue
            new_total = np.float32(log(total + f * float(len(other[1]) - 1)))
            alternative = np.float32(0)
            for part in other[1]:
                n = of_dead if part in self.dead else counts[part]
                more = log(float(n) + f) - float(new_total)
                alternative = np.float32(float(alternative) + more)
            likely = np.float32(log(f) - float(np.float32(log(total))))
            losses[text] = np.float32(f) / np.float32(words) * (likely - alternative)
        return losses
