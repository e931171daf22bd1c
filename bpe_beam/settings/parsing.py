r"""Values of options: parsers of texts as people type them, and checks.

Each raises BadValueError. No size or number passes through a float.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from bpe_beam.corpus.read_settings import FieldOfFiles, pairs_of
from bpe_beam.shards.formats import TRAINER_COLUMNS
from bpe_beam.storage.names import local_path

_UNITS = {"": 1, "B": 1}
for _power, _letter in enumerate("KMGT", start=1):
    _UNITS |= {f"{_letter}B": 1000**_power, f"{_letter}IB": 1024**_power}
_DIGITS = "[0-9]{1,20}"
_MULTIPLES = {"": 1, "K": 10**3, "M": 10**6}
_SEPARATOR_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}


class BadValueError(ValueError):
    """An option cannot have a value.

    The message says what the value must be, without the option's name, which the option adds.
    """


def parse_integer(text: str) -> int:
    """Return a whole number: ASCII digits, or digits with `k` (thousand) or `M` (million)."""
    match = re.fullmatch(rf"(-?{_DIGITS})([kKmM]?)", text)
    if match is None:
        raise BadValueError(f"must be a whole number{_of_digits(text)}32000 or 32k, got {text!r}")
    return int(match[1]) * _MULTIPLES[match[2].upper()]


def parse_truth(text: str) -> bool:
    """Return true or false."""
    if text.lower() not in ("true", "false"):
        raise BadValueError(f"must be true or false, got {text!r}")
    return text.lower() == "true"


def parse_length(text: str) -> int:
    """Return a number of tokens. `k` is refused, since 4k usually means 4,096."""
    if re.fullmatch(rf"-?{_DIGITS}", text) is None:
        raise BadValueError(
            f"must be a number of tokens in full{_of_digits(text, ', ')}4096, got {text!r}"
        )
    return int(text)


def _of_digits(text: str, default: str = " ") -> str:
    """Return the words of a message before its example; with the limit, if digits are too many."""
    return (" of at most 20 digits, " if text.isdecimal() else default) + "such as "


def parse_integers(texts: Sequence[str]) -> tuple[int, ...]:
    """Return the whole numbers of lists such as `16k,32k`; see `parse_integer`."""
    for text in texts:
        if re.search(",0", text):  # 16,000
            raise BadValueError(
                f"must be whole numbers with commas between them, such as 16k,32k, got {text!r}"
            )
    return tuple(parse_integer(number) for text in texts for number in text.split(","))


def parse_size(text: str) -> int:
    """Return a number of bytes: a whole number, and a unit of 1,000 (MB) or 1,024 (MiB) or none.

    Fractions are refused, since they would need rounding.
    """
    match = re.fullmatch(rf"({_DIGITS}) ?([A-Za-z]*)", text)
    unit = _UNITS.get(match[2].upper()) if match else None
    if match is None or unit is None:
        raise BadValueError(
            "must be a size, a whole number alone or followed by KB, MB, GB, TB, KiB, MiB, GiB or "
            f"TiB, such as 500MB, got {text!r}"
        )
    return int(match[1]) * unit


def parse_share_or_size(text: str) -> str:
    """Return a share such as `0.1%` as it is, or the digits of a number of bytes."""
    return text if text.rstrip().endswith("%") else str(parse_size(text))


def parse_pairs(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return pairs of NAME=VALUE; VALUE may contain more equals signs."""
    pairs = [text.partition("=") for text in texts]
    for text, (key, _, value) in zip(texts, pairs, strict=True):
        if not (key and value):
            raise BadValueError(f"must be NAME=VALUE such as en=data/en/*, got {text!r}")
    return tuple((key, value) for key, _, value in pairs)


def parse_field(texts: Sequence[str]) -> FieldOfFiles:
    """Return the name of a field, or pairs of NAME=FIELD; FIELD alone is for all other files.

    A field whose name contains an equals sign is written `*=FIELD`.
    """
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, field = text.partition("=")
        key, value = (name, field) if equals else ("*", text)
        if not (key and value):
            raise BadValueError(f"must be FIELD, or NAME=FIELD such as code=content, got {text!r}")
        if key in pairs:
            of = "" if key == "*" else f" of {key}"
            raise BadValueError(f"must be given once{of}, got {pairs[key]!r} and {value!r}")
        pairs[key] = value
    others = pairs.pop("*", None)
    if not pairs and others is not None:
        return others
    return (*pairs.items(), *([("*", others)] if others is not None else []))


def check_field(field: FieldOfFiles) -> None:
    """Refuse an empty name, and one that is not UTF-8."""
    for pair in pairs_of(field):
        check_text(pair)


