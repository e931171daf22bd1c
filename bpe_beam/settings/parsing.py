"""Values as people type them, on a command line or in YAML, read into what settings hold.

Integers decide everywhere: no size or number passes through a float.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bpe_beam.errors import UsageError

_UNITS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}
_MULTIPLES = {"": 1, "K": 10**3, "M": 10**6}
_SEPARATOR_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}


@dataclass(frozen=True)
class GivenValue:
    """One setting as it was given.

    Attributes:
        where: The flag, or file and line, for errors.
        value: A list of texts; True or False; or, for a key that takes a mapping, the mapping.
    """

    where: str
    value: list[str] | bool | dict[str, Any]

    @property
    def in_file(self) -> bool:
        """Whether it stood in a config, not on the command line."""
        return ", line " in self.where


def parse_integer(name: str, text: str) -> int:
    """Reads a whole number: ASCII digits, or digits with `k` (thousand) or `M` (million).

    Args:
        name: What the number is for, as the user calls it; named in the error.
        text: The digits, with a minus sign if need be, as in "32000", "32k" or "1M".

    Raises:
        UsageError: If `text` is anything else, e.g. "8e3", "8_000", "8.0" or "0.5k".
    """
    match = re.fullmatch(r"(-?[0-9]{1,20})([kKmM]?)", text)
    if match is None:
        raise UsageError(f"{name} must be a whole number, such as 32000 or 32k, not {text!r}")
    return int(match[1]) * _MULTIPLES[match[2].upper()]


def parse_size(name: str, text: str) -> int:
    """Reads a number of bytes: `500MB`, `8GB`, `1GiB` or plain digits.

    Args:
        name: What the size is for, as the user calls it; named in the error.
        text: A whole number and a unit: B, KB, MB, GB, TB (powers of 1,000), KiB, MiB, GiB, TiB
            (powers of 1,024), upper or lower case.

    Returns:
        The size in bytes.

    Raises:
        UsageError: If `text` is anything else; fractions too, which would need rounding.
    """
    match = re.fullmatch(r"([0-9]{1,20}) ?([A-Za-z]*)", text)
    unit = _UNITS.get(match[2].upper()) if match else None
    if match is None or unit is None:
        raise UsageError(
            f"{name} must be a size: a whole number with KB, MB, GB, TB, KiB, MiB, GiB, TiB or "
            f"nothing after it, such as 500MB, not {text!r}"
        )
    return int(match[1]) * unit


def parse_share_or_size(name: str, text: str) -> str:
    """Read a share such as `0.1%`, left as it is, or a number of bytes, see `parse_size`.

    Args:
        name: What it is for, as the user calls it; named in the error.
        text: The share or the size.

    Raises:
        UsageError: The text is neither.
    """
    return text if text.rstrip().endswith("%") else str(parse_size(name, text))


def parse_pair(name: str, text: str) -> tuple[str, str]:
    """Reads NAME=VALUE; the value may hold more equals signs.

    Args:
        name: What the pair is for, as the user calls it; named in the error.
        text: The pair.

    Raises:
        UsageError: If there is no equals sign, or nothing on one side of it.
    """
    key, equals, value = text.partition("=")
    if not (key and equals and value):
        raise UsageError(f"{name} must be NAME=VALUE, such as en=data/en/*, not {text!r}")
    return key, value


def parse_weights(name: str, text: str) -> list[tuple[str, str]]:
    """Reads `en=0.3,zh=2`; a name may hold equals signs, and commas that no value stands before.

    Args:
        name: What the weights are for, as the user calls it; named in the error.
        text: The pairs. The values stay texts.

    Raises:
        UsageError: If one of them is no pair.
    """
    pairs = []
    held: list[str] = []
    for piece in text.split(","):
        held.append(piece)
        if "=" not in piece:
            continue
        source, _, weight = ",".join(held).rpartition("=")
        if source and weight:
            pairs.append((source, weight))
            held = []
    if held:
        raise UsageError(f"{name} must be SOURCE=W, such as en=0.3,zh=2, not {text!r}")
    return pairs


def parse_separator(name: str, text: str) -> str:
    r"""Reads a document separator as a command line can hold it.

    Args:
        name: What the separator is called in the error.
        text: The separator, with the escapes `\n`, `\t`, `\r`, `\\` and `\xNN` (an ASCII character
            by its two hexadecimal digits). The word `file` stays as it is.

    Returns:
        The separator with its escapes replaced.

    Raises:
        UsageError: If a backslash is followed by anything else.
    """

    def replace(match: re.Match[str]) -> str:
        escape = match[1]
        if escape in _SEPARATOR_ESCAPES:
            return _SEPARATOR_ESCAPES[escape]
        if len(escape) == 3 and int(escape[1:], 16) < 0x80:
            return chr(int(escape[1:], 16))
        raise UsageError(
            f"{name} holds \\{escape}: the escapes are \\n, \\t, \\r, \\\\ and \\x00 to \\x7f; "
            "write \\\\ for a backslash, and other characters as themselves"
        )

    return re.sub(r"\\(x[0-9A-Fa-f]{2}|.|$)", replace, text, flags=re.DOTALL)


def parse_storage_options(name: str, text: str) -> Mapping[str, Mapping[str, Any]]:
    """Reads storage options, by protocol, from JSON.

    Args:
        name: What the options are called in the error.
        text: A JSON object of objects. May hold secrets, so no error quotes it.

    Raises:
        UsageError: If `text` is anything else.
    """
    try:
        options = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        # `from None`: the decoder's exception carries the text.
        raise UsageError(f"{name} is not valid JSON{where}") from None
    if not isinstance(options, dict) or not all(isinstance(v, dict) for v in options.values()):
        raise UsageError(
            f"{name} must be options by protocol, such as "
            '{"s3": {"endpoint_url": "http://localhost:9000"}}'
        )
    return options


def parse_ids(name: str, text: str) -> list[int]:
    """Reads token ids, separated by white space or commas.

    Args:
        name: Where the ids stand, named in the error.
        text: The ids, in decimal.

    Raises:
        UsageError: If one of them is not a number below 2^31; the error says which.
    """
    ids = []
    for position, word in enumerate(text.replace(",", " ").split(), start=1):
        if re.fullmatch(r"[0-9]{1,10}", word) is None or int(word) >= 2**31:
            raise UsageError(
                f"{name}: number {position} is {word[:50]!r}; a token id is a whole number from 0 "
                "to 2,147,483,647"
            )
        ids.append(int(word))
    return ids


def as_typed(message: str, typed: Mapping[str, str]) -> str:
    """A settings' error for who typed them: settings name their parameters.

    Args:
        message: What the error says. Words are taken for parameters where it begins, and if they
            hold an underscore; what is quoted stays, and so does what names the line of a file.
        typed: How to name a parameter: its flag, or file and line.
    """
    if any(name in message for name in typed.values() if " " in name):
        return message
    own = message[: len(re.split("['\"]", message, maxsplit=1)[0])]
    words = own.split(" ")
    for place, word in enumerate(words):
        name = word.rstrip(",;:")
        leads = place == 0 or (place == 2 and words[1] == "and")
        if name in typed and (leads or "_" in name):
            words[place] = typed[name] + word[len(name) :]
    return " ".join(words) + message[len(own) :]
