"""Recognition of binary files and of encodings other than UTF-8, by a file's first bytes."""

from __future__ import annotations

import codecs
import re

HEAD_BYTES = 4 << 10
"""The number of first bytes, after decompression, that show the format and the encoding."""

_MARKS = (
    (b"\xff\xfe\0\0", "UTF-32"),  # before the mark of UTF-16, with which it begins
    (b"\0\0\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
_ASCII = (
    (re.compile(rb"(?:[^\0]\0{3}){2}"), "UTF-32LE"),
    (re.compile(rb"(?:\0{3}[^\0]){2}"), "UTF-32BE"),
    (re.compile(rb"(?:[^\0]\0){4}"), "UTF-16LE"),
    (re.compile(rb"(?:\0[^\0]){4}"), "UTF-16BE"),
)
"""The first bytes of ASCII in these encodings."""

_CONTROLS = bytes({*range(32)} - {*b"\n\r\b\f\x1b"})
_MAX_CONTROLS = {True: 0.25, False: 0.02}
"""The largest share of control characters in a text that has NULs, by whether it is valid UTF-8."""

_SPACES = frozenset("\t\n\r\u3000")


def other_encoding(head: bytes) -> str | None:
    """Return why bytes seem to be UTF-16 or UTF-32, for a message; None if they do not."""
    for mark, name in _MARKS:
        if head.startswith(mark):
            return f"begins with the byte order mark of {name}"
    names = [name for ascii_, name in _ASCII if ascii_.match(head)]
    if not names and is_binary(head):
        names = [name for _, name in _ASCII if _decodes(head, name)]
    return f"seems to be {names[0]}" if names else None


def is_binary(head: bytes) -> bool:
    """Return whether bytes have NULs and more control characters than a text may have."""
    if b"\0" not in head:
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
        valid = True
    except UnicodeDecodeError:
        valid = False
    controls = len(head) - len(head.translate(None, _CONTROLS))
    return controls > _MAX_CONTROLS[valid] * len(head)


def _decodes(head: bytes, name: str) -> bool:
    """Return whether bytes are printable text with spaces or lines in an encoding."""
    try:
        characters = set(codecs.getincrementaldecoder(name)().decode(head))
    except UnicodeDecodeError:
        return False
    printable = (each in _SPACES or each.isprintable() for each in characters)
    return not characters.isdisjoint(" \n") and all(printable)
