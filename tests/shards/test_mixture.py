"""The options of a mixture: as typed, from a file, and what they ask of each source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from bpe_beam.errors import UsageError
from bpe_beam.shards.mixture import (
    MixedSource,
    MixtureOptions,
    SourcePart,
    options_of,
    parse_tokens,
    read_mixture,
)
from bpe_beam.storage import Storage

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("7", 7), ("32k", 32_000), ("500M", 5 * 10**8), ("1.5B", 1_500_000_000), ("2T", 2 * 10**12)],
)
def test_numbers_of_tokens(text: str, tokens: int) -> None:
    assert parse_tokens(text) == tokens


@pytest.mark.parametrize(
    "text", ["", "-1", "1.5", "1e9", "10b", "1 k", "ten", "1.0001k", "9999999T"]
)
def test_what_is_no_number_of_tokens(text: str) -> None:
    with pytest.raises(UsageError, match="tokens must be a whole number of tokens"):
        parse_tokens(text)


def parts(**values: Any) -> dict[str, SourcePart]:
    return options_of(values).parts(["web", "code", "math"])


def test_shares_are_rounded_up() -> None:
    """So no source vanishes, and a larger mixture has at least as much of each."""
    asked = parts(tokens=100, share={"web": 0.6, "code": 0.399, "math": 0.001})
    assert asked == {"code": SourcePart(40), "math": SourcePart(1), "web": SourcePart(60)}
    shares = {"web": 7, "code": 2, "math": 1}
    before = dict.fromkeys(shares, 0)
    for tokens in range(1, 60):
        targets = {name: part.target for name, part in parts(tokens=tokens, share=shares).items()}
        assert all(before[name] <= target for name, target in targets.items())
        assert tokens <= sum(targets.values()) < tokens + len(shares)
        before = targets


def test_amounts_of_all_sources_and_of_some() -> None:
    asked = parts(tokens="1k", share="web=3,code=1", skip_tokens="400", max_epochs="2,code=9")
    assert asked == {"code": SourcePart(250, 100, 9), "web": SourcePart(750, 300, 2)}
    asked = parts(tokens_of={"web": "1k"}, skip_tokens={"web": 5}, max_epochs=3)
    assert asked == {"web": SourcePart(1000, 5, 3)}


def test_one_source_needs_no_share() -> None:
    assert options_of({"tokens": 9}).parts(["web"]) == {"web": SourcePart(9)}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "tokens and tokens_of are both missing"),
        ({"tokens": 5}, "share is missing"),
        ({"tokens": 5, "tokens_of": {"web": 5}}, "exclude each other"),
        ({"tokens_of": {"web": 5}, "share": {"web": 1}}, "share has no effect"),
        ({"tokens": 5, "share": {"weba": 1}}, "did you mean web"),
        ({"tokens": 5, "share": {"web": 0}}, "above 0, got '0' for web"),
        ({"tokens": 5, "share": {"web": -1}}, "above 0, got '-1' for web"),
        ({"tokens": 5, "share": "web"}, "must be SOURCE=VALUE"),
        ({"tokens_of": "5"}, "must be SOURCE=VALUE"),
        ({"tokens_of": {"web": 5}, "max_epochs": 0}, "from 1 to 1,000,000, got '0'"),
        (
            {"tokens_of": {"web": 5}, "max_epochs": {"code": 2}},
            "sources of the mixture, got 'code'",
        ),
        ({"tokens_of": {"web": 5}, "seed": 2**32}, "seed must be a whole number from 0"),
        ({"tokens_of": {"web": 5}, "duplicates": "drp"}, "did you mean drop"),
        (
            {"tokens_of": {"web": 5}, "duplicates": "drop", "identity": "id"},
            "must be auto or tokens",
        ),
        ({"token": 5}, "did you mean tokens"),
    ],
)
def test_wrong_options(values: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parts(**values)


def test_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mixture.yaml"
    file.write_text("tokens: 10B\nshare: {web: 0.6, code: 0.4}\nmax_epochs: 2\nseed: 5\n")
    options = read_mixture(Storage(), str(file))
    assert options == MixtureOptions(
        tokens=10**10, share=(("web", "0.6"), ("code", "0.4")), max_epochs=(("", 2),), seed=5
    )
    file.write_text('tokens: 5\nshare: {"lang=en": 0.6, zh: 0.4}\n')
    assert read_mixture(Storage(), str(file)).share == (("lang=en", "0.6"), ("zh", "0.4"))
    replaced = options.replaced_by(MixtureOptions(tokens=7))
    assert (replaced.tokens, replaced.share) == (7, options.share)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("token: 5", "line 1: token must be one of tokens, .*did you mean tokens"),
        ("- tokens", "must be a mapping"),
        ("share: {web: 1, web: 2}", "line 1: web is repeated"),
        ("share: {web: {a: 1}}", "line 1: share.web must be a text, a number"),
        ("share: {web: }", "line 1: share.web has no value"),
        ("tokens: {web: 5}", "tokens must be a whole number"),
        ("tokens: []", "line 1: tokens must be one value, got 0"),
        ("share: {web: 1, code: []}", "line 1: share.code has no value"),
        ("{}", "must have options, got none in"),
        ("seed: 1\ntokens_of: {web: 5, code: x}", "line 2: tokens_of must be a whole number"),
    ],
)
def test_wrong_files(tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "mixture.yaml"
    file.write_text(content)
    with pytest.raises(UsageError, match=said):
        read_mixture(Storage(), str(file))


@pytest.mark.parametrize("name", ["target", "max_epochs", "tokens"])
def test_a_manifest_has_no_empty_source(name: str) -> None:
    values = {"target": 1, "max_epochs": 1, "documents": 1, "tokens": 1, "identity": "id"}
    msgspec.convert(values, MixedSource)
    with pytest.raises(msgspec.ValidationError, match=rf">= 1 - at `\$\.{name}`"):
        msgspec.convert({**values, name: 0}, MixedSource)
