"""Checks of settings: each raises one UsageError that names the parameter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bpe_beam.corpus.limits import Limit
from bpe_beam.errors import UsageError, require, require_choice


def require_not_empty(name: str, value: str | tuple[str, ...]) -> None:
    """Refuse an empty text, and no texts or an empty one among several.

    Args:
        name: The parameter.
        value: Its value.

    Raises:
        UsageError: The value is empty.
    """
    require(bool(value) and all(value), "must not be empty", name)


def require_utf8(name: str, value: str) -> None:
    """Refuse a text that cannot be written as UTF-8, such as an argument of undecodable bytes.

    Args:
        name: The parameter.
        value: Its value.

    Raises:
        UsageError: The text has a lone surrogate.
    """
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(f"must be valid UTF-8, got {value!r}", (name,)) from error


def require_text(name: str, value: str | tuple[str, ...]) -> None:
    """Refuse an empty text and one that is not UTF-8; of several texts, each.

    Args:
        name: The parameter.
        value: Its value.

    Raises:
        UsageError: A text is empty or not UTF-8.
    """
    for text in (value,) if isinstance(value, str) else value:
        require_not_empty(name, text)
        require_utf8(name, text)


def require_normalizer(name: str, value: str) -> None:
    """Refuse a text that does not name a normalizer.

    Args:
        name: The parameter.
        value: Its value.

    Raises:
        UsageError: Lists the names.
    """
    require_text(name, value)
    from bpe_beam.tokenizer.normalizers import normalizer_from_name

    normalizer_from_name(value)


def require_pretokenizer(name: str, value: str) -> None:
    """Refuse a text that does not name a pre-tokenizer, and a malformed pattern.

    Args:
        name: The parameter.
        value: Its value.

    Raises:
        UsageError: Lists the names, or explains what is wrong with the pattern.
    """
    require_text(name, value)
    from bpe_beam.tokenizer.pretokenizers import pretokenizer_from_name

    pretokenizer_from_name(value)


def require_special_tokens(name: str, tokens: tuple[str, ...]) -> None:
    """Refuse special tokens that are empty, not UTF-8, or repeated.

    Args:
        name: The parameter.
        tokens: Its value.

    Raises:
        UsageError: Names the token.
    """
    require_text(name, tokens)
    repeated = sorted({token for token in tokens if tokens.count(token) > 1})
    require(not repeated, f"must not repeat {', '.join(map(repr, repeated))}", name)


def require_allowed_special(name: str, allowed: str | tuple[str, ...]) -> None:
    """Refuse a value that is neither `none`, nor `all`, nor a tuple of tokens.

    Args:
        name: The parameter.
        allowed: Its value.

    Raises:
        UsageError: The value is something else.
    """
    if isinstance(allowed, tuple):
        require_text(name, allowed)
    else:
        require_choice(name, allowed, ("none", "all"))


def require_sources(name: str, sources: tuple[tuple[str, str], ...]) -> None:
    """Refuse sources without a name or a glob, and too many of them.

    Args:
        name: The parameter.
        sources: Its value, (name, glob) pairs.

    Raises:
        UsageError: Names the source.
    """
    for pair in sources:
        require_text(name, pair)
    names = len({source for source, _ in sources})
    require(names < 1000, f"must name at most 999 sources, got {names:,}", name)


def require_limit(name: str, limit: str) -> None:
    """Refuse a limit that is neither a number nor a share of at most 100%.

    Args:
        name: The parameter.
        limit: Its value, such as `10` or `0.1%`.

    Raises:
        UsageError: The limit is something else.
    """
    Limit.parse(limit, name)


def require_storage_options(name: str, value: Any) -> None:
    """Refuse a value that is not a mapping of mappings; it may contain secrets and is not quoted.

    Args:
        name: The parameter.
        value: Its value.

    Raises:
        UsageError: The value is something else.
    """
    require(
        isinstance(value, Mapping)
        and all(isinstance(k, str) and isinstance(v, Mapping) for k, v in value.items()),
        'must be options by protocol, such as {"s3": {"endpoint_url": "http://localhost:9000"}}',
        name,
    )
