"""Post-processors: what is done to a text's tokens once they are found."""

from __future__ import annotations

from dataclasses import dataclass

from bpe_beam.tokenizer import byte_level

# Unicode's White_Space: what Rust's char::is_whitespace, and so Hugging Face, takes for a space.
# str.isspace would add U+001C to U+001F.
_WHITESPACE = frozenset(
    map(chr, [*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B)])
) | frozenset("\u2028\u2029\u202f\u205f\u3000")
_SPACES = _WHITESPACE | {byte_level.BYTE_TO_CHAR[0x20]}


@dataclass(frozen=True)
class ByteLevelPostProcessor:
    """Hugging Face's ByteLevel post-processor: takes the spaces out of the offsets.

    Attributes:
        add_prefix_space: Leave one space at the start of the text in the offsets, as if it had
            been added.
        trim_offsets: Whether to do anything at all.
        use_regex: Kept for the file; has no effect.
    """

    add_prefix_space: bool = True
    trim_offsets: bool = True
    use_regex: bool = True

    def trim(self, place: int, token: str, offsets: tuple[int, int]) -> tuple[int, int]:
        """Takes leading and trailing spaces out of one token's offsets.

        Args:
            place: Which of the text's tokens it is, from 0.
            token: The token's string: in the byte-level alphabet, or an added token's text.
            offsets: (start, end) in characters of the text.

        Returns:
            The offsets without the spaces; empty, never negative, for a token of only spaces.
        """
        if not self.trim_offsets:
            return offsets
        start, end = offsets
        leading = _count_spaces(token)
        trailing = _count_spaces(token[::-1])
        if leading == 1 and self.add_prefix_space and (place == 0 or start == 0):
            leading = 0
        start = min(start + leading, end)
        if trailing and end >= trailing:
            end = max(end - trailing, start)
        return start, end


def _count_spaces(token: str) -> int:
    """How many spaces the token begins with."""
    return next((i for i, char in enumerate(token) if char not in _SPACES), len(token))
