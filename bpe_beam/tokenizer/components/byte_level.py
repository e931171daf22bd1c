"""The byte-level alphabet: each of the 256 bytes as one printable character.

The alphabet is GPT-2's. Only files, vocabularies and displays have these characters: text is
encoded from its bytes. Bytes 33-126, 161-172 and 174-255 are the characters of the same number; the
other 68 are U+0100 and upward in byte order. A space is `Ġ`, a newline `Ċ`.
"""

from __future__ import annotations

from bpe_beam.errors import DataError

_SAME = {*range(33, 127), *range(161, 173), *range(174, 256)}
_SHIFTED = {byte: chr(0x100 + i) for i, byte in enumerate(sorted({*range(256)} - _SAME))}

BYTE_TO_CHAR = tuple(_SHIFTED.get(byte, chr(byte)) for byte in range(256))
"""The character of each byte, by the byte's value."""

CHAR_TO_BYTE: dict[str, int] = {char: byte for byte, char in enumerate(BYTE_TO_CHAR)}
"""The byte of each of the alphabet's 256 characters."""


def to_chars(data: bytes) -> str:
    """Return bytes in the byte-level alphabet, one character a byte."""
    # latin-1 maps each byte to the character of its value.
    return data.decode("latin-1").translate(BYTE_TO_CHAR)


def to_bytes(chars: str) -> bytes:
    """Return the bytes that `to_chars` wrote."""
    try:
        return bytes([CHAR_TO_BYTE[char] for char in chars])
    except KeyError:
        position = next(i for i, char in enumerate(chars) if char not in CHAR_TO_BYTE)
        raise DataError(
            f"{chars!r}: character {chars[position]!r} (U+{ord(chars[position]):04X}) at "
            f"{position} is not in the byte-level alphabet"
        ) from None


def is_ambiguous(chars: str) -> bool:
    """Whether the characters, read as bytes, are another text than read as characters."""
    return not chars.isascii() and is_byte_level(chars)


def is_byte_level(chars: str) -> bool:
    """Whether every character is in the byte-level alphabet."""
    return CHAR_TO_BYTE.keys() >= set(chars)
