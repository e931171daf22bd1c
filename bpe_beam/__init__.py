"""Learn subword tokenizers from corpora of any size, and turn them into token shards, on Beam."""

from bpe_beam.tokenizer.tokenizer import Tokenizer

__all__ = ["Tokenizer"]
