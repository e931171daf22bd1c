"""`.tiktoken` files: read, written, refused by line; merging by rank as tiktoken itself does it."""

from __future__ import annotations

import base64
import hashlib
import json
import pickle
import random
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bpe_beam import Tokenizer
from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.components.byte_level import to_chars
from bpe_beam.tokenizer.files import tiktoken_file

BYTES = [bytes([byte]) for byte in range(256)]
WORDS = r"regex:[^ ]+| +"


def file_of(tokens: Sequence[bytes]) -> bytes:
    lines = (base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens))
    return b"".join(lines)


def read(
    tmp_path: Path, data: bytes, pretokenizer: str | None = "cl100k", **settings: Any
) -> Tokenizer:
    path = tmp_path / "t.tiktoken"
    path.write_bytes(data)
    return Tokenizer.from_tiktoken(str(path), pretokenizer=pretokenizer, **settings)


@pytest.mark.quick
def test_read_and_written_again(tmp_path: Path) -> None:
    data = file_of([*BYTES, b"he", b"ll", b"hell", b" hell", "\u00e9".encode()])
    tokenizer = read(tmp_path, data, special_tokens={"<|end|>": 300})
    assert tokenizer.encode("hello h\u00e9<|end|>", allowed_special="all") == [
        258, ord("o"), ord(" "), ord("h"), 260, 300,
    ]  # fmt: skip
    assert tokenizer.decode([259, 111, 300]) == " hello<|end|>"
    tokenizer.save_tiktoken(str(tmp_path / "again"))
    assert (tmp_path / "again").read_bytes() == data
    # The same as tokenizer.json: ranks are merges here.
    again = Tokenizer.from_json(tokenizer.to_json())
    assert again.encode(" hello hell") == tokenizer.encode(" hello hell")


def test_special_tokens_keep_their_ids_elsewhere(tmp_path: Path) -> None:
    """Also where ids have holes, of which `tokenizers` would fill the first by itself."""
    tokenizers = pytest.importorskip("tokenizers")
    specials = {"<|one|>": 258, "<|two|>": 300}
    ours = read(tmp_path, file_of([*BYTES, b"he"]), special_tokens=specials)
    theirs = tokenizers.Tokenizer.from_str(ours.to_json())
    text = "he<|two|><|one|>"
    assert ours.encode(text, allowed_special="all") == theirs.encode(text).ids == [256, 300, 258]
    assert ours.encode("<|one|>") == [*b"<|one|>"]


@pytest.mark.quick
def test_the_pretokenizer_counts(tmp_path: Path) -> None:
    data = file_of([*BYTES, b"12", b"1212"])
    assert read(tmp_path, data).encode("1212") == [256, 49, 50]  # cl100k: three digits a word
    assert read(tmp_path, data, pretokenizer="gpt2").encode("1212") == [257]


@pytest.mark.quick
def test_a_word_that_is_a_token_needs_no_merge(tmp_path: Path) -> None:
    """`abc` cannot be made: neither `ab` nor `bc` is a token."""
    tokenizer = read(tmp_path, file_of([*BYTES, b"abc"]))
    assert tokenizer.merges == []
    assert tokenizer.encode("abc abcd") == [256, 32, *b"abcd"]


@pytest.mark.quick
def test_a_token_of_lower_rank_than_its_parts(tmp_path: Path) -> None:
    """`abc` has a lower rank than `ab`, of which it is made."""
    data = file_of([*BYTES, b"abc", b"xa", b"ab"])
    tokenizer = read(tmp_path, data, pretokenizer=WORDS)
    assert tokenizer.encode("xabc") == [257, *b"bc"]
    assert tokenizer.merges == [("ab", "c"), ("x", "a"), ("a", "b")]
    tokenizer.save_tiktoken(str(tmp_path / "again"))
    assert (tmp_path / "again").read_bytes() == data
    for again in (pickle.loads(pickle.dumps(tokenizer)), Tokenizer.from_json(tokenizer.to_json())):
        assert again == tokenizer
        assert again.encode("xabc abcabc") == tokenizer.encode("xabc abcabc")


@pytest.mark.quick
def test_lines_as_other_programs_write_them(tmp_path: Path) -> None:
    lines = file_of([*BYTES, b"ab"]).splitlines()
    for data in (b"\r\n".join(lines), b"\r".join(lines), b"\n\n".join(reversed(lines))):
        assert read(tmp_path, data).encode("ab") == [256]
    assert read(tmp_path, b"\n".join(lines).replace(b" ", b"\t  ") + b" \n").encode("ab") == [256]


def all_splits(tokens: Sequence[bytes], rng: random.Random) -> list[list[str]]:
    """Every pair of tokens that makes a token, as in Llama 3's published file, but shuffled."""
    known = set(tokens)
    rows = []
    for token in tokens:
        cuts = [cut for cut in range(1, len(token)) if {token[:cut], token[cut:]} <= known]
        rows += [
            [to_chars(token[:cut]), to_chars(token[cut:])] for cut in rng.sample(cuts, len(cuts))
        ]
    return rows


