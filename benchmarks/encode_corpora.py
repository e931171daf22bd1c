"""Corpora for benchmarks/encode.py: text that packages of Debian carry, up to 60 MB of a kind.

    python benchmarks/encode_corpora.py FOLDER [--kinds code multilingual ...]

Downloads packages with `apt-get download` (after `apt-get update`), takes the text out of their
documentation or sources, and writes FOLDER/KIND-tune.jsonl.gz and FOLDER/KIND-report.jsonl.gz, of
different packages: tune with the one, report with the other. A document is a file. Equal lines of a
corpus count once, so that no repeated text makes a cache look better than it is.
"""

from __future__ import annotations

import argparse
import gzip
import html
import json
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

MOST_BYTES = 60_000_000
LEAST_LINE = 20
"""Characters; shorter lines may repeat: a brace is no boilerplate."""

_PROSE = (".html", ".htm", ".xhtml", ".txt", ".rst", ".md", ".pod", ".adoc")
_CODE = (".rs", ".go", ".c", ".h", ".py", ".js", ".s", ".sh")
_HELP = "libreoffice-help-"
_TUNED = ("de", "es", "it", "pl", "tr", "ko", "cs", "fi", "hu", "hi", "ja", "da")
_REPORTED = ("fr", "pt", "ru", "el", "vi", "nl", "sv", "ca", "eu", "sl", "zh-tw", "km")

KINDS: dict[str, tuple[tuple[str, ...], list[str], list[str]]] = {
    "english": (
        _PROSE,
        ["perl-doc", "git-doc", "nodejs-doc", "cmake-doc", "python3.11-doc", "postgresql-doc-15"],
        ["linux-doc-6.1", "racket-doc"],
    ),
    "multilingual": (
        _PROSE,
        [
            f"{_HELP}{code}"
            for code in ["de", "es", "it", "pl", "tr", "ko", "cs", "fi", "hu", "hi", "ja", "da"]
        ],
        [
            f"{_HELP}{code}"
            for code in ["fr", "pt", "ru", "el", "vi", "nl", "sv", "ca", "eu", "sl", "zh-tw", "km"]
        ],
    ),
    "chinese": (
        _PROSE,
        [f"{_HELP}zh-cn", "debian-edu-doc-zh-cn", "lilypond-doc-html-zh"],
        [f"{_HELP}zh-tw", "kicad-doc-zh", "linuxcnc-doc-zh-cn", "gimp-help-zh-cn"],
    ),
    "code": (_CODE, ["rust-src"], ["golang-1.19-src"]),
}
"""The suffixes of a kind's files, and the packages to tune with and to report with."""


def files_of(package: str, suffixes: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of a package's files, gunzipped.

    Args:
        package: The package's name.
        suffixes: The ends of the names of files to take.
    """
    with tempfile.TemporaryDirectory() as folder:
        download = ["apt-get", "download", "-q", "-o", "APT::Sandbox::User=root", package]
        subprocess.run(download, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        (deb,) = Path(folder).glob("*.deb")
        unpack = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE)
        with tarfile.open(fileobj=unpack.stdout, mode="r|") as files:
            for member in files:
                name = member.name.removesuffix(".gz")
                if not member.isfile() or not name.endswith(suffixes):
                    continue
                file = files.extractfile(member)
                content = b"" if file is None else file.read()
                yield member.name, gzip.decompress(content) if name != member.name else content
        unpack.wait()


def text_of(name: str, content: bytes) -> str:
    """Return the text of a file, without the tags of HTML."""
    text = content.decode("utf-8", "replace")
    if ".htm" not in name and ".xhtml" not in name:
        return text
    text = re.sub(r"(?s)<(script|style|head)\b.*?</\1>|<!--.*?-->", " ", text)
    text = re.sub(r"</(p|div|li|h\d|tr|pre|dd|dt)>|<br\b[^>]*>", "\n", text)
    return html.unescape(re.sub(r"<[^>]*>", "", text))


def without_repeats(text: str, seen: set[int]) -> str:
    """Return a text without the long lines that came before.

    Args:
        text: The text.
        seen: The hashes of the lines so far; grows.
    """
    lines = []
    for line in text.splitlines():
        key = hash(line.strip())
        if len(line) >= LEAST_LINE and key in seen:
            continue
        seen.add(key)
        if line.strip() or (lines and lines[-1]):
            lines.append(line.rstrip())
    return "\n".join(lines)


def write_corpus(path: Path, packages: list[str], suffixes: tuple[str, ...]) -> int:
    """Write a corpus. Returns the bytes of its text.

    Args:
        path: The file.
        packages: The packages; each gets an equal part of what is left of MOST_BYTES.
        suffixes: The ends of the names of files to take.
    """
    seen: set[int] = set()
    total = 0
    with gzip.open(path, "wt", compresslevel=1) as out:
        for number, package in enumerate(packages):
            limit = total + (MOST_BYTES - total) // (len(packages) - number)
            for name, content in files_of(package, suffixes):
                text = without_repeats(text_of(name, content), seen)
                if len(text) < LEAST_LINE:
                    continue
                out.write(json.dumps({"id": name, "source": package, "text": text}) + "\n")
                total += len(text.encode())
                if total >= limit:
                    break
            print(f"{path.name}: {package}: {total / 1e6:.1f} MB", flush=True)
    return total


def main() -> None:
    """Write the corpora of the kinds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for kind in arguments.kinds:
        suffixes, tune, report = KINDS[kind]
        write_corpus(arguments.folder / f"{kind}-tune.jsonl.gz", tune, suffixes)
        write_corpus(arguments.folder / f"{kind}-report.jsonl.gz", report, suffixes)


if __name__ == "__main__":
    main()
