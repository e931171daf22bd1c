"""Mixtures: how many tokens to take of each source, and what the manifest of a mixture says.

`docs/mixtures.md` has the definition. The options are the same on the command line, in a YAML file
of a mixture and from Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from bpe_beam.errors import UsageError, require, require_choice
from bpe_beam.messages import did_you_mean, list_few
from bpe_beam.shards.shard_rows import MAX_SEED
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.json_file import Count

DUPLICATES = ("keep", "drop", "drop_within_sources")
"""What to do with documents that have equal tokens."""

IDENTITIES = ("auto", "id", "tokens")
"""What the key of a document is made of."""

MAX_EPOCHS = 1_000_000
MAX_TOKENS = 10**18

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
_TOKENS = re.compile(r"([0-9]{1,19}(?:\.[0-9]{1,12})?)([kKMBT]?)")
_SHARE = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,40})?")
_LEAVE_OUT = "leave a source out to take nothing of it"

Amounts = tuple[tuple[str, int], ...]  # pairs of a source and an amount; "" means all sources


class SourcePart(Struct, frozen=True):
    """The part of a source that a mixture takes, in tokens: `target` of them after `skip`."""

    target: Annotated[int, Meta(ge=1)]
    skip: Count = 0
    max_epochs: Annotated[int, Meta(ge=1)] = 1

    @property
    def end(self) -> int:
        """The token after the last one, counted from the first epoch on."""
        return self.skip + self.target


class MixtureOptions(Struct, frozen=True):
    """The options of a mixture."""

    tokens: int | None = None
    share: tuple[tuple[str, str], ...] = ()
    tokens_of: Amounts = ()
    max_epochs: Amounts = ()
    skip_tokens: Amounts = ()
    seed: int | None = None
    duplicates: str | None = None
    identity: str | None = None

    def replaced_by(self, other: MixtureOptions) -> MixtureOptions:
        """Return the same options, but for those that the other sets."""
        changed = {
            name: value
            for name in MixtureOptions.__struct_fields__
            if (value := getattr(other, name)) not in (None, ())
        }
        return msgspec.structs.replace(self, **changed)

    def parts(self, sources: Sequence[str]) -> dict[str, SourcePart]:
        """Return what to take of each source, sorted by name; `sources` are all that exist."""
        require(
            self.duplicates in (None, "keep") or self.identity != "id",
            "must be auto or tokens where duplicates are dropped, got id",
            "identity",
        )
        targets = self._targets(sources)
        for name in targets:
            if name not in sources:
                shown = f"the sources are {list_few(sorted(sources), 10)}"
                raise UsageError(
                    f"must name sources of the input, got {name!r}; {shown}"
                    f"{did_you_mean(name, sources)}",
                    ("tokens_of" if self.tokens_of else "share",),
                )
        skips = _amount_of_each("skip_tokens", self.skip_tokens, targets)
        if (skipped := skips.pop("", 0)) != 0:
            total = sum(targets.values())
            skips = {name: ceil(skipped * share / total) for name, share in targets.items()} | skips
        epochs = _amount_of_each("max_epochs", self.max_epochs, targets)
        return {
            name: SourcePart(
                ceil(targets[name]), skips.get(name, 0), epochs.get(name, epochs.get("", 1))
            )
            for name in sorted(targets)
        }

    def shares(self, sources: Sequence[str]) -> dict[str, Fraction]:
        """Return the share of each source in the tokens of the mixture."""
        parts = self.parts(sources)
        total = sum(part.target for part in parts.values())
        return {name: Fraction(part.target, total) for name, part in parts.items()}

    def _targets(self, sources: Sequence[str]) -> dict[str, Fraction]:
        """Return the tokens of each source before they are rounded up."""
        require(
            bool(self.tokens_of) != (self.tokens is not None),
            "exclude each other" if self.tokens_of else "are both missing",
            "tokens",
            "tokens_of",
            remedy="give {tokens} with {share}, or {tokens_of} alone",
        )
        require(self.tokens != 0, "must be at least 1, got 0", "tokens")
        if self.tokens_of:
            nothing = next((name for name, tokens in self.tokens_of if not tokens), None)
            require(
                nothing is None,
                f"must be numbers above 0, got 0 for {nothing}",
                "tokens_of",
                remedy=_LEAVE_OUT,
            )
            require(not self.share, "has no effect with tokens of each source", "share")
            return {name: Fraction(tokens) for name, tokens in self.tokens_of}
        share = self.share
        if not share and len(sources) == 1:
            share = ((sources[0], "1"),)
        require(bool(share), "is missing", "share", remedy="give the share of each source")
        shares = {name: Fraction(value) for name, value in share}
        total, tokens = sum(shares.values()), self.tokens or 0
        return {name: tokens * value / total for name, value in shares.items()}


def _amount_of_each(
    option: str, amounts: Amounts, targets: Mapping[str, Fraction]
) -> dict[str, int]:
    unknown = next((name for name, _ in amounts if name and name not in targets), None)
    require(
        unknown is None,
        f"must name sources of the mixture, got {unknown!r}; they are "
        f"{list_few(sorted(targets), 10)}",
        option,
    )
    return dict(amounts)


# ---- options as texts ----


def parse_tokens(text: str, name: str = "tokens") -> int:
    """Return a number of tokens, such as `10B`, `1.5B`, `500M` or `32768`."""
    match = _TOKENS.fullmatch(text)
    tokens = Decimal(match[1]) * _UNITS[match[2].upper()] if match else Decimal(-1)
    if not 0 <= tokens <= MAX_TOKENS or tokens != int(tokens):
        raise UsageError(
            f"must be a whole number of tokens such as 10B, 1.5B or 500M, got {text!r}", (name,)
        )
    return int(tokens)


def parse_share(texts: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return pairs of a source and its share, from lists such as `web=0.6,code=0.4`."""
    pairs = _pairs(texts, "share", named=True)
    for name, text in pairs:
        if _SHARE.fullmatch(text) is None or not Fraction(text):
            raise UsageError(
                f"must be decimal numbers above 0, got {text!r} for {name}",
                ("share",),
                _LEAVE_OUT,
            )
    return pairs