@pytest.mark.parametrize("seed", range(3))
def test_random_ranks_as_tiktoken(seed: int, tmp_path: Path) -> None:
    """Learned-like and shuffled ranks, and the file written for them, with one pair or all."""
    tiktoken = pytest.importorskip("tiktoken")
    tokenizers = pytest.importorskip("tokenizers")
    rng = random.Random(seed)
    made_of_later = 0
    for _ in range(40):
        letters = rng.choice([b"ab", b"abc"])
        tokens = [bytes([letter]) for letter in letters]
        for _ in range(rng.randint(1, 9)):
            token = rng.choice(tokens) + rng.choice(tokens)
            if rng.random() < 0.3:
                token = bytes(rng.choices(letters, k=rng.randint(2, 6)))
            if token not in tokens:
                tokens.append(token)
        if rng.random() < 0.5:
            made = tokens[len(letters) :]
            rng.shuffle(made)
            tokens[len(letters) :] = made
        tokens += [byte for byte in BYTES if byte not in tokens]
        ours = read(tmp_path, file_of(tokens), pretokenizer=WORDS)
        ranks = {token: rank for rank, token in enumerate(tokens)}
        theirs = tiktoken.Encoding(
            "x", pat_str="[^ ]+| +", mergeable_ranks=ranks, special_tokens={}
        )
        made_of_later += any(
            ours.vocab[part] > ours.vocab[left + right]
            for left, right in ours.merges
            for part in (left, right)
        )
        file = json.loads(ours.to_json())
        written = [tokenizers.Tokenizer.from_str(json.dumps(file))]
        file["model"]["merges"] = all_splits(tokens, rng)
        written.append(tokenizers.Tokenizer.from_str(json.dumps(file)))
        published = Tokenizer.from_json(json.dumps(file))
        texts = ["".join(map(chr, rng.choices(letters + b" ", k=24))) for _ in range(20)]
        repeated = [text * length for text in ("a", "ab", "aab") for length in (3, 6, 7, 60)]
        for text in texts + repeated:
            expected = theirs.encode(text)
            assert ours.encode(text) == expected, (tokens[:12], text)
            assert published.encode(text) == expected
            assert [one.encode(text).ids for one in written] == [expected, expected]
    assert made_of_later > 4


@pytest.mark.quick
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"YQ== 0\nYg== x\n", "line 2: \"b'x'\" is not a rank"),
        (b"YQ== 0\n\nYg==\n", "line 3: \"b''\" is not a rank"),
        (b"Y 0\n", "line 1: \"b'Y'\" is not base64"),
        (b"Y!Q= 0\n", "line 1: .* is not base64"),
        (b" 0\n", "line 1: "),
        (b"YQ== 0\nYg== 0\n", "line 2: the rank is repeated"),
        (b"YQ== 0\nYQ== 1\n", "line 2: the token is repeated"),
        (b"YQ== 2147483648\n", "line 1: .* is not a rank: an integer from 0 to 2147483647"),
        (b"YQ== -1\n", "line 1: .* is not a rank"),
        (b"YQ== 99999999999999999999\n", "line 1: .* is not a rank"),
        (
            base64.b64encode(b"x" * 10**6) + b" 7\n",
            "line 1: a token must have at most 4,096 bytes",
        ),
        (b"\xff\xfd\n", "line 1: .* is not base64"),
    ],
)
def test_broken_files_are_refused_by_line(data: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"t.tiktoken: {message}"):
        read(tmp_path, data)


@pytest.mark.quick
def test_special_tokens_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='special_tokens: "<s>": id 5 of "<s>" is taken by'):
        read(tmp_path, file_of(BYTES), special_tokens={"<s>": 5})


@pytest.mark.quick
def test_what_the_file_cannot_hold(tmp_path: Path) -> None:
    path = str(tmp_path / "out")
    unordered = Tokenizer.from_learned(["a", "b", "c", "bc", "ab"], [("a", "b"), ("b", "c")])
    with pytest.raises(UsageError, match="the merges are not in the order of the ids"):
        unordered.save_tiktoken(path)
    missing = Tokenizer.from_learned(["a", "b", "ab"], [])
    with pytest.raises(UsageError, match='by ranks, "a" and "b" would be joined'):
        missing.save_tiktoken(path)
    unreached = Tokenizer.from_learned(["a", "b", "c", "abc"], [])
    with pytest.raises(UsageError, match='the token "abc" is made by no merge'):
        unreached.save_tiktoken(path)
    assert not (tmp_path / "out").exists()


@pytest.mark.quick
def test_a_file_without_a_known_pattern_is_read_with_a_warning(tmp_path: Path) -> None:
    data = file_of([*BYTES, b"12", b"1212"])
    with pytest.warns(UserWarning, match=r"t\.tiktoken does not have the pattern .* cl100k"):
        assert read(tmp_path, data, None).encode("1212") == [256, 49, 50]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(tmp_path, data, pretokenizer="cl100k")


@pytest.mark.quick
def test_a_published_file_has_its_own_pattern(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = file_of([*BYTES, b"12", b"1212"])
    monkeypatch.setitem(tiktoken_file._SPLITTING, hashlib.sha256(data).hexdigest(), "gpt2")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(tmp_path, data, None).encode("1212") == [257]
