"""Small tokenizers, learned by the reference from a sample of many scripts."""

from __future__ import annotations

from reference_bpe import learn_bpe
from reference_encoding import pretokenize

from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.tokenizer import Tokenizer

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


def learn(alphabet: str, special_tokens: tuple[str, ...], merges: int) -> Tokenizer:
    """Return a byte-level tokenizer with this alphabet, special tokens and number of merges."""
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
