"""`bpe-beam counts filter`: rare words and other sources are left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import run, run_whole
from counted_sources import KINDS, SOURCES, TEXTS, count, manifest, parts, rows, words
from made_text import write


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("least", [2, 7, 10**6])
def test_rare_words(corpus: Path, tmp_path: Path, kind: str, least: int) -> None:
    """Against the rows themselves; a word goes or stays in all sources together."""
    folder = count(corpus, tmp_path / "in", tuple(TEXTS), *KINDS[kind])
    arguments = ("--output", tmp_path / "out", "--min-count", f"{least}")
    summary = run_whole("counts", "filter", folder, *arguments).summary
    total = words(folder)
    kept = {word for word, times in total.items() if times >= least}
    assert rows(tmp_path / "out") == [row for row in rows(folder) if row["word"] in kept]
    new, old = manifest(tmp_path / "out"), manifest(folder)
    gone = sum(times for word, times in total.items() if word not in kept)
    assert new["filtered"] == [
        {"min_count": least, "sources": None, "unique_words": len(total) - len(kept),
         "words": gone}
    ]  # fmt: skip
    assert summary["left_out_words"] == gone == old["words"] - new["words"]
    assert new["unique_words"] == len(kept)
    assert new["word_bytes"] == sum(len(word.encode()) for word in kept)
    assert (new["documents"], new["text_bytes"]) == (old["documents"], old["text_bytes"])
    if old["sources"] is not None:
        for name, figures in new["sources"].items():
            own = [row for row in rows(tmp_path / "out") if row["source"] == name]
            assert figures["unique_words"] == len(own)
            assert figures["words"] == sum(row["count"] for row in own)


def test_one_source_is_what_is_counted_of_it_alone(corpus: Path, tmp_path: Path) -> None:
    folder = count(corpus, tmp_path / "in", tuple(TEXTS), *SOURCES)
    alone = count(corpus, tmp_path / "alone", ("zh-1", "zh-2"), *SOURCES)
    arguments = ("--output", tmp_path / "out", "--source", "zh")
    run_whole("counts", "filter", folder, *arguments)
    assert parts(tmp_path / "out") == parts(alone)
    new, expected = manifest(tmp_path / "out"), manifest(alone)
    assert new["filtered"].pop()["sources"] == ["zh"]
    differ = {"inputs": None, "sha256": None}
    assert {**new, **differ} == {**expected, **differ}


def test_min_count_is_about_the_sources_that_are_kept(tmp_path: Path) -> None:
    for name, text in (("en", "a a b"), ("zh", "a b b c c c")):
        write(tmp_path / f"{name}.txt", [text])
    arguments = ("--pretokenizer", "whitespace_split", *SOURCES, "--output", tmp_path / "in")
    run_whole("count", "--input", tmp_path / "en.txt", tmp_path / "zh.txt", *arguments)
    for sources, expected in (((), {"a", "b", "c"}), (("zh",), {"c"}), (("en",), set())):
        out = ("--output", tmp_path / f"out-{'-'.join(sources)}", "--min-count", "3")
        extra = [word for name in sources for word in ("--source", name)]
        run_whole("counts", "filter", tmp_path / "in", *out, *extra)
        assert set(words(out[1])) == expected


def test_again_and_trained_from(corpus: Path, tmp_path: Path) -> None:
    """The manifest lists both filters in order, and a tokenizer can be trained from the rest."""
    folder = count(corpus, tmp_path / "in", tuple(TEXTS), *SOURCES)
    one, two = tmp_path / "one", tmp_path / "two"
    run_whole("counts", "filter", folder, "--min-count", "3", "--output", one)
    run_whole("counts", "filter", one, "--source", "en", "--output", two)
    assert [row["min_count"] for row in manifest(two)["filtered"]] == [3, 1]
    assert run("inspect", two).out.decode().count("occurrences: those below") == 2
    arguments = ("--vocab-size", "300", "--weights", "en=2", "--output", tmp_path / "tok")
    assert run_whole("train", "--counts", two, *arguments).summary["vocab_size"] == 300
    ran = run_whole("counts", "merge", one, two, "--output", tmp_path / "three")
    assert "counts filter dropped words of" in ran.summary["warnings"][-1]


def test_nothing_to_leave_out(corpus: Path, tmp_path: Path) -> None:
    folder = count(corpus, tmp_path / "in", ("en-1",))
    out = ("--output", tmp_path / "out")
    ran = run("counts", "filter", folder, *out)
    assert ran.code == 2
    assert "nothing would be dropped" in ran.message
    ran = run("counts", "filter", folder, *out, "--source", "en")
    assert ran.code == 2
    assert "--source must not be set for counts without sources" in ran.message
