"""Make the tables of docs/benchmarks.md and the README, and their plot, from a file of results.

    python benchmarks/report.py benchmarks/results/COMMIT.json

Writes what is between `<!-- results -->` and `<!-- end of results -->` in both pages, and
docs/benchmarks.svg. No figure there is typed by hand: a test compares the pages with the results.
It uses the standard library alone, so that equal results give equal files.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = "docs/benchmarks.md"
PLOT = "docs/benchmarks.svg"
BEGIN, END = "<!-- results -->\n", "<!-- end of results -->\n"
OURS, PEER = "bpe-beam", "gigatoken"
WHOLE = ("train", "tokenize")
LABELS = {
    "english": "English",
    "languages": "many languages",
    "help": "help in 12 languages",
    "chinese": "Chinese",
    "code": "C code",
}
COLORS = {"count": "#2a7f62", "tokenize": "#1f5fa8", "train": "#b5541c", "encode": "#6b4fa0"}

LARGE = 4_500_000_000
"""Bytes of a mixed corpus that has a row of its own."""

Entry = dict[str, Any]


class Results:
    """A file of results, as benchmarks/compare.py writes it."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content
        self.entries: list[Entry] = content["rows"]

    def find(self, task: str, corpus: str, contestant: str, tokenizer: str | None) -> Entry:
        """Return the entry of a contestant in a row; one without runs if there is none.

        Args:
            task: The task.
            corpus: The corpus.
            contestant: The contestant.
            tokenizer: The tokenizer.
        """
        key = {"task": task, "corpus": corpus, "contestant": contestant, "tokenizer": tokenizer}
        matching = (e for e in self.entries if all(e[name] == key[name] for name in key))
        return next(matching, {"status": "not measured", "runs": []})

    def rows(self, task: str) -> list[tuple[str, str | None]]:
        """Return the different (corpus, tokenizer) of a task, in their order."""
        found = ((e["corpus"], e["tokenizer"]) for e in self.entries if e["task"] == task)
        return list(dict.fromkeys(found))

    def different(self, name: str, task: str) -> list[str]:
        """Return the different values of a key in the entries of a task, in their order.

        Args:
            name: The key.
            task: The task.
        """
        return list(dict.fromkeys(e[name] for e in self.entries if e["task"] == task))

    def most_runs(self) -> int:
        """Return the number of runs of a contestant that has all of them."""
        return max((len(entry["runs"]) for entry in self.entries), default=0)

    def cell(self, entry: Entry, shown: Callable[[], str]) -> str:
        """Return the cell of an entry: its figures, or why it has none.

        Args:
            entry: The entry.
            shown: Returns its figures.
        """
        count = len(entry["runs"])
        if not count:
            return status(entry)
        few = f" ({count} run{'s' * (count > 1)})" if count < self.most_runs() else ""
        return shown() + few

    def size(self, corpus: str) -> int:
        """Return the bytes of a corpus's files."""
        return int(self.content["corpora"][corpus]["bytes"])


def median(entry: Entry, kind: str, phase: str = "all") -> float:
    """Return the median of an entry's runs, NaN without runs.

    Args:
        entry: The entry.
        kind: wall or cpu, for seconds; peak, for bytes.
        phase: The phase of the seconds.
    """
    values = [run[kind] if kind == "peak" else run[kind][phase] for run in entry["runs"]]
    return statistics.median(values) if values else math.nan


def speed(entry: Entry, phase: str) -> float:
    """Return MB of text per CPU second.

    Args:
        entry: The entry of a task in one process.
        phase: The phase.
    """
    seconds = median(entry, "cpu", phase)
    return entry["runs"][0]["bytes"] / seconds / 1e6 if entry["runs"] else math.nan


def status(entry: Entry) -> str:
    """Return why an entry has no runs, in short: the file of results has the whole reason."""
    short = entry["status"].partition(":")[0]
    return "" if short in ("ok", "not measured") else str(short)


