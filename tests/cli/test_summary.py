"""The summary at the end of a job: aligned for people, JSON for programs."""

from __future__ import annotations

import pytest

from bpe_beam.cli.summary import for_people, format_summary
from bpe_beam.messages import format_bytes, format_seconds

pytestmark = pytest.mark.quick

SUMMARY = {
    "job": "tokenize",
    "output": "tokens/",
    "documents": 1234567,
    "text_bytes": 98765432,
    "seconds": 75.2,
    "bytes_per_second": 1313000,
    "bytes_per_token": 4.12345,
    "resumed": False,
    "rejects_by_reason": {"not_utf8": 3, "no_text_field": 1},
    "made": ["a.bin", "a.idx"],
    "speed": None,
    "settings": {},
    "next": ["bpe-beam verify tokens/"],
}


def test_for_people() -> None:
    assert format_summary("bpe-beam tokenize", SUMMARY) == (
        "bpe-beam tokenize\n"
        "  output             tokens/\n"
        "  documents          1,234,567\n"
        "  text bytes         98.8 MB (98,765,432 bytes)\n"
        "  seconds            1 min 15 s\n"
        "  bytes per second   1.31 MB/s\n"
        "  bytes per token    4.123\n"
        "  resumed            no\n"
        "  rejects by reason\n"
        "    not utf8         3\n"
        "    no text field    1\n"
        "  made               a.bin\n"
        "                     a.idx\n"
        "  settings           none\n"
        "next:\n"
        "  bpe-beam verify tokens/"
    )
    assert format_summary("title", {}) == "title"


def test_what_nobody_would_see_is_in_quotes() -> None:
    text = format_summary("title", {"made": ["  ", "", "a ", "\u3000", "a b"]})
    assert text.split("made  ")[1].split("\n") == [
        "'  '", *(8 * " " + name for name in ("''", "'a '", "'\\u3000'", "a b"))
    ]  # fmt: skip


def test_what_a_terminal_would_obey_is_written_out() -> None:
    text = format_summary("title", {"made": ["\x1b[2J", "a\nb", "é ok", "\x9b"]})
    assert text == "title\n  made  '\\x1b[2J'\n        'a\\nb'\n        é ok\n        '\\x9b'"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (1234, "1.23 kB"),
        (999_499, "999 kB"),
        (999_500, "1 MB"),
        (999_999, "1 MB"),
        (98_765_432, "98.8 MB"),
        (2**40, "1.1 TB"),
        (10**18, "1,000 PB"),
    ],
)
def test_bytes(count: int, text: str) -> None:
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.00 s"),
        (0.4242, "0.42 s"),
        (12.34, "12.3 s"),
        (59.99, "60.0 s"),
        (60, "1 min 0 s"),
        (3599.4, "59 min 59 s"),
        (3600, "1 h 0 min"),
        (11045, "3 h 4 min"),
    ],
)
def test_seconds(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


def test_many_dictionaries_are_a_table() -> None:
    """Twenty of them; names that a terminal would obey are quoted."""
    rows = {f"s{i:02}": {"documents": 1200, "text_bytes": 34567, "share": None} for i in range(23)}
    summary = {"sources": {"\x1b[2J": {"documents": 1}, **rows}}
    lines = format_summary("title", summary).splitlines()
    assert lines[:4] == [
        "title",
        "  sources       documents  text bytes",
        "    '\\x1b[2J'           1",
        "    s00             1,200     34.6 kB",
    ]
    assert len(lines) == 2 + 20 + 1
    assert lines[-1].strip() == "and 4 more"


def test_headings_take_several_lines_and_columns_without_values_none() -> None:
    rows = {
        "a": {"vocabulary_used_share": 0.5, "never_used": 1234, "unknown": None},
        "b": {"vocabulary_used_share": 1.0},
    }
    assert format_summary("title", {"tokenizers": {**rows, "c": 3}}).splitlines() == [
        "title",
        "              vocabulary",
        "  tokenizers  used share  never used",
        "    a                0.5       1,234",
        "    b                  1",
        "    c         3",
    ]


def test_headings_that_are_names_have_no_unit() -> None:
    rows = {"de": {"my_bytes": 3.5, "a\x1bb": 2.0}}
    lines = format_summary("title", {"bytes_per_token_by_source": rows}).splitlines()
    assert lines == [
        "title",
        "  bytes per token by source  my_bytes  'a\\x1bb'",
        "    de                            3.5         2",
    ]


def test_rounds_are_one_line() -> None:
    rounds = [{"round": number, "merges": 1234, "seconds": 1.5} for number in range(23)]
    assert format_summary("title", {"rounds": rounds}) == "title\n  rounds  23 (34.5 s)"
    assert format_summary("title", {"rounds": []}) == "title\n  rounds  0 (0.00 s)"


def test_people_see_what_they_need_at_the_end() -> None:
    """No figures of how it ran, nor of what is as it should be; but all others."""
    sources = {f"s{i}": {"documents": i} for i in range(9)}
    details = {"counters": {"a": 1}, "runner": "in process", "warnings": ["w"], "rejects": 0}
    shown = for_people({**SUMMARY, **details, "files_lost": 3, "sources": sources})
    assert format_summary("bpe-beam tokenize", shown, exact=False) == (
        "bpe-beam tokenize\n"
        "  output             tokens/\n"
        "  documents          1,234,567\n"
        "  text bytes         98.8 MB\n"
        "  bytes per token    4.123\n"
        "  resumed            no\n"
        "  rejects by reason\n"
        "    not utf8         3\n"
        "    no text field    1\n"
        "  made               a.bin\n"
        "                     a.idx\n"
        "  settings           none\n"
        "  files lost         3\n"
        "  sources            documents\n"
        "    s0                       0\n"
        "    s1                       1\n"
        "    s2                       2\n"
        "    s3                       3\n"
        "    s4                       4\n"
        "    and 4 more\n"
        "  seconds            1 min 15 s\n"
        "  bytes per second   1.31 MB/s\n"
        "next:\n"
        "  bpe-beam verify tokens/"
    )
    assert for_people({"rejects": 2}) == {"rejects": 2}


@pytest.mark.parametrize("times", [1, 10_000])
def test_bars_leave_room_for_their_figures(times: int) -> None:
    """A line fits a terminal of 80 columns; the longest bar is that of the greatest number."""
    rows = {
        "1 to 9": {"unique_words": 2270 * times, "words": 4406 * times},
        "10,000 to 99,999": {"unique_words": 1, "words": 1424},
    }
    lines = format_summary("title", {"words_by_count": rows}).splitlines()
    bars = [line.count("#") for line in lines]
    assert bars[-1] == 1
    assert bars[-2] == max(bars) > 5
    assert max(map(len, lines)) <= 80
    few = format_summary("title", {"tokens_by_characters": {"1": 3, "2": 24}}).splitlines()
    assert [line.count("#") for line in few[-2:]] == [3, 24]


def test_figures_that_a_dry_run_estimates_are_about() -> None:
    figures = {"files": 2, "documents": 1200, "seconds": 3.0, "storage_bytes": 5 * 10**6}
    shown = format_summary("count", {"dry_run": True, **figures})
    assert "documents      about 1,200\n" in shown
    assert "files          2\n" in shown
    assert shown.count("about ") == 3
    assert "about" not in format_summary("count", figures)
