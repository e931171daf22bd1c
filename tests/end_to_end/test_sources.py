"""Counting by source, and training with weights, as users run them; against naive twins."""

from __future__ import annotations

import json
import random
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from command_line import ROOT, run, run_whole, with_options
from counted_sources import manifest as manifest_of_counts
from made_text import documents, write
from read_back import read_shards, tree

from bpe_beam import Tokenizer
from bpe_beam.errors import DataError
from bpe_beam.storage.json_file import with_checksum
from bpe_beam.workers import count_split as counting
from bpe_beam.workers import split_reader

NAMES = {"en": "*en/*", "zh": "*zh/*", "code": "code.txt"}
SOURCES = tuple(f"--source={name}={glob}" for name, glob in NAMES.items())
WORDS = ("--pretokenizer", "whitespace_split")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of three sources and of none, of unlike sizes."""
    root = tmp_path_factory.mktemp("corpus")
    write(root / "in" / "en" / "a.txt", documents(120, seed=1))
    write(root / "in" / "en" / "b.jsonl.gz", documents(60, seed=2))
    write(root / "in" / "zh" / "a.jsonl", documents(80, seed=3))
    write(root / "in" / "code.txt", ["def f ( x ) : return x", "f f f"] * 20)
    write(root / "in" / "rest.txt", documents(30, seed=4))
    return root / "in"


def texts_of(corpus: Path) -> dict[str, list[str]]:
    """The documents by source, as they were made."""
    return {
        "code": ["def f ( x ) : return x", "f f f"] * 20,
        "en": documents(120, seed=1) + documents(60, seed=2),
        "other": documents(30, seed=4),
        "zh": documents(80, seed=3),
    }


def counted(folder: Path) -> dict[str, Counter[str]]:
    """The words of a counts folder by source, read by pyarrow alone."""
    found: dict[str, Counter[str]] = {}
    for path in sorted(folder.glob("*.parquet")):
        rows = pq.read_table(path).to_pylist()
        for row in rows:
            found.setdefault(row.get("source", ""), Counter())[row["word"]] += row["count"]
    return found


def twin(texts: dict[str, list[str]]) -> dict[str, Counter[str]]:
    return {name: Counter(" ".join(lines).split()) for name, lines in texts.items()}


def count(corpus: Path, output: Path, *extra: str) -> Any:
    arguments = ("--input", f"{corpus}/**/*.*", "--output", output, *WORDS)
    return run_whole("count", *arguments, *extra).summary


def parts(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


def merges(folder: Path) -> list[list[str]]:
    found: list[list[str]] = json.loads((folder / "tokenizer.json").read_bytes())["model"]["merges"]
    return found


def test_against_a_dict(corpus: Path, tmp_path: Path) -> None:
    """Words, documents, bytes and shares of each source."""
    summary = count(corpus, tmp_path / "counts", *SOURCES)
    texts = texts_of(corpus)
    expected = twin(texts)
    assert counted(tmp_path / "counts") == expected
    sizes = {name: sum(len(line.encode()) for line in lines) for name, lines in texts.items()}
    assert summary["sources"] == {
        name: {
            "documents": len(lines),
            "text_bytes": sizes[name],
            "words": expected[name].total(),
            "unique_words": len(expected[name]),
            "share": sizes[name] / sum(sizes.values()),
        }
        for name, lines in texts.items()
    }
    assert list(summary["sources"]) == sorted(texts)


def test_any_split_size_and_any_number_of_workers(corpus: Path, tmp_path: Path) -> None:
    count(corpus, tmp_path / "one", *SOURCES)
    for number, extra in enumerate(
        [("--range-bytes", "300"), ("--range-bytes", "2KB", "--workers", "1")]
    ):
        count(corpus, tmp_path / f"{number}", *SOURCES, *extra)
        assert parts(tmp_path / f"{number}") == parts(tmp_path / "one")
    assert manifest_of_counts(tmp_path / "one") == manifest_of_counts(tmp_path / "0")


def test_a_small_table_is_written_out_again_and_again(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables of all sources are emptied together; what comes of it is the same."""
    count(corpus, tmp_path / "one", *SOURCES)
    monkeypatch.setattr(counting, "TABLE_BYTES", 1)
    count(corpus, tmp_path / "small", *SOURCES, "--range-bytes", "2KB")
    assert parts(tmp_path / "small") == parts(tmp_path / "one")