def label(corpus: str) -> str:
    """Return a corpus's name for people."""
    return LABELS.get(corpus, corpus.replace("mixed-", "mixed text, ") + " MB")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown.

    Args:
        header: The titles of the columns.
        rows: The cells.
    """
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def whole_process(results: Results, task: str) -> str:
    """Return the table of train or tokenize: seconds and peak memory.

    Args:
        results: The results.
        task: The task.
    """
    contestants = results.different("contestant", task)

    def cell(entry: Entry) -> str:
        seconds, peak = median(entry, "wall"), median(entry, "peak")
        return results.cell(entry, lambda: f"{seconds:.2f} s, {peak / 1e6:,.0f} MB")

    rows = []
    for corpus, tokenizer in results.rows(task):
        if corpus not in LABELS and results.size(corpus) < LARGE:
            continue  # of the curves over size
        found = [results.find(task, corpus, name, tokenizer) for name in contestants]
        size = f"{results.size(corpus) / 1e6:,.0f} MB"
        title = label(corpus).partition(",")[0] + (", WordPiece" if tokenizer == "bert" else "")
        rows.append([title, size, *map(cell, found)])
    return table(["corpus", "JSON Lines", *contestants], rows)


def one_process(results: Results, task: str, phases: Sequence[str]) -> str:
    """Return the table of encode or decode: MB of text per CPU second in each phase.

    Args:
        results: The results.
        task: The task.
        phases: The phases to show.
    """
    contestants = results.different("contestant", task)

    sizes = {
        name: max(
            (
                run["bytes"]
                for entry in results.entries
                if entry["task"] == task and entry["contestant"] == name
                for run in entry["runs"]
            ),
            default=0,
        )
        for name in contestants
    }
    whole = max(sizes.values(), default=0)

    def title(name: str) -> str:
        return f"{name}, {sizes[name] / 1e6:.0f} MB" if 0 < sizes[name] < whole / 2 else name

    def cell(entry: Entry) -> str:
        figures = (f"{speed(entry, phase):,.0f}" for phase in phases)
        return results.cell(entry, lambda: " / ".join(figures))

    rows = []
    for corpus, tokenizer in results.rows(task):
        found = [results.find(task, corpus, name, tokenizer) for name in contestants]
        rows.append([str(tokenizer), label(corpus), *map(cell, found)])
    return table(["tokenizer", "corpus", *map(title, contestants)], rows)


def loading(results: Results) -> str:
    """Return the table of CPU milliseconds for loading a tokenizer and for the first text."""
    contestants = results.different("contestant", "encode")

    def cell(entry: Entry) -> str:
        if not entry["runs"]:
            return ""
        load, first = (1e3 * median(entry, "cpu", phase) for phase in ("load", "first"))
        return f"{load:,.0f} + {first:,.0f} ms"

    corpus = results.different("corpus", "encode")[0]
    rows = [
        [name, *(cell(results.find("encode", corpus, who, name)) for who in contestants)]
        for name in results.different("tokenizer", "encode")
    ]
    return table(["tokenizer", *contestants], rows)


def curve(results: Results, task: str, contestant: str) -> list[tuple[float, float, float]]:
    """Return the (GB, seconds per GB, MB at the peak) of the mixed corpora, by size.

    Args:
        results: The results.
        task: The task.
        contestant: The contestant.
    """
    found = []
    for corpus, tokenizer in results.rows(task):
        entry = results.find(task, corpus, contestant, tokenizer)
        if corpus.startswith("mixed-") and entry["runs"]:
            size = results.size(corpus) / 1e9
            seconds = median(entry, "wall")
            found.append((size, seconds / size, median(entry, "peak") / 1e6))
    return sorted(found)


def sizes(results: Results, task: str) -> str:
    """Return the table of a curve over size.

    Args:
        results: The results.
        task: The task.
    """
    found = [
        (results.size(corpus) / 1e9, results.find(task, corpus, OURS, tokenizer))
        for corpus, tokenizer in results.rows(task)
        if corpus.startswith("mixed-")
    ]
    measured = sorted((pair for pair in found if pair[1]["runs"]), key=lambda pair: pair[0])
    start, start_cpu = measured[0][0], median(measured[0][1], "cpu")
    rows = []
    for size, entry in measured:
        wall, cpu = median(entry, "wall"), median(entry, "cpu")
        more = f"{(cpu - start_cpu) / (size - start):,.2f}" if size > start else ""
        peak = f"{median(entry, 'peak') / 1e6:,.0f} MB"
        shown = [f"{wall:,.2f} s", f"{wall / size:,.2f}", f"{cpu / size:,.2f}", more, peak]
        rows.append([f"{size * 1e3:,.0f} MB", *shown])
    header = ["JSON Lines", task, "s per GB", "CPU s per GB", "after start-up", "peak"]
    return table(header, rows)


def ratios(results: Results) -> list[tuple[str, str, float]]:
    """Return (task, row, times the peer's speed) of all rows that have both."""
    found = []
    for task in WHOLE:
        for corpus, tokenizer in results.rows(task):
            ours, theirs = (results.find(task, corpus, n, tokenizer) for n in (OURS, PEER))
            ratio = median(theirs, "wall") / median(ours, "wall")
            if corpus in LABELS or results.size(corpus) >= LARGE:
                found.append((task, f"{task}, {label(corpus)}", ratio))
    for phase in ("cold", "warm"):
        for corpus in results.different("corpus", "encode"):
            ours, theirs = (results.find("encode", corpus, n, "gpt2") for n in (OURS, PEER))
            ratio = speed(ours, phase) / speed(theirs, phase)
            found.append(("encode", f"encode {phase}, {label(corpus)}", ratio))
    return [(task, name, ratio) for task, name, ratio in found if not math.isnan(ratio)]


def head(results: Results) -> str:
    """Return what the results depend on, as a paragraph."""
    content, host = results.content, results.content["machine"]
    loads = [run["load"] for entry in results.entries for run in entry["runs"]] or [0.0]
    versions = ", ".join(f"{n} {v}" for n, v in sorted(content["versions"].items()))
    return (
        f"Commit {content['commit']}; {host['cpu']}, {host['cores']} cores, "
        f"{host['memory_gb']} GB, {host['system']}, Python {host['python']}. Medians of "
        f"{results.most_runs()} runs unless another number is given; whole processes have "
        f"{content['settings']['threads']} threads. Load of the machine: "
        f"{statistics.median(loads):.1f} (median). {versions}.\n"
    )


def page(results: Results) -> str:
    """Return the results for the page of docs."""
    parts = [head(results)]
    titles = {"train": "### Training", "tokenize": "### Tokenizing"}
    for task in WHOLE:
        if results.different("corpus", task):
            parts.append(f"{titles[task]}\n\n{whole_process(results, task)}")
    if results.different("corpus", "encode"):
        shown = one_process(results, "encode", ("cold", "warm"))
        parts.append(f"### Encoding\n\nMB per CPU second, cold / warm.\n\n{shown}")
        parts.append(f"### Loading\n\n{loading(results)}")
    if results.different("corpus", "decode"):
        shown = one_process(results, "decode", ("all",))
        parts.append(f"### Decoding\n\nMB per CPU second.\n\n{shown}")
    curves = [task for task in ("count", "tokenize", "train") if curve(results, task, OURS)]
    if curves:
        shown = "\n".join(sizes(results, task) for task in curves)
        note = "After start-up: additional CPU seconds for each GB above the smallest text."
        parts.append(f"### By size\n\n{note}\n\n{shown}")
    return "\n".join(parts)


def spread(results: Results, task: str) -> str:
    """Return the slowest and the fastest row of a task as times the peer's speed."""
    measured = [ratio for name, _, ratio in ratios(results) if name == task]
    return f"{min(measured):.1f} to {max(measured):.1f} times" if measured else "not measured"


def summary(results: Results) -> str:
    """Return the results for the README: one sentence, a short table, and the plot."""
    contestants = (OURS, PEER, "tokenizers-0.23")

    def cell(entry: Entry) -> str:
        seconds, peak = median(entry, "wall"), median(entry, "peak")
        return f"{seconds:.2f} s, {peak / 1e6:,.0f} MB" if entry["runs"] else status(entry)

    largest = max(results.rows("tokenize"), key=lambda row: results.size(row[0]))
    shown = [
        *(("train", *row) for row in results.rows("train") if row == ("english", None)),
        *(("tokenize", *row) for row in results.rows("tokenize") if row[0] == "english"),
        ("tokenize", *largest),
    ]
    rows = []
    for task, corpus, tokenizer in dict.fromkeys(shown):
        size = f"{results.size(corpus) / 1e6:,.0f} MB"
        title = f"{task}, {label(corpus).partition(',')[0]}"
        entries = [results.find(task, corpus, name, tokenizer) for name in contestants]
        rows.append([title, size, *map(cell, entries)])
    sentence = (
        f"**{OURS} trains at {spread(results, 'train')} the speed of {PEER}, another tokenizer "
        f"package, and tokenizes at {spread(results, 'tokenize')}**, on two threads, from the "
        f"start of Python to the files on disk:\n"
    )
    more = "[How it was measured, and all contestants](docs/benchmarks.md)\n"
    picture = f"![Speed compared with {PEER}; time and memory by size]({PLOT})\n"
    header = ["", "JSON Lines", *contestants]
    return f"{sentence}\n{table(header, rows)}\n{more}\n{picture}"


# ---- the plot ----


def text(x: float, y: float, content: str, anchor: str = "start", size: int = 12) -> str:
    """Return a text element.

    Args:
        x: Its position.
        y: Its baseline.
        content: The text.
        anchor: start, middle or end.
        size: Of the font.
    """
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">'
        f"{escape(content)}</text>"
    )


