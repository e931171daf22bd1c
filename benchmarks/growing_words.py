"""Make a corpus of any size whose unique words grow as real text's do.

    python benchmarks/growing_words.py FOLDER TEXT.jsonl.gz ... --gigabytes 10

Heaps' law: n words of text have about K * n^b unique words. A text repeated has too few: its words
end. Here each word of the output is a word of the real texts, at random. But in place of a rare one
there is a word whose rank is random by a power law without an end, which goes on where the ranks of
the common ones end; its power is b of the real texts (the unique words of all against a quarter of
them). Ranks beyond their words are several of their words joined, so that they are spelled like
words. Files are JSON Lines of 50 MB; the same number always has the same content, so a smaller
corpus is the first files of a larger one. A second takes about 100 MB.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

FILE_BYTES = 50_000_000
_WORDS_AT_ONCE = 1 << 20
_DOCUMENT_WORDS = 400
"""The median of the words of a document, whose logarithm has a normal distribution."""
_JOINED = 8
"""A new word has at most so many words in it."""
_RARE = 4
"""Words that the real texts have so often, or less, are rare."""


class Growth:
    """Text of random words, some of which are new.

    Attributes:
        power: The power by which unique words grow.
        common: The number of words that are not rare.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        shuffled = [texts[i] for i in np.random.default_rng(0).permutation(len(texts))]
        words = [word for text in shuffled for word in text.split()]
        quarter = words[: len(words) // 4]
        counts = Counter(words)
        names = [word for word, _ in counts.most_common()]
        self.power = math.log(len(names) / len(set(quarter)), 4)
        self.common = sum(count > _RARE for count in counts.values())
        joined = [i for i, word in enumerate(names) if re.fullmatch(r"[^\W\d_]{2,}", word)]
        number = {word: i for i, word in enumerate(names)}
        self._words = np.array([number[word] for word in words], np.int64)
        self._joined = np.array(joined, np.int64)
        self._types = len(names)
        written = [json.dumps(name, ensure_ascii=False)[1:-1] for name in names]
        between = '"}\n{"text": "'
        self._spelled = pa.array([*(f" {each}" for each in written), *written, between])

    def file(self, number: int, file_bytes: int = FILE_BYTES) -> Iterator[bytes]:
        """Yield the blocks of a file of about so many bytes."""
        random = np.random.default_rng(number)
        size, block = 0, b'{"text": "'
        words = min(_WORDS_AT_ONCE, file_bytes // 5)
        while size < file_bytes:
            yield block
            size += len(block)
            block = self._block(random, words)
        yield b'"}\n'

    def _block(self, random: np.random.Generator, words: int) -> bytes:
        """Return the text of so many words, with the ends of documents between some."""
        chosen = self._words[random.integers(0, len(self._words), words)]
        rare = chosen >= self.common
        rank = (1 - random.random(np.count_nonzero(rare))) ** (-self.power / (1 - self.power))
        chosen[rare] = np.minimum(rank * self.common, 2.0**60).astype(np.int64)
        columns = np.full((words, _JOINED), -1, np.int64)
        columns[:, 0] = chosen
        new = np.flatnonzero(chosen >= self._types)
        rank = chosen[new]
        for column in range(_JOINED):
            rank, at = np.divmod(rank, len(self._joined))
            more = rank > 0 if column else rank >= 0
            spelled = self._joined[at] + (self._types if column else 0)
            columns[new, column] = np.where(more | (at > 0), spelled, -1)
        ends = random.lognormal(math.log(_DOCUMENT_WORDS), 1, words // 100 + 1)
        ends = np.cumsum(ends.astype(np.int64) + 1)
        columns[ends[ends < words], _JOINED - 1] = 2 * self._types
        order: NDArray[np.int64] = columns[columns >= 0]
        taken = pc.take(self._spelled, pa.array(order))
        data = taken.buffers()[2]
        assert data is not None
        return data.to_pybytes()


def texts_of(paths: Sequence[Path]) -> list[str]:
    """Return the texts of JSON Lines, in gzip."""
    return [json.loads(line)["text"] for path in paths for line in gzip.open(path)]


def write(folder: Path, growth: Growth, size: int, file_bytes: int = FILE_BYTES) -> list[Path]:
    """Write the missing files of a corpus of about so many bytes; return all of its files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"part-{number:05}.jsonl" for number in range(-(-size // file_bytes))]
    for number, path in enumerate(paths):
        if not path.exists():
            unfinished = path.with_suffix(".unfinished")
            with unfinished.open("wb") as file:
                file.writelines(growth.file(number, file_bytes))
            unfinished.rename(path)
    return paths


def main() -> None:
    """Write a corpus."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("texts", type=Path, nargs="+")
    parser.add_argument("--gigabytes", type=float, default=1)
    arguments = parser.parse_args()
    growth = Growth(texts_of(arguments.texts))
    print(f"power {growth.power:.3f}, {growth.common:,} common words", flush=True)
    write(arguments.folder, growth, round(arguments.gigabytes * 1e9))


if __name__ == "__main__":
    main()
