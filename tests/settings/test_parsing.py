"""Values as people type them: sizes, integers, separators, ids, storage options."""

from __future__ import annotations

from pathlib import Path

import pytest

from bpe_beam.settings.parsing import (
    parse_allowed_special,
    parse_ids,
    parse_integer,
    parse_integers,
    parse_length,
    parse_separator,
    parse_size,
    parse_storage_options,
)

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("17", 17),
        ("5B", 5),
        ("8GB", 8_000_000_000),
        ("8 GB", 8_000_000_000),
        ("500mb", 500_000_000),
        ("1KB", 1000),
        ("2TB", 2 * 10**12),
        ("1KiB", 1024),
        ("3MiB", 3 << 20),
        ("1GiB", 1 << 30),
        ("1tib", 1 << 40),
        ("9007199254740993", 9007199254740993),  # no float holds it
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "GB", "1.5GB", "-1", "1XB", "1GBs", "1e9", "1_000", "٣", " 1"]
)
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="must be a size"):
        parse_size(text)


@pytest.mark.parametrize(
    "text", ["", "1.0", "8e3", "8_000", "0x10", "٣", "1 ", "9" * 21, "k", "0.5k"]
)
def test_what_is_no_integer(text: str) -> None:
    with pytest.raises(ValueError, match="must be a whole number"):
        parse_integer(text)


def test_lengths_are_written_in_full() -> None:
    assert parse_length("4096") == 4096
    for text in ("4k", "4K", "1M", "", "4_096"):
        with pytest.raises(ValueError, match="must be a number of tokens in full"):
            parse_length(text)


def test_integers() -> None:
    assert [parse_integer(text) for text in ("0", "-1", "007", "32000")] == [0, -1, 7, 32000]
    assert [parse_integer(text) for text in ("32k", "32K", "1M")] == [32000, 32000, 10**6]
    assert parse_integers(["32k,7", "1M"]) == (32000, 7, 10**6)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (r"\n\n", "\n\n"),
        (r"\t\r\\n", "\t\r\\n"),
        (r"\x1e", "\x1e"),
        (r"\x41\x7F", "A\x7f"),
        ("<|endoftext|>", "<|endoftext|>"),
        ("\n", "\n"),
        ("é\\n", "é\n"),
        ("file", "file"),
    ],
)
def test_separators(typed: str, meant: str) -> None:
    assert parse_separator(typed) == meant


@pytest.mark.parametrize("typed", ["\\", "a\\", r"\q", r"\x8", r"\xff", r"\x80", "\\\n"])
def test_unknown_escapes_are_refused(typed: str) -> None:
    with pytest.raises(ValueError, match="must have only the escapes"):
        parse_separator(typed)


def test_numbers_of_many_digits() -> None:
    """The message does not call them no whole numbers."""
    with pytest.raises(ValueError, match="must be a whole number of at most 20 digits, such as 32"):
        parse_integer("9" * 21)
    with pytest.raises(ValueError, match="tokens in full of at most 20 digits, such as 4096"):
        parse_length("9" * 21)
    with pytest.raises(ValueError, match="with commas between them, such as 16k,32k, got '16,000'"):
        parse_integers(["16,000"])


@pytest.mark.parametrize(
    ("typed", "tokens"),
    [
        ([], "none"),
        (["none"], "none"),
        (["all"], "all"),
        (["<a>,<b>", "<c>"], ("<a>", "<b>", "<c>")),
        ([r"\none"], ("none",)),
        ([r"\all,\none,x\none", r"\\none"], ("all", "none", r"x\none", r"\none")),
        ([r"a\,b,c", r"\,", "\\"], ("a,b", "c", ",", "\\")),
        (["none,all"], ("none", "all")),
    ],
)
def test_allowed_special(typed: list[str], tokens: str | tuple[str, ...]) -> None:
    assert parse_allowed_special(typed) == tokens


def test_storage_options() -> None:
    text = '{"s3": {"endpoint_url": "http://x", "anon": true}}'
    assert parse_storage_options(text) == {"s3": {"endpoint_url": "http://x", "anon": True}}


@pytest.mark.parametrize(
    "text", ['{"s3": hunter2}', '["hunter2"]', '{"s3": "hunter2"}', "[" * 99999]
)
def test_storage_options_are_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be options|is not valid JSON") as error:
        parse_storage_options(text)
    assert "hunter2" not in str(error.value)
    assert error.value.__cause__ is None


@pytest.mark.parametrize("typed", ["", "@"])
def test_empty_storage_options(typed: str, tmp_path: Path) -> None:
    (path := tmp_path / "options.json").touch()
    with pytest.raises(ValueError, match="is not valid JSON: it is empty"):
        parse_storage_options(f"{typed}{path}" if typed else typed)


def test_ids() -> None:
    assert parse_ids(" 1,2\n3 , 2147483647\t") == (1, 2, 3, 2**31 - 1)
    assert parse_ids("") == ()
    for text in ("1 2 x", "1 2 -3", "1 2 2147483648", "1 2 3.0", "1 2 ٣"):
        with pytest.raises(ValueError, match=r"must be .* as number 3"):
            parse_ids(text)
