"""tar: each regular file in an archive is a document, named by archive and file.

Links, devices and folders are passed over, and so are the files that a folder of the input would
leave out. Names are ids only, whatever paths they spell. An archive is read from its start to its
end. The part that cannot be read is one reject, and so are bytes after the archive's end, such as a
second archive.

Memory: a few times `batch_bytes`, and some two times the longest file.
"""

from __future__ import annotations

import contextlib
import tarfile
from collections.abc import Iterator
from typing import IO, Any, cast

import pyarrow as pa

from bpe_beam.corpus.auxiliary_files import is_auxiliary
from bpe_beam.corpus.batches import MAX_RECORD_BYTES
from bpe_beam.corpus.file_types import HEAD_BYTES, is_binary, other_encoding
from bpe_beam.corpus.formats.interface import InputFormat
from bpe_beam.corpus.formats.jsonl import mostly_objects
from bpe_beam.corpus.reading.slice_reader import BOM, Gatherer
from bpe_beam.corpus.rejects import RejectReason
from bpe_beam.corpus.slices import SliceRequest
from bpe_beam.corpus.streams import Source, fill

_MAX_EXTENSION = 1 << 20
_MAX_READS_AT_END = 8
_BLOCK = 64 << 10
_HEADER = tarfile.BLOCKSIZE


def _read(request: SliceRequest) -> Iterator[pa.RecordBatch]:
    """Yield the documents of an archive, all of them in the slice that begins at its start."""
    source = None if request.start else request.open()
    if source is not None:
        with contextlib.closing(source):
            yield from _Reader(request, _Stream(source)).read()


def _recognises(head: bytes) -> bool:
    """Return whether the first bytes are a header with a name and a right checksum."""
    try:
        return bool(tarfile.TarInfo.frombuf(head[:_HEADER], "utf-8", "surrogateescape").name)
    except tarfile.HeaderError:
        return False


def _kind_of(head: bytes) -> str | None:
    """Return why the first bytes of a file are no text; None if they may be text."""
    if encoding := other_encoding(head):
        return encoding
    if is_binary(head):
        return "is binary"
    lines = head.removeprefix(BOM).strip().split(b"\n")
    return "is JSON Lines" if len(lines) > 1 and mostly_objects(lines) else None


class _Stream:
    """A source as tarfile reads it; tarfile passes over files by reading, beyond any end.

    It has read `size` bytes. If the stream is broken, `broken` says why, and `lost` stored bytes
    are lost.
    """

    def __init__(self, source: Source) -> None:
        self.broken = ""
        self.lost = 0
        self.size = 0
        self._reads_at_end = 0
        self._source = source

    def read(self, count: int) -> bytes:
        """Return the next bytes; fewer than `count` at the end, or where the stream is broken."""
        view = memoryview(bytearray(count))
        filled, error = fill(self._source, view)
        if error is not None:
            self.broken, self.lost = str(error), error.lost
        self.size += filled
        self._reads_at_end += not filled
        if self._reads_at_end > _MAX_READS_AT_END:
            raise tarfile.ReadError("it ends too soon")
        return bytes(view[:filled])


class _Member(tarfile.TarInfo):
    """A member that notes a broken header, which tarfile takes for the archive's end."""

    @classmethod
    def frombuf(cls, buf: Any, encoding: Any, errors: Any) -> _Member:
        member = super().frombuf(buf, encoding, errors)
        if member.size < 0 or (
            member.type in tarfile.SUPPORTED_TYPES
            and member.type not in tarfile.REGULAR_TYPES
            and member.size > _MAX_EXTENSION
        ):
            raise tarfile.InvalidHeaderError(f"a header of {member.size} bytes")  # type: ignore[attr-defined]
        return member

    @classmethod
    def fromtarfile(cls, tarfile_: tarfile.TarFile) -> _Member:
        try:
            member = super().fromtarfile(tarfile_)
            if member.size < 0:
                raise tarfile.InvalidHeaderError("a size below 0")  # type: ignore[attr-defined]
        except tarfile.HeaderError as error:
            ended = isinstance(error, tarfile.EOFHeaderError)  # type: ignore[attr-defined]
            cast(Any, tarfile_).flaw = "" if ended else str(error)
            raise
        return member


