"""The CPU time that one text may take."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tokenizer_files import BPE, FILES, file, replace, split

from bpe_beam import Tokenizer
from bpe_beam.errors import DataError, UsageError
from bpe_beam.tokenizer.deadline import VARIABLE


@pytest.mark.parametrize(
    "parts",
    [
        {"pre_tokenizer": split("(a|aa)+$")},
        {"normalizer": replace("Regex", "(a|aa)+$", "b")},
        {
            "pre_tokenizer": {
                "type": "Sequence",
                "pretokenizers": [split("a"), split("(x|b*)*y")] * 49,
            }
        },
    ],
    ids=["pattern", "normalizer", "many searches"],
)
def test_one_deadline_for_a_text(parts: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "0.01")
    tokenizer = Tokenizer.from_json(json.dumps(file(BPE, **parts)))
    assert tokenizer.encode("ab")
    with pytest.raises(DataError, match=f"takes over .* seconds.*{VARIABLE}"):
        tokenizer.encode("a" * 3000 + "!")


def test_a_decoder_has_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "0.01")
    decoder = {"type": "Sequence", "decoders": [replace("Regex", "(a|b)*", "ab")] * 60}
    tokenizer = Tokenizer.from_json(json.dumps(file(BPE, decoder=decoder)))
    with pytest.raises(DataError, match=VARIABLE):
        tokenizer.decode([0, 1, 2] * 5_000)


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "soon"])
def test_a_deadline_that_is_none(seconds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, seconds)
    tokenizer = Tokenizer.from_json(json.dumps(FILES[1]))
    with pytest.raises(UsageError, match=f"{VARIABLE} must be a number of seconds above 0, got"):
        tokenizer.encode("ab")
