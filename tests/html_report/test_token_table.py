"""All tokens of a tokenizer, as the script of the page unpacks them."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import numpy as np
import pytest
from html_pages import HOSTILE
from small_tokenizers import learn

from bpe_beam.evaluation.smaller_vocabularies import Derivations
from bpe_beam.evaluation.unused_tokens import unused_tokens
from bpe_beam.evaluation.vocabulary import Integers, Vocabulary
from bpe_beam.html_report.token_table import KINDS, token_table
from bpe_beam.tokenizer.components.models import BPE, WordLevel
from bpe_beam.tokenizer.spec import TokenizerSpec
from bpe_beam.tokenizer.tokenizer import Tokenizer

pytestmark = pytest.mark.quick


def unpacked(vocabulary: Vocabulary, counts: Integers) -> Any:
    table = token_table(vocabulary, counts)
    assert token_table(vocabulary, counts) == table
    return json.loads(gzip.decompress(base64.b64decode(table)))


def positions_of(table: Any, kind: str) -> list[int]:
    bit = 1 << list(KINDS).index(kind)
    return [at for at, kinds in enumerate(table["kinds"]) if kinds & bit]


def parts(table: Any, data: list[bytes], at: int) -> tuple[int, int] | None:
    split = table["split"][at]
    if not split:
        return None
    if str(at) in table["made"]:
        left, right = table["made"][str(at)]
        return left, right
    free = [p for p in range(len(data)) if p not in positions_of(table, "added")]
    first = {data[p]: p for p in reversed(free)}
    return first[data[at][:split]], first[data[at][split:]]


def test_tokens_kinds_and_merges() -> None:
    vocabulary = Vocabulary(learn("bytes", HOSTILE, 150))
    counts = np.arange(len(vocabulary), dtype=np.int64) % 3 * 5
    table = unpacked(vocabulary, counts)
    data = vocabulary.token_bytes
    found = [one.encode() if isinstance(one, str) else bytes(one) for one in table["text"]]
    assert found == data
    assert table["count"] == counts.tolist()
    assert "ids" not in table
    derivations = Derivations(vocabulary)
    unused = unused_tokens(vocabulary, counts, derivations)
    assert len(positions_of(table, "never")) == unused.never_used
    assert len(positions_of(table, "unreachable")) == unused.unreachable > 0
    assert len(positions_of(table, "step")) == unused.inside_longer_ones
    assert positions_of(table, "added") == np.flatnonzero(vocabulary.added).tolist()
    rank, made = 0, {one.token: one for one in derivations.order}
    for at in range(len(vocabulary)):
        both = parts(table, data, at)
        assert (at in made) == (both is not None)
        if both is not None:
            rank += table["rank"][at]
            assert (*both, rank) == (made[at].left, made[at].right, made[at].rank)
    assert len(made) == 150
    assert table["encodes"]
    assert not table["whole"]


def test_merges_whose_bytes_do_not_tell_are_stored() -> None:
    vocab = {"a": 0, "##b": 1, "b": 2, "ab": 3, "##bb": 4}
    model = BPE(vocab, [("a", "##b"), ("##b", "##b")], continuing_subword_prefix="##")
    table = unpacked(Vocabulary(Tokenizer(TokenizerSpec(model))), np.zeros(5, np.int64))
    assert table["made"] == {} or table["made"]["3"] == [0, 1]
    assert parts(table, [b"a", b"b", b"b", b"ab", b"bb"], 3) == (0, 1)
    assert parts(table, [b"a", b"b", b"b", b"ab", b"bb"], 4) == (1, 1)
    assert not table["encodes"]


def test_a_model_without_merges_and_with_holes() -> None:
    vocabulary = Vocabulary(Tokenizer(TokenizerSpec(WordLevel({"a": 0, "b": 7}, "a"))))
    table = unpacked(vocabulary, np.array([2**62, 0]))
    assert table["ids"] == [0, 7]
    assert table["count"] == [2**62, 0]
    assert "split" not in table
