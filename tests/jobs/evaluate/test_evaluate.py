"""`bpe-beam evaluate`: the report of tokenizers on the words of counts, on texts and tokens."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import signal
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import reference_evaluation as reference
from command_line import run, run_whole
from counted_sources import SOURCES, TEXTS, count, evaluated, rows, write_corpus
from msgspec.structs import replace

from bpe_beam import Tokenizer
from bpe_beam.evaluation.metrics import Tally
from bpe_beam.jobs import evaluate
from bpe_beam.progress import Progress
from bpe_beam.settings.common import InputSettings, RunSettings
from bpe_beam.settings.evaluate import EvaluateSettings
from bpe_beam.tokenizer.components import byte_level

SIZES = (300, 330, 400)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with counts by source, and tokenizers of several sizes trained from them."""
    root = tmp_path_factory.mktemp("evaluate")
    write_corpus(root / "corpus")
    count(root / "corpus", root / "counts", tuple(TEXTS), *SOURCES)
    for size in SIZES:
        arguments = ("--vocab-size", size, "--special-token", "<s>")
        run_whole(
            "train", "--counts", root / "counts", *arguments, "--output", root / f"tok-{size}"
        )
    return root


def report(made: Path, *extra: object) -> Any:
    return evaluated("--counts", made / "counts", *extra)


def test_metrics_by_source_against_the_reference(made: Path) -> None:
    parallel = ("--parallel", "en")
    (found,) = report(made, "--tokenizer", made / "tok-400", *parallel)["tokenizers"]
    tokenizer = Tokenizer.from_file(str(made / "tok-400"))
    by_source: dict[str, Counter[str]] = {}
    for row in rows(made / "counts"):
        by_source.setdefault(row["source"], Counter())[row["word"]] = row["count"]
    expected = {"total": sum(by_source.values(), Counter()), **by_source}
    figures = found["figures"]
    assert figures["sources"].keys() == by_source.keys()

    def encode(word: str) -> list[str]:
        return reference.tokens_made(byte_level.to_chars(word.encode()), tokenizer.merges)[0]

    for source, words in expected.items():
        own = figures["total"] if source == "total" else figures["sources"][source]
        slow = reference.metrics(words, encode, 400, byte_level.to_bytes)
        assert own == {name: pytest.approx(value, rel=1e-12) for name, value in slow.items()}
    assert 0 < figures["total"]["rare_vocabulary_share"] < 1
    costs = {
        "tokens": lambda row: row["tokens"],
        "tokens_per_word": lambda row: row["tokens"] / row["words"],
        "tokens_per_character": lambda row: row["tokens"] / row["characters"],
        "tokens_per_byte": lambda row: row["tokens"] / row["bytes"],
    }
    assert figures["fairness"].keys() == costs.keys()
    for name, cost in costs.items():
        values = {source: cost(row) for source, row in figures["sources"].items()}
        fair = figures["fairness"][name]
        assert fair["gini"] == pytest.approx(reference.gini(list(values.values())))
        assert values[fair["worst"]] == max(values.values())
        assert fair["worst_to_best"] == max(values.values()) / values[fair["best"]]


def test_tokens_of_sources_are_compared_only_of_translations(made: Path) -> None:
    (found,) = report(made, "--tokenizer", made / "tok-400")["tokenizers"]
    assert "tokens" not in found["figures"]["fairness"]


def test_the_curve_is_that_of_tokenizers_trained_to_these_sizes(made: Path) -> None:
    arguments = ("--tokenizer", *(made / f"tok-{size}" for size in SIZES))
    whole = report(made, *arguments)["tokenizers"]
    sizes = ",".join(map(str, SIZES))
    (curve,) = report(made, "--tokenizer", made / "tok-400", "--vocab-sizes", sizes)["tokenizers"]
    assert [one["name"] for one in whole] == ["tok-300", "tok-330", "tok-400"]
    assert [*curve["curve"], curve["figures"]] == [one["figures"] for one in whole]
    assert curve["figures"] == whole[-1]["figures"]


