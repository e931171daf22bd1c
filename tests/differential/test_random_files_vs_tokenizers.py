"""Tokenizers put together at random, as `tokenizers` saves them: equal tokens, offsets and text.

What docs/tokenizers.md lists as other here is left out: ids with holes, byte fallback with a prefix
or suffix, and added tokens that a normalizer changes or that it makes nothing.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

pytest.importorskip("tokenizers")

import matrix
from matrix import DECODERS, MODELS, NORMALIZERS, POST_PROCESSORS, PRE_TOKENIZERS, to_bytes
from tokenizers import AddedToken, processors
from tokenizers import Tokenizer as Theirs

from bpe_beam import Tokenizer

FLAGS = ("single_word", "lstrip", "rstrip", "special")
CONTENTS = ["<s>", "</s>", "[X]", "xyz", "x y", "a", "the", "<mask>", "[UNK]", "<unk>", "<0x20>"]
# `tokenizers` panics if a suffix is taken off and nothing is left.
DECODING = [name for name in DECODERS if name != "bpe"]


def random_file(rng: random.Random) -> str:
    model = rng.choice([*MODELS])
    cutting = rng.choice([*PRE_TOKENIZERS.values()])
    theirs = matrix.tokenizer(
        model,
        normalizer=rng.choice([None, None, *NORMALIZERS.values()]),
        pre_tokenizer=to_bytes(cutting) if model.startswith("bytes") else cutting,
        decoder=DECODERS[rng.choice(DECODING)],
        post_processor=rng.choice([*POST_PROCESSORS.values()]),
    )
    if model.startswith("unigram"):
        # A post-processor trims by the texts of unknown tokens, which here are `<unk>`.
        theirs.post_processor = None
    for content in rng.sample(CONTENTS, rng.randint(0, 5)):
        flags = {flag: rng.random() < 0.3 for flag in FLAGS}
        theirs.add_tokens([AddedToken(content, normalized=False, **flags)])
    return str(theirs.to_str())


def differences(file: str, texts: list[str]) -> list[str]:
    theirs, ours = Theirs.from_str(file), Tokenizer.from_json(file)
    added = theirs.get_added_tokens_decoder()
    found = []
    for text in texts:
        expected = theirs.encode(text, add_special_tokens=False)
        tokens, ids, offsets = ours.encode_with_offsets(text, allowed_special="all")
        named = [
            None if i in added else t for i, t in zip(expected.ids, expected.tokens, strict=True)
        ]
        ours_named = [None if i in added else t for i, t in zip(ids, tokens, strict=True)]
        if (ours_named, ids, offsets) != (named, expected.ids, expected.offsets):
            found.append(
                f"{text!r}: {tokens} {offsets} is not {expected.tokens} {expected.offsets}"
            )
        elif ours.decode(ids) != theirs.decode(ids, skip_special_tokens=False):
            found.append(f"{text!r}: decodes to {ours.decode(ids)!r}")
    return found


def compare(seeds: range) -> None:
    for seed in seeds:
        rng = random.Random(seed)
        file = random_file(rng)
        found = differences(file, rng.sample(matrix.texts(), 12))
        parts = {key: value for key, value in json.loads(file).items() if key != "model"}
        assert not found, f"seed {seed}, {parts}:\n" + "\n".join(found[:3])


def test_some_files() -> None:
    compare(range(40))


@pytest.mark.slow
def test_more_files() -> None:
    compare(range(40, 300))


@pytest.mark.scheduled
def test_thousands_of_files() -> None:
    compare(range(300, 2_500))


def byte_level(**settings: bool) -> Any:
    return processors.ByteLevel(trim_offsets=True, **settings)


@pytest.mark.parametrize("prefix", [False, True])
@pytest.mark.parametrize(
    ("model", "token"), [("unknown", "[UNK]"), ("fallback", "<0x20>"), ("word level", "<unk>")]
)
def test_offsets_of_a_token_of_the_model_that_is_also_added(
    model: str, token: str, prefix: bool
) -> None:
    """The model's unknown token keeps its place; the same token, found in the text, is trimmed."""
    theirs = matrix.tokenizer(model, post_processor=byte_level(add_prefix_space=prefix))
    theirs.add_special_tokens([AddedToken(token, lstrip=True)])
    texts = ["a b", " b", "  \u03a9", "\u03a9 ", "\u3000", f"a {token} \u03a9", f"\u03a9  {token}"]
    assert not differences(str(theirs.to_str()), texts)


def with_added(model: dict[str, Any], *tokens: tuple[int, str, bool, bool], **parts: Any) -> str:
    added = [
        {
            "id": number, "content": content, "single_word": False, "lstrip": False,
            "rstrip": False, "normalized": normalized, "special": special,
        }
        for number, content, normalized, special in tokens
    ]  # fmt: skip
    return json.dumps({"version": "1.0", "added_tokens": added, "model": model, **parts})


BPE = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}


def test_the_ids_of_a_file_are_kept() -> None:
    file = with_added(BPE, (5, "<x>", False, False), (9, "<y>", False, False))
    assert Tokenizer.from_json(file).encode("a<x>b<y>") == [0, 5, 1, 9]
    assert Theirs.from_str(file).encode("a<x>b<y>").ids == [0, 3, 1, 4]


def test_a_prefix_falls_back_to_bytes_at_no_offset_of_its_own() -> None:
    names = {f"<0x{byte:02X}>": byte + 10 for byte in range(256)}
    model = {**BPE, "vocab": {**BPE["vocab"], **names}, "byte_fallback": True}  # type: ignore[dict-item]
    model["continuing_subword_prefix"] = "##"
    file = with_added({**model, "merges": []})
    tokens, _, offsets = Tokenizer.from_json(file).encode_with_offsets("aé")
    theirs = Theirs.from_str(file).encode("aé")
    assert tokens == theirs.tokens == ["a", "<0x23>", "<0x23>", "<0xC3>", "<0xA9>"]
    assert offsets == [(0, 1), (1, 1), (1, 1), (1, 2), (1, 2)]
    assert theirs.offsets[-1] == (4, 5)  # of a text of two characters


def test_special_tokens_are_skipped_by_their_ids() -> None:
    parts = {"normalizer": {"type": "Lowercase"}, "decoder": {"type": "Fuse"}}
    file = with_added(BPE, (3, "[X]", True, True), **parts)
    assert Tokenizer.from_json(file).decode([0, 3, 1], skip_special_tokens=True) == "ab"
    assert Theirs.from_str(file).decode([0, 3, 1], skip_special_tokens=True) == "a[x]b"


def test_an_added_token_of_which_nothing_is_left_is_nowhere() -> None:
    parts = {"normalizer": {"type": "Replace", "pattern": {"String": "x"}, "content": ""}}
    file = with_added(BPE, (3, "x", True, True), **parts)
    assert Tokenizer.from_json(file).encode("ab", allowed_special="all") == [2]
    assert Theirs.from_str(file).encode("ab").ids == [0, 1]