def test_the_sum_is_what_is_counted_without_sources(corpus: Path, tmp_path: Path) -> None:
    by_source = count(corpus, tmp_path / "by_source", *SOURCES)
    plain = count(corpus, tmp_path / "plain")
    total: Counter[str] = sum(counted(tmp_path / "by_source").values(), Counter())
    assert counted(tmp_path / "plain")[""] == total
    same = ("documents", "text_bytes", "words", "unique_words", "rejects")
    assert {key: by_source[key] for key in same} == {key: plain[key] for key in same}
    for key in ("documents", "text_bytes", "words"):
        assert sum(row[key] for row in by_source["sources"].values()) == plain[key]
    manifests = [
        json.loads((tmp_path / name / "__manifest").read_bytes()) for name in ("plain", "by_source")
    ]
    assert [manifest["sources"] is None for manifest in manifests] == [True, False]
    for key in ("unique_words", "word_bytes", "fingerprint"):
        assert manifests[0][key] == manifests[1][key]
    for name in ("plain", "by_source"):
        arguments = ("--counts", tmp_path / name, "--vocab-size", "400", "--alphabet", "bytes")
        run_whole("train", *arguments, "--output", tmp_path / f"tok-{name}")
    files = [tmp_path / f"tok-{name}" / "tokenizer.json" for name in ("plain", "by_source")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_first_occurrences_are_those_of_the_corpus(corpus: Path, tmp_path: Path) -> None:
    """`first_seen` goes by the first source that has a word."""
    first = ("--tie-break", "first_seen")
    for name, extra in (("by_source", SOURCES), ("plain", ())):
        count(corpus, tmp_path / name, *first, *extra)
        arguments = ("--counts", tmp_path / name, "--vocab-size", "120", *first)
        run_whole("train", *arguments, "--output", tmp_path / f"tok-{name}")
    assert merges(tmp_path / "tok-plain") == merges(tmp_path / "tok-by_source") != []


def test_a_job_that_broke_goes_on(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was counted by source is kept, and its places are known again."""
    count(corpus, tmp_path / "whole", *SOURCES)

    def broken(*_: Any) -> Any:
        raise DataError("the disk is full")

    arguments = ("--input", f"{corpus}/**/*.*", "--output", tmp_path / "out", *WORDS, *SOURCES)
    arguments += ("--range-bytes", "2KB", "--quiet")
    with monkeypatch.context() as patch:
        patch.setattr(counting, "write_part", broken)
        ran = run("count", *arguments)
    assert (ran.code, ran.err) == (1, "bpe-beam count: the disk is full\n")
    receipts = list((tmp_path / "out").glob("work/run-*/work/counts-*.json"))
    assert len(receipts) > 3
    monkeypatch.setattr(split_reader, "read_split", broken)  # nothing is read again
    assert run("count", *arguments).code == 0
    assert parts(tmp_path / "out") == parts(tmp_path / "whole")
    part = tmp_path / "whole" / "part-00007-of-00032.parquet"
    part.unlink()
    monkeypatch.undo()
    count(corpus, tmp_path / "whole", *SOURCES)
    assert parts(tmp_path / "out") == parts(tmp_path / "whole")


def test_other_sources_are_another_job(corpus: Path, tmp_path: Path) -> None:
    """And none are what they were before there were sources."""
    count(corpus, tmp_path / "out")
    reading = json.loads((tmp_path / "out" / "__job").read_bytes())["settings"]["reading"]
    assert not [key for key in reading if key.startswith("source")]
    ran = run(
        "count", "--input", f"{corpus}/**/*.*", "--output", tmp_path / "out", *WORDS, *SOURCES
    )
    assert ran.code == 2
    assert "--source: none there, en=*en/*" in ran.message


COMPARED = (
    "a glob is compared with the file's name below the folder that all inputs are in, and the "
    "first that matches decides"
)


def test_a_source_that_nothing_is_of_is_told(corpus: Path, tmp_path: Path) -> None:
    train = ("train", "--input", f"{corpus}/**/*.*", "--vocab-size", "300")
    tokenizer = tmp_path / "tok"
    run_whole(*train, "--output", tokenizer)
    tokenize = (
        "tokenize",
        "--input",
        f"{corpus}/**/*.*",
        "--tokenizer",
        tokenizer / "tokenizer.json",
    )
    evaluate = ("evaluate", *tokenize[1:])
    for job in (("count", "--input", f"{corpus}/**/*.*"), train, tokenize, evaluate):
        for number, (arguments, said) in enumerate(
            (
                (SOURCES, None),
                (
                    (*SOURCES, "--source=zz=*zz/*"),
                    ["no document has the source zz (*zz/*); " + COMPARED],
                ),
                (
                    ("--source-field", "nope"),
                    ["no document names its source in 'nope': all are 'other'"],
                ),
            )
        ):
            output = tmp_path / f"{job[0]}{number}.json"
            for _ in range(2):
                assert (
                    run_whole(*job, *arguments, "--output", output).summary.get("warnings") == said
                )


def test_too_many_sources(tmp_path: Path) -> None:
    """By name they are refused before anything is read."""
    path = write(tmp_path / "a.txt", ["a"])
    many = [f"--source=s{i}=x{i}" for i in range(1000)]
    ran = run("count", "--input", path, "--output", tmp_path / "out", *many)
    assert ran.code == 2
    assert "--source must name at most 999 sources, got 1,000" in ran.message


@pytest.fixture(scope="module")
def counts(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its counts by source."""
    folder = tmp_path_factory.mktemp("weights") / "counts"
    count(corpus, folder, *SOURCES)
    return folder


class TestWeights:
    def train(self, counts: Path, output: Path, *extra: str) -> Any:
        arguments = ("--counts", counts, "--vocab-size", "420", "--symbols", "characters")
        arguments = ("train", *arguments, "--output", output)
        return run_whole(*with_options(arguments, *extra)).summary

    @pytest.mark.parametrize(
        "model",
        [
            ("--alphabet", "bytes"),
            ("--symbols", "characters"),
            ("--model", "wordpiece"),
            ("--model", "word_level"),
            ("--model", "prefix_bpe", "--limit-alphabet", "60", "--min-frequency", "4"),
            ("--symbols", "characters", "--tie-break", "greatest_bytes", "--min-frequency", "5"),
        ],
        ids=str,
    )
    def test_they_are_as_documents_that_are_repeated(
        self, corpus: Path, counts: Path, tmp_path: Path, model: tuple[str, ...]
    ) -> None:
        """Weights 2 and 3 against the text of these sources twice and three times; the rest once,
        and one source not at all."""
        weights = {"en": 2, "zh": 3, "code": 0, "other": 1}
        lines = [line for name, texts in texts_of(corpus).items() for line in texts * weights[name]]
        write(tmp_path / "repeated.txt", lines)
        size = ("--vocab-size", "420", *model)
        arguments = ("--input", tmp_path / "repeated.txt", *WORDS, *size)
        learned = run_whole("train", *arguments, "--output", tmp_path / "repeated")
        weights = ("--weights", "en=2,zh=3,code=0")
        weighted = run_whole(
            "train", "--counts", counts, *size, *weights, "--output", tmp_path / "w"
        )
        files = [tmp_path / name / "tokenizer.json" for name in ("repeated", "w")]
        assert files[0].read_bytes() == files[1].read_bytes()
        same = ("merges", "last_merge_count", "vocab_size")
        assert {k: learned.summary[k] for k in same} == {k: weighted.summary[k] for k in same}

    def test_only_what_they_are_to_each_other_matters(self, counts: Path, tmp_path: Path) -> None:
        plain = self.train(counts, tmp_path / "plain")
        assert plain["weights"] is None
        assert "weighted_bytes_per_token" not in plain
        for number, weights in enumerate(
            ["en=1", "en=0.5,zh=0.5,code=0.5,other=0.5", "en=3,zh=3,code=3,other=3",
             "en=0.3,zh=0.3,code=0.3,other=0.3"]
        ):  # fmt: skip
            summary = self.train(counts, tmp_path / f"{number}", "--weights", weights)
            assert summary["weighted_bytes_per_token"] > 1
            assert "bytes_per_token" not in summary
            assert merges(tmp_path / f"{number}") == merges(tmp_path / "plain")
            one = Fraction(summary["weights"]["en"]["numerator"], 1 << 20)
            assert Fraction(summary["last_merge_count"]) == one * plain["last_merge_count"]

    def test_min_frequency_is_about_occurrences(self, counts: Path, tmp_path: Path) -> None:
        """With all weights a third, three times as many are asked for; no rounding between."""
        for number, (weight, most) in enumerate(
            [("1", "12"), ("0.5", "6"), ("0.25", "3"), ("3", "36")]
        ):
            weights = ",".join(f"{name}={weight}" for name in (*NAMES, "other"))
            extra = ("--weights", weights, "--min-frequency", most, "--vocab-size", "9000")
            self.train(counts, tmp_path / f"{number}", *extra)
            assert merges(tmp_path / f"{number}") == merges(tmp_path / "0")
        extra = ("--min-frequency", "12", "--vocab-size", "9000")
        self.train(counts, tmp_path / "plain", *extra)
        assert merges(tmp_path / "plain") == merges(tmp_path / "0")
        self.train(counts, tmp_path / "more", "--min-frequency", "13", "--vocab-size", "9000")
        assert len(merges(tmp_path / "more")) < len(merges(tmp_path / "0"))

    def test_fractions_against_a_twin(self, counts: Path, tmp_path: Path) -> None:
        """The first pair that is learned is the best of exact sums of fractions."""
        texts = {"en": 314573, "zh": 1 << 21, "code": 52429, "other": 1 << 20}
        pairs: Counter[tuple[str, str]] = Counter()
        for name, words in counted(counts).items():
            for word, times in words.items():
                for pair in pairwise(word):
                    pairs[pair] += times * texts[name]
        best = max(pairs.values())
        summary = self.train(
            counts, tmp_path / "out", "--weights", "en=0.3,zh=2,code=0.05", "--tie-break",
            "greatest_bytes",
        )  # fmt: skip
        assert {n: row["numerator"] for n, row in summary["weights"].items()} == texts
        expected = max(
            (pair for pair, total in pairs.items() if total == best),
            key=lambda pair: [part.encode() for part in pair],
        )
        assert merges(tmp_path / "out")[0] == list(expected)

    def test_they_stand_in_job_and_summary(self, counts: Path, tmp_path: Path) -> None:
        summary = self.train(counts, tmp_path / "out", "--weights", "en=0.3,zh=2")
        assert summary["weights"]["en"] == {
            "weight": "0.3", "weighted_share": 0.22831726645510864,
            "numerator": 314573, "denominator": 1 << 20, "decimal": "0.30000019073486328125",
        }  # fmt: skip
        assert summary["weights"]["code"]["decimal"] == "1"
        kept = json.loads((tmp_path / "out" / "summary.json").read_bytes())
        assert kept["weights"] == summary["weights"]
        job = json.loads((tmp_path / "out" / "__job").read_bytes())
        assert job["settings"]["weights"] == {"en": 314573, "zh": 1 << 21}
        arguments = ("--counts", counts, "--vocab-size", "420", "--symbols", "characters")
        arguments += ("--output", tmp_path / "out")
        # The same weights in other words are the same job, and others are not.
        assert run("train", *arguments, "--weights", "zh=2.0,en=0.30").code == 0
        ran = run("train", *arguments, "--weights", "en=0.3,zh=3")
        assert ran.code == 2
        assert "--weights: en=0.3, zh=2 there, en=0.3, zh=3 now" in ran.message
        ran = run("train", *arguments, "--temperature", "0.5")
        assert ran.code == 2
        assert '--temperature: none there, "0.5" now' in ran.message

    def test_from_a_corpus_as_from_counts(self, corpus: Path, counts: Path, tmp_path: Path) -> None:
        extra = ("--temperature", "0.3")
        self.train(counts, tmp_path / "counts", *extra)
        arguments = ("--input", f"{corpus}/**/*.*", *WORDS, *SOURCES, "--vocab-size", "420", *extra)
        arguments += ("--symbols", "characters", "--output", tmp_path / "corpus")
        summary = run_whole("train", *arguments).summary
        assert merges(tmp_path / "corpus") == merges(tmp_path / "counts")
        assert parts(tmp_path / "corpus" / "counts") == parts(counts)
        shares = {n: row["share"] for n, row in summary["sources"].items()}
        weights = {n: Fraction(row["decimal"]) for n, row in summary["weights"].items()}
        assert weights[min(shares, key=shares.__getitem__)] > 1 > weights["en"]

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("--weights", "fr=1,en=2"), "name 'fr', but the sources are 'code', 'en', '"),
            (("--weights", "en=1,en=2"), "--weights must not repeat 'en'"),
            (("--weights", "en"), "--weights must be SOURCE=W such as en=0.3,zh=2, got 'en'"),
            (("--weights", "=1"), "--weights must be SOURCE=W"),
            (("--weights", "en=x"), "--weights must be decimal numbers such as"),
            (("--weights", "en=0.0000001"), "must be 0 or at least 2^-20, got 0.0000001"),
            (("--weights", "en=0,zh=0,code=0,other=0"), "leave no words to train on"),
            (("--weights", "en=999999999999999999"), "must be at most 9,223,372"),
            (("--temperature", "1.5"), "--temperature must be a decimal number from 0"),
            (("--temperature", "1", "--weights", "en=1"), "give one of them"),
            (("--weights", "en=0.3", "--min-frequency", f"{2**45}"), "at most 8,796,093,022,207"),
        ],
        ids=str,
    )  # fmt: skip
    def test_what_is_refused(
        self, counts: Path, tmp_path: Path, arguments: tuple[str, ...], said: str
    ) -> None:
        """And the folder is as free as before."""
        base = ("--counts", counts, "--vocab-size", "400", "--output", tmp_path / "out")
        ran = run("train", *base, *arguments)
        assert ran.code == 2
        assert said in ran.message
        assert not (tmp_path / "out").exists()

    def test_symbols_beyond_64_bits(self, counts: Path, tmp_path: Path) -> None:
        """The words' counts fit, their symbols do not: the learner refuses them and never wraps."""
        words = json.loads((counts / "__manifest").read_bytes())["sources"]["en"]["words"]
        weight = (2**63 - 1) // (words << 20) - 1
        base = ("--counts", counts, "--vocab-size", "400", "--output", tmp_path / "out")
        # The odd numerator leaves nothing to take out.
        arguments = ("--weights", f"en={weight},zh=0,other=0,code=0.000001")
        ran = run("train", *base, *arguments)
        assert ran.code == 2
        assert "the weighted counts are too large to train from" in ran.message
        assert not (tmp_path / "out").exists()

    def test_counts_without_sources(self, corpus: Path, tmp_path: Path) -> None:
        count(corpus, tmp_path / "plain")
        base = ("--counts", tmp_path / "plain", "--vocab-size", "400", "--output", tmp_path / "o")
        for extra in (("--weights", "en=1"), ("--temperature", "0.5")):
            ran = run("train", *base, *extra)
            assert ran.code == 2
            assert "count again with --source or --source-field" in ran.message


