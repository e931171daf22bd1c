"""Make the pictures of the docs: a terminal session, and the report of `evaluate` in a browser.

    pip install -e '.[docs]' && python scripts/make_pictures.py

The corpus is the one of the tutorial `compare`. The report needs Chromium on the path. Figures
depend on the version of Python, because its sources are the corpus.
"""

from __future__ import annotations

import contextlib
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
WIDTH = 110
SESSION = (
    "bpe-beam encode --tokenizer tokenizer --show 'for token in tokens: print(token)'",
    "bpe-beam diff small tokenizer",
    "bpe-beam evaluate --counts counts --tokenizer tokenizer --vocab-sizes 1000,4000,8000 "
    "--output sizes.csv",
)
MOST_LINES = 24
# Rich's own format names fonts by URL, which a reader's browser would fetch.
SVG = """<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font: {char_height}px/{line_height}px ui-monospace, monospace; }}
.{unique_id}-title {{ font: bold 18px sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        terminal(folder, PICTURES / "terminal.svg")
        report(folder, PICTURES / "report.png")


def prepare(folder: Path) -> None:
    """Make the corpus, the counts and two tokenizers of the tutorial."""
    page = (ROOT / "docs" / "tutorials" / "compare.md").read_text("utf-8")
    blocks = re.findall(r"^```(sh|python)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[:3]
    smaller = "bpe-beam train --counts counts --vocab-size 4000 --output small"
    for language, text in (*blocks, ("sh", smaller)):
        command = [sys.executable, "-c"] if language == "python" else ["bash", "-euc"]
        subprocess.run([*command, text], cwd=folder, check=True, capture_output=True)


def in_terminal(command: str, folder: Path) -> str:
    """Run a command as in a terminal of `WIDTH` columns; returns all it shows."""
    ours, its = pty.openpty()
    termios.tcsetwinsize(its, (60, WIDTH))
    ran = subprocess.Popen(["bash", "-c", command], cwd=folder, stdin=its, stdout=its, stderr=its)
    os.close(its)
    shown: list[bytes] = []
    with contextlib.suppress(OSError):  # the terminal's other end is closed
        while data := os.read(ours, 1 << 16):
            shown.append(data)
    os.close(ours)
    ran.wait()
    text = b"".join(shown).decode().replace("\r\n", "\n")
    return re.sub(r"[^\n]*\r|\x1b\[[0-9]*[JK]", "", text)


def terminal(folder: Path, target: Path) -> None:
    """Make the picture of a session."""
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True)
        for command in SESSION:
            lines = in_terminal(command, folder).rstrip().split("\n")
            console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
            console.print(Text.from_ansi("\n".join(lines[:MOST_LINES])))
            if len(lines) > MOST_LINES:
                console.print("...")
            console.print()
    target.write_text(console.export_svg(title="bpe-beam", code_format=SVG), "utf-8")


def report(folder: Path, target: Path) -> None:
    """Make the picture of the report's first screen."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("chromium must be on the path for the picture of the report")
    made = (
        "bpe-beam evaluate --counts counts --tokenizer small tokenizer "
        "--vocab-sizes tokenizer=1000,2000 --output report.html"
    )
    subprocess.run(["bash", "-euc", made], cwd=folder, check=True, capture_output=True)
    flags = ["--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=1280,1000"]
    page = (folder / "report.html").as_uri()
    subprocess.run([chromium, *flags, f"--screenshot={target}", page], check=True)


if __name__ == "__main__":
    main()
