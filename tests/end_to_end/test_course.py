"""The worked course corpus through the command line, to the byte (the golden files were made from
its description, not by this package)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run_whole

GOLDEN = Path(__file__).parents[1] / "golden" / "course"

CORPUS = """\
This is the Hugging Face Course.
This chapter is about tokenization.
This section shows several tokenizer algorithms.
Hopefully, you will be able to understand how they are trained and generate tokens.
"""
SETTINGS = ("--tie-break", "first_seen", "--special-token", "<|endoftext|>")
RECIPE = ("--alphabet", "seen", "--vocab-size", "50")


@pytest.fixture(scope="module", params=["corpus", "counts"])
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tokenizer's folder, trained from the corpus and from its counts."""
    folder = tmp_path_factory.mktemp("course")
    (folder / "course.txt").write_text(CORPUS)
    source = ("--input", folder / "course.txt", *SETTINGS)
    if request.param == "counts":
        run_whole("count", "--output", folder / "counts", *source)
        source = ("--counts", folder / "counts", *SETTINGS[:2])
    run_whole("train", "--output", folder / "tok", *source, *RECIPE)
    return folder / "tok"


@pytest.mark.parametrize("name", ["vocab.json", "merges.txt"])
def test_the_files_are_the_golden_ones(trained: Path, name: str) -> None:
    assert (trained / name).read_bytes() == (GOLDEN / name).read_bytes()


def test_the_tokenizer_holds_what_the_golden_files_hold(trained: Path) -> None:
    model = json.loads((trained / "tokenizer.json").read_bytes())["model"]
    lines = (GOLDEN / "merges.txt").read_text().splitlines()[1:]
    pairs = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    assert pairs == lines
    assert model["vocab"] == json.loads((GOLDEN / "vocab.json").read_bytes())


def test_the_worked_sentence(trained: Path) -> None:
    vocab = list(json.loads((GOLDEN / "vocab.json").read_bytes()))
    encoded = run_whole("encode", "--tokenizer", trained / "tokenizer.json", "This is not a token.")
    ids = encoded.out.split(b"\n")[0].split()
    assert " ".join(vocab[int(i)] for i in ids) == "This Ġis Ġ n o t Ġa Ġtoken ."


def test_another_tie_rule_gives_another_tokenizer(tmp_path: Path) -> None:
    (tmp_path / "course.txt").write_text(CORPUS)
    for rule in ("lowest_id", "greatest_bytes"):
        out = tmp_path / rule
        run_whole(
            "train",
            *("--input", tmp_path / "course.txt", "--output", out, "--tie-break", rule),
            *(*SETTINGS[2:], *RECIPE),
        )
        assert (out / "merges.txt").read_bytes() != (GOLDEN / "merges.txt").read_bytes()