def line(
    points: Sequence[tuple[float, float]], color: str, dashed: bool = False, width: int = 2
) -> str:
    """Return a polyline.

    Args:
        points: Its points.
        color: Its color.
        dashed: Whether it is dashed.
        width: Its width.
    """
    shown = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dashes = ' stroke-dasharray="5 4"' if dashed else ""
    return (
        f'<polyline points="{shown}" fill="none" stroke="{color}" stroke-width="{width}"{dashes}/>'
    )


def bars(found: list[tuple[str, str, float]], left: float, top: float, width: float) -> list[str]:
    """Return the bars of ratios, with a line at 1.

    Args:
        found: What `ratios` returns.
        left: Where the bars begin.
        top: Where the panel begins.
        width: Of the bars' panel.
    """
    scale = width / max([1.2, *(ratio for *_, ratio in found)])
    made = [text(left, top - 10, f"times the speed of {PEER}", size=14)]
    bottom = top + 20 * len(found)
    made.append(line([(left + scale, top), (left + scale, bottom)], "#555", dashed=True))
    for i, (task, name, ratio) in enumerate(found):
        y = top + 20 * i
        made.append(text(left - 6, y + 13, name, "end"))
        made.append(
            f'<rect x="{left:.1f}" y="{y + 2:.1f}" width="{ratio * scale:.1f}" height="15" '
            f'fill="{COLORS[task]}"/>'
        )
        made.append(text(left + ratio * scale + 4, y + 13, f"{ratio:.2f}"))
    return made


