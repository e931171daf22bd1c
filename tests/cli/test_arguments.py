"""Command line and YAML to the settings of a job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from bpe_beam.cli import main as cli
from bpe_beam.cli.arguments import read_arguments, settings_of
from bpe_beam.corpus.read_settings import pairs_of
from bpe_beam.settings.count import CountSettings
from bpe_beam.settings.decode import DecodeSettings
from bpe_beam.settings.encode import EncodeSettings
from bpe_beam.settings.inspect import InspectSettings
from bpe_beam.settings.jobs import JOBS
from bpe_beam.settings.quickstart import QuickstartSettings
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.settings.train import TrainSettings
from bpe_beam.settings.verify import VerifySettings

pytestmark = pytest.mark.quick


ROOT = Path(__file__).parents[2]


COUNT = ["count", "--input", "a.txt", "--output", "out"]


def settings(*argv: str) -> Any:
    return settings_of(read_arguments(*cli.job_of(argv)))


Refused = Callable[..., str]


def test_all_options_of_count() -> None:
    parsed = settings(
        "count",
        *("--input", "a.txt", "b/*.jsonl", "--input", "@list", "--input-format", "jsonl"),
        *("--text-field", "body", "--id-field", "key", "--document-separator", r"\n\x1e"),
        *("--range-bytes", "64MB", "--max-rejects", "1%", "--output", "out"),
        *("--normalizer", "none", "--pretokenizer", "gpt2"),
        *("--special-token", "<a>", "--special-token", "<b>", "--tie-break", "first_seen"),
        *("--workers", "3", "--overwrite", "--quiet", "--debug", "--summary-file", "-"),
        *("--storage-options", '{"s3": {"anon": true}}'),
    )
    assert isinstance(parsed, CountSettings)
    assert parsed.input.inputs == ("a.txt", "b/*.jsonl", "@list")
    assert (parsed.input.input_format, parsed.input.text_field) == ("jsonl", "body")
    assert (parsed.input.id_field, parsed.input.document_separator) == ("key", "\n\x1e")
    assert (parsed.input.range_bytes, parsed.input.max_rejects) == (64_000_000, "1%")
    assert (parsed.output, parsed.special_tokens) == ("out", ("<a>", "<b>"))
    assert (parsed.normalizer, parsed.pretokenizer, parsed.with_places) == ("none", "gpt2", True)
    assert (parsed.run.workers, parsed.run.overwrite, parsed.run.quiet) == (3, True, True)
    assert (parsed.run.debug, parsed.run.summary_file) == (True, "-")
    assert parsed.run.storage_options == {"s3": {"anon": True}}
    assert not settings(*COUNT).with_places


def test_all_options_of_train() -> None:
    parsed = settings(
        "train",
        *("--counts", "c", "--output", "o", "--model", "bpe", "--vocab-size", "32000"),
        *("--min-frequency", "2", "--tie-break", "first_seen", "--alphabet", "seen"),
        *("--special-token", "<a>", "--driver-memory", "1GiB", "--merge-rounds", "local"),
    )
    assert parsed == TrainSettings(
        output="o",
        vocab_size=32000,
        counts="c",
        min_frequency=2,
        tie_break="first_seen",
        alphabet="seen",
        special_tokens=("<a>",),
        driver_memory=1 << 30,
        merge_rounds="local",
    )
    parsed = settings("train", "--input", "a", "--output", "o", "--vocab-size", "300")
    assert parsed.input.inputs == ("a",)
    assert parsed.counts is None


def test_all_options_of_tokenize() -> None:
    parsed = settings(
        "tokenize",
        *("--tokenizer", "t", "--input", "a", "--output", "o", "--format", "megatron"),
        *("--append", "<eos>", "--prepend", "<bos>", "--allowed-special", "<a>,<b>"),
    )
    assert isinstance(parsed, TokenizeSettings)
    assert (parsed.tokenizer, parsed.format) == ("t", "megatron")
    assert (parsed.append, parsed.prepend, parsed.allowed_special) == (
        "<eos>",
        "<bos>",
        ("<a>", "<b>"),
    )
    for text, meant in (("none", "none"), ("all", "all"), ("all,<a>", ("all", "<a>"))):
        parsed = settings("encode", "x", "--tokenizer", "t", "--allowed-special", text)
        assert parsed.allowed_special == meant


def test_all_options_of_the_other_jobs() -> None:
    assert settings("verify", "f", "--full", "--input", "a", "b") == VerifySettings(
        ("f",), full=True, input=settings("count", "--input", "a", "b", "--output", "o").input
    )
    assert settings("encode", "--tokenizer", "t") == EncodeSettings("t")
    assert settings("encode", "--tokenizer", "t", "--show", "a b") == EncodeSettings(
        "t", "a b", show=True
    )
    assert settings("encode", "--tokenizer", "t", "--", "--help").text == "--help"
    assert settings("decode", "1", "2,3", "--tokenizer", "t") == DecodeSettings("t", (1, 2, 3))
    assert settings("decode", "--tokenizer", "t") == DecodeSettings("t")
    assert settings("inspect", "p") == InspectSettings("p")
    assert settings("quickstart") == QuickstartSettings()
    assert settings("quickstart", "--output", "q").output == "q"


def test_every_declared_option_reaches_the_settings() -> None:
    """An option that is accepted and does nothing is the worst of faults."""
    values = {
        "--input-format": "text", "--max-rejects": "7", "--normalizer": "nfc",
        "--model": "wordpiece", "--pretokenizer": "bert", "--format": "flat",
        "--tie-break": "first_seen", "--empty-documents": "drop",
        "--long-documents": "cut", "--packing": "concatenate", "--validation-share": "5%",
        "--validation-by": "id",
        "--alphabet": "seen",
        "--storage-options": '{"s3": {}}', "--runner": "direct",
        "--counts": "c", "--driver-memory": "2GB", "--symbols": "bytes",
        "--merge-rounds": "distributed",
        "--output": "o.json", "--progress": "json", "--source": "en=a/*", "--weights": "en=2",
        "--temperature": "0.5", "--share": "a=2", "--tokens-of": "a=2",
        "--cluster": "workers=2",
        "--character-coverage": "0.99", "--shrinking-factor": "0.5",
        "--overshoot-factor": "2", "--sub-iterations": "3", "--split-by-unicode-script": "false",
    }  # fmt: skip
    packed = ("--sequence-length", "9", "--packing", "best_fit")
    long = ("--max-document-tokens", "9")
    base = {
        "count": ["--input", "a", "--output", "o"],
        "train": ["--input", "a", "--output", "o", "--vocab-size", "300"],
        "tokenize": ["--input", "a", "--output", "o", "--tokenizer", "t", *long, *packed],
        "verify": ["f"],
        "encode": ["--tokenizer", "t"],
        "decode": ["--tokenizer", "t"],
        "blend": ["a"],
        "evaluate": ["--input", "a", "--tokenizer", "t"],
        "diff": ["a", "b"],
        "doctor": [],
        "export": ["t", "--format", "transformers", "--output", "o"],
        "inspect": ["p"],
        "plan": ["--input", "a"],
        "quickstart": [],
        "stream-tokenize": [
            *("--tokenizer", "t", "--input", "a", "--output", "o", "--runner", "FlinkRunner"),
            *long,
        ],
        "convert": ["a", "b", "--output", "o", "--shards", "2"],
        "mix": ["--input", "a", "b", "--output", "o", *packed],
        "counts merge": ["a", "b", "--output", "o"],
        "counts show": ["a"],
        "counts filter": ["a", "--output", "o", "--min-count", "2"],
    }
    for name, spec in JOBS.items():
        job = name.split()
        before = settings(*job, *base[name])
        for flag, option in spec.options.items():
            if flag == "--config" or flag[0] != "-":
                continue
            other = option.choices[-1] if option.choices else "321"
            wanted = values.get(flag, other)
            if option.choices and wanted not in option.choices:
                wanted = other
            value = [] if option.kind == "switch" else [wanted]
            if (name, flag) == ("stream-tokenize", "--runner"):
                value = ["PrismRunner"]
            argv = list(base[name])
            if flag in ("--counts", "--tokens") and name not in ("diff", "mix"):
                del argv[:2]
            if (name, flag) == ("evaluate", "--tokens"):
                argv.clear()
            if (name, flag) in (("evaluate", "--runner"), ("evaluate", "--overwrite")):
                argv += ["--work", "w"]
            if (name, flag) == ("evaluate", "--sample"):
                argv += ["--format", "html"]
            if flag in ("--weights", "--temperature") and name != "blend":
                argv += ["--source-field", "s"]
            if option.models and "bpe" not in option.models:
                argv += ["--model", option.models[0]]
            if flag == "--cluster":
                before = settings(*job, *argv, "--dry-run")
                argv += ["--dry-run"]
            if flag == "--validation-by":
                argv += ["--validation-share", "5%"]
            if option.kind == "one" and flag in argv:
                at = argv.index(flag)
                del argv[at : at + 2]
            assert settings(*job, *argv, flag, *value) != before, (name, flag)


def test_flags_of_the_runner_are_passed_on() -> None:
    parsed = settings(
        *COUNT,
        *("--runner", "FlinkRunner", "--parallelism", "2", "--flink_master=[local]"),
        *("--flink_submit_uber_jar", "--experiments", "a", "--experiments=b", "--quiet"),
    )
    assert parsed.run.runner == "FlinkRunner"
    assert parsed.run.runner_options == (
        "--parallelism=2",
        "--flink_master=[local]",
        "--flink_submit_uber_jar",
        "--experiments=a",
        "--experiments=b",
    )
    assert parsed.run.quiet
    # A value is never taken for an argument of ours.
    assert settings(*COUNT, "--job_name", "--quiet").run.runner_options == ("--job_name=--quiet",)


def test_an_option_of_one_value_is_given_once(
    refused: Refused, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, job in JOBS.items():
        for option in job.options.values():
            if option.kind in ("one", "list", "mapping") and not option.positional:
                assert cli.main([*name.split(), option.flag, "1", f"{option.flag}=1"]) == 2
                message = f"{name}: {option.flag} must be given once, got it twice"
                assert message in capsys.readouterr().err
    assert "separate its values by commas" in refused(
        "encode", "x", "--allowed-special", "<a>", "--allowed-special", "<b>"
    )
    assert "must be given once" in refused(*COUNT, "--range-bytes", "5", "--range_bytes=5")
    assert "--job_name must be given once" in refused(*COUNT, "--job_name", "a", "--job_name=b")
    assert "must not repeat a name" in refused(
        *COUNT, "--storage-options", '{"s3": {"anon": true, "anon": false}}'
    )


def test_the_file_gives_and_flags_win(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(
        "job: train\ninput: [x, y]\noutput: o\nvocab_size: 400\nspecial-token: <a>\n"
        "range_bytes: 1MiB\ndocument_separator: '\\n\\n'\nquiet: true\noverwrite: false\n"
        "storage_options: {s3: {anon: true}}\nrunner: FlinkRunner\n"
        "runner_options: {parallelism: 2, flink_master: '[local]'}\n"
    )
    parsed = settings("train", "--config", str(config))
    assert parsed.input.inputs == ("x", "y")
    assert (parsed.vocab_size, parsed.special_tokens) == (400, ("<a>",))
    assert (parsed.input.range_bytes, parsed.input.document_separator) == (1 << 20, "\n\n")
    assert (parsed.run.quiet, parsed.run.overwrite) == (True, False)
    assert parsed.run.storage_options == {"s3": {"anon": True}}
    assert parsed.run.runner_options == ("--parallelism=2", "--flink_master=[local]")
    parsed = settings(
        *("train", "--vocab-size", "500", "--config", str(config), "--input", "z"),
        *("--special-token", "<b>", "--parallelism=7", "--overwrite"),
    )
    assert parsed.input.inputs == ("z",)
    assert (parsed.vocab_size, parsed.special_tokens) == (500, ("<b>",))
    assert parsed.run.runner_options == ("--flink_master=[local]", "--parallelism=7")
    assert parsed.run.overwrite
    later = tmp_path / "later.yaml"
    later.write_text("vocab-size: 600\n")
    assert settings("train", "--config", str(config), "--config", str(later)).vocab_size == 600


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda p: p.stem)
def test_the_configs_that_we_ship_are_whole(path: Path) -> None:
    values = yaml.safe_load(path.read_text())
    more = ["--input", "a", "--output", "o"]
    more += ["--tokenizer", "t"] if values["job"] == "tokenize" else []
    settings(values["job"], "--config", str(path), *more)


def test_counts_work_with_the_training_configs() -> None:
    for path in (ROOT / "configs").glob("gpt2_*.yaml"):
        parsed = settings("train", "--config", str(path), "--counts", "c", "--output", "o")
        assert parsed.special_tokens == ("<|endoftext|>",)


def test_storage_options_from_a_file(tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "s.json"
    path.write_text('{"gs": {"token": "anon"}}')
    parsed = settings(*COUNT, "--storage-options", f"@{path}")
    assert parsed.run.storage_options == {"gs": {"token": "anon"}}
    path.write_text('{"gs": "hunter2"')
    said = refused(*COUNT, "--storage-options", f"@{path}")
    assert said == "--storage-options is not valid JSON (line 1)"
    assert "No such file" in refused(*COUNT, "--storage-options", f"@{path}.none")


def test_fields_of_some_files(tmp_path: Path, refused: Refused) -> None:
    pairs = (("code", "content"), ("*", "body"))
    typed = ("--text-field", "body", "--text-field", "code=content", "--id-field", "code=key")
    assert settings(*COUNT, *typed).input.text_field == pairs
    assert settings(*COUNT, *typed).input.id_field == (("code", "key"),)
    assert settings(*COUNT, "--text-field", "*=a=b").input.text_field == "a=b"
    assert settings(*COUNT, "--text-field", "a").input.text_field == "a"
    config = tmp_path / "c.yaml"
    for text in ('{"*": body, code: content}', "[code=content, body]"):
        config.write_text(f"text_field: {text}\n")
        parsed = settings(*COUNT, "--config", str(config)).input
        assert pairs_of(parsed.text_field) == pairs
    for values, said in (
        (("a", "b"), "--text-field must be given once, got 'a' and 'b'"),
        (("c=a", "c=b"), "--text-field must be given once of c, got 'a' and 'b'"),
        (("c=",), "--text-field must be FIELD, or NAME=FIELD"),
    ):
        typed = tuple(each for value in values for each in ("--text-field", value))
        assert said in refused(*COUNT, *typed)
