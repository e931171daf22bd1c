r"""Parsers of option values, as people type them on a command line or in YAML.

Each `parse_...` takes the name of the parameter, for errors, and the text, and raises UsageError
where the text is malformed. No size or number passes through a float.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from bpe_beam.errors import UsageError
from bpe_beam.settings.checks import require_storage_options

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


def parse_integer(name: str, text: str) -> int:
    """Return a whole number: ASCII digits, or digits with `k` (thousand) or `M` (million).

    Args:
        name: The parameter.
        text: The digits, with a minus sign if negative, as in "32000", "32k" or "1M".

    Raises:
        UsageError: `text` is anything else, such as "8e3", "8_000", "8.0" or "0.5k".
    """
    match = re.fullmatch(r"(-?[0-9]{1,20})([kKmM]?)", text)
    if match is None:
        raise UsageError(f"must be a whole number such as 32000 or 32k, got {text!r}", (name,))
    return int(match[1]) * _MULTIPLES[match[2].upper()]


def parse_size(name: str, text: str) -> int:
    """Return a number of bytes: `500MB`, `8GB`, `1GiB` or plain digits.

    Args:
        name: The parameter.
        text: A whole number and a unit: B, KB, MB, GB, TB (powers of 1,000), KiB, MiB, GiB, TiB
            (powers of 1,024), upper or lower case.

    Raises:
        UsageError: `text` is anything else; fractions too, which would need rounding.
    """
    match = re.fullmatch(r"([0-9]{1,20}) ?([A-Za-z]*)", text)
    unit = _UNITS.get(match[2].upper()) if match else None
    if match is None or unit is None:
        raise UsageError(
            "must be a size, a whole number with KB, MB, GB, TB, KiB, MiB, GiB, TiB or nothing "
            f"after it, such as 500MB, got {text!r}",
            (name,),
        )
    return int(match[1]) * unit


def parse_share_or_size(name: str, text: str) -> str:
    """Return a share such as `0.1%` as it is, or the digits of a number of bytes.

    Args:
        name: The parameter.
        text: The share, or a size for `parse_size`.

    Raises:
        UsageError: `text` is neither.
    """
    return text if text.rstrip().endswith("%") else str(parse_size(name, text))


def parse_pairs(name: str, texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return pairs of NAME=VALUE; VALUE may contain more equals signs.

    Args:
        name: The parameter.
        texts: The pairs.

    Raises:
        UsageError: A pair has no equals sign, or nothing on one side of it.
    """
    pairs = [text.partition("=") for text in texts]
    for text, (key, _, value) in zip(texts, pairs, strict=True):
        if not (key and value):
            raise UsageError(f"must be NAME=VALUE such as en=data/en/*, got {text!r}", (name,))
    return tuple((key, value) for key, _, value in pairs)


def parse_weights(name: str, texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the pairs of lists such as `en=0.3,zh=2`; the weights stay texts.

    Args:
        name: The parameter.
        texts: The lists. A name may contain equals signs and commas.

    Raises:
        UsageError: A list ends in something other than a pair.
    """
    pairs = []
    for text in texts:
        pending: list[str] = []
        for chunk in text.split(","):
            pending.append(chunk)
            source, _, weight = ",".join(pending).rpartition("=")
            if "=" in chunk and source and weight:
                pairs.append((source, weight))
                pending = []
        if pending:
            raise UsageError(f"must be SOURCE=W such as en=0.3,zh=2, got {text!r}", (name,))
    return tuple(pairs)


def parse_allowed_special(
    name: str, texts: Sequence[str]
) -> Literal["none", "all"] | tuple[str, ...]:
    """Return `none`, `all`, or the tokens of lists such as `<a>,<b>`.

    Args:
        name: The parameter.
        texts: The lists.
    """
    if list(texts) in ([], ["none"]):
        return "none"
    if list(texts) == ["all"]:
        return "all"
    return tuple(token for text in texts for token in text.split(","))


def parse_separator(name: str, text: str) -> str:
    r"""Return a document separator with its escapes replaced.

    Args:
        name: The parameter.
        text: The separator, with the escapes `\n`, `\t`, `\r`, `\\` and `\xNN` (an ASCII character
            by its two hexadecimal digits). The word `file` stays as it is.

    Raises:
        UsageError: A backslash is followed by anything else.
    """

    def replace(match: re.Match[str]) -> str:
        escape = match[1]
        if escape in _SEPARATOR_ESCAPES:
            return _SEPARATOR_ESCAPES[escape]
        if len(escape) == 3 and int(escape[1:], 16) < 0x80:
            return chr(int(escape[1:], 16))
        raise UsageError(
            f"must have no escapes but \\n, \\t, \\r, \\\\ and \\x00 to \\x7f, got \\{escape}",
            (name,),
            "write \\\\ for a backslash, and other characters as themselves",
        )

    return re.sub(r"\\(x[0-9A-Fa-f]{2}|.|$)", replace, text, flags=re.DOTALL)


def parse_storage_options(name: str, text: str) -> Mapping[str, Mapping[str, Any]]:
    """Return storage options by protocol from JSON, or from `@` and a local file of JSON.

    Args:
        name: The parameter.
        text: A JSON object of objects, or `@FILE`. May have secrets, so no error quotes it.

    Returns:
        The options of each protocol's file system, by protocol.

    Raises:
        UsageError: `text` is anything else, or the file cannot be read.
    """
    if text.startswith("@"):
        try:
            text = Path(text[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8"
            raise UsageError(f"must be readable, got {text[1:]}: {reason}", (name,)) from None
    try:
        options: dict[str, dict[str, Any]] = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        # `from None`: the decoder's exception has the text.
        raise UsageError(f"is not valid JSON{where}", (name,)) from None
    require_storage_options(name, options)
    return options


def parse_ids(name: str, text: str) -> list[int]:
    """Return token ids, separated by white space or commas.

    Args:
        name: Where the ids are from: the parameter, or "standard input".
        text: The ids, in decimal.

    Raises:
        UsageError: One of them is not a whole number below 2^31; the error says which.
    """
    ids = []
    for position, word in enumerate(text.replace(",", " ").split(), start=1):
        if re.fullmatch(r"[0-9]{1,10}", word) is None or int(word) >= 2**31:
            raise UsageError(
                f"must be whole numbers from 0 to 2,147,483,647, got {word[:50]!r} as number "
                f"{position}",
                (name,),
            )
        ids.append(int(word))
    return ids
