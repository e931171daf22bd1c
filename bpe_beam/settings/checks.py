"""What settings have in common: conditions, and what to say when one does not hold."""

from __future__ import annotations

from bpe_beam.errors import UsageError


def require(condition: bool, message: str) -> None:
    """Raises UsageError with `message` unless `condition` holds."""
    if not condition:
        raise UsageError(message)


def require_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Refuses a value that is none of the choices."""
    require(value in choices, f"{name} must be one of {', '.join(choices)}, not {value!r}")


def require_text(name: str, value: str) -> None:
    """Refuses what is empty or cannot be written as UTF-8 (an argument of undecodable bytes)."""
    require(value != "", f"{name} must not be empty")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(f"{name} must be valid UTF-8, not {value!r}") from error


def require_normalizer(name: str) -> None:
    """Refuses what names no normalizer."""
    require_text("normalizer", name)
    from bpe_beam.tokenizer.normalizers import normalizer_from_name

    normalizer_from_name(name)


def require_pretokenizer(name: str) -> None:
    """Refuses what names no pre-tokenizer, and a pattern that is none."""
    require_text("pretokenizer", name)
    from bpe_beam.tokenizer.pretokenizers import check_pretokenizer_name

    check_pretokenizer_name(name)


def require_special_tokens(tokens: tuple[str, ...]) -> None:
    """Refuses special tokens that are empty, not UTF-8, or named twice."""
    for token in tokens:
        require_text("special_token", token)
    repeated = sorted({token for token in tokens if tokens.count(token) > 1})
    require(not repeated, f"special_token names {', '.join(map(repr, repeated))} more than once")


def require_allowed_special(allowed: str | tuple[str, ...]) -> None:
    """Refuses what is neither `none`, nor `all`, nor a tuple of tokens."""
    if isinstance(allowed, tuple):
        for token in allowed:
            require_text("allowed_special", token)
    else:
        require_choice("allowed_special", allowed, ("none", "all"))


def require_sources(field: str | None, patterns: tuple[tuple[str, str], ...]) -> None:
    """Refuses sources that cannot be told apart."""
    require(
        field is None or not patterns,
        "source_field and source both say which source a document has: give one of them",
    )
    if field is not None:
        require_text("source_field", field)
    for name, glob in patterns:
        require_text("the name of a source", name)
        require_text(f"the glob of the source {name!r}", glob)
    names = len({name for name, _ in patterns})
    require(names < 1000, f"source names {names:,} sources; at most 999 and the rest, other")
