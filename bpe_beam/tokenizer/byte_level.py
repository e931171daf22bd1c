"""The byte-level alphabet: each of the 256 bytes as one printable character.

A byte-level tokenizer works on bytes, but its files hold text. So every byte has a character
that stands for it (the alphabet is GPT-2's): bytes 33-126, 161-172
and 174-255 stand for themselves, the other 68 become U+0100 and upward in byte order. A space is
`Ġ`, a newline `Ċ`. Only files, vocabularies and displays hold these characters; text is encoded
from its bytes.
"""

from __future__ import annotations

from bpe_beam.errors import DataError


def _alphabet() -> tuple[str, ...]:
    themselves = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = [byte for byte in range(256) if byte not in themselves]
    stand_ins = {byte: chr(0x100 + place) for place, byte in enumerate(others)}
    return tuple(stand_ins.get(byte, chr(byte)) for byte in range(256))


BYTE_TO_CHAR: tuple[str, ...] = _alphabet()
"""The character of each byte, by the byte's value."""

CHAR_TO_BYTE: dict[str, int] = {char: byte for byte, char in enumerate(BYTE_TO_CHAR)}
"""The byte of each of the alphabet's 256 characters."""

# str.translate wants characters as numbers; latin-1 gives each byte the character of its value.
_FROM_LATIN_1 = {byte: char for byte, char in enumerate(BYTE_TO_CHAR)}


def to_chars(data: bytes) -> str:
    """Writes bytes in the byte-level alphabet.

    Args:
        data: Any bytes.

    Returns:
        One character a byte.
    """
    return data.decode("latin-1").translate(_FROM_LATIN_1)


def to_bytes(chars: str) -> bytes:
    """Reads back what `to_chars` wrote.

    Args:
        chars: Characters of the byte-level alphabet.

    Returns:
        One byte a character.

    Raises:
        DataError: A character is not of the alphabet; names it and its place.
    """
    try:
        return bytes([CHAR_TO_BYTE[char] for char in chars])
    except KeyError:
        place = next(i for i, char in enumerate(chars) if char not in CHAR_TO_BYTE)
        raise DataError(
            f"{chars!r}: character {chars[place]!r} (U+{ord(chars[place]):04X}) at {place} is not "
            "in the byte-level alphabet"
        ) from None


def is_ambiguous(chars: str) -> bool:
    """Whether characters read as bytes are another text than as they are."""
    return not chars.isascii() and is_byte_level(chars)


def is_byte_level(chars: str) -> bool:
    """Tells whether every character is of the byte-level alphabet."""
    return CHAR_TO_BYTE.keys() >= set(chars)
