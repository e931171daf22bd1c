"""The compression, format and encoding of a file of the corpus, by its first bytes and its name.

The content takes precedence over the name; it is decompressed, whatever the name is. Files that are
passed over are recognised by their names alone.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable

from bpe_beam.corpus.formats import DEFAULT_INPUT_FORMAT, INPUT_FORMATS
from bpe_beam.corpus.formats.interface import InputFormat
from bpe_beam.corpus.formats.interface import input_format as format_named
from bpe_beam.corpus.streams import first_decompressed
from bpe_beam.corpus.streams.decompressed import is_skippable
from bpe_beam.errors import UsageError

HEAD_BYTES = 4 << 10
"""The number of first bytes, after decompression, that show the format and the encoding."""

COMPRESSIONS = ("none", "gzip", "zstd", "bz2", "xz", "lzma", "lz4")
_STORED_HEADS = (HEAD_BYTES, 64 << 10, 1 << 20, 5 << 20)
"""The stored bytes that are read of a compressed file until they show some of its content: a block
of zstd has up to 128 KiB, of bzip2 900 kB, of LZ4 4 MiB."""

_SHORT_HEAD = 16

# A block or the end of bzip2: "BZh" alone could be text.
_BZIP2_BLOCKS = (b"\x31\x41\x59\x26\x53\x59", b"\x17\x72\x45\x38\x50\x90")
_COMPRESSED_ENDINGS = (".gz", ".gzip", ".zst", ".zstd", ".bz2", ".xz", ".lzma", ".lz4")
_LZ4_FRAME = b"\x04\x22\x4d\x18"
_COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\x00": "xz",
    _LZ4_FRAME: "lz4",
}
_MAX_LZMA_BYTES = 1 << 48
_UNPACK = "which is not read; unpack it first"
_RECOMPRESS = "which is not read; compress it by gzip or zstd instead"
_CONVERT = "which is not read; write it as Parquet or JSON Lines"
_NO_TEXT = "which has no text"
_REFUSED: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", f"is a ZIP archive, {_UNPACK}"),
    (b"PK\x05\x06", "is a ZIP archive without files"),
    (b"7z\xbc\xaf\x27\x1c", f"is a 7z archive, {_UNPACK}"),
    (b"Rar!\x1a\x07", f"is a RAR archive, {_UNPACK}"),
    (b"\x1f\x9d", f"is compressed by compress (.Z), {_RECOMPRESS}"),
    (b"LZIP\x01", f"is compressed by lzip, {_RECOMPRESS}"),
    (b"\x89LZO\x00\r\n\x1a\n", f"is compressed by lzop, {_RECOMPRESS}"),
    (b"\xff\x06\x00\x00sNaPpY", f"is compressed by Snappy, {_RECOMPRESS}"),
    (b"\x02\x21\x4c\x18", f"is LZ4 in its legacy form (lz4 -l), {_RECOMPRESS}"),
    (b"Obj\x01", f"is Avro, {_CONVERT}"),
    (b"SQLite format 3\x00", f"is a database of SQLite, {_CONVERT}"),
    (b"\x93NUMPY", f"is an array of NumPy, {_CONVERT}"),
    (b"\x89HDF\r\n\x1a\n", f"is HDF5, {_CONVERT}"),
    (b"\x80\x04\x95", f"is a Python pickle, {_CONVERT}"),
    (b"\x80\x05\x95", f"is a Python pickle, {_CONVERT}"),
    (b"%PDF-", f"is PDF, {_CONVERT}"),
    (b"\x89PNG\r\n\x1a\n", f"is a PNG image, {_NO_TEXT}"),
    (b"\xff\xd8\xff", f"is a JPEG image, {_NO_TEXT}"),
    (b"\x7fELF", f"is a program, {_NO_TEXT}"),
    (
        b"version https://git-lfs.github.com/spec/",
        "is a pointer of Git LFS; run git lfs pull first",
    ),
)
"""The first bytes of files that are refused, and the message."""

_REFUSED_WORDS: tuple[tuple[bytes, str], ...] = (
    (b"FEA1", "is Feather version 1, which is not read; write it as version 2 or as Parquet"),
    (b"ORC", f"is ORC, {_CONVERT}"),
    (b"PARE", "is encrypted Parquet, which is not read; write it without encryption"),
)
"""The same for first bytes that a text may have, too; in other files control characters follow."""

_REFUSED_ENDINGS = {
    ".br": f"is compressed by Brotli, {_RECOMPRESS}",
    ".snappy": f"is compressed by Snappy, {_RECOMPRESS}",
    ".lzo": f"is compressed by LZO, {_RECOMPRESS}",
    ".lzo_deflate": f"is compressed by LZO, {_RECOMPRESS}",
}
"""The same by the end of the name, where the first bytes show nothing."""

_PART = re.compile(r"\.(?:part)?[-_]?[0-9]{1,5}$")
"""The end of the name of a file that is one of several parts, or an older version."""

_HEADER_BYTES = 512  # of tar
_CONTROLS = frozenset(range(32)) - frozenset(b"\t\n\r\f")


def compression_of(head: bytes) -> str:
    """Return the compression of a file by its first bytes: one of COMPRESSIONS.

    Skippable frames may come before frames of zstd and of LZ4. If they are longer than the first
    bytes, the result is zstd.
    """
    if is_skippable(head):
        while is_skippable(head):
            head = head[8 + int.from_bytes(head[4:8], "little") :]
        return "lz4" if head.startswith(_LZ4_FRAME) else "zstd"
    for start, compression in _COMPRESSED.items():
        if head.startswith(start):
            return compression
    if head.startswith(b"BZh") and head[4:10] in _BZIP2_BLOCKS:
        return "bz2"
    return "lzma" if _is_lzma(head) else "none"


def _is_lzma(head: bytes) -> bool:
    """Return whether bytes are a header of LZMA alone.

    It has the usual properties, a dictionary of a power of two or of one and a half, and a size
    that is unknown or possible.
    """
    if len(head) < 13 or head[0] != 0x5D:
        return False
    dictionary, size = int.from_bytes(head[1:5], "little"), int.from_bytes(head[5:13], "little")
    known = {1 << n for n in range(12, 32)} | {3 << n for n in range(11, 31)} | {(1 << 32) - 1}
    return dictionary in known and (size == (1 << 64) - 1 or size < _MAX_LZMA_BYTES)


def first_bytes(read_head: Callable[[int], bytes], name: str, size: int) -> tuple[str, bytes]:
    """Return the compression of a file, and up to HEAD_BYTES of its content; fewer if damaged."""
    compression, content = "none", b""
    for count in _STORED_HEADS[name.lower().endswith(_COMPRESSED_ENDINGS) :]:
        head = read_head(count) if size else b""
        compression = compression_of(head)
        if compression == "none":
            return compression, head[:HEAD_BYTES]
        content = first_decompressed(head, compression, HEAD_BYTES)
        if content or count >= size:
            break
    return compression, content


def format_of(name: str, head: bytes, compression: str, input_format: str) -> str:
    _refuse_unread(name, head, compression, input_format)
    named = None if input_format == "auto" else format_named(input_format)
    known = map(format_named, INPUT_FORMATS)  # each is imported when it is asked
    shown = next((each for each in known if each.recognises and each.recognises(head)), None)
    if shown is not None and shown.columnar and named not in (None, shown):
        raise UsageError(f"is {shown.name}, not {input_format}", remedy="leave {input_format} out")
    chosen = named or shown or _by_name(name)
    if chosen.columnar and compression != "none":
        if shown is None:
            remedy = "rename it, or give its format with {input_format}"
            raise UsageError(f"is {compression}, not {chosen.name}", remedy=remedy)
        raise UsageError(f"is {chosen.name} within {compression}, {_UNPACK}")
    if not chosen.columnar and (encoding := other_encoding(head)):
        iconv = f"iconv -f {encoding.rpartition(' ')[2].lower()} -t utf-8"
        remedy = f"convert it ({iconv}), or leave it out with {{exclude}}"
        raise UsageError(f"{encoding}: text must be UTF-8", remedy=remedy)
    if named is None and shown is None:
        _refuse_unlike(name, head, chosen)
    if chosen.check_head is not None:
        chosen.check_head(head)
    return chosen.name


def _refuse_unlike(name: str, head: bytes, chosen: InputFormat) -> None:
    """Refuse a file whose first bytes show no format, if its name means another one."""
    whole = _PART.sub("", name.lower())
    may_be_part = whole != name.lower() and not _CONTROLS.isdisjoint(head)
    if may_be_part and (whole.endswith(_COMPRESSED_ENDINGS) or _by_name(whole).recognises):
        remedy = "join the parts first (cat), or leave it out with {exclude}"
        raise UsageError("seems to be a part of a file, which is not read", remedy=remedy)
    if chosen.separated and is_binary(head):
        raise UsageError(
            "begins with zeros, as an empty tar archive and a damaged file do"
            if not head[:_HEADER_BYTES].strip(b"\0")
            else "seems to be binary, of a format that is not read: it has NUL bytes, and no text",
            remedy="leave it out with {exclude}, or name its format with {input_format}",
        )


def _refuse_unread(name: str, head: bytes, compression: str, input_format: str) -> None:
    reasons = [why for start, why in _REFUSED if head.startswith(start)]
    for start, why in _REFUSED_WORDS:
        if head.startswith(start) and not _CONTROLS.isdisjoint(head[len(start) : _SHORT_HEAD]):
            reasons.append(why)
    if compression == "none" and input_format == "auto" and head:
        reasons += [why for end, why in _REFUSED_ENDINGS.items() if name.lower().endswith(end)]
    if compression != "none":
        if (inner := compression_of(head)) != "none":
            reasons.append(f"is {inner} again, which is not read; decompress it once first")
        reasons = [f"within {compression} {why}" for why in reasons]
    if reasons:
        remedy = "leave it out with {exclude}" if reasons[0].endswith(_NO_TEXT) else ""
        raise UsageError(reasons[0], remedy=remedy)


def _by_name(name: str) -> InputFormat:
    known = [format_named(each) for each in INPUT_FORMATS]
    name = _PART.sub("", name.lower())
    if not any(name.endswith(each.endings) for each in known):
        for ending in _COMPRESSED_ENDINGS:
            name = name.removesuffix(ending)
    default = format_named(DEFAULT_INPUT_FORMAT)
    return next((each for each in known if name.endswith(each.endings)), default)


_MARKS = (
    (b"\xff\xfe\0\0", "UTF-32"),  # before the mark of UTF-16, with which it begins
    (b"\0\0\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
_ASCII = (
    (rb"(?:[^\0]\0{3}){2}", "UTF-32LE"),
    (rb"(?:\0{3}[^\0]){2}", "UTF-32BE"),
    (rb"(?:[^\0]\0){4}", "UTF-16LE"),
    (rb"(?:\0[^\0]){4}", "UTF-16BE"),
)
"""The first bytes of ASCII in these encodings."""

_NOT_IN_TEXT = bytes({*range(32)} - {*b"\n\r\b\f\x1b"})
_MAX_CONTROLS = {True: 0.25, False: 0.02}
"""The largest share of control characters in a text that has NULs, by whether it is valid UTF-8."""

_SPACES = frozenset("\t\n\r\u3000")


def other_encoding(head: bytes) -> str | None:
    """Return why bytes seem to be UTF-16 or UTF-32, for a message; None if they do not."""
    for mark, name in _MARKS:
        if head.startswith(mark):
            return f"begins with the byte order mark of {name}"
    names = [name for ascii_, name in _ASCII if re.match(ascii_, head)]
    if not names and is_binary(head):
        names = [name for _, name in _ASCII if _decodes(head, name)]
    return f"seems to be {names[0]}" if names else None


def is_binary(head: bytes) -> bool:
    """Return whether bytes have NULs and more control characters than a text may have."""
    if b"\0" not in head:
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
        valid = True
    except UnicodeDecodeError:
        valid = False
    controls = len(head) - len(head.translate(None, _NOT_IN_TEXT))
    return controls > _MAX_CONTROLS[valid] * len(head)


def _decodes(head: bytes, name: str) -> bool:
    """Return whether bytes are printable text with spaces or lines in an encoding."""
    try:
        characters = set(codecs.getincrementaldecoder(name)().decode(head))
    except UnicodeDecodeError:
        return False
    printable = (each in _SPACES or each.isprintable() for each in characters)
    return not characters.isdisjoint(" \n") and all(printable)
