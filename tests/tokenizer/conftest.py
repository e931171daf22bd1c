"""Small tokenizers, learned by the reference."""

from __future__ import annotations

import pytest
from small_tokenizers import SAMPLE, SPECIAL_TOKENS, learn

from bpe_beam.tokenizer.tokenizer import Tokenizer


@pytest.fixture(scope="session")
def sample() -> str:
    """The text that the tokenizers were learned from."""
    return SAMPLE


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """All 256 bytes, six special tokens (one begins another), 150 merges."""
    return learn("bytes", SPECIAL_TOKENS, 150)


@pytest.fixture(scope="session")
def plain_tokenizer() -> Tokenizer:
    """All 256 bytes, no special tokens, 40 merges."""
    return learn("bytes", (), 40)


@pytest.fixture(scope="session")
def seen_tokenizer() -> Tokenizer:
    """Only the bytes of the sample, one special token."""
    return learn("seen", ("<|Z|>",), 20)
