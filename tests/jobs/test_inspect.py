"""`inspect` on what the jobs really write."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from counted_sources import words

from bpe_beam import Tokenizer, shards
from bpe_beam.cli import main as cli
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.transforms import Tokenize, WriteTokens

pytestmark = pytest.mark.quick

DOCUMENTS = ["the cat sat on the mat", "the dog\x1b[2J", "", "a " * 300]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer from a corpus, with its counts, and shards."""
    root = tmp_path_factory.mktemp("made")
    lines = [json.dumps({"text": text}) for text in DOCUMENTS]
    (root / "in.jsonl").write_text("\n".join(lines) + "\n")
    reading = ["--input", str(root / "in.jsonl"), "--quiet", "--workers", "1"]
    train = ["--vocab-size", "270", "--special-token", "<|end|>", "--output", str(root / "tok")]
    assert cli.main(["train", *reading, *train]) == 0
    arguments = ["--tokenizer", str(root / "tok/tokenizer.json"), "--output", str(root / "tokens")]
    assert cli.main(["tokenize", *reading, *arguments, "--append", "<|end|>"]) == 0
    return root


def inspect(
    path: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> tuple[str, dict[str, Any]]:
    figures = tmp_path / "facts.json"
    capsys.readouterr()  # what the pipeline before has written, such as Beam's own messages
    assert cli.main(["inspect", str(path), "--summary-file", str(figures)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.startswith(f"bpe-beam inspect {path}\n")
    return captured.out, json.loads(figures.read_text())


def test_a_folder_of_a_tokenizer(
    made: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Also what its files tell `transformers`; folders of other programs serve as well."""
    _, of_file = inspect(made / "tok" / "tokenizer.json", capsys, tmp_path)
    _, of_folder = inspect(made / "tok", capsys, tmp_path)
    assert of_folder == of_file
    other = tmp_path / "other"
    other.mkdir()
    for name in ("vocab.json", "merges.txt"):
        shutil.copy(made / "tok" / name, other)
    config = {"eos_token": "<|end|>", "model_max_length": 512, "bos_token": None, "unk_token": None}
    (other / "tokenizer_config.json").write_text(json.dumps(config))
    (other / "chat_template.jinja").write_text("a")
    _, figures = inspect(other, capsys, tmp_path)
    added = {"roles": ["eos_token <|end|>"], "model_max_length": 512, "chat_template": True}
    assert figures == of_file | added
    # A folder that train did not finish has these files too, and is none.
    (other / "__job").write_text('{"job": "train"}')
    assert cli.main(["inspect", str(other)]) == 2
    assert cli.main(["encode", "--tokenizer", str(other), "x"]) == 2
    assert "other is a folder without a tokenizer.json" in capsys.readouterr().err


def test_a_tokenizer(made: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text, figures = inspect(made / "tok" / "tokenizer.json", capsys, tmp_path)
    assert (figures["kind"], figures["vocab_size"], figures["highest_id"]) == (
        "tokenizer",
        270,
        269,
    )
    assert figures["special_tokens"] == ["0 <|end|>"]
    merges = figures["merges_first_and_last"]
    assert isinstance(merges, list)
    assert figures["merges"] == len(merges) == 13
    assert merges[0] == "' ' + 'a' = ' a'"  # 299 times, more than any other
    longest = figures["longest_tokens"]
    assert isinstance(longest, list)
    assert longest[0] == "' the'"
    assert "'<|end|>'" not in longest
    assert figures["parts_of_characters"] == 128  # the bytes beyond ASCII
    assert figures["decoder"] == (
        "ByteLevel (add_prefix_space no, trim_offsets yes, use_regex yes)"
    )
    assert "  vocab size" in text
    assert inspect(made / "tok", capsys, tmp_path)[1] == figures


def test_counts(made: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text, figures = inspect(made / "tok" / "counts", capsys, tmp_path)
    assert figures["kind"] == "counts"
    assert (figures["documents"], figures["pretokenizer"]) == (4, "gpt2")
    assert figures["special_tokens"] == ["<|end|>"]
    assert figures["text_bytes"] == sum(map(len, DOCUMENTS))
    best = figures["most_frequent_words"]
    assert isinstance(best, list)
    # Equal counts by their text; the words are "a", 299 times with a space before it.
    assert best[:4] == ["299 ' a'", "2 'the'", "1 '\\x1b['", "1 ' '"]
    assert len(best) == 10
    assert "\x1b" not in text
    counted = words(made / "tok" / "counts")
    for key, of in (
        ("words_by_count", lambda word: counted[word]),
        ("words_by_characters", len),
    ):
        expected: Counter[str] = Counter()
        unique: Counter[str] = Counter()
        bounds = {}
        for label in figures[key]:
            first, _, last = label.replace(",", "").removesuffix(" or more").partition(" to ")
            end = int(last) if last else math.inf if "more" in label else int(first)
            bounds[label] = (int(first), end)
        for word, n in counted.items():
            (label,) = (b for b, (first, last) in bounds.items() if first <= of(word) <= last)
            expected[label] += n
            unique[label] += 1
        assert figures[key] == {
            label: {"unique_words": unique[label], "words": expected[label]} for label in bounds
        }
    assert "    100 to 999" in text
    assert "#" * 24 in text


def test_shards(made: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text, figures = inspect(made / "tokens", capsys, tmp_path)
    assert (figures["kind"], figures["format"], figures["documents"]) == ("shards", "megatron", 4)
    first = figures["first_documents"]
    assert isinstance(first, list)
    assert [line.split(": ", 1)[1] for line in first] == [
        repr(text + "<|end|>") for text in DOCUMENTS[:3]
    ]
    assert first[2].startswith("1 tokens: ")
    sample = figures["sample"]
    assert [line.split(",")[0] for line in sample] == [f"document {n}" for n in (0, 2, 3)]
    for line, number in zip(sample[:2], (0, 2), strict=True):
        assert line.split(" tokens: ", 1)[1] == repr(DOCUMENTS[number] + "<|end|>")
    assert sample[2].endswith(" a a' ...")
    settings = figures["settings"]
    assert isinstance(settings, dict)
    assert settings["append"] == "<|end|>"
    assert "\x1b" not in text


def test_sequences(made: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ["--tokenizer", str(made / "tok"), "--output", str(tmp_path / "packed")]
    reading = ["--input", str(made / "in.jsonl"), "--quiet", "--workers", "1"]
    arranged = ["--append", "<|end|>", "--sequence-length", "16"]
    assert cli.main(["tokenize", *reading, *arguments, *arranged]) == 0
    _, figures = inspect(tmp_path / "packed", capsys, tmp_path)
    assert [line.split(":")[0].split(", ")[1] for line in figures["sample"]] == ["16 tokens"] * 3
    assert all(line.startswith("sequence ") for line in figures["sample"])
    tokenizer = Tokenizer.from_file(str(made / "tok"))
    packed = shards.open(str(tmp_path / "packed"))
    assert [line.split(": ", 1)[1] for line in figures["sample"]] == [
        repr(tokenizer.decode(packed[int(line.split(",")[0].split()[1])].tolist()))
        for line in figures["sample"]
    ]


def test_shards_with_a_damaged_job_file(
    made: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    shutil.copytree(made / "tokens", tmp_path / "tokens")
    (tmp_path / "tokens" / "__job").write_text("{")
    assert inspect(tmp_path / "tokens", capsys, tmp_path)[1]["documents"] == len(DOCUMENTS)


def test_shards_of_a_pipeline(
    made: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """WriteTokens never saw the text: how long it was is not known, which is not nothing."""
    tokenizer = Tokenizer.from_file(str(made / "tok" / "tokenizer.json"))
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        ids = pipeline | beam.Create(DOCUMENTS) | Tokenize(tokenizer)
        ids | WriteTokens(str(tmp_path / "tokens"), tokenizer)
    text, figures = inspect(tmp_path / "tokens", capsys, tmp_path)
    assert figures["documents"] == len(DOCUMENTS)
    assert figures["text_bytes"] is figures["bytes_per_token"] is None
    lines = [line.split() for line in text.splitlines()]
    assert ["text", "bytes", "unknown"] in lines
    assert ["bytes", "per", "token", "unknown"] in lines
    known = inspect(made / "tokens", capsys, tmp_path)[1]
    assert known["text_bytes"] == sum(map(len, DOCUMENTS))


def test_what_is_nothing_of_ours(
    made: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "unfinished").mkdir()
    (tmp_path / "unfinished" / "__job").write_text("{}")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "__manifest").write_text("[" * 100_000)
    for path, code, said in (
        (tmp_path / "none", 2, "no such file or folder"),
        (tmp_path / "empty", 2, "has neither __manifest nor tokenizer.json"),
        (tmp_path / "unfinished", 2, "is not finished, it has no __manifest: run its job again"),
        (tmp_path / "odd", 1, "odd/__manifest: cannot be read as JSON"),
        (made / "in.jsonl", 2, "in.jsonl"),
    ):
        assert cli.main(["inspect", str(path)]) == code
        captured = capsys.readouterr()
        assert said in captured.err
        assert captured.out == ""
        assert len(captured.err.splitlines()) == 1


def test_a_model_that_knows_special_tokens_as_words(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_text("to be or not to be\n" * 3)
    train = ["--model", "word_level", "--pretokenizer", "whitespace_split", "--vocab-size", "9"]
    specials = ["--unk-token", "<unk>", "--special-token", "<s>", "--output", str(tmp_path / "tok")]
    reading = ["--input", str(tmp_path / "in.txt"), "--quiet", "--workers", "1"]
    assert cli.main(["train", *reading, *train, *specials]) == 0
    text, figures = inspect(tmp_path / "tok", capsys, tmp_path)
    assert figures["model"] == "WordLevel"
    assert figures["merges"] == 0
    assert "the special tokens <unk>, <s>" in str(figures["warning"])
    assert "WhitespaceSplit" in text


def test_a_token_is_shown_as_the_text_that_it_stands_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Not as letters for bytes, which nobody reads."""
    letters = [byte_level.to_chars(bytes([byte])) for byte in range(256)]
    full_stop = byte_level.to_chars("。".encode())
    vocab = [*letters, full_stop[:2], full_stop, full_stop * 2]
    merges = [(full_stop[0], full_stop[1]), (full_stop[:2], full_stop[2]), (full_stop, full_stop)]
    path = tmp_path / "tokenizer.json"
    Tokenizer.from_learned(vocab, merges).save(str(path))
    text, figures = inspect(path, capsys, tmp_path)
    assert figures["merges_first_and_last"] == [
        r"b'\xe3' + b'\x80' = b'\xe3\x80'",
        r"b'\xe3\x80' + b'\x82' = '。'",
        "'。' + '。' = '。。'",
    ]
    assert figures["longest_tokens"][0] == "'。。'"
    assert figures["tokens_by_characters"] == {"1": 129, "2": 1}
    assert figures["parts_of_characters"] == 129
    assert full_stop not in text


@pytest.mark.parametrize(
    ("job", "made_by", "said"),
    [
        (
            "tokenize",
            ["__tokenizer"],
            "it has no __manifest: run its job, which makes shards, again",
        ),
        ("count", [], "it has no __manifest: run its job, which makes word counts, again"),
        ("train", [], "it has no tokenizer.json: run its job, which makes a tokenizer, again"),
    ],
)
def test_the_folder_of_a_job_that_was_killed(
    job: str, made_by: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A tokens folder has its tokenizer from the beginning, and is no tokenizer for that."""
    (tmp_path / "__job").write_text(json.dumps({"job": job}))
    for name in made_by:
        Tokenizer.from_learned(["a"], []).save(str(tmp_path / name))
    assert cli.main(["inspect", str(tmp_path)]) == 2
    assert said in capsys.readouterr().err