class TestTokens:
    def test_of_each_source_as_tokenize_makes_them(self, corpus: Path, tmp_path: Path) -> None:
        """The predictions of train, the counts of tokenize, and the shards are equal."""
        arguments = ("--input", f"{corpus}/**/*.*", *SOURCES)
        trained = run_whole(
            "train", *arguments, "--vocab-size", "500", "--output", tmp_path / "tok"
        ).summary
        tokenizer = tmp_path / "tok" / "tokenizer.json"
        made = run_whole(
            "tokenize", *arguments, "--tokenizer", tokenizer, "--output", tmp_path / "tokens"
        ).summary
        for name, row in made["sources"].items():
            assert {key: trained["sources"][name][key] for key in row} == row
            assert row["bytes_per_token"] == row["text_bytes"] / row["tokens"]
        encoder = Tokenizer.from_file(str(tokenizer))
        expected = {
            name: sum(len(encoder.encode(line)) for line in lines)
            for name, lines in texts_of(corpus).items()
        }
        assert {name: row["tokens"] for name, row in made["sources"].items()} == expected
        assert made["tokens"] == sum(expected.values())
        assert made["tokens"] == sum(map(len, read_shards(tmp_path / "tokens")))
        assert run("verify", tmp_path / "tokens", "--full", *arguments[:2]).code == 0

    def test_shards_of_any_size_and_a_job_that_is_done(self, corpus: Path, tmp_path: Path) -> None:
        arguments = ("--input", f"{corpus}/**/*.*", *SOURCES)
        run_whole("train", *arguments, "--vocab-size", "400", "--output", tmp_path / "tok")
        tokenizer = ("--tokenizer", tmp_path / "tok" / "tokenizer.json")
        found = []
        for size in ("1MB", "1KB"):
            out = ("--output", tmp_path / size, "--range-bytes", size)
            found.append(run_whole("tokenize", *arguments, *tokenizer, *out).summary["sources"])
            # Again, from the manifest; and mended, from what it says of the shards that stand.
            before = tree(tmp_path / size)
            found.append(run_whole("tokenize", *arguments, *tokenizer, *out).summary["sources"])
            (tmp_path / size / next(n for n in before if n.endswith(".bin"))).unlink()
            found.append(run_whole("tokenize", *arguments, *tokenizer, *out).summary["sources"])
            assert tree(tmp_path / size) == before
        assert all(row == found[0] for row in found)

    def test_a_manifest_whose_sources_do_not_add_up(self, corpus: Path, tmp_path: Path) -> None:
        arguments = ("--input", f"{corpus}/**/*.*", *SOURCES)
        run_whole("train", *arguments, "--vocab-size", "400", "--output", tmp_path / "tok")
        out = tmp_path / "tokens"
        tokenizer = ("--tokenizer", tmp_path / "tok" / "tokenizer.json")
        run_whole("tokenize", *arguments, *tokenizer, "--output", out)
        document = json.loads((out / "__manifest").read_bytes())
        del document["sha256"]
        document["shards"][0]["sources"]["en"]["tokens"] += 1
        (out / "__manifest").write_bytes(with_checksum(document))
        ran = run("verify", out)
        assert ran.code == 1
        assert "its sources add up to" in ran.message
        document["shards"][0]["sources"]["en"]["more"] = 1
        (out / "__manifest").write_bytes(with_checksum(document))
        assert "unknown field `more`" in run("verify", out).message

    def test_a_source_that_cannot_be_encoded_has_no_figure(
        self, corpus: Path, tmp_path: Path
    ) -> None:
        """Left out of training, its characters may be unknown."""
        write(tmp_path / "a.txt", ["abc abd"] * 5)
        write(tmp_path / "b.txt", ["xyz"] * 5)
        arguments = ("--input", tmp_path / "a.txt", tmp_path / "b.txt", *WORDS)
        arguments += ("--source=a=a*", "--source=b=b*", "--symbols", "characters")
        summary = run_whole(
            "train",
            *arguments,
            "--vocab-size",
            "20",
            "--weights",
            "b=0",
            "--output",
            tmp_path / "t",
        ).summary
        assert summary["sources"]["b"]["tokens"] is None
        assert summary["sources"]["b"]["bytes_per_token"] is None
        assert summary["sources"]["a"]["tokens"] == 10

    @pytest.mark.parametrize(
        "extra",
        [
            ("--symbols", "characters", "--end-of-word-symbol", "_"),
            ("--symbols", "characters", "--end-of-word-suffix", "</w>"),
            ("--symbols", "characters", "--limit-alphabet", "5", "--unk-token", "?"),
            ("--model", "wordpiece"),
            ("--model", "word_level"),
            ("--symbols", "characters", "--limit-alphabet", "5", "--byte-fallback"),
            ("--special-token", "<s>", "--alphabet", "bytes"),
        ],
        ids=str,
    )
    def test_of_every_model(self, corpus: Path, tmp_path: Path, extra: tuple[str, ...]) -> None:
        made = random.Random(5)
        lines = [" ".join(made.choices(["abc", "abd", "xyz", "x", "zzz"], k=6)) for _ in range(30)]
        path = write(tmp_path / "a.txt", lines)
        arguments = ("--input", path, *WORDS, "--source=a=a*", "--vocab-size", "300", *extra)
        summary = run_whole("train", *arguments, "--output", tmp_path / "t").summary
        tokenizer = Tokenizer.from_file(str(tmp_path / "t" / "tokenizer.json"))
        expected = sum(len(tokenizer.encode(line)) for line in lines)
        assert summary["sources"]["a"]["tokens"] == expected


