"""An option is one field: all else follows from it."""

from __future__ import annotations

import runpy
from pathlib import Path

import msgspec
import pytest
from command_line import ROOT
from msgspec.structs import replace

from bpe_beam.cli.arguments import read_arguments, settings_of
from bpe_beam.cli.config_file import read_config
from bpe_beam.cli.parser import Argument, job_parser
from bpe_beam.errors import UsageError
from bpe_beam.settings import count, jobs
from bpe_beam.settings.common import InputSettings
from bpe_beam.settings.count import CountSettings
from bpe_beam.settings.field import Kind, Settings, identity_of, option, options_of
from bpe_beam.settings.jobs import JOBS
from bpe_beam.settings.parsing import BadValueError
from bpe_beam.storage import Storage

pytestmark = pytest.mark.quick

COUNT = ["--input", "a", "--output", "o"]


class MoreCountSettings(CountSettings, frozen=True, kw_only=True):
    """The settings of a `count` with one more option."""

    max_documents: int | None = option(
        None,
        metavar="N",
        help="Read at most N documents.",
        between=(1, 99),
        identity="if set",
    )


@pytest.fixture
def one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count, "CountSettings", MoreCountSettings)
    monkeypatch.setitem(jobs.JOBS, "count", msgspec.structs.replace(JOBS["count"]))


def read(*argv: str) -> MoreCountSettings:
    made: MoreCountSettings = settings_of(read_arguments("count", [*COUNT, *argv]))
    return made


@pytest.mark.usefixtures("one_more")
def test_one_field_is_an_option(tmp_path: Path) -> None:
    """Flag, YAML key, parsing, check, help and identity need no other line."""
    assert read().max_documents is None
    assert read("--max-documents", "7").max_documents == 7
    config = tmp_path / "c.yaml"
    config.write_text("\nmax-documents: 8\n")
    assert read("--config", str(config)).max_documents == 8
    assert read("--config", str(config), "--max-documents", "9").max_documents == 9
    for typed, said in (
        ("100", "must be at most 99, got 100"),
        ("many", "must be a whole number such as 32000 or 32k, got 'many'"),
    ):
        with pytest.raises(UsageError) as error:
            read("--max-documents", typed)
        assert str(error.value) == f"max_documents {said}"
        arguments = read_arguments("count", [*COUNT, "--max-documents", typed])
        assert error.value.message(arguments.name_of) == f"--max-documents {said}"
        config.write_text(f"\nmax_documents: {typed}\n")
        arguments = read_arguments("count", [*COUNT, "--config", str(config)])
        where = f"{config}, line 2: max_documents"
        assert error.value.message(arguments.name_of) == f"{where} {said}"
    assert "--max-documents N" in job_parser("count").format_help()
    assert "max_documents" not in identity_of(read())
    assert identity_of(read("--max-documents", "7"))["max_documents"] == 7


def test_a_defect_of_a_check_is_no_wrong_use() -> None:
    def check(value: str) -> None:
        if value == "bad":
            raise BadValueError("must not be bad")
        int(value)

    checked = msgspec.structs.replace(options_of(CountSettings)[0], name="any", check=check)
    with pytest.raises(UsageError, match=r"^any must not be bad$"):
        checked.check_value("bad")
    with pytest.raises(ValueError, match="invalid literal") as error:
        checked.check_value("x")
    assert not isinstance(error.value, UsageError)


def test_identities_are_those_of_folders_of_before() -> None:
    """The names and values in __job: another key would refuse every folder there is."""
    settings = CountSettings(input=InputSettings(("a",)), output="o", special_tokens=("<a>",))
    assert identity_of(settings) == {
        "normalizer": "none",
        "pretokenizer": "gpt2",
        "special_tokens": ["<a>"],
    }
    reading = {
        "input_format": "auto",
        "text_field": "text",
        "id_field": "id",
        "document_separator": "\n",
    }
    assert identity_of(settings.input) == reading
    by_name = replace(settings.input, sources=(("en", "a/*"),))
    assert identity_of(by_name) == {**reading, "sources": [["en", "a/*"]]}
    by_field = replace(settings.input, source_field="lang")
    assert identity_of(by_field) == {**reading, "source_field": "lang"}


def test_sources_of_a_filter_are_one_identity_in_any_order() -> None:
    def filtered(*argv: str) -> Settings:
        made: Settings = settings_of(
            read_arguments("counts filter", ["a", "--output", "o", "--min-count", "2", *argv])
        )
        return made

    assert identity_of(filtered()) == {"min_count": 2, "sources": None}
    twice = filtered("--source", "b", "--source", "a", "--source", "b")
    assert identity_of(twice) == {"min_count": 2, "sources": ["a", "b"]}
    assert twice == filtered("--source", "a", "--source", "b")


def test_every_option_has_one_name_in_a_job() -> None:
    for job in JOBS.values():
        options = options_of(job.settings)
        assert len({each.name for each in options}) == len({each.flag for each in options})
        assert len(options) == len({each.key for each in options})
        for each in options:
            assert each.help.endswith("."), each
            assert each.kind == "switch" or each.metavar, each


def test_kinds_decide_how_yaml_is_read(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("a: [x, y]\nb: {n: v}\nc: true\n")
    keys: dict[str, Kind] = {"a": "repeat", "b": "pairs", "c": "switch"}
    assert read_config(str(config), "count", keys, Storage()) == {
        "a": Argument(f"{config}, line 1: a", ["x", "y"], in_file=True),
        "b": Argument(f"{config}, line 2: b", ["n=v"], in_file=True),
        "c": Argument(f"{config}, line 3: c", True, in_file=True),
    }


def test_the_docs_have_the_table_of_the_declared_options() -> None:
    """After an option has changed: python scripts/make_option_tables.py."""
    script = runpy.run_path(str(ROOT / "scripts" / "make_option_tables.py"))
    page = script["PAGE"].read_text("utf-8")
    assert script["with_table"](page) == page


def test_contributing_says_where_an_option_is() -> None:
    """The row names things that exist."""
    rows = (ROOT / "CONTRIBUTING.md").read_text("utf-8").splitlines()
    (row,) = [row for row in rows if row.startswith("| an option |")]
    for path in ("scripts/make_option_tables.py", "docs/training.md"):
        assert path in row
        assert (ROOT / path).exists()
    assert "`option(default, metavar=, help=, ...)`" in row
    assert callable(option)