def size_label(power: int) -> str:
    """Return 10 to a power in GB, with its unit."""
    return f"{10**power} GB" if power >= 0 else f"{10 ** (power + 3)} MB"


def panel(results: Results, which: int, title: str, left: float, top: float) -> list[str]:
    """Return the curves over size, both axes logarithmic.

    Args:
        results: The results.
        which: 1 for seconds per GB, 2 for memory.
        title: The title.
        left: Where the panel begins.
        top: Where it begins.
    """
    width, height = 330.0, 190.0
    curves = {
        (task, name): [(point[0], point[which]) for point in curve(results, task, name)]
        for task in ("count", "tokenize", "train")
        for name in (OURS, PEER)
    }
    points = [point for found in curves.values() for point in found]
    if not points:
        return []
    low_x, high_x = (math.log10(edge(x for x, _ in points)) for edge in (min, max))
    low_y, high_y = (edge(math.log10(y) for _, y in points) for edge in (min, max))
    low_y, high_y = math.floor(low_y), math.ceil(high_y)

    def at(x: float, y: float) -> tuple[float, float]:
        right = (math.log10(x) - low_x) / (high_x - low_x or 1)
        up = (math.log10(y) - low_y) / (high_y - low_y or 1)
        return left + right * width, top + height - up * height

    made = [text(left, top - 10, title, size=14)]
    for power in range(low_y, high_y + 1):
        x, y = at(10**low_x, 10.0**power)
        made += [
            line([(x, y), (x + width, y)], "#ddd"),
            text(x - 6, y + 4, f"{10**power:g}", "end"),
        ]
    for power in range(math.ceil(low_x - 0.05), math.floor(high_x + 0.05) + 1):
        x, _ = at(10.0**power, 10.0**low_y)
        made.append(text(x, top + height + 16, size_label(power), "middle"))
    for (task, name), found in curves.items():
        if found:
            made.append(line([at(*point) for point in found], COLORS[task], dashed=name == PEER))
    for i, task in enumerate(("count", "tokenize", "train")):
        x = left + 110 * i
        made.append(line([(x, top + height + 34), (x + 18, top + height + 34)], COLORS[task]))
        made.append(text(x + 24, top + height + 38, task))
    made.append(text(left, top + height + 58, f"dashed: {PEER}"))
    return made


def plot(results: Results) -> str:
    """Return the plot, as SVG: bars against the peer, and the curves over size."""
    found = ratios(results)
    made = bars(found, left=250, top=40, width=260)
    curves = panel(results, 1, "seconds per GB, by size", left=620, top=40)
    curves += panel(results, 2, "MB of memory at the peak, by size", left=620, top=360)
    made += curves
    height = max(60 + 20 * len(found), 640 if curves else 0)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 980 {height}" '
        'font-family="sans-serif" fill="#222">\n'
        f'<rect width="980" height="{height}" fill="#fff"/>\n' + "\n".join(made) + "\n</svg>\n"
    )


def replaced(page_text: str, made: str) -> str:
    """Return a page with other results.

    Args:
        page_text: The page.
        made: What comes between its marks.
    """
    before, _, rest = page_text.partition(BEGIN)
    return f"{before}{BEGIN}\n{made}\n{END}{rest.partition(END)[2]}"


def pages(results: Results, root: Path) -> dict[str, str]:
    """Return the new contents of the files of the tree that have results, by their paths.

    Args:
        results: The results.
        root: The tree.
    """
    made = {PAGE: page(results), "README.md": summary(results)}
    changed = {name: replaced((root / name).read_text("utf-8"), made[name]) for name in made}
    return {**changed, PLOT: plot(results)}


def main() -> None:
    """Write the pages and the plot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    results = Results(json.loads(arguments.results.read_text()))
    for name, content in pages(results, arguments.root).items():
        (arguments.root / name).write_text(content, "utf-8")


if __name__ == "__main__":
    main()
