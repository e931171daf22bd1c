"""SentencePiece's `.model` files, written by hand: of any pieces and rules."""

from __future__ import annotations

import struct
from collections.abc import Sequence

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
UNIGRAM, BPE = 1, 2

Piece = tuple[str, float, int]
Values = dict[int, int | bytes | float]

SPECIAL: list[Piece] = [("<unk>", 0, UNKNOWN), ("<s>", 0, CONTROL), ("</s>", 0, CONTROL)]
BYTES: list[Piece] = [(f"<0x{byte:02X}>", 0, BYTE) for byte in range(256)]


def varint(number: int) -> bytes:
    """Return an integer below 2**64 as the format writes it."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def message(values: Values) -> bytes:
    """Return a message with values by the numbers of their fields."""
    out = b""
    for number, value in values.items():
        if isinstance(value, bytes):
            out += varint(number << 3 | 2) + varint(len(value)) + value
        elif isinstance(value, float):
            out += varint(number << 3 | 5) + struct.pack("<f", value)
        else:
            out += varint(number << 3) + varint(value)
    return out


def made_model(
    pieces: Sequence[Piece],
    model_type: int = BPE,
    *,
    trainer: Values | None = None,
    normalizer: Values | None = None,
) -> bytes:
    """Return the bytes of a model.

    Args:
        pieces: The text, the score and the kind of each piece.
        model_type: BPE or UNIGRAM.
        trainer: More fields of its trainer_spec.
        normalizer: The fields of its normalizer_spec.
    """
    rows = (message({1: text.encode(), 2: float(score), 3: kind}) for text, score, kind in pieces)
    whole = b"".join(message({1: row}) for row in rows)
    whole += message({2: message({3: model_type} | (trainer or {}))})
    return whole + message({3: message(normalizer or {})})
