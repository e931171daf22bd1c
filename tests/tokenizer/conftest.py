"""Small tokenizers, learned by the reference."""

from __future__ import annotations

import pytest
from small_tokenizers import learn

from bpe_beam.tokenizer.tokenizer import Tokenizer


@pytest.fixture(scope="session")
def plain_tokenizer() -> Tokenizer:
    """All 256 bytes, no special tokens, 40 merges."""
    return learn("bytes", (), 40)


@pytest.fixture(scope="session")
def seen_tokenizer() -> Tokenizer:
    """Only the bytes of the sample, one special token."""
    return learn("seen", ("<|Z|>",), 20)