def test_sizes_are_not_those_of_published_tokenizers_unless_asked(
    made: Path, tmp_path: Path
) -> None:
    """One beside that is smaller, or no BPE, is no obstacle either."""
    published = tmp_path / "published.json"
    shutil.copy(made / "tok-300/tokenizer.json", published)
    tokenizers = ("--tokenizer", f"own={made / 'tok-400'}", f"theirs={published}")

    def sizes(*typed: str) -> list[list[int]]:
        rows = report(made, *tokenizers, "--vocab-sizes", *typed)["tokenizers"]
        return [[one["vocab_size"] for one in row["curve"]] for row in rows]

    assert sizes("310,350") == [[310, 350], []]
    assert sizes("theirs=280,290,own=350") == [[350], [280, 290]]
    assert sizes("310,theirs=280") == [[310], [280]]
    wrong = "--vocab-sizes must name a tokenizer, got 'x'"
    ran = run("evaluate", "--counts", made / "counts", *tokenizers, "--vocab-sizes", "x=280")
    assert (ran.code, ran.message) == (2, f"bpe-beam evaluate: {wrong}")
    alone = report(made, "--tokenizer", published, "--vocab-sizes", "280")["tokenizers"]
    assert [one["vocab_size"] for one in alone[0]["curve"]] == [280]


def test_nothing_depends_on_the_threads(made: Path) -> None:
    arguments = ("evaluate", "--counts", made / "counts", "--tokenizer", made / "tok-300")
    outputs = {run(*arguments, "--workers", workers).out for workers in (1, 4)}
    assert len(outputs) == 1


def test_a_work_folder_of_other_texts_is_refused_by_its_own_option(
    made: Path, tmp_path: Path
) -> None:
    arguments = ("--tokenizer", made / "tok-300", "--work", tmp_path / "work")
    for text in ("a", "b"):
        (tmp_path / f"{text}.txt").write_text(f"{text}\n")
    assert run("evaluate", "--input", tmp_path / "a.txt", *arguments).code == 0
    ran = run("evaluate", "--input", tmp_path / "b.txt", *arguments)
    assert ran.code == 2
    assert "holds the work of another job; what differs:" in ran.message
    assert "Give another --work, or --overwrite to remove" in ran.message


def test_csv_has_a_row_for_each_size_and_source(made: Path, tmp_path: Path) -> None:
    arguments = ("--tokenizer", made / "tok-400", "--vocab-sizes", "300")
    found = report(made, *arguments)["tokenizers"][0]
    ran = run("evaluate", "--counts", made / "counts", *arguments, "--output", tmp_path / "r.csv")
    assert ran.code == 0
    assert ran.out == b""
    table = list(csv.DictReader(io.StringIO((tmp_path / "r.csv").read_text("utf-8"))))
    keys = [(row.pop("tokenizer"), row.pop("vocab_size"), row.pop("source")) for row in table]
    sources = ["", *found["figures"]["sources"]]
    assert keys == [("tok-400", size, source) for size in ("300", "400") for source in sources]
    for row, key in zip(table, keys, strict=True):
        figures = found["curve"][0] if key[1] == "300" else found["figures"]
        own = figures["sources"][key[2]] if key[2] else figures["total"]
        assert row == {**{name: str(value) for name, value in own.items()}, "exact": "true"}


def test_people_see_a_line_of_each_tokenizer(made: Path, tmp_path: Path) -> None:
    arguments = ("--counts", made / "counts", "--tokenizer", made / "tok-300", made / "tok-400")
    ran = run("evaluate", *arguments, "--output", tmp_path / "r.json")
    lines = [line for line in ran.err.splitlines() if line.startswith("    tok-")]
    assert len(lines) == 2
    assert "never used" in ran.err
    heading = next(line for line in ran.err.splitlines() if "bytes per token by source" in line)
    assert heading.split()[-2:] == ["tok-300", "tok-400"]
    assert "worst source" not in ran.err
    of_translations = run(
        "evaluate", *arguments, "--parallel", "en", "--output", tmp_path / "r.json"
    )
    assert "worst" in of_translations.err
    quiet = run("evaluate", *arguments, "--output", tmp_path / "r.json", "--quiet")
    assert quiet.err == ""


def test_a_tokenizer_of_other_words_is_reported_with_a_warning(made: Path, tmp_path: Path) -> None:
    arguments = ("--vocab-size", "330", "--pretokenizer", "cl100k", "--output", tmp_path / "tok")
    run_whole("train", "--input", made / "corpus" / "en-1.txt", *arguments)
    arguments = ("evaluate", "--counts", made / "counts", "--tokenizer", tmp_path / "tok")
    ran = run(*arguments)
    assert [w for w in ran.warnings if w.startswith("tok: its figures are not exact")]
    assert not json.loads(ran.out)["tokenizers"][0]["exact"]
    (row,) = (line for line in ran.err.splitlines() if line.startswith("    tok "))
    assert row.split()[-1] == "no"
    table = csv.DictReader(io.StringIO(run(*arguments, "--format", "csv").out.decode()))
    assert {line["exact"] for line in table} == {"false"}
    for kind in ("text", "html"):
        assert b"tok (not exact)" in run(*arguments, "--format", kind).out


