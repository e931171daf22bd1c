"""`bpe-beam counts merge`, `show` and `filter`, and counts in the hands of other programs."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import run, run_whole
from made_text import documents, write
from read_back import tree

from bpe_beam.corpus.batches import PLACE_BITS
from bpe_beam.counts.manifest import read_manifest
from bpe_beam.errors import DataError
from bpe_beam.jobs.counts import merge as counts_merge
from bpe_beam.storage import Storage

SOURCES = ("--source=en=en*", "--source=zh=zh*")
KINDS = {
    "plain": (),
    "sources": SOURCES,
    "places": ("--tie-break", "first_seen"),
    "both": (*SOURCES, "--tie-break", "first_seen"),
}
TEXTS = {"en-1": 1, "en-2": 2, "other": 3, "zh-1": 4, "zh-2": 5}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five files, by name in this order."""
    root = tmp_path_factory.mktemp("corpus")
    for name, seed in TEXTS.items():
        write(root / f"{name}.txt", documents(40, seed=seed))
    return root


def count(corpus: Path, output: Path, names: tuple[str, ...], *extra: str) -> Path:
    files = [corpus / f"{name}.txt" for name in names]
    run_whole("count", "--input", *files, "--output", output, *extra)
    return output


def parts(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


def manifest(folder: Path) -> Any:
    return json.loads((folder / "manifest.json").read_bytes())


def rows(folder: Path) -> list[dict[str, Any]]:
    return [
        row for path in sorted(folder.glob("*.parquet")) for row in pq.read_table(path).to_pylist()
    ]


def words(folder: Path) -> Counter[str]:
    total: Counter[str] = Counter()
    for row in rows(folder):
        total[row["word"]] += row["count"]
    return total


class TestMerge:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize(
        "cut",
        [
            [("en-1", "en-2"), ("other", "zh-1", "zh-2")],
            [("en-1",), ("en-2",), ("other",), ("zh-1",), ("zh-2",)],
        ],
        ids=["two", "five"],
    )
    def test_it_is_counting_at_once(
        self, corpus: Path, tmp_path: Path, kind: str, cut: list[tuple[str, ...]]
    ) -> None:
        """To the byte in the parts; and in all that the manifest says."""
        whole = count(corpus, tmp_path / "whole", tuple(TEXTS), *KINDS[kind])
        folders = [
            count(corpus, tmp_path / f"{i}", names, *KINDS[kind]) for i, names in enumerate(cut)
        ]
        run_whole("counts", "merge", *folders, "--output", tmp_path / "merged")
        assert parts(tmp_path / "merged") == parts(whole)
        assert len(parts(whole)) == 32
        assert manifest(tmp_path / "merged") == manifest(whole)
        assert words(whole).total() == manifest(whole)["words"]

    def test_without_places_in_any_order(self, corpus: Path, tmp_path: Path) -> None:
        a = count(corpus, tmp_path / "a", ("en-1", "zh-1"), *SOURCES)
        b = count(corpus, tmp_path / "b", ("other",), *SOURCES)
        run_whole("counts", "merge", a, b, "--output", tmp_path / "ab")
        run_whole("counts", "merge", b, a, "--output", tmp_path / "ba")
        assert parts(tmp_path / "ab") == parts(tmp_path / "ba")
        assert list(manifest(tmp_path / "ab")["sources"]) == ["en", "other", "zh"]

    def test_merged_of_merged(self, corpus: Path, tmp_path: Path) -> None:
        """Places are moved by all files before, however many folders those were."""
        names = [count(corpus, tmp_path / n, (n,), *KINDS["both"]) for n in TEXTS]
        whole = count(corpus, tmp_path / "whole", tuple(TEXTS), *KINDS["both"])
        run_whole("counts", "merge", *names[:2], "--output", tmp_path / "first")
        run_whole("counts", "merge", *names[2:4], "--output", tmp_path / "second")
        given = (tmp_path / "first", tmp_path / "second", names[4])
        run_whole("counts", "merge", *given, "--output", tmp_path / "merged")
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
        self, corpus: Path, tmp_path: Path, extra: tuple[str, ...], said: str
    ) -> None:
        a = count(corpus, tmp_path / "a", ("en-1",))
        b = count(corpus, tmp_path / "b", ("en-2",), *extra)
        ran = run("counts", "merge", a, b, "--output", tmp_path / "out")
        assert ran.code == 2
        assert ran.message.startswith("bpe-beam counts merge: these counts cannot be added")
        assert ran.message.count("\n") == 1, "one thing differs"
        assert said.format(a=a, b=b) in ran.message
        assert not (tmp_path / "out").exists()

    def test_inputs_in_both_get_a_warning(self, corpus: Path, tmp_path: Path) -> None:
        a = count(corpus, tmp_path / "a", ("en-1", "en-2"))
        b = count(corpus, tmp_path / "b", ("en-2", "zh-1"))
        c = count(corpus, tmp_path / "c", ("other",))
        ran = run_whole("counts", "merge", a, b, c, "--output", tmp_path / "out")
        (warning,) = ran.summary["warnings"]
        assert warning.startswith("1 inputs have the same name and size in more than one")
        assert "en-2.txt" in warning
        assert run_whole("counts", "merge", a, c, "--output", tmp_path / "o").summary[
            "warnings"
        ] is None  # fmt: skip

    def test_rejects_are_added(self, tmp_path: Path) -> None:
        for name in "ab":
            (tmp_path / f"{name}.txt").write_bytes(b"fine\n\xff\n")
            given = ("--input", tmp_path / f"{name}.txt", "--output", tmp_path / name)
            run_whole("count", *given, "--max-rejects", "50%")
        folders = (tmp_path / "a", tmp_path / "b")
        ran = run_whole("counts", "merge", *folders, "--output", tmp_path / "out")
        assert ran.summary["rejects"] == 2
        assert list(manifest(tmp_path / "out")["rejects"].values()) == [2]

    def test_a_merge_that_broke_goes_on_and_one_that_is_done_is_mended(
        self, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folders = [count(corpus, tmp_path / n, (n,), *SOURCES) for n in ("en-1", "zh-1")]
        given = ("counts", "merge", *folders, "--output", tmp_path / "out")
        done: list[int] = []
        make = counts_merge._merge_part

        def some(*args: Any) -> Any:
            if len(done) == 5:
                raise DataError("the disk is full")
            done.append(args[-1])
            return make(*args)

        with monkeypatch.context() as patch:
            patch.setattr(counts_merge, "_merge_part", some)
            ran = run(*given, "--quiet")
        assert (ran.code, ran.err) == (1, "bpe-beam counts merge: the disk is full\n")
        again: list[int] = []
        monkeypatch.setattr(
            counts_merge, "_merge_part", lambda *args: (again.append(args[-1]), make(*args))[1]
        )
        assert run(*given).code == 0
        assert (done, again) == ([*range(5)], [*range(5, 32)])
        before = tree(tmp_path / "out")
        assert "work" not in {name.split("/")[0] for name in before}
        (tmp_path / "out" / "part-00009-of-00032.parquet").unlink()
        assert run(*given).code == 0
        assert again[27:] == [9]
        assert tree(tmp_path / "out") == before
        assert run_whole(*given).summary["was_finished_before"]
        assert again[28:] == []

    def test_a_place_in_a_file_that_there_is_not(self, corpus: Path, tmp_path: Path) -> None:
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
            changed = dataclasses.replace(part, sha256=hashlib.sha256(data).hexdigest())
            new = dataclasses.replace(old, parts=(*old.parts[:i], changed, *old.parts[i + 1 :]))
            (b / "manifest.json").write_bytes(new.to_json())
            break
        ran = run("counts", "merge", a, b, "--output", tmp_path / "out")
        assert ran.code == 1
        assert "occurs first in a file that the manifest does not have" in ran.message

    def test_what_is_no_counts_folder(self, corpus: Path, tmp_path: Path) -> None:
        a = count(corpus, tmp_path / "a", ("en-1",))
        for job in (("merge", a, tmp_path / "no"), ("filter", tmp_path / "no", "--min-count", "2")):
            ran = run("counts", *job, "--output", tmp_path / "out")
            assert ran.code == 2
            assert "is no counts folder" in ran.message
        assert run("counts", "show", tmp_path / "no").code == 2


class TestFilter:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("least", [2, 7, 10**6])
    def test_rare_words(self, corpus: Path, tmp_path: Path, kind: str, least: int) -> None:
        """Against the rows themselves; a word goes or stays in all sources together."""
        folder = count(corpus, tmp_path / "in", tuple(TEXTS), *KINDS[kind])
        given = ("--output", tmp_path / "out", "--min-count", f"{least}")
        summary = run_whole("counts", "filter", folder, *given).summary
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
            for name, facts in new["sources"].items():
                own = [row for row in rows(tmp_path / "out") if row["source"] == name]
                assert facts["unique_words"] == len(own)
                assert facts["words"] == sum(row["count"] for row in own)

    def test_one_source_is_what_is_counted_of_it_alone(self, corpus: Path, tmp_path: Path) -> None:
        folder = count(corpus, tmp_path / "in", tuple(TEXTS), *SOURCES)
        alone = count(corpus, tmp_path / "alone", ("zh-1", "zh-2"), *SOURCES)
        given = ("--output", tmp_path / "out", "--source", "zh")
        run_whole("counts", "filter", folder, *given)
        assert parts(tmp_path / "out") == parts(alone)
        new, expected = manifest(tmp_path / "out"), manifest(alone)
        assert new["filtered"].pop()["sources"] == ["zh"]
        differ = {"inputs": None, "sha256": None}
        assert {**new, **differ} == {**expected, **differ}

    def test_min_count_is_about_the_sources_that_are_kept(self, tmp_path: Path) -> None:
        for name, text in (("en", "a a b"), ("zh", "a b b c c c")):
            write(tmp_path / f"{name}.txt", [text])
        given = ("--pretokenizer", "whitespace_split", *SOURCES, "--output", tmp_path / "in")
        run_whole("count", "--input", tmp_path / "en.txt", tmp_path / "zh.txt", *given)
        for sources, expected in (((), {"a", "b", "c"}), (("zh",), {"c"}), (("en",), set())):
            out = ("--output", tmp_path / f"out-{'-'.join(sources)}", "--min-count", "3")
            extra = [word for name in sources for word in ("--source", name)]
            run_whole("counts", "filter", tmp_path / "in", *out, *extra)
            assert set(words(out[1])) == expected

    def test_again_and_trained_from(self, corpus: Path, tmp_path: Path) -> None:
        """What was left out is told one after another; a tokenizer can be learned from the rest."""
        folder = count(corpus, tmp_path / "in", tuple(TEXTS), *SOURCES)
        one, two = tmp_path / "one", tmp_path / "two"
        run_whole("counts", "filter", folder, "--min-count", "3", "--output", one)
        run_whole("counts", "filter", one, "--source", "en", "--output", two)
        assert [row["min_count"] for row in manifest(two)["filtered"]] == [3, 1]
        assert run("inspect", two).out.decode().count("occurrences: those below") == 2
        given = ("--vocab-size", "300", "--weights", "en=2", "--output", tmp_path / "tok")
        assert run_whole("train", "--counts", two, *given).summary["vocab_size"] == 300
        ran = run_whole("counts", "merge", one, two, "--output", tmp_path / "three")
        assert "counts filter dropped words of" in ran.summary["warnings"][-1]

    def test_nothing_to_leave_out(self, corpus: Path, tmp_path: Path) -> None:
        folder = count(corpus, tmp_path / "in", ("en-1",))
        out = ("--output", tmp_path / "out")
        ran = run("counts", "filter", folder, *out)
        assert ran.code == 2
        assert "nothing would be dropped" in ran.message
        ran = run("counts", "filter", folder, *out, "--source", "en")
        assert ran.code == 2
        assert "--source must not be set for counts without sources" in ran.message


class TestShow:
    @pytest.mark.parametrize("kind", ["plain", "both"])
    def test_against_a_dict(self, corpus: Path, tmp_path: Path, kind: str) -> None:
        folder = count(corpus, tmp_path / "in", tuple(TEXTS), *KINDS[kind])
        ran = run("counts", "show", folder, "--top", "30", "--summary-file", tmp_path / "s.json")
        total = words(folder)
        best = sorted(total.items(), key=lambda row: (-row[1], row[0].encode()))[:30]
        found = json.loads((tmp_path / "s.json").read_bytes())["most_frequent_words"]
        assert [(row["word"], row["count"]) for row in found] == best
        lines = ran.out.decode().splitlines()
        assert len(lines) == 1 + len(best)
        for line, (word, times) in zip(lines[1:], best, strict=True):
            assert line.endswith(f"  {word!r}")
            assert line.split()[0] == f"{times:,}"
        assert lines[0].split() == ["count", "share", *(["en", "other", "zh"] * (kind == "both")),
                                    "word"]  # fmt: skip
        by_source: dict[str, Counter[str]] = {}
        for row in rows(folder):
            by_source.setdefault(row.get("source", ""), Counter())[row["word"]] = row["count"]
        for row in found:
            assert row["share"] == row["count"] / total.total()
            if kind == "both":
                assert row["sources"] == {
                    name: by_source[name][row["word"]]
                    for name in sorted(by_source)
                    if row["word"] in by_source[name]
                }

    def test_some_sources(self, corpus: Path, tmp_path: Path) -> None:
        folder = count(corpus, tmp_path / "in", tuple(TEXTS), *SOURCES)
        given = ("--source", "zh", "--source", "en", "--top", "1000000", "--min-count", "2")
        ran = run("counts", "show", folder, *given, "--summary-file", tmp_path / "s.json")
        facts = json.loads((tmp_path / "s.json").read_bytes())
        total: Counter[str] = Counter()
        for row in rows(folder):
            if row["source"] != "other":
                total[row["word"]] += row["count"]
        assert facts["words_of_sources"] == total.total()
        found = {row["word"]: row["count"] for row in facts["most_frequent_words"]}
        assert found == {word: times for word, times in total.items() if times > 1}
        assert ran.out.decode().splitlines()[0].split() == ["count", "share", "en", "zh", "word"]

    def test_words_that_a_terminal_would_obey(self, tmp_path: Path) -> None:
        write(tmp_path / "a.txt", ["\x1b[2J \x1b[2J"])
        given = ("--pretokenizer", "whitespace_split", "--source", "\x1b[1m=*")
        run_whole("count", "--input", tmp_path / "a.txt", *given, "--output", tmp_path / "in")
        for job in (("counts", "show"), ("inspect",)):
            ran = run(*job, tmp_path / "in")
            assert ran.code == 0
            assert b"\x1b" not in ran.out

    def test_many_sources_have_no_columns(self, tmp_path: Path) -> None:
        for i in range(9):
            write(tmp_path / "in" / f"s{i}.txt", ["x"])
        named = [f"--source=s{i}=s{i}*" for i in range(9)]
        run_whole("count", "--input", f"{tmp_path}/in/*", *named, "--output", tmp_path / "c")
        lines = run("counts", "show", tmp_path / "c").out.decode().splitlines()
        assert lines[0].split() == ["count", "share", *(f"s{i}" for i in range(8)), "word"]
        assert lines[-1].startswith("9 sources; these are the first 8")


class TestTheCommand:
    def test_alone_it_explains_itself(self) -> None:
        ran = run("counts")
        assert ran.code == 2
        for name in ("merge", "show", "filter"):
            assert f"bpe-beam counts {name}" in ran.err
        assert run("counts", "nonsense").err == ran.err
        ran = run("counts", "--help")
        assert ran.code == 0
        assert b"bpe-beam counts merge" in ran.out

    def test_each_has_its_help(self) -> None:
        for name, flag in (("merge", "--output"), ("show", "--top"), ("filter", "--min-count")):
            ran = run("counts", name, "--help")
            assert ran.code == 0
            assert f"usage: bpe-beam counts {name} ".encode() in ran.out
            assert flag.encode() in ran.out
        ran = run("counts", "show", "x", "--output", "y")
        assert ran.code == 2
        assert ran.message.startswith("bpe-beam counts show: --output is an option of count, ")


class TestOtherPrograms:
    """Parquet that is read without us; each program where it is installed."""

    @pytest.mark.parametrize("kind", ["plain", "both"])
    def test_pandas(self, corpus: Path, tmp_path: Path, kind: str) -> None:
        pandas = pytest.importorskip("pandas")
        folder = count(corpus, tmp_path / "in", tuple(TEXTS), *KINDS[kind])
        frame = pandas.concat([pandas.read_parquet(path) for path in folder.glob("*.parquet")])
        assert frame.groupby("word")["count"].sum().to_dict() == words(folder)
        assert len(frame) == len(rows(folder))

    @pytest.mark.parametrize("kind", ["plain", "both"])
    def test_duckdb(self, corpus: Path, tmp_path: Path, kind: str) -> None:
        duckdb = pytest.importorskip("duckdb")
        folder = count(corpus, tmp_path / "in", tuple(TEXTS), *KINDS[kind])
        table = f"read_parquet('{folder}/*.parquet')"
        found = duckdb.sql(f"select word, sum(count)::bigint from {table} group by word").fetchall()
        assert dict(found) == words(folder)
        if kind == "both":
            query = f"select source, sum(count)::bigint from {table} group by source"
            expected = {name: row["words"] for name, row in manifest(folder)["sources"].items()}
            assert dict(duckdb.sql(query).fetchall()) == expected
