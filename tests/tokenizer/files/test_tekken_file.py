"""Mistral's `tekken.json`: the ids of tiktoken behind those of special tokens."""

from __future__ import annotations

import json
import random
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from bpe_beam import Tokenizer
from bpe_beam.errors import DataError, UsageError
from bpe_beam.tokenizer.files import tekken_file

pytestmark = pytest.mark.quick

TOKENS = [*(bytes([byte]) for byte in range(256)), b"he", b"ll", b"hell", b" h", b"not"]
PATTERN = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+"


def tekken(**changes: Any) -> dict[str, Any]:
    vocab = [
        {"rank": rank, "token_bytes": b64encode(token).decode(), "token_str": None}
        for rank, token in enumerate(TOKENS)
    ]
    config = {
        "pattern": PATTERN,
        "num_vocab_tokens": len(vocab),
        "default_vocab_size": 3 + len(vocab) - 1,
        "default_num_special_tokens": 3,
        "version": "v11",
    }
    special = [{"rank": 0, "token_str": "<unk>", "is_control": True}]
    found = {"config": config, "vocab": vocab, "special_tokens": special, "image": {"size": 4}}
    return {**found, **changes}


def read(file: dict[str, Any]) -> Tokenizer:
    return Tokenizer(tekken_file.read(json.dumps(file).encode(), "tekken.json"))


def test_ids(tmp_path: Path) -> None:
    path = tmp_path / "tekken.json"
    path.write_text(json.dumps(tekken(), indent=1))
    read = Tokenizer.from_tekken(str(path))
    assert read == Tokenizer.from_file(str(path)) == Tokenizer.from_json(read.to_json())
    assert read == Tokenizer.from_pretrained(str(tmp_path))
    assert read.special_tokens == {"<unk>": 0, "<SPECIAL_1>": 1, "<SPECIAL_2>": 2}
    assert read.encode("hello hé\n") == [3 + 258, 3 + 111, 3 + 259, 3 + 0xC3, 3 + 0xA9, 3 + 10]
    assert read.encode("<SPECIAL_1>", allowed_special="all") == [1]
    assert read.decode(read.encode("<unk> not hello 12")) == "<unk> not hello 12"
    # The last token is beyond default_vocab_size.
    assert read.vocab_size == 3 + 260
    assert len(read.encode("not")) == 3


def test_ids_of_tiktoken() -> None:
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {token: rank for rank, token in enumerate(TOKENS[:-1])}
    theirs = tiktoken.Encoding("t", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})
    ours = read(tekken())
    for text in ("hello hell  he\n\nllé123!?", "", " ", "<unk>日本語"):
        assert ours.encode(text) == [
            3 + rank for rank in theirs.encode(text, disallowed_special=())
        ]


def test_the_first_versions_list_no_special_tokens() -> None:
    config = tekken()["config"] | {"default_num_special_tokens": 30, "default_vocab_size": 290}
    file = tekken(config=config)
    del file["special_tokens"]
    ours = read(file)
    assert ours.token_to_id("[INST]") == 3
    assert ours.id_to_token(19) == "[TOOL_CONTENT]"
    assert ours.id_to_token(20) == "<SPECIAL_20>"


def changed(index: int, **values: Any) -> dict[str, Any]:
    file = tekken()
    file["vocab"][index] |= values
    return file


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (tekken(vocab={}), "vocab: {} is not a list"),
        (tekken(config={}), "config: missing key `pattern`"),
        (tekken(config=tekken()["config"] | {"pattern": "("}), "("),
        (tekken(config=tekken()["config"] | {"default_vocab_size": 999}), "must be from"),
        (tekken(config=tekken()["config"] | {"default_num_special_tokens": -1}), "must be from"),
        (changed(2, rank=3), "vocab[2]: rank must be 2, got 3"),
        (changed(2, rank="2"), "vocab[2]"),
        (changed(2, token_bytes="?"), "vocab[2]: token_bytes is not base64"),
        (changed(2, token_bytes="é"), "vocab[2]: token_bytes is not base64"),
        (changed(2, token_bytes=""), "vocab[2]: a token must have from 1 to"),
        (changed(2, token_bytes="AA=="), "vocab[2]: the token is already listed, as vocab[0]"),
        (tekken(special_tokens=[{"rank": 1, "token_str": "a"}]), "special_tokens[0]: rank"),
        (tekken(special_tokens=[{"rank": 0, "token_str": "<SPECIAL_1>"}]), "different tokens"),
        (tekken(special_tokens=[{"rank": i, "token_str": str(i)} for i in range(4)]), "at most 3"),
    ],
)  # fmt: skip
def test_refused(file: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(file)
    assert said in str(caught.value)


def test_changed_bytes() -> None:
    """A changed file is refused by its name, or encodes."""
    rng = random.Random(1)
    good = json.dumps(tekken()).encode()
    refused = 0
    for _ in range(60):
        data = bytearray(good)
        for _ in range(rng.randint(1, 3)):
            at = rng.choice([rng.randrange(len(data)), rng.randrange(200), len(data) - 80])
            some = rng.choice([b"", b"-", b"9" * 9, b'"', b"[", b"null", rng.randbytes(2)])
            data[at : at + rng.randint(0, 3)] = some
        try:
            read = Tokenizer(tekken_file.read(bytes(data), "tekken.json"))
            read.decode(read.encode("hello <unk> hé\n"))
        except UsageError as error:
            assert str(error).startswith("tekken.json: "), error
            refused += 1
        except DataError:
            pass
    assert refused > 20