def test_the_best_of_all_that_is_shown_is_marked(made: Path, tmp_path: Path) -> None:
    arguments = ("--vocab-size", "500", "--pretokenizer", "cl100k", "--output", tmp_path / "tok")
    run_whole("train", "--input", made / "corpus" / "en-1.txt", *arguments)

    def winners(*tokenizers: object) -> set[int]:
        arguments = ("--counts", made / "counts", "--tokenizer", *tokenizers, "--format", "html")
        page = run("evaluate", *arguments).out.decode()
        table = page[page.index('aria-label="All figures"') :]
        rows = re.findall("<tr>(.*?)</tr>", table[: table.index("</table>")], re.DOTALL)
        return {
            number
            for row in rows
            for number, cell in enumerate(re.findall('<td class="(number[^"]*)"', row))
            if "best" in cell
        }

    assert winners(made / "tok-300", tmp_path / "tok") == {0, 1}
    assert winners(made / "tok-300", made / "tok-400", tmp_path / "tok") == {0, 2}
    assert winners(made / "tok-400", "--vocab-sizes", "300") == {0, 1}


def test_names_of_sources_are_quoted_in_tables(tmp_path: Path) -> None:
    rows = [{"text": "the weather", "lang": lang} for lang in ("a\x1b[31mred", "new\nline")]
    lines = (json.dumps(row) for row in rows for _ in range(9))
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    source = ("--input", tmp_path / "a.jsonl", "--source-field", "lang")
    run_whole("train", *source, "--vocab-size", "260", "--output", tmp_path / "tok")
    ran = run("evaluate", *source, "--tokenizer", tmp_path / "tok", "--format", "text")
    for shown in (ran.out.decode(), ran.err):
        assert "\x1b" not in shown
        assert "'a\\x1b[31mred'" in shown
        assert "'new\\nline'" in shown


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (("--vocab-sizes", "299,500"), "--vocab-sizes must be from 257"),
        (("--vocab-sizes", "0"), "--vocab-sizes must be from 1"),
        (("--output", "r.pdf"), "--output must end in .html, .json, .csv, .txt, got"),
        (("--runner", "FlinkRunner"), "--runner"),
        (("--tokens", "t"), "--counts and --tokens exclude each other"),
        (("--output", ".", "--format", "csv"), "--output must be a file, got the folder"),
        (("--work", "w"), "--work has no effect without texts"),
        (("--parallel", "fr"), "--parallel must be one of the sources, en, other, zh"),
    ],
)
def test_wrong_use(made: Path, extra: tuple[str, ...], message: str) -> None:
    arguments = ("--counts", made / "counts", "--tokenizer", made / "tok-300")
    ran = run("evaluate", *arguments, *extra)
    assert ran.code == 2
    assert message in ran.message


@pytest.mark.parametrize("source", ["--counts", "--input", "--tokens"])
def test_samples_without_a_page_are_refused_whatever_is_evaluated(made: Path, source: str) -> None:
    tokenizer = () if source == "--tokens" else ("--tokenizer", made / "tok-300")
    for output in ((), ("--output", "r.json"), ("--output", "-")):
        ran = run("evaluate", source, made, *tokenizer, "--sample", "s.txt", *output)
        assert ran.code == 2
        assert "--sample has no effect on reports other than HTML" in ran.message


