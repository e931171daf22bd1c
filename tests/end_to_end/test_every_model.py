"""Each model from a corpus to shards and back by the jobs, with the ids that `tokenizers` gives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tokenizers
from command_line import run, run_whole
from made_text import documents, write
from read_back import read_shards

from bpe_beam import Tokenizer

# Options of train, and what the tokenizer is called.
MODELS = {
    "bytes with cl100k's pattern": ("--pretokenizer", "cl100k"),
    "bytes with a pattern of one's own": ("--pretokenizer", r"regex:\w+|\s+|[^\w\s]"),
    "characters": ("--pretokenizer", "metaspace", "--normalizer", "nfkc", "--unk-token", "<unk>"),
    "byte fallback": (
        "--pretokenizer", "metaspace", "--byte-fallback", "--limit-alphabet", "20",
        "--vocab-size", "400",
    ),
    "suffix": (
        "--pretokenizer", "whitespace_split", "--end-of-word-suffix", "</w>",
        "--unk-token", "<unk>",
    ),
    "wordpiece": (
        "--model", "wordpiece", "--pretokenizer", "bert", "--normalizer", "bert",
        "--unk-token", "[UNK]", "--special-token", "[PAD]", "--special-token", "[CLS]",
        "--template", "[CLS] $A [PAD] [PAD]",
    ),
    "prefix BPE": (
        "--model", "prefix_bpe", "--pretokenizer", "bert", "--normalizer", "bert",
        "--unk-token", "[UNK]",
    ),
    "word level": ("--model", "word_level", "--pretokenizer", "whitespace", "--unk-token", "<unk>"),
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MODELS)
def test_from_corpus_to_shards_and_back(name: str, tmp_path: Path) -> None:
    texts = [*documents(80, seed=5), "Zo\u00eb  costs 12345\u20ac, \ufb01ne\n \u8bed\u8a00!"]
    corpus = write(tmp_path / "in.jsonl", texts)
    options = MODELS[name]
    size = () if "--vocab-size" in options else ("--vocab-size", "350")
    run_whole("train", "--input", corpus, *size, *options, "--output", tmp_path / "tok")
    file = tmp_path / "tok" / "tokenizer.json"
    run_whole("tokenize", "--input", corpus, "--tokenizer", file, "--output", tmp_path / "tokens")
    run_whole("verify", tmp_path / "tokens", "--full", "--input", corpus)

    theirs = tokenizers.Tokenizer.from_file(str(file))
    theirs.encode_special_tokens = True
    ours = Tokenizer.from_file(str(file))
    assert ours.to_json() == theirs.to_str(pretty=True)
    stored = [list(map(int, ids)) for ids in read_shards(tmp_path / "tokens")]
    assert len(stored) == len(texts)
    for text, ids in zip(texts, stored, strict=True):
        expected = theirs.encode(text, add_special_tokens=False)
        assert ids == expected.ids
        assert ours.encode_with_offsets(text)[1:] == (expected.ids, expected.offsets)
        framed = theirs.encode(text)
        found = ours.encode_with_offsets(text, add_special_tokens=True)
        assert found == (framed.tokens, framed.ids, framed.offsets)
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=False)


def test_training_again_gives_the_same_bytes_from_counts(tmp_path: Path) -> None:
    """Counts carry how words were made, and the tokenizer gets it from them."""
    corpus = write(tmp_path / "in.jsonl", documents(40, seed=6))
    cutting = ("--pretokenizer", "bert", "--normalizer", "bert")
    learning = ("--model", "wordpiece", "--vocab-size", "300", "--unk-token", "[UNK]")
    run_whole("count", "--input", corpus, *cutting, "--output", tmp_path / "counts")
    run_whole("train", "--counts", tmp_path / "counts", *learning, "--output", tmp_path / "a")
    run_whole("train", "--input", corpus, *cutting, *learning, "--output", tmp_path / "b")
    found = [(tmp_path / name / "tokenizer.json").read_bytes() for name in "ab"]
    assert found[0] == found[1]
    assert json.loads(found[0])["normalizer"]["type"] == "BertNormalizer"


def test_a_character_without_a_token_is_named_by_its_record(tmp_path: Path) -> None:
    corpus = write(tmp_path / "in.jsonl", ["ab ab", "ab"])
    learning = ("--pretokenizer", "whitespace_split", "--vocab-size", "3")
    run_whole("train", "--input", corpus, *learning, "--output", tmp_path / "tok")
    other = write(tmp_path / "other.jsonl", ["ab", "ab", "b a\u00e9b"])
    done = run(
        "tokenize", "--input", other, "--tokenizer", tmp_path / "tok" / "tokenizer.json",
        "--output", tmp_path / "y",
    )  # fmt: skip
    assert done.code == 1
    at = other.read_bytes().rindex(b"\n{") + 1
    assert f"other.jsonl: the record at byte {at}: character '\u00e9' (U+00E9) at 3" in done.err


@pytest.mark.parametrize(
    "options",
    [
        ("--model", "wordpiece"),
        ("--model", "prefix_bpe"),
        ("--model", "word_level"),
        ("--symbols", "characters"),
        ("--symbols", "characters", "--end-of-word-suffix", "</w>"),
        ("--model", "wordpiece", "--pretokenizer", "metaspace"),
    ],
)
def test_words_that_hold_their_blanks_get_no_others(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    texts = documents(30, seed=8)
    corpus = write(tmp_path / "in.jsonl", texts)
    learning = (*options, "--vocab-size", "900", "--unk-token", "[UNK]")
    run_whole("train", "--input", corpus, *learning, "--output", tmp_path / "t")
    tokenizer = Tokenizer.from_file(str(tmp_path / "t" / "tokenizer.json"))
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "t" / "tokenizer.json"))
    for text in ("the cat, the dog", texts[0]):
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == theirs.decode(ids, skip_special_tokens=False)
        if options[1] != "word_level" and "[UNK]" not in tokenizer.decode(ids):
            assert tokenizer.decode(ids) == text


def test_a_pattern_of_ones_own_is_the_same_when_training_goes_on(tmp_path: Path) -> None:
    corpus = write(tmp_path / "in.jsonl", documents(30, seed=9))
    reading = ("--input", corpus, "--pretokenizer", r"regex:\w+|\s+|[^\w\s]+")
    run_whole("train", *reading, "--vocab-size", "280", "--output", tmp_path / "a")
    old = ("--continue-from", tmp_path / "a" / "tokenizer.json")
    run_whole("train", *reading, *old, "--vocab-size", "300", "--output", tmp_path / "b")
    run_whole("train", *reading, "--vocab-size", "300", "--output", tmp_path / "c")
    found = [Tokenizer.from_file(str(tmp_path / n / "tokenizer.json")).merges for n in "bc"]
    assert found[0] == found[1]


def test_a_limited_alphabet_of_bytes_is_refused(tmp_path: Path) -> None:
    corpus = write(tmp_path / "in.jsonl", documents(3, seed=9))
    limit = ("--limit-alphabet", "100", "--vocab-size", "300")
    done = run("train", "--input", corpus, *limit, "--output", tmp_path / "a")
    assert done.code == 2
    assert "--limit-alphabet must be at least 256 with the alphabet of all bytes" in done.err
