"""The byte-level alphabet."""

from __future__ import annotations

import pytest

from bpe_beam.errors import DataError
from bpe_beam.tokenizer.components import byte_level

pytestmark = pytest.mark.quick


def test_printable_bytes_stand_for_themselves_and_the_others_follow_from_u0100() -> None:
    themselves = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = sorted(set(range(256)) - set(themselves))
    assert len(others) == 68
    assert all(byte_level.BYTE_TO_CHAR[byte] == chr(byte) for byte in themselves)
    assert [byte_level.BYTE_TO_CHAR[byte] for byte in others] == [
        chr(0x100 + place) for place in range(68)
    ]


def test_space_and_newline() -> None:
    assert byte_level.to_chars(b"a b\n") == "aĠbĊ"
    assert byte_level.to_chars("é".encode()) == "Ã©"


def test_all_bytes_there_and_back() -> None:
    every = bytes(range(256))
    chars = byte_level.to_chars(every)
    assert len(set(chars)) == 256
    assert byte_level.to_bytes(chars) == every
    assert byte_level.is_byte_level(chars)


def test_a_foreign_character_is_named_with_its_place() -> None:
    assert not byte_level.is_byte_level("ab c")
    with pytest.raises(DataError, match=r"' ' \(U\+0020\) at 2 is not in the byte-level"):
        byte_level.to_bytes("ab c")
