"""Any text at all: Hypothesis against the reference, there and back, and cut into chunks."""

from __future__ import annotations

import reference_encoding as reference
from hypothesis import given, settings
from hypothesis import strategies as st
from text_strategies import ALLOWED, TEXTS

from bpe_beam.tokenizer.tokenizer import Tokenizer


def names(tokenizer: Tokenizer, allowed: str | tuple[str, ...]) -> list[str]:
    return list(tokenizer.special_tokens if allowed == "all" else allowed)


@given(text=TEXTS, allowed=ALLOWED)
@settings(max_examples=400, deadline=None)
def test_equal_to_the_reference(
    tokenizer: Tokenizer, text: str, allowed: str | tuple[str, ...]
) -> None:
    expected = reference.encode(
        text,
        tokenizer.vocab,
        tokenizer.merges,
        tokenizer.special_tokens,
        names(tokenizer, allowed),
    )
    ids = tokenizer.encode(text, allowed_special=allowed)
    assert ids == expected
    assert tokenizer.encode_batch([text], allowed_special=allowed) == [expected]
    assert tokenizer.decode(ids) == text
    assert reference.decode(ids, tokenizer.vocab, tokenizer.special_tokens) == text


@given(text=TEXTS, allowed=ALLOWED)
@settings(max_examples=200, deadline=None)
def test_offsets_cover_the_text(
    tokenizer: Tokenizer, text: str, allowed: str | tuple[str, ...]
) -> None:
    tokens, ids, offsets = tokenizer.encode_with_offsets(text, allowed_special=allowed)
    assert ids == tokenizer.encode(text, allowed_special=allowed)
    assert [tokenizer.token_to_id(token) for token in tokens] == ids
    covered = 0
    for number, (start, end) in zip(ids, offsets, strict=True):
        assert start in (covered, covered - 1)
        assert end > start
        assert tokenizer.decode_bytes([number]) in text[start:end].encode()
        covered = end
    assert covered == len(text)


@given(ids=st.lists(st.integers(0, 411)))
@settings(max_examples=200, deadline=None)
def test_any_ids_decode(tokenizer: Tokenizer, ids: list[int]) -> None:
    each = b"".join(tokenizer.decode_bytes([number]) for number in ids)
    assert tokenizer.decode_bytes(ids) == each
    assert tokenizer.decode(ids) == each.decode("utf-8", errors="replace")
