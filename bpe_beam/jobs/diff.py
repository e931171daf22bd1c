"""The diff job: the differences between two tokenizers, on stdout."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import msgspec
from msgspec import Struct, structs

from bpe_beam.engines.run import workers_of
from bpe_beam.evaluation import differences
from bpe_beam.evaluation.counted import CountedParts
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.folders.folder_checks import short_names
from bpe_beam.jobs.output import write_json
from bpe_beam.messages import and_more
from bpe_beam.progress import Progress
from bpe_beam.settings.diff import DiffSettings
from bpe_beam.storage import Storage
from bpe_beam.terminal import Terminal, visible
from bpe_beam.tokenizer.tokenizer import Tokenizer

_FEW = 10
"""The number of tokens, ids and merges that people see."""

_MAX_PARTS = 30
"""The number of parts and added tokens that people see."""

_INEXACT = (
    "the tokenizer splits text differently than the counts: each counted word is encoded as a "
    "separate text"
)


class DiffSummary(Struct, frozen=True):
    """The summary of `diff`: the number of differences; `other_words` is None without counts."""

    job: str
    a: str
    b: str
    same: bool
    warnings: list[str] | None
    parts: int
    tokens_only_a: int
    tokens_only_b: int
    other_ids: int
    other_scores: int
    merges_only_a: int
    merges_only_b: int
    other_words: int | None
    seconds: float


def run(settings: DiffSettings, progress: Progress) -> DiffSummary:
    """Write the differences of two tokenizers to stdout, and return their numbers."""
    started = time.monotonic()
    storage = Storage(settings.run.storage_options)
    a, b = (Tokenizer.from_file(path, storage=storage) for path in (settings.a, settings.b))
    first, second = short_names((settings.a, settings.b))
    pair = differences.Pair(Vocabulary(a), Vocabulary(b), (first, second))
    result = differences.differences(pair)
    words, warnings = None, []
    if settings.counts is not None:
        counted = CountedParts.of_folder(storage, settings.counts, workers_of(settings.run))
        with progress.stage("diff", len(counted.parts), "parts") as stage:
            on_part = partial(stage.advance, 1)
            words = differences.word_differences(pair, counted, top=settings.top, on_part=on_part)
        exact = zip(pair.names, (words.exact_a, words.exact_b), strict=True)
        warnings = [f"{name}: {_INEXACT}" for name, is_exact in exact if not is_exact]
    same = result.same and (words is None or words.other_words == 0)
    if settings.format == "json":
        report: dict[str, object] = {"same": same, **result.as_json()}
        report["words"] = msgspec.to_builtins(words)
        write_json(report, "-", {})
    else:
        for line in _lines(result, words, Terminal(sys.stdout)):
            print(line)
    return DiffSummary(
        job="diff",
        a=first,
        b=second,
        same=same,
        warnings=warnings or None,
        parts=len(result.parts),
        tokens_only_a=len(result.tokens.only_a),
        tokens_only_b=len(result.tokens.only_b),
        other_ids=len(result.ids),
        other_scores=result.other_scores,
        merges_only_a=len(result.merges.only_a),
        merges_only_b=len(result.merges.only_b),
        other_words=None if words is None else words.other_words,
        seconds=round(time.monotonic() - started, 3),
    )


# ---- text ----


def _lines(
    result: differences.Differences, words: differences.WordDifferences | None, terminal: Terminal
) -> Iterator[str]:
    names = (result.a.name, result.b.name)
    for sign, style, one in (("-", "red", result.a), ("+", "green", result.b)):
        figures = f"{one.vocab_size:,} tokens, {one.merges:,} merges, {one.fingerprint[:12]}"
        yield from _painted(terminal, f"{sign} {one.name}: {figures}", style)
    if result.same:
        yield "no part, token, id or merge differs"
    if result.parts:
        yield terminal.paint("parts", "bold")
        parts = list(_numbered_as_one(result.parts))
        for row in parts[:_MAX_PARTS]:
            yield from terminal.wrap(visible(row.part), indent="  ")
            yield from _both(terminal, "    ", [row.a], [row.b])
        yield from _more(parts, limit=_MAX_PARTS)
    yield from _token_lines(result, terminal)
    if result.ids:
        heading = f"ids: {len(result.ids):,} common tokens have two ids"
        yield from _painted(terminal, heading, "bold")
        rows = [(f"id in {names[0]}", f"id in {names[1]}", "token")]
        rows += [(str(row.a), str(row.b), visible(row.token)) for row in result.ids[:_FEW]]
        yield from terminal.table(rows, right=(0, 1), styles=("red", "green"), indent="  ")
        yield from _more(result.ids)
    if result.other_scores:
        heading = f"scores: {result.other_scores:,} common tokens have two"
        yield from _painted(terminal, heading, "bold")
    yield from _merge_lines(result, terminal)
    if words is not None:
        yield from _word_lines(words, names, terminal)


def _numbered_as_one(
    parts: list[differences.PartDifference],
) -> Iterator[differences.PartDifference]:
    """Yield the parts; a run of parts with equal differences and names, except numbers, is one.

    Published tokenizers have hundreds of reserved tokens.
    """

    def but_for_numbers(row: differences.PartDifference) -> tuple[str, str, str]:
        return re.sub("[0-9]+", "0", row.part), row.a, row.b

    for _, alike in groupby(parts, but_for_numbers):
        first, *others = alike
        also = f" and {len(others):,} more with other numbers" if others else ""
        yield structs.replace(first, part=first.part + also)


def _token_lines(result: differences.Differences, terminal: Terminal) -> Iterator[str]:
    tokens = result.tokens
    if tokens.only_a or tokens.only_b:
        by_bytes = ", compared by their bytes" if tokens.compared_by == "bytes" else ""
        heading = (
            f"tokens: {tokens.common:,} in both{by_bytes}, {len(tokens.only_a):,} only in "
            f"{result.a.name}, {len(tokens.only_b):,} only in {result.b.name}"
        )
        yield from _painted(terminal, heading, "bold")
        rows = tokens.only_a, tokens.only_b
        yield from _both(terminal, "  ", *rows, lambda row: f"{row.id} {row.token}")


def _merge_lines(result: differences.Differences, terminal: Terminal) -> Iterator[str]:
    merges = result.merges
    if merges.only_a or merges.only_b or not merges.same_order:
        order = "" if merges.same_order else ", in another order"
        heading = (
            f"merges: the first {merges.equal_first:,} are equal; {merges.common:,} in "
            f"both{order}, {len(merges.only_a):,} only in {result.a.name}, "
            f"{len(merges.only_b):,} only in {result.b.name}"
        )
        yield from _painted(terminal, heading, "bold")
        rows = merges.only_a, merges.only_b
        yield from _both(terminal, "  ", *rows, lambda row: f"{row.rank} {row.left} + {row.right}")


def _word_lines(
    words: differences.WordDifferences, names: tuple[str, str], terminal: Terminal
) -> Iterator[str]:
    if not words.other_words:
        yield from terminal.wrap(f"words: all {words.unique_words:,} are encoded equally")
        return
    yield from _painted(
        terminal,
        f"words: {words.other_unique_words:,} of {words.unique_words:,} are encoded differently, "
        f"{words.other_words / words.words:.2%} of all {words.words:,} occurrences",
        "bold",
    )
    change = (words.tokens_b - words.tokens_a) / words.tokens_a if words.tokens_a else 0.0
    tokens = f"tokens: {words.tokens_a:,} and {words.tokens_b:,} ({change:+.2%})"
    yield from terminal.wrap(tokens, indent="  ")
    rows = [("count", "word", *names)]
    rows += [
        (f"{row.count:,}", repr(row.word), visible(" ".join(row.a)), visible(" ".join(row.b)))
        for row in words.most_frequent
    ]
    styles = ("", "", "red", "green")
    yield from terminal.table(rows, right=(0,), styles=styles, indent="  ")
    hidden = words.other_unique_words - len(words.most_frequent)
    if hidden:
        yield f"  {and_more(hidden)}"


def _both(
    terminal: Terminal,
    indent: str,
    only_a: Sequence[Any],
    only_b: Sequence[Any],
    text: Callable[[Any], str] = str,
) -> Iterator[str]:
    """Yield the first lines of `only_a`, then of `only_b`."""
    for sign, style, rows in (("-", "red", only_a), ("+", "green", only_b)):
        for row in rows[:_FEW]:
            yield from _painted(terminal, f"{sign} {visible(text(row))}", style, indent)
        yield from _more(rows, indent)


def _painted(terminal: Terminal, text: str, style: str, indent: str = "") -> Iterator[str]:
    """Yield a text in a style, on lines that fit the terminal."""
    for line in terminal.wrap(text, indent=indent):
        yield terminal.paint(line, style)


def _more(rows: Sequence[object], indent: str = "  ", limit: int = _FEW) -> Iterator[str]:
    if len(rows) > limit:
        yield f"{indent}{and_more(len(rows) - limit)}"
