"""Small corpora that tests make themselves: seeded, in several scripts, in every kind of file."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import zstandard

_WORDS = """\
the of and to in that it's they'll we've I'm don't you're one two three house houses
tokenizer tokenizers token tokens 7 12 333 1,234 3.14 2024 -- ... (see) [1] x=y a/b
größer Straße naïve él està là một nơi привет мир мира слова العربية كلمة हिन्दी शब्द
你好 世界 中文 こんにちは 世界の 한국어 ภาษาไทย 😀 👍🏽 👩\u200d👩\u200d👧 e\u0301
"""
_SYLLABLES = "ba de gi ko lu mar nes tir pon qua str ing ли сто ка 東 京 大"
# Runs of spaces and other white space are words of their own.
_GAPS = (" ",) * 12 + ("  ", "   ", "\t", "\u00a0", " \r")


def documents(count: int, seed: int = 0, words: int = 20) -> list[str]:
    """Texts of one line each; some are empty, some begin or end with a space.

    Args:
        count: How many.
        seed: Other seeds give other texts.
        words: How many words a text has at most.
    """
    made = random.Random(seed)
    known, syllables = _WORDS.split(), _SYLLABLES.split()

    def word() -> str:
        if made.random() < 0.7:
            return made.choice(known)
        return "".join(made.choices(syllables, k=made.randint(2, 4)))

    def text() -> str:
        return "".join(word() + made.choice(_GAPS) for _ in range(made.randint(0, words)))

    # Before a newline a carriage return would belong to it.
    return [text().rstrip("\r") for _ in range(count)]


def write(path: Path, texts: Sequence[str]) -> Path:
    """Writes documents as the file's name says: `.jsonl` or a text a line, and how it is packed.

    Args:
        path: The file to be; its folder is made. `.gz`, `.zst`, `.bz2`, `.xz`, or plain; `.gz` and
            `.zst` with `members` in the name have one of a few records each, cut anywhere.
        texts: One document each.

    Returns:
        The path.
    """
    packed = path.suffix in PACKERS
    if (path.stem if packed else path.name).endswith(".jsonl"):
        rows = ({"id": f"{i}", "text": text} for i, text in enumerate(texts))
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    else:
        lines = list(texts)
    data = "".join(f"{line}\n" for line in lines).encode()
    if packed:
        size = MEMBER_BYTES if "members" in path.name else max(1, len(data))
        pieces = [data[at : at + size] for at in range(0, len(data), size)] or [data]
        data = b"".join(map(PACKERS[path.suffix], pieces))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


MEMBER_BYTES = 1000


def _gzip(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": _gzip,
    ".zst": zstandard.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}
