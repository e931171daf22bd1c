"""Components in tokenizer.json: how deep and how many."""

from __future__ import annotations

import json

import pytest
from tokenizer_files import BPE, SEQUENCES, file, split

from bpe_beam import Tokenizer
from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.files.tokenizer_json import MAX_COMPONENTS, MAX_DEPTH


def test_a_split_without_behavior() -> None:
    part = split("a")
    del part["behavior"]
    with pytest.raises(UsageError, match=r"pre_tokenizer\.behavior: missing"):
        Tokenizer.from_json(json.dumps(file(BPE, pre_tokenizer=part)))


@pytest.mark.parametrize("name", SEQUENCES)
def test_parts_nested_too_deeply(name: str) -> None:
    key, items = SEQUENCES[name]
    part = items[0]
    for depth in range(1, MAX_DEPTH + 2):
        part = {"type": "Sequence", key: [part]}
        data = json.dumps(file(BPE, **{name: part}))
        if depth <= MAX_DEPTH:
            Tokenizer.from_json(data).encode("ab")
    place = rf"{name}\.{key}\[0\].*\[0\]: components must be nested at most 32 deep"
    with pytest.raises(UsageError, match=place):
        Tokenizer.from_json(data)


@pytest.mark.parametrize("name", SEQUENCES)
def test_too_many_parts(name: str) -> None:
    key, items = SEQUENCES[name]
    for number in (MAX_COMPONENTS - 1, MAX_COMPONENTS):
        part = {"type": "Sequence", key: items[:1] * number}
        data = json.dumps(file(BPE, **{name: part}))
        if number < MAX_COMPONENTS:
            Tokenizer.from_json(data)
    with pytest.raises(UsageError, match=rf"{name}\..*: there must be at most 100 components"):
        Tokenizer.from_json(data)