def test_the_folder_of_the_report_is_made_before_the_work(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("evaluate", "--counts", made / "counts", "--tokenizer", made / "tok-300")
    output = tmp_path / "new" / "folder" / "r.json"
    assert run(*arguments, "--output", output).code == 0
    assert output.read_bytes() == run(*arguments).out
    (tmp_path / "file").touch()

    def evaluated(*_: object) -> None:
        raise AssertionError("the evaluation has begun")

    monkeypatch.setattr("bpe_beam.jobs.evaluate._of_words", evaluated)
    ran = run(*arguments, "--output", tmp_path / "file" / "r.json")
    assert ran.code == 1
    assert "file" in ran.message


def test_a_dash_is_stdout(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ("evaluate", "--counts", made / "counts", "--tokenizer", made / "tok-300")
    for kind in ((), ("--format", "csv"), ("--format", "html")):
        ran = run(*arguments, *kind, "--output", "-")
        assert ran.code == 0
        assert ran.out == run(*arguments, *kind).out
    assert not list(tmp_path.iterdir())


def test_a_tokenizer_twice_and_one_without_merges(made: Path, tmp_path: Path) -> None:
    arguments = ("evaluate", "--counts", made / "counts", "--tokenizer", made / "tok-300")
    assert "--tokenizer must not repeat" in run(*arguments, made / "tok-300").message
    words = ("--model", "word_level", "--vocab-size", "50", "--output", tmp_path / "words")
    run_whole("train", "--counts", made / "counts", *words)
    own = ("evaluate", "--counts", made / "counts", "--tokenizer", tmp_path / "words")
    ran = run(*own, "--vocab-sizes", "40")
    assert ran.code == 2
    assert "must not be set for a tokenizer that is not BPE" in ran.message
    (found,) = json.loads(run(*own).out)["tokenizers"]
    total = found["figures"]["total"]
    assert total["unknown_tokens"] > 0
    assert total["words_kept_whole"] == pytest.approx(1 - total["unknown_tokens"])


def test_premiums_of_translations(made: Path) -> None:
    (one,) = report(made, "--tokenizer", made / "tok-300", "--parallel", "en")["tokenizers"]
    sources = one["figures"]["sources"]
    expected = {name: each["tokens"] / sources["en"]["tokens"] for name, each in sources.items()}
    assert one["figures"]["premiums"] == expected
    assert expected["en"] == 1


def test_a_few_sources_at_a_time_give_the_same_report(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = report(made, "--tokenizer", made / "tok-300", "--vocab-sizes", "270")
    monkeypatch.setattr("bpe_beam.evaluation.counted.TALLY_BYTES", 1)
    assert report(made, "--tokenizer", made / "tok-300", "--vocab-sizes", "270") == whole


def test_formats_by_ending_and_by_option(made: Path, tmp_path: Path) -> None:
    arguments = ("evaluate", "--counts", made / "counts", "--tokenizer", made / "tok-300")
    for ending, kind in ((".html", "html"), (".json", "json"), (".csv", "csv"), (".txt", "text")):
        output = tmp_path / f"report{ending}"
        assert run(*arguments, "--output", output).code == 0
        assert run(*arguments, "--format", kind).out == output.read_bytes()
    assert (tmp_path / "report.html").read_bytes().startswith(b"<!DOCTYPE html>")
    heading, row, empty, *by_source = (tmp_path / "report.txt").read_text("utf-8").splitlines()
    assert heading.split()[:3] == ["tokenizer", "vocabulary", "bytes/token"]
    assert row.split()[:2] == ["tok-300", "300"]
    assert empty == ""
    assert [line.split()[:3] for line in by_source] == [
        ["source", "tokenizer", "vocabulary"],
        *([source, "tok-300", "300"] for source in ("en", "other", "zh")),
    ]
    assert run(*arguments, "--format", "json", "--output", tmp_path / "r").code == 0
    assert (tmp_path / "r").read_bytes() == (tmp_path / "report.json").read_bytes()
    for wrong in (("--output", tmp_path / "r.pdf"), ("--sample", tmp_path / "r")):
        assert run(*arguments, *wrong).code == 2


@pytest.mark.parametrize("tokenizers", [["tok-300"], ["tok-300", "tok-400", "tok-330"]])
def test_a_page_shows_its_progress(made: Path, tmp_path: Path, tokenizers: list[str]) -> None:
    for kind, shown in (("html", True), ("json", False)):
        output = ("--output", tmp_path / f"r.{kind}", "--quiet", "--progress", "json")
        arguments = ("--tokenizer", *(made / name for name in tokenizers), *output)
        ran = run("evaluate", "--counts", made / "counts", *arguments)
        assert ran.code == 0, ran.err
        lines = [json.loads(line) for line in ran.err.splitlines() if line.startswith("{")]
        stages = [line for line in lines if line["stage"] == "report"]
        assert bool(stages) == shown
        for last in stages[-1:]:
            parts = len(json.loads((made / "counts/__manifest").read_text())["parts"])
            assert last["done"] == last["total"] == parts + 2 * len(tokenizers)


def test_a_page_of_sources_sizes_and_samples(made: Path, tmp_path: Path) -> None:
    sample = tmp_path / "own.txt"
    sample.write_text("whether \u202e <b>", "utf-8")
    arguments = ("--tokenizer", made / "tok-400", made / "tok-300", "--vocab-sizes", "290")
    ran = run(
        "evaluate", "--counts", made / "counts", *arguments, "--sample", sample, "--format=html"
    )
    assert ran.code == 0, ran.err
    page = ran.out.decode()
    for name in ("tok-400", "tok-300", str(sample), "tok-300 at 290", "Bytes of all ids"):
        assert name in page
    for part in ("costs", "sources", "words", "differences1"):
        assert f'<section id="{part}"' in page
    assert "<b>" not in page
    assert "\u202e" not in page


@pytest.mark.parametrize("of_texts", [False, True])
def test_an_interrupt_ends_after_the_words_at_hand(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_texts: bool
) -> None:
    """Of counts; and of texts, the words of the tokenizer's own pattern."""
    running, may_end = threading.Event(), threading.Event()
    calls: list[tuple[Any, ...]] = []
    add_words = Tally.add_words

    def add_one_part(*arguments: Any, **options: Any) -> None:
        calls.append(arguments)
        running.set()
        assert may_end.wait(60)
        add_words(*arguments, **options)

    def interrupt() -> None:
        assert running.wait(60)
        signal.pthread_kill(main, signal.SIGINT)

    monkeypatch.setattr(Tally, "add_words", add_one_part)
    monkeypatch.setattr("bpe_beam.evaluation.counted._ROWS", 4)
    settings = EvaluateSettings(
        tokenizers=(str(made / "tok-300"),), counts=str(made / "counts"), run=RunSettings(workers=2)
    )
    if of_texts:
        texts = InputSettings(inputs=(str(made / "corpus"),))
        settings = replace(settings, counts=None, input=texts, pretokenizer="cl100k")
    main = threading.get_ident()
    # A process that was started in the background may ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            evaluate.run(settings, Progress("none"))
    finally:
        may_end.set()
        signal.signal(signal.SIGINT, before)
    for thread in threading.enumerate():
        if thread.name.startswith("tokenizer"):
            thread.join(60)
    assert 1 <= len(calls) <= 2, "at most the words of each worker"


def test_tokenizers_have_names(made: Path) -> None:
    small, large = made / "tok-300", made / "tok-400"
    found = report(made, "--tokenizer", f"A={small}", large, f"B={small / 'tokenizer.json'}")
    assert [one["name"] for one in found["tokenizers"]] == ["A", "tok-400", "B"]
    assert found["tokenizers"][0]["figures"] == found["tokenizers"][2]["figures"]
    for arguments, message in (
        ((f"A={small}", f"A={large}"), "--tokenizer must not repeat A"),
        ((f"tok-400={small}", large), "--tokenizer must not repeat tok-400"),
        ((f"A={made / 'none'}",), "none: no such file"),
    ):
        ran = run("evaluate", "--counts", made / "counts", "--tokenizer", *arguments)
        assert (ran.code, message in ran.err) == (2, True), ran.err


def test_a_file_whose_name_has_an_equals_sign(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a=b").write_bytes((made / "tok-300" / "tokenizer.json").read_bytes())
    (found,) = report(made, "--tokenizer", "a=b")["tokenizers"]
    assert found["name"] == "a=b"


def test_tiktoken_files_with_a_pattern(made: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.tiktoken"
    Tokenizer.from_file(made / "tok-400").save_tiktoken(path)
    chosen = "--tiktoken-pretokenizer"
    both = (f"A={path}", f"B={path}", made / "tok-400", chosen, "gpt2", "B=cl100k")
    texts = ("--input", made / "corpus")
    a, b, expected = (
        one["figures"]["total"] for one in evaluated(*texts, "--tokenizer", *both)["tokenizers"]
    )
    assert a["tokens"] == expected["tokens"] != b["tokens"]
    for arguments, message in (
        ((path,), f"{chosen} must be given for"),
        ((path, chosen, "nope"), f"{chosen} must be one of gpt2"),
        ((path, chosen, "gpt2", "cl100k"), f"{chosen} must be given once"),
        ((made / "tok-400", chosen, "gpt2"), f"{chosen} has no effect"),
    ):
        ran = run("evaluate", *texts, "--tokenizer", *arguments)
        assert (ran.code, message in ran.err) == (2, True), ran.err


def test_a_terminal_gets_text(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = (str(made / "tok-400"),)
    settings = EvaluateSettings(tokenizer, counts=str(made / "counts"))
    assert settings.chosen_format == "json"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert settings.chosen_format == "text"
    assert replace(settings, output="-").chosen_format == "json"
    assert replace(settings, output="report.csv").chosen_format == "csv"
    assert replace(settings, format="json").chosen_format == "json"


def test_a_terminal_gets_the_figures_once(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EvaluateSettings, "on_terminal", property(lambda settings: True))
    ran = run("evaluate", "--tokenizer", made / "tok-400", "--counts", made / "counts")
    assert ran.out.startswith(b"tokenizer ")
    assert "unique words" in ran.err
    assert "tokenizers" not in ran.err
