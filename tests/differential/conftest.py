"""A small tokenizer to compare with others."""

from __future__ import annotations

import pytest
from small_tokenizers import SAMPLE, SPECIAL_TOKENS, learn

from bpe_beam.tokenizer.tokenizer import Tokenizer


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """All 256 bytes, six special tokens (one begins another), 150 merges."""
    return learn("bytes", SPECIAL_TOKENS, 150)


@pytest.fixture(scope="session")
def sample() -> str:
    """The text that the tokenizer was learned from."""
    return SAMPLE
