"""The worked examples of BPE and WordPiece, by the command line and from Python, to the byte.

The golden files were written from the examples' description, not by this package. The course's
corpus has a file of its own, `test_course.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from command_line import ROOT, run, run_whole

from bpe_beam import Tokenizer
from bpe_beam.counts.word_table import WordCounter, WordRules
from bpe_beam.training.learn import learn
from bpe_beam.training.merges.words import gather_words
from bpe_beam.training.recipe import BpeRecipe, Recipe, WordPieceRecipe
from bpe_beam.training.tokenizer_parts import tokenizer_of

GOLDEN = ROOT / "tests" / "golden"


def text_of(counts: Mapping[str, int]) -> str:
    return " ".join(" ".join([word] * count) for word, count in counts.items())


@dataclass(frozen=True)
class Example:
    """One worked example: its text, its settings for both ways, what it encodes to."""

    name: str
    text: str
    options: tuple[str, ...]
    recipe: Recipe
    encoded: Mapping[str, str] = field(default_factory=dict)
    decoded: Mapping[str, str] = field(default_factory=dict)

    @property
    def golden(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (GOLDEN / self.name).iterdir()}


FIVE = Example(
    "five_words",
    text_of({"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}),
    ("--unk-token", "[UNK]", "--vocab-size", "11"),
    BpeRecipe(11, symbols="characters", unk_token="[UNK]"),
    {"bug": "b ug", "mug": "[UNK] ug", "thug": "[UNK] hug", "unhug": "un hug"},
)
END = Example(
    "end_of_word_symbol",
    text_of({"cam": 5, "nham": 4, "tam": 3, "can": 6, "ham": 4}),
    ("--end-of-word-symbol", "_", "--tie-break", "first_seen", "--vocab-size", "11"),
    BpeRecipe(11, symbols="characters", end_of_word_symbol="_", tie_break="first_seen"),
    {"tam": "t am_"},
    {"tam": "tam", "tam  cam ham": "tam cam ham"},
)
PROTON = Example(
    "wordpiece",
    "ProtonX là một công ty AI nơi ươm mầm tài năng ProtonX là một AI",
    ("--model", "wordpiece", "--tie-break", "first_seen", "--vocab-size", "50"),
    WordPieceRecipe(50, tie_break="first_seen"),
    {"Thả tym cho ProtonX nào": "[UNK] ty ##m [UNK] ProtonX n ##à ##o"},
    {"ProtonX công nào": "ProtonX công nào"},
)
GA = text_of({"ga": 5, "gấu": 6, "gan": 8, "gấm": 7, "ha": 3})
TIES = [
    Example(
        f"wordpiece_{rule}",
        GA,
        ("--model", "wordpiece", "--tie-break", rule, "--vocab-size", "9"),
        WordPieceRecipe(9, tie_break=rule),
    )
    for rule in ("first_seen", "lowest_id")
]
EXAMPLES = [FIVE, END, PROTON, *TIES]
STEPS = ("--pretokenizer", "whitespace_split")


def check(example: Example, tokenizer: Tokenizer) -> None:
    for text, tokens in example.encoded.items():
        assert " ".join(tokenizer.encode_with_offsets(text)[0]) == tokens
    for text, decoded in example.decoded.items():
        assert tokenizer.decode(tokenizer.encode(text)) == decoded


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_by_the_command_line(example: Example, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(example.text)
    arguments = ("--input", tmp_path / "text.txt", *STEPS)
    run_whole("train", *arguments, *example.options, "--output", tmp_path / "tok")
    for name, data in example.golden.items():
        assert (tmp_path / "tok" / name).read_bytes() == data
    file = tmp_path / "tok" / "tokenizer.json"
    check(example, Tokenizer.from_file(str(file)))
    ids = {i: token for token, i in json.loads((file).read_bytes())["model"]["vocab"].items()}
    for text, tokens in example.encoded.items():
        out = run("encode", "--tokenizer", file, text).out.decode().split()
        assert " ".join(ids[int(i)] for i in out) == tokens
        shown = run("encode", "--tokenizer", file, "--show", text).out.decode()
        assert [line.split()[0] for line in shown.splitlines()[1:]] == tokens.split()

    # From counts, the same.
    rule = ("--tie-break", "first_seen")
    run_whole("count", *arguments, *rule, "--output", tmp_path / "counts")
    arguments = ("--counts", tmp_path / "counts")
    run_whole("train", *arguments, *example.options, "--output", tmp_path / "again")
    assert (tmp_path / "again" / "tokenizer.json").read_bytes() == file.read_bytes()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_from_python(example: Example) -> None:
    counts = WordCounter(WordRules(pretokenizer="whitespace_split", with_places=True))
    counts.add_texts(pa.array([example.text]), pa.array([0], pa.uint64()))
    words = gather_words([block for _, block in counts.blocks()], in_order_of_place=True)
    learned = learn(words, example.recipe)
    tokenizer = tokenizer_of(learned, example.recipe, "none", "whitespace_split")
    if "vocab.json" in example.golden:
        assert tokenizer.vocab_json() == example.golden["vocab.json"]
    if "merges.txt" in example.golden:
        assert tokenizer.merges_txt() == example.golden["merges.txt"]
    if "vocab.txt" in example.golden:
        assert (
            "".join(f"{token}\n" for token in tokenizer.vocab).encode()
            == (example.golden["vocab.txt"])
        )
    check(example, tokenizer)
    check(example, Tokenizer.from_json(tokenizer.to_json()))


@pytest.mark.parametrize(
    ("config", "golden"), [("course", "course"), ("wordpiece_example", "wordpiece")]
)
def test_the_configs_of_the_examples(config: str, golden: str, tmp_path: Path) -> None:
    corpus = ROOT / "configs" / "corpora" / f"{config}.txt"
    arguments = ("--config", ROOT / "configs" / f"{config}.yaml", "--input", corpus)
    run_whole("train", *arguments, "--output", tmp_path / "tok")
    for path in (GOLDEN / golden).iterdir():
        assert (tmp_path / "tok" / path.name).read_bytes() == path.read_bytes()


def test_the_end_of_word_symbol_in_the_text(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("cam ca_m")
    arguments = (
        "--input",
        tmp_path / "text.txt",
        "--vocab-size",
        "20",
        "--end-of-word-symbol",
        "_",
    )
    ran = run("train", *arguments, *STEPS, "--output", tmp_path / "tok")
    assert ran.code == 2
    assert "got '_', which the word 'ca_m' has" in ran.message
    # And the folder is free again for another symbol.
    run_whole("train", *arguments[:-1], "~", *STEPS, "--output", tmp_path / "tok")
    ran = run("train", *arguments, "--pretokenizer", "bert", "--output", tmp_path / "other")
    assert ran.code == 2
    assert "needs the pre-tokenizer whitespace_split, got bert" in ran.message
    assert not (tmp_path / "other").exists()
