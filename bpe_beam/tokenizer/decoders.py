"""Decoders: how tokens become text again."""

from __future__ import annotations

from dataclasses import dataclass

from bpe_beam.tokenizer import byte_level


@dataclass(frozen=True)
class ByteLevelDecoder:
    """Reads tokens in the byte-level alphabet.

    Attributes:
        add_prefix_space: Stands in Hugging Face's file, like the next two, and is kept for it;
            as there, they have no effect in a decoder.
        trim_offsets: See above.
        use_regex: See above.
    """

    add_prefix_space: bool = False
    trim_offsets: bool = True
    use_regex: bool = True

    def token_bytes(self, token: str) -> bytes:
        """The bytes that a token of the model stands for."""
        return byte_level.to_bytes(token)
