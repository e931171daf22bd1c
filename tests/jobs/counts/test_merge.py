"""`bpe-beam counts merge`: counts of several corpora as if they were one."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import run, run_whole
from counted_sources import KINDS, SOURCES, TEXTS, count, manifest, parts, words
from msgspec.structs import replace
from read_back import tree
from some_of import in_turn

from bpe_beam.corpus.batches import PLACE_BITS
from bpe_beam.counts.manifest import read_manifest
from bpe_beam.errors import DataError
from bpe_beam.jobs.counts import merge as counts_merge
from bpe_beam.storage import Storage


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("kind", "cut"),
    in_turn(
        KINDS,
        [
            [("en-1", "en-2"), ("other", "zh-1", "zh-2")],
            [("en-1",), ("en-2",), ("other",), ("zh-1",), ("zh-2",)],
        ],
    ),
)
def test_it_is_counting_at_once(
    corpus: Path, tmp_path: Path, kind: str, cut: list[tuple[str, ...]]
) -> None:
    """To the byte in the parts; and in all that the manifest says."""
    whole = count(corpus, tmp_path / "whole", tuple(TEXTS), *KINDS[kind])
    folders = [count(corpus, tmp_path / f"{i}", names, *KINDS[kind]) for i, names in enumerate(cut)]
    run_whole("counts", "merge", *folders, "--output", tmp_path / "merged")
    assert parts(tmp_path / "merged") == parts(whole)
    assert len(parts(whole)) == 32
    assert manifest(tmp_path / "merged") == manifest(whole)
    assert words(whole).total() == manifest(whole)["words"]


def test_without_places_in_any_order(corpus: Path, tmp_path: Path) -> None:
    a = count(corpus, tmp_path / "a", ("en-1", "zh-1"), *SOURCES)
    b = count(corpus, tmp_path / "b", ("other",), *SOURCES)
    run_whole("counts", "merge", a, b, "--output", tmp_path / "ab")
    run_whole("counts", "merge", b, a, "--output", tmp_path / "ba")
    assert parts(tmp_path / "ab") == parts(tmp_path / "ba")
    assert list(manifest(tmp_path / "ab")["sources"]) == ["en", "other", "zh"]


def test_merged_of_merged(corpus: Path, tmp_path: Path) -> None:
    """Places are moved by all files before, however many folders those were."""
    names = [count(corpus, tmp_path / n, (n,), *KINDS["both"]) for n in TEXTS]
    whole = count(corpus, tmp_path / "whole", tuple(TEXTS), *KINDS["both"])
    run_whole("counts", "merge", *names[:2], "--output", tmp_path / "first")
    run_whole("counts", "merge", *names[2:4], "--output", tmp_path / "second")
    arguments = (tmp_path / "first", tmp_path / "second", names[4])
    run_whole("counts", "merge", *arguments, "--output", tmp_path / "merged")
    assert parts(tmp_path / "merged") == parts(whole)


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (("--normalizer", "nfc"), "normalizer: none in {a}, nfc in {b}"),
        (("--pretokenizer", "bert"), "pretokenizer: gpt2 in {a}, bert in {b}"),
        (("--special-token", "<s>"), "special tokens: none in {a}, <s> in {b}"),
        (SOURCES, "sources: without in {a}, with in {b}"),
        (KINDS["places"], "positions of first occurrences: without in {a}, with in {b}"),
    ],
    ids=str,
)
def test_other_counts_are_refused_saying_how_they_differ(
    corpus: Path, tmp_path: Path, extra: tuple[str, ...], said: str
) -> None:
    a = count(corpus, tmp_path / "a", ("en-1",))
    b = count(corpus, tmp_path / "b", ("en-2",), *extra)
    ran = run("counts", "merge", a, b, "--output", tmp_path / "out")
    assert ran.code == 2
    assert ran.message.startswith("bpe-beam counts merge: these counts cannot be added")
    assert ran.message.count("\n") == 1, "one thing differs"
    assert said.format(a=a, b=b) in ran.message
    assert not (tmp_path / "out").exists()


def test_inputs_in_both_get_a_warning(corpus: Path, tmp_path: Path) -> None:
    a = count(corpus, tmp_path / "a", ("en-1", "en-2"))
    b = count(corpus, tmp_path / "b", ("en-2", "zh-1"))
    c = count(corpus, tmp_path / "c", ("other",))
    ran = run_whole("counts", "merge", a, b, c, "--output", tmp_path / "out")
    (warning,) = ran.summary["warnings"]
    assert warning.startswith("inputs of the same name and size are in more than one")
    assert "en-2.txt" in warning
    assert run_whole("counts", "merge", a, c, "--output", tmp_path / "o").summary[
        "warnings"
    ] is None  # fmt: skip


def test_rejects_are_added(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.txt").write_bytes(b"fine\n\xff\n")
        arguments = ("--input", tmp_path / f"{name}.txt", "--output", tmp_path / name)
        run_whole("count", *arguments, "--max-rejects", "50%")
    folders = (tmp_path / "a", tmp_path / "b")
    ran = run_whole("counts", "merge", *folders, "--output", tmp_path / "out")
    assert ran.summary["rejects"] == 2
    assert list(manifest(tmp_path / "out")["rejects"].values()) == [2]


def test_a_merge_that_broke_goes_on_and_one_that_is_done_is_mended(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [count(corpus, tmp_path / n, (n,), *SOURCES) for n in ("en-1", "zh-1")]
    arguments = ("counts", "merge", *folders, "--output", tmp_path / "out")
    done: list[int] = []
    make = counts_merge._Merge.words

    def some(*args: Any) -> Any:
        if len(done) == 5:
            raise DataError("the disk is full")
        done.append(args[-1])
        return make(*args)

    with monkeypatch.context() as patch:
        patch.setattr(counts_merge._Merge, "words", some)
        ran = run(*arguments, "--quiet")
    assert (ran.code, ran.err) == (1, "bpe-beam counts merge: the disk is full\n")
    again: list[int] = []
    monkeypatch.setattr(
        counts_merge._Merge,
        "words",
        lambda *args: (again.append(args[-1]), make(*args))[1],  # type: ignore[func-returns-value]
    )
    assert run(*arguments).code == 0
    assert (done, again) == ([*range(5)], [*range(5, 32)])
    before = tree(tmp_path / "out")
    assert "work" not in {name.split("/")[0] for name in before}
    (tmp_path / "out" / "part-00009-of-00032.parquet").unlink()
    assert run(*arguments).code == 0
    assert again[27:] == [9]
    assert tree(tmp_path / "out") == before
    assert run_whole(*arguments).summary["was_finished_before"]
    assert again[28:] == []


def test_a_place_in_a_file_that_there_is_not(corpus: Path, tmp_path: Path) -> None:
    """Or moving it would put it among another's files."""
    a = count(corpus, tmp_path / "a", ("en-1",), *KINDS["places"])
    b = count(corpus, tmp_path / "b", ("en-2",), *KINDS["places"])
    old = read_manifest(Storage(), str(b))
    for i, part in enumerate(old.parts):
        table = pq.read_table(b / part.name)
        if not table.num_rows:
            continue
        far = pa.array([1 << PLACE_BITS, *table["first_document"].to_pylist()[1:]], pa.uint64())
        pq.write_table(table.set_column(2, "first_document", far), b / part.name)
        data = (b / part.name).read_bytes()
        changed = replace(part, sha256=hashlib.sha256(data).hexdigest())
        new = replace(old, parts=(*old.parts[:i], changed, *old.parts[i + 1 :]))
        (b / "__manifest").write_bytes(new.to_bytes())
        break
    ran = run("counts", "merge", a, b, "--output", tmp_path / "out")
    assert ran.code == 1
    assert "occurs first in a file that the manifest does not have" in ran.message


def test_what_is_no_counts_folder(corpus: Path, tmp_path: Path) -> None:
    a = count(corpus, tmp_path / "a", ("en-1",))
    for job in (("merge", a, tmp_path / "no"), ("filter", tmp_path / "no", "--min-count", "2")):
        ran = run("counts", *job, "--output", tmp_path / "out")
        assert ran.code == 2
        assert "is no counts folder" in ran.message
    assert run("counts", "show", tmp_path / "no").code == 2
