"""Small tokenizers, trained by the reference."""

from __future__ import annotations

import pytest
from small_tokenizers import learn

from bpe_beam.tokenizer.tokenizer import Tokenizer


@pytest.fixture(scope="session")
def plain_tokenizer() -> Tokenizer:
    """Return a tokenizer of all bytes and 40 merges, without special tokens."""
    return learn("bytes", (), 40)


@pytest.fixture(scope="session")
def seen_tokenizer() -> Tokenizer:
    """Return a tokenizer of the sample's bytes and one special token."""
    return learn("seen", ("<|Z|>",), 20)
