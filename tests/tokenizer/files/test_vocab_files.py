"""vocab.json and merges.txt: written, read, and refused by file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.tokenizer import Tokenizer

pytestmark = pytest.mark.quick

VOCAB = b'{"<|end|>":0,"\\"":1,"a":2,"\xc4\xa0":3,"\xc4\xa0a":4}'
MERGES = b"#version: 0.2\n\xc4\xa0 a\n"


def read(folder: Path, vocab: bytes, merges: bytes, *special_tokens: str) -> Tokenizer:
    (folder / "vocab.json").write_bytes(vocab)
    (folder / "merges.txt").write_bytes(merges)
    return Tokenizer.from_vocab_and_merges(
        str(folder / "vocab.json"), str(folder / "merges.txt"), special_tokens
    )


def test_written_bytes() -> None:
    tokenizer = Tokenizer.from_learned(["<|end|>", '"', "a", "Ġ", "Ġa"], [("Ġ", "a")], ["<|end|>"])
    assert tokenizer.vocab_json() == VOCAB
    assert tokenizer.merges_txt() == MERGES


def test_there_and_back(tokenizer: Tokenizer, tmp_path: Path) -> None:
    again = read(
        tmp_path, tokenizer.vocab_json(), tokenizer.merges_txt(), *tokenizer.special_tokens
    )
    assert again.to_json() == tokenizer.to_json()


@pytest.mark.parametrize(
    "merges",
    [
        b"\xc4\xa0 a",
        b"\xc4\xa0 a\n\n",
        b"#version: 0.2\r\n\xc4\xa0 a\r\n",
    ],
)
def test_other_ways_to_write_the_merges(tmp_path: Path, merges: bytes) -> None:
    assert read(tmp_path, VOCAB, merges, "<|end|>").merges == [("Ġ", "a")]


def test_no_merges(tmp_path: Path) -> None:
    for merges in (b"", b"\n", b"#version: 0.2\n"):
        assert read(tmp_path, VOCAB, merges, "<|end|>").merges == []


def test_special_tokens(tmp_path: Path) -> None:
    """One that the vocabulary holds keeps its id, others follow its greatest."""
    tokenizer = read(tmp_path, VOCAB, MERGES, "<x>", "<|end|>", "<y>")
    assert tokenizer.special_tokens == {"<|end|>": 0, "<x>": 5, "<y>": 6}
    assert tokenizer.encode("a<y>", allowed_special="all") == [2, 6]


@pytest.mark.parametrize(
    ("vocab", "merges", "special_tokens", "message"),
    [
        (b'{"a b":0}', b"", [], '/vocab.json: "a b": neither an added token nor written'),
        (VOCAB[:-1], MERGES, ["<|end|>"], r"/vocab.json: line 1, column \d+: not JSON"),
        (b"[]", MERGES, [], r"/vocab.json: the vocabulary: \[\] is not an object"),
        (b'{"a":1,"a":1}', b"", [], '/vocab.json: the key "a" is repeated'),
        (b'{"a":1,"b":1}', b"", [], '/vocab.json: "b": id 1 is taken by "a"'),
        (b'{"a":"1"}', b"", [], r'/vocab.json: "a": the id "1" is not an int'),
        (VOCAB, b"\xff", ["<|end|>"], "/merges.txt: byte 0: not UTF-8"),
        (VOCAB, MERGES + b"a z\n", ["<|end|>"], '/merges.txt: line 3: "z" of .* is not in the v'),
        (VOCAB, b"a z\n", ["<|end|>"], '/merges.txt: line 1: "z" of'),
        (VOCAB, MERGES + b"aa\n", ["<|end|>"], '/merges.txt: line 3: "aa" is not two tokens'),
        (VOCAB, MERGES + b"a  a\n", ["<|end|>"], '/merges.txt: line 3: "a  a" is not two tokens'),
        (VOCAB, MERGES + b"\na a\n", ["<|end|>"], '/merges.txt: line 3: "" is not two tokens'),
        (VOCAB, MERGES, ["<|end|>", ""], "special_tokens: an empty token"),
        (VOCAB, MERGES, ["<|end|>", "Ġa"], 'special_tokens: "Ġa" is also how the model writes'),
    ],
)
def test_refused(
    tmp_path: Path, vocab: bytes, merges: bytes, special_tokens: list[str], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        read(tmp_path, vocab, merges, *special_tokens)


def test_missing_files(tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_bytes(VOCAB)
    with pytest.raises(UsageError, match=r"merges\.txt: no such file"):
        Tokenizer.from_vocab_and_merges(str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt"))


def test_a_merge_that_readers_would_take_for_the_version() -> None:
    tokenizer = Tokenizer.from_learned(["#version", "s", "#versions"], [("#version", "s")])
    with pytest.raises(UsageError, match=r'cannot represent the merge \["#version", "s"\]'):
        tokenizer.merges_txt()
