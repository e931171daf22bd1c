"""Decoders: how tokens become text again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ByteLevelDecoder:
    """Joins the bytes that the tokens stand for in the byte-level alphabet.

    An added token stands for its own text.

    Attributes:
        add_prefix_space: Stands in Hugging Face's file, like the next two, and is kept for it;
            as there, they have no effect in a decoder.
        trim_offsets: See above.
        use_regex: See above.
    """

    add_prefix_space: bool = False
    trim_offsets: bool = True
    use_regex: bool = True
