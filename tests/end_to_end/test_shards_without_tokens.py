"""Splits without tokens get no shard, and the shards that there are have numbers without gaps.

Trainers take one folder's pairs as they find them: a pair without tokens ends Megatron's
`GPTDataset`, and its padding is a stray token for whoever concatenates the files.
"""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import reference_bpe
from made_text import documents
from msgspec import to_builtins
from msgspec.structs import replace
from read_back import read_pair, read_shards, tree

from bpe_beam import Tokenizer
from bpe_beam.errors import DataError
from bpe_beam.folders.output_folder import OutputFolder
from bpe_beam.jobs import tokenize, verify
from bpe_beam.progress import Progress
from bpe_beam.settings.common import InputSettings, RunSettings
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.settings.verify import VerifySettings
from bpe_beam.shards.manifest import Manifest
from bpe_beam.storage import Storage

QUIET = Progress("none", stream=io.StringIO())
TEXTS = [text for text in documents(60, seed=4) if text]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tokenizer without merges: its tokens are bytes, and an empty text has none."""
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    vocab, merges = reference_bpe.learn_bpe([("Ġa", 2)], vocab_size=256)
    Tokenizer.from_learned(vocab, merges, []).save(str(path))
    return str(path)


def settings(tokenizer: str, out: Path, *inputs: Path, **reading: Any) -> TokenizeSettings:
    run = RunSettings(workers=reading.pop("workers", 1), quiet=True)
    return TokenizeSettings(
        InputSettings(tuple(map(str, inputs)), **reading), tokenizer, str(out), run
    )


def run(job: TokenizeSettings) -> dict[str, Any]:
    return to_builtins(tokenize.run(job, QUIET))


def proven(job: TokenizeSettings) -> dict[str, Any]:
    """The summary of `verify --full --input`."""
    settings = VerifySettings((job.output,), full=True, input=job.input)
    return to_builtins(verify.run(settings, QUIET))


def manifest_of(out: Path) -> Manifest:
    return Manifest.from_bytes((out / "__manifest").read_bytes())


def shard_names(out: Path) -> list[str]:
    return sorted(path.name for path in out.iterdir() if path.name.startswith("shard-"))


def expected_names(count: int) -> list[str]:
    return [
        f"shard-{i:05}-of-{count:05}{suffix}" for i in range(count) for suffix in (".bin", ".idx")
    ]


def bytes_of_texts() -> list[int]:
    return [len(text.encode()) for text in TEXTS]


def parquet(path: Path) -> Path:
    pq.write_table(pa.table({"text": TEXTS}), path)
    return path


def one_member(path: Path) -> Path:
    path.write_bytes(gzip.compress("".join(f"{text}\n" for text in TEXTS).encode()))
    return path


def blank_lines_between(path: Path) -> Path:
    """Documents, then a stretch of empty ones that is longer than a split, then documents."""
    half = len(TEXTS) // 2
    lines = [*TEXTS[:half], *[""] * 3000, *TEXTS[half:]]
    path.write_text("".join(f"{line}\n" for line in lines), newline="")
    return path


@pytest.mark.parametrize(
    ("make", "name"),
    [(parquet, "a.parquet"), (one_member, "a.txt.gz"), (blank_lines_between, "a.txt")],
)
def test_no_shard_is_empty(tmp_path: Path, tokenizer: str, make: Any, name: str) -> None:
    source = make(tmp_path / name)
    folders = []
    for workers in (1, 2):
        out = tmp_path / f"tokens-{workers}"
        job = settings(tokenizer, out, source, range_bytes=400, workers=workers)
        summary = run(job)
        folders.append(tree(out))
    assert folders[0] == folders[1]
    manifest = manifest_of(out)
    assert manifest.tokenless, "the file is cut into splits without tokens"
    assert shard_names(out) == expected_names(len(manifest.shards))
    assert summary["shards"] == len(manifest.shards) < len(manifest.plan["splits"])
    for shard in manifest.shards:
        assert any(map(len, read_pair(out / shard.name)))
    found = [ids for ids in read_shards(out) if ids]
    assert list(map(len, found)) == bytes_of_texts()
    empty = 3000 if make is blank_lines_between else 0
    assert summary["documents"] == manifest.totals.documents == len(TEXTS) + empty
    assert proven(job)["shards"] == len(manifest.shards)
    assert run(job)["was_finished_before"]
    assert tree(out) == folders[0]


@pytest.mark.parametrize("append", [None, "a"])
def test_a_corpus_without_any_token(tmp_path: Path, tokenizer: str, append: str | None) -> None:
    source = tmp_path / "a.txt"
    source.write_text("\n" * 1000)
    job = settings(tokenizer, tmp_path / "tokens", source, range_bytes=400)
    if append is not None:
        summary = run(replace(job, append=append))
        assert (summary["tokens"], summary["shards"]) == (1000, 3)
        return
    for _ in range(2):
        with pytest.raises(DataError, match=r"there is no token: the 1,000 documents of .*a\.txt"):
            run(job)
    assert not (tmp_path / "tokens" / "__manifest").exists()
    assert shard_names(tmp_path / "tokens") == []


class _Killed(BaseException):
    """Ends a run where it is; nothing that cleans up catches it."""


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return blank_lines_between(tmp_path / "a.txt")


@pytest.fixture
def whole(tmp_path: Path, tokenizer: str, corpus: Path) -> dict[str, bytes]:
    out = tmp_path / "whole"
    run(settings(tokenizer, out, corpus, range_bytes=400))
    return tree(out)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", [0, 1, 2, 9])
def test_a_run_that_is_killed_between_two_renames(
    tmp_path: Path,
    tokenizer: str,
    corpus: Path,
    whole: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
    at: int,
    after: bool,
) -> None:
    out = tmp_path / "tokens"
    job = settings(tokenizer, out, corpus, range_bytes=400)
    move, seen = Storage.move, []

    def moving(self: Storage, source: str, target: str) -> None:
        last = Path(target).name.startswith("shard-") and Path(target).parent == out
        if last:
            seen.append(target)
        if last and len(seen) > at and not after:
            raise _Killed
        move(self, source, target)
        if last and len(seen) > at:
            raise _Killed

    with monkeypatch.context() as patch:
        patch.setattr(Storage, "move", moving)
        with pytest.raises(_Killed):
            run(job)
    assert not (out / "__manifest").exists()
    summary = run(job)
    assert tree(out) == whole
    assert summary["shards_kept_from_before"] > 0, "not all is made again"


def test_a_finished_folder_is_mended(
    tmp_path: Path, tokenizer: str, corpus: Path, whole: dict[str, bytes]
) -> None:
    out = tmp_path / "tokens"
    job = settings(tokenizer, out, corpus, range_bytes=400)
    run(job)
    (out / shard_names(out)[2]).unlink()
    (out / shard_names(out)[-1]).write_bytes(b"short")
    summary = run(job)
    assert tree(out) == whole
    splits = len(manifest_of(out).plan["splits"])
    assert summary["shards_kept_from_before"] == splits - 2


def test_other_splits_have_tokens_after_the_corpus_changed(
    tmp_path: Path, tokenizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many shards as before, but of other splits: each name goes to another split's shard."""
    inputs = [tmp_path / f"{letter}.txt" for letter in "abcde"]
    texts = ["\n" * 40, "b" * 39 + "\n", "c" * 39 + "\n", "d" * 39 + "\n", "\n" * 40]

    def put() -> None:
        for path, text in zip(inputs, texts, strict=True):
            if not path.exists() or path.read_text() != text:
                path.write_text(text)

    put()
    out = tmp_path / "tokens"
    job = settings(tokenizer, out, *inputs, range_bytes=40)
    with monkeypatch.context() as patch:
        patch.setattr(OutputFolder, "finish", lambda *_: (_ for _ in ()).throw(_Killed()))
        with pytest.raises(_Killed):
            run(job)
    assert shard_names(out) == expected_names(3)
    texts = ["a" * 39 + "\n", "\n" * 40, "c" * 39 + "\n", "d" * 39 + "\n", "\n" * 40]
    put()
    assert run(job)["shards_kept_from_before"] == 3
    fresh = tmp_path / "fresh"
    run(settings(tokenizer, fresh, *inputs, range_bytes=40))
    assert tree(out) == tree(fresh)
    assert [len(ids) for ids in read_shards(out)][-1] == 39
    proven(job)