class _Reader:
    def __init__(self, request: SliceRequest, stream: _Stream) -> None:
        self.request = request
        self.stream = stream
        self.gatherer = Gatherer(request)

    def read(self) -> Iterator[pa.RecordBatch]:
        archive: Any = None
        flaw, offset = "", 0
        try:
            stream = cast(IO[bytes], self.stream)
            archive = tarfile.open(fileobj=stream, mode="r|", tarinfo=_Member)  # noqa: SIM115
            for member in archive:
                offset = member.offset
                archive.members = []  # tarfile would remember all of them
                if member.isreg() and not is_auxiliary(member.name.split("/")):
                    yield from self._take(archive, member)
            flaw, offset = archive.flaw, archive.offset
        except (tarfile.TarError, OSError, ValueError, EOFError) as error:
            flaw = str(error) or type(error).__name__
        yield from self.gatherer.rest()
        if self.stream.broken:
            self._reject_broken_stream(offset)
        elif flaw:
            detail = f"{flaw}; the rest is lost" if self.stream.size else "the file is empty"
            self._lose_rest(offset, detail, b"")
        else:
            self._check_end(archive.fileobj)

    def _reject_broken_stream(self, offset: int, data: bytes = b"") -> None:
        stream, reason = self.stream, RejectReason.BROKEN_STREAM
        self.request.reject(reason, stream.broken, data, offset=offset, lost_bytes=stream.lost)

    def _take(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[pa.RecordBatch]:
        """Make a document of a file, and yield a batch if it is full."""
        name = member.name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        if member.issparse() or member.size > MAX_RECORD_BYTES:
            reason = RejectReason.SPARSE_FILE if member.issparse() else RejectReason.TOO_LONG
            self.request.reject(reason, name, total=member.size, offset=member.offset)
            return
        file = archive.extractfile(member)
        assert file is not None
        text = file.read()
        try:
            text.decode()
        except UnicodeDecodeError as error:
            detail = f"at byte {error.start} of {name}"
            if encoding := other_encoding(text[:HEAD_BYTES]):
                detail = f"{name} {encoding}"
            self.request.reject(RejectReason.INVALID_UTF8, detail, text, offset=member.offset)
            return
        if kind := _kind_of(text[:HEAD_BYTES]):
            detail = f"{name} {kind}; unpack the archive, or leave the file out of it"
            self.request.reject(RejectReason.NOT_TEXT, detail, text, offset=member.offset)
            return
        text, source = text.removeprefix(BOM), self.request.source
        id_ = f"{self.request.file.name}:{name}"
        yield from self.gatherer.add(id_, source, member.offset, text)

    def _check_end(self, rest: IO[bytes]) -> None:
        """Reject the bytes after the archive's end, unless they are zeros."""
        while True:
            offset = rest.tell()
            data = rest.read(_BLOCK)
            if self.stream.broken:
                self._reject_broken_stream(offset, data)
                return
            if data.strip(b"\0"):
                self._lose_rest(offset, "there is more after the archive's end", data)
                return
            if not data:
                return

    def _lose_rest(self, offset: int, why: str, data: bytes) -> None:
        """Reject the bytes from `offset` on.

        In a compressed archive they count as their share of the decompressed bytes.
        """
        with contextlib.suppress(tarfile.ReadError):
            while self.stream.read(_BLOCK):
                pass
        size = max(1, self.stream.size)
        share = self.request.file.size * max(0, size - offset) // size
        lost = max(share, self.stream.lost)
        self.request.reject(RejectReason.BROKEN_ARCHIVE, why, data, offset=offset, lost_bytes=lost)


FORMAT = InputFormat(
    name="tar",
    read=_read,
    endings=(".tar", ".tgz", ".tbz2", ".tbz", ".txz", ".tzst"),
    recognises=_recognises,
    splittable=False,
    archive=True,
)