def parse_weights(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the pairs of lists such as `en=0.3,zh=2`; the weights stay texts.

    A name may contain equals signs and commas.
    """
    pairs = []
    for text in texts:
        pending: list[str] = []
        for item in text.split(","):
            pending.append(item)
            source, _, weight = ",".join(pending).rpartition("=")
            if "=" in item and source and weight:
                pairs.append((source, weight))
                pending = []
        if pending:
            raise BadValueError(f"must be SOURCE=W such as en=0.3,zh=2, got {text!r}")
    return tuple(pairs)


def parse_allowed_special(texts: Sequence[str]) -> Literal["none", "all"] | tuple[str, ...]:
    r"""Return `none`, `all`, or the tokens of lists such as `<a>,<b>`.

    Write `\,` for a comma in a token, and `\none` and `\all` for tokens of these names.
    """
    if list(texts) in ([], ["none"]):
        return "none"
    if list(texts) == ["all"]:
        return "all"
    tokens = [token for text in texts for token in re.split(r"(?<!\\),", text)]
    return tuple(re.sub(r"^\\(\\*(?:none|all))$|\\(,)", r"\1\2", token) for token in tokens)


def parse_columns(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the names of lists such as `labels,attention_mask`, in the order of shards; or none.

    Unknown names remain, for the check of the option.
    """
    names = dict.fromkeys(name for text in texts for name in text.split(","))
    if list(names) == ["none"]:
        return ()
    known = [name for name in TRAINER_COLUMNS if name in names]
    return (*known, *(name for name in names if name not in known))


def parse_separator(text: str) -> str:
    r"""Return a document separator with its escapes replaced: `\n`, `\t`, `\r`, `\\` and `\xNN`.

    `\xNN` is an ASCII character by its two hexadecimal digits. The word `file` stays as it is.
    """

    def replace(match: re.Match[str]) -> str:
        escape = match[1]
        if escape in _SEPARATOR_ESCAPES:
            return _SEPARATOR_ESCAPES[escape]
        if len(escape) == 3 and int(escape[1:], 16) < 0x80:
            return chr(int(escape[1:], 16))
        raise BadValueError(
            f"must have only the escapes \\n, \\t, \\r, \\\\ and \\x00 to \\x7f, got \\{escape}; "
            "write \\\\ for a backslash, and other characters as themselves"
        )

    return re.sub(r"\\(x[0-9A-Fa-f]{2}|.|$)", replace, text, flags=re.DOTALL)


def parse_storage_options(text: str) -> Mapping[str, Mapping[str, Any]]:
    """Return storage options by protocol from JSON, or from `@` and a local file of JSON.

    They may have secrets, so no error quotes them.
    """
    if text.startswith("@"):
        try:
            text = local_path(text[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8"
            raise BadValueError(f"must be readable, got {text[1:]}: {reason}") from None
    if not text.strip():
        raise BadValueError("is not valid JSON: it is empty")
    try:
        options: Mapping[str, Mapping[str, Any]] = json.loads(
            text, object_pairs_hook=_without_repeated
        )
    except BadValueError:
        raise
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        # `from None`: the decoder's exception has the text.
        raise BadValueError(f"is not valid JSON{where}") from None
    check_storage_options(options)
    return options


def _without_repeated(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    """Return a JSON object; refuse a repeated name."""
    if len(dict(pairs)) < len(pairs):
        raise BadValueError("must not repeat a name in a JSON object")
    return dict(pairs)


def parse_ids(text: str) -> tuple[int, ...]:
    """Return token ids in decimal, separated by white space or commas."""
    words = text.replace(",", " ").split()
    for position, word in enumerate(words, start=1):
        if re.fullmatch(r"[0-9]{1,10}", word) is None or int(word) >= 2**31:
            raise BadValueError(
                f"must be a whole number from 0 to 2,147,483,647, got {word[:50]!r} as number "
                f"{position}"
            )
    return tuple(map(int, words))


def check_not_empty(value: str | tuple[str, ...]) -> None:
    """Refuse an empty text, and no texts or an empty one among several."""
    if not (value and all(value)):
        raise BadValueError("must not be empty")


def check_utf8(text: str) -> None:
    """Refuse a text that cannot be written as UTF-8, such as an argument of undecodable bytes."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise BadValueError(f"must be valid UTF-8, got {text!r}") from None


def check_text(value: str | tuple[str, ...]) -> None:
    """Refuse an empty text and one that is not UTF-8; of several texts, each."""
    for text in (value,) if isinstance(value, str) else value:
        check_not_empty(text)
        check_utf8(text)


def check_storage_options(options: Any) -> None:
    """Refuse a value that is not a mapping of mappings; it is not quoted, see above."""
    if not isinstance(options, Mapping) or not all(
        isinstance(name, str) and isinstance(each, Mapping) for name, each in options.items()
    ):
        raise BadValueError(
            'must be options by protocol, such as {"s3": {"endpoint_url": "http://localhost:9000"}}'
        )
