"""Added tokens whose ids Hugging Face's libraries would change: in the vocabulary, or refused.

Comparisons with these libraries are in tests/differential/test_exports_vs_others.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import run
from tokenizer_files import BPE, BYTE_LEVEL, WORDPIECE, added

from bpe_beam import Tokenizer
from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.components.byte_level import CHAR_TO_BYTE

pytestmark = pytest.mark.quick

VOCAB = {"a": 0, "b": 1, "ab": 2, "[UNK]": 3}


def file(model: dict[str, Any], *tokens: dict[str, Any], **parts: Any) -> str:
    return json.dumps({"version": "1.0", "added_tokens": tokens, "model": model, **parts})


def bpe(**settings: Any) -> dict[str, Any]:
    return {**BPE, "vocab": VOCAB, **settings}


def test_added_tokens_after_a_hole_are_written_into_the_vocabulary() -> None:
    text = file(bpe(), added(5, "<x>", special=True), added(9, "yz"))
    ours = Tokenizer.from_json(text)
    written = json.loads(ours.to_json())
    assert written["model"]["vocab"] == {**VOCAB, "<x>": 5, "yz": 9}
    again = Tokenizer.from_json(ours.to_json())
    assert again == ours
    for allowed in ((), "all"):
        ids = ours.encode("ab<x>ayz", allowed_special=allowed)
        assert again.encode("ab<x>ayz", allowed_special=allowed) == ids


def test_added_tokens_without_a_hole_stay_outside() -> None:
    ours = Tokenizer.from_json(file(bpe(), added(4, "<x>", special=True), added(5, "yz")))
    assert json.loads(ours.to_json())["model"]["vocab"] == VOCAB
    assert ours.file_warning is None


@pytest.mark.parametrize(
    ("model", "token"),
    [
        (bpe(), "c"),  # plain text with a `c` would have a token for it
        (bpe(byte_fallback=True), "<0x41>"),
        (bpe(ignore_merges=True), "xyz"),
        (bpe(end_of_word_suffix="</w>"), "xyz"),
        ({**WORDPIECE, "vocab": VOCAB}, "xyz"),
        ({"type": "WordLevel", "vocab": VOCAB, "unk_token": "[UNK]"}, "xyz"),
        ({"type": "Unigram", "vocab": [["a", -1.0], ["u", -2.0]], "unk_id": 1}, "xyz"),
    ],
)
def test_what_the_vocabulary_cannot_have_is_refused(
    model: dict[str, Any], token: str, tmp_path: Path
) -> None:
    path = tmp_path / "in.json"
    path.write_text(file(model, added(9, token, special=True)))
    ours = Tokenizer.from_file(path)
    assert ours.encode(token, allowed_special="all") == [9]
    for save in (ours.save, ours.save_pretrained):
        with pytest.raises(
            UsageError, match=rf'the added token "{token}" the id [24] in place of 9'
        ):
            save(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    for form in ("tokenizer_json", "transformers"):
        result = run("export", path, "--format", form, "--output", tmp_path / "out")
        assert (result.code, result.out) == (2, b"")
        assert "in place of 9" in result.err
    assert not (tmp_path / "out").exists()


def test_a_special_token_that_is_one_word_is_no_word_of_the_model(tmp_path: Path) -> None:
    """tiktoken gives its bytes for plain text; looked up as a whole word it would be special."""
    vocab = {symbol: number for number, symbol in enumerate(CHAR_TO_BYTE)}
    model = {**BPE, "unk_token": None, "vocab": vocab, "merges": []}
    splitting = {**BYTE_LEVEL, "add_prefix_space": False}
    ours = Tokenizer.from_json(file(model, pre_tokenizer=splitting))
    path = tmp_path / "t.tiktoken"
    ours.save_tiktoken(path)
    special = {"stop": 256}
    back = Tokenizer.from_tiktoken(path, pretokenizer="gpt2", special_tokens=special)
    assert back.encode("stop") == [back.token_to_id(letter) for letter in "stop"]
    assert back.encode("stop", allowed_special="all") == [256]
    assert back.file_warning is None
