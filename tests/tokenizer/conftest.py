"""Small tokenizers, learned by the reference."""

from __future__ import annotations

import pytest

from bpe_beam.tokenizer import byte_level
from bpe_beam.tokenizer.reference import pretokenize
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.reference import learn_bpe

# Some of everything: contractions, digits, runs of spaces and signs, several scripts.
SAMPLE = (
    """\
I'm sure they'll say it's what we've done, don't you're? He'd 'tis '
The theory of the other weather: whether there were three hundred thirty-three (333) or 1,234.
    def main():\n        return  "x"   \t\n\n\n  ----- ===== ***** !!! ...
Größe, Ärger, él está aquí, là một nơi; Привет, мир; 你好、世界。こんにちは世界 한국어 😀😀👍🏽
<|end|> <|endoftext|> <s> </s> aaaa aaaaaaa bbbbbb '''  'S 'LL
"""
    * 2
)

SPECIAL_TOKENS = ("<|endoftext|>", "<|end|>", "<|end|><|end|>", "<s>", "语 x", "\u3000<pad>\n")


@pytest.fixture(scope="session")
def sample() -> str:
    """The text that the tokenizers were learned from."""
    return SAMPLE


def learn(alphabet: str, special_tokens: tuple[str, ...], merges: int) -> Tokenizer:
    counts: dict[str, int] = {}
    for word in pretokenize(SAMPLE):
        chars = byte_level.to_chars(word.encode())
        counts[chars] = counts.get(chars, 0) + 1
    symbols = len(set("".join(counts))) if alphabet == "seen" else 256
    vocab, pairs = learn_bpe(
        counts.items(),
        vocab_size=symbols + len(special_tokens) + merges,
        alphabet=alphabet,
        special_tokens=special_tokens,
    )
    return Tokenizer.from_learned(vocab, pairs, special_tokens)


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