def parse_amounts(texts: Iterable[str], name: str, *, named: bool = False) -> Amounts:
    """Return pairs of a source and its tokens, from lists such as `web=6B,code=4B`.

    Unless all must be `named`, one amount may be without a source.
    """
    return tuple((key, parse_tokens(text, name)) for key, text in _pairs(texts, name, named))


def parse_epochs(texts: Iterable[str]) -> Amounts:
    """Return pairs of a source and its maximum epochs; without a source, of all others."""
    pairs = _pairs(texts, "max_epochs", named=False)
    for _, text in pairs:
        if not text.isdecimal() or not 1 <= int(text[:9]) <= MAX_EPOCHS:
            raise UsageError(
                f"must be whole numbers from 1 to {MAX_EPOCHS:,}, got {text!r}", ("max_epochs",)
            )
    return tuple((key, int(text)) for key, text in pairs)


def _pairs(texts: Iterable[str], name: str, named: bool) -> tuple[tuple[str, str], ...]:
    pairs: list[tuple[str, str]] = []
    for item in (item for text in texts for item in text.split(",")):
        key, equals, value = item.rpartition("=")
        if not value or bool(equals) != bool(key) or (named and not key):
            raise UsageError(f"must be SOURCE=VALUE,..., got {item!r}", (name,))
        if any(key == known for known, _ in pairs):
            what = f"{key!r}" if key else "a value without a source"
            raise UsageError(f"must not repeat {what}", (name,))
        pairs.append((key, value))
    return tuple(pairs)