def test_the_worked_example_of_the_docs(tmp_path: Path) -> None:
    """Its commands, its table, its figures."""
    page = (ROOT / "docs" / "sources.md").read_text("utf-8").split("## Worked example")[1]
    own = ROOT / "configs" / "corpora" / "weighted_sources"
    arguments = ("--input", f"{own}/**/*.txt", "--source", "en=en/*", "--source", "de=de/*")
    run_whole("count", *arguments, "--output", tmp_path / "counts")
    shown = run("counts", "show", tmp_path / "counts", "--top", "6").out.decode()
    assert f"```\n{shown}```" in page
    rows: dict[str, list[str]] = {"de": [], "en": [], "other": []}
    for name, extra in (
        ("plain", ()), ("weighted", ("--weights", "en=0.5,de=2")),
        ("tempered", ("--temperature", "0.5")),
    ):  # fmt: skip
        base = ("--counts", tmp_path / "counts", "--vocab-size", "280")
        summary = run_whole("train", *base, *extra, "--output", tmp_path / name).summary
        for source, row in summary["sources"].items():
            rows[source].append(f"{row['tokens']}")
    for source, tokens in rows.items():
        size = summary["sources"][source]["text_bytes"]
        assert f"| {source}, {size} bytes | {' | '.join(tokens)} |" in page
    for source, row in summary["weights"].items():
        assert f"| {source} | {row['numerator']} | {row['decimal']} |" in page
    config = ROOT / "configs" / "weighted_sources.yaml"
    run_whole("train", "--config", config, *arguments[:2], "--output", tmp_path / "config")
    assert merges(tmp_path / "config") == merges(tmp_path / "weighted")