PARSERS: Mapping[str, Any] = {
    "tokens": lambda texts: parse_tokens(_only("tokens", texts)),
    "share": parse_share,
    "tokens_of": lambda texts: parse_amounts(texts, "tokens_of", named=True),
    "max_epochs": parse_epochs,
    "skip_tokens": lambda texts: parse_amounts(texts, "skip_tokens"),
    "seed": lambda texts: parse_seed(_only("seed", texts)),
    "duplicates": lambda texts: _chosen("duplicates", DUPLICATES, _only("duplicates", texts)),
    "identity": lambda texts: _chosen("identity", IDENTITIES, _only("identity", texts)),
}
"""Functions that return the value of an option by a list of texts."""


def _only(name: str, texts: Sequence[str]) -> str:
    require(len(texts) == 1, f"must be one value, got {len(texts)}", name)
    return texts[0]


def parse_seed(text: str) -> int:
    """Return a seed."""
    if not text.isdecimal() or int(text[:12]) > MAX_SEED:
        raise UsageError(f"must be a whole number from 0 to {MAX_SEED}, got {text!r}", ("seed",))
    return int(text)


def _chosen(name: str, choices: tuple[str, ...], text: str) -> str:
    require_choice(name, text, choices)
    return text


def options_of(values: Mapping[str, Any]) -> MixtureOptions:
    """Return options by their names; amounts by source are mappings, or as they are typed."""
    options = {}
    for name, value in values.items():
        if name not in PARSERS:
            names = ", ".join(PARSERS)
            raise UsageError(
                f"must have the keys {names}, got {name!r}{did_you_mean(name, PARSERS)}",
                ("mixture",),
            )
        options[name] = PARSERS[name](texts_of(value))
    return MixtureOptions(**options)


def texts_of(value: Any) -> list[str]:
    """Return the value of an option as typed texts."""
    if isinstance(value, Mapping):
        return [f"{name}={_typed(amount)}" for name, amount in value.items()]
    several = value if isinstance(value, (list, tuple)) else [value]
    return [_typed(each) for each in several]


def _typed(value: Any) -> str:
    """Return a value as it is typed; a number without an exponent."""
    return f"{Decimal(repr(value)):f}" if isinstance(value, float) else str(value)


def read_mixture(storage: Storage, url: str) -> MixtureOptions:
    """Return the options in a YAML file of a mixture; a source is a key of a mapping there.

    Raises:
        UsageError: The file is no YAML, or has another key or a wrong value.
    """
    from bpe_beam.storage.yaml_file import pairs, read_mapping  # slow to import

    where = f"mixture {redact(url)}"
    values = {}
    for key, node, line in read_mapping(storage, url, "mixture"):
        if key not in PARSERS:
            names = ", ".join(PARSERS)
            near = did_you_mean(key, PARSERS)
            raise UsageError(f"{where}, line {line}: {key} must be one of {names}{near}")
        texts = pairs(node, f"{where}, line {line}: {key}")
        try:
            values[key] = PARSERS[key](texts)
        except UsageError as error:
            raise UsageError(f"{where}, line {line}: {key} {error.problem}") from None
    require(bool(values), f"must have options, got none in {redact(url)}", "mixture")
    return MixtureOptions(**values)


# ---- what a manifest says ----


Positive = Annotated[int, Meta(ge=1, le=2**63 - 1)]


class MixedSource(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A source of a mixture: what was asked of it, and the documents that it had."""

    target: Positive
    max_epochs: Positive
    documents: Count  # of one epoch, without those for validation and dropped duplicates
    tokens: Positive  # the tokens of these documents
    identity: Literal["id", "tokens"]  # what the keys of its documents are made of
    skip: Count = 0
    dropped: Count = 0  # documents that were left out since others have the same tokens


class Mixture(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The mixture that the documents of a folder are."""

    seed: Count
    sources: dict[str, MixedSource]
    duplicates: Literal["keep", "drop", "drop_within_sources"] = "keep"
    identity: Literal["auto", "id", "tokens"] = "auto"
    cut: Count = 0  # tokens at the end that fill no sequence
