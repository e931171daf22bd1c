"""`WriteTokens`: token ids of a user's pipeline in, a folder of shards out.

A `PCollection` has no order and no splits, so a hash of a document's ids decides its shard and its
position there: equal documents give equal bytes, in whatever order they arrive.

`__job` claims the folder from the moment when all documents have come to the manifest. It has a
number of its own for each pipeline that is built: a step that a runner repeats goes on, and another
pipeline fails. A pipeline that fails before leaves the folder empty.
"""

from __future__ import annotations

import hashlib
import secrets
import tempfile
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from typing import IO, Any, NamedTuple, TypeAlias
from uuid import UUID

import apache_beam as beam
import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindows
from msgspec.structs import replace

from bpe_beam import json_structs
from bpe_beam.corpus.reading.columns import names_in
from bpe_beam.errors import DataError, UsageError, require, require_between, require_choice
from bpe_beam.folders.artifact_names import JOB_FILE, MANIFEST_FILE, SHARDS_TOKENIZER_FILE
from bpe_beam.folders.job_json import JobRecord
from bpe_beam.folders.output_folder import OutputFolder, recorded_job
from bpe_beam.folders.receipts import WORK, side_by_side
from bpe_beam.folders.run_folder import RunFolder, names_present
from bpe_beam.json_structs import decode
from bpe_beam.messages import list_few
from bpe_beam.shards.formats import DEFAULT_SHARD_FORMAT, SHARD_FORMATS, shard_format
from bpe_beam.shards.manifest import (
    NO_PLAN,
    VERSION,
    Manifest,
    Rejects,
    TokenizerInfo,
    index_names,
    read_manifest,
    small_files,
    with_files,
)
from bpe_beam.shards.numbering import shard_name
from bpe_beam.shards.shard_rows import Shard, TokenlessSplit, Totals
from bpe_beam.storage import PathName, Storage, path_name
from bpe_beam.storage.create_exclusive import write_once
from bpe_beam.storage.names import absolute, attempted_name
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms.elements import (
    TOKENS,
    column_of,
    fields_of,
    is_batch,
    utf8_of,
    without_key,
)
from bpe_beam.transforms.pipeline_folders import take_folder
from bpe_beam.transforms.spread_tasks import CreateElements
from bpe_beam.workers import metric_names
from bpe_beam.workers.split_task import require_visible

_MAX_SHARDS = 100_000

CHUNK_TOKENS = 240_000
"""Ids of a chunk of a document: at four bytes each, under 1 MB."""

BATCH_DOCUMENTS = 1024
"""Documents that are written at once; fewer if they have CHUNK_TOKENS together."""


Chunk = tuple[bytes, int, bytes]
"""A chunk of a document: a hash of the document's ids, the number of the chunk in the document, and
the ids of the chunk, little-endian uint32. If the document has labels, the hash is followed by the
hash of these, and chunk -1 has them. A chunk without a hash has the final name of its shard
instead, or no name for a shard without tokens; each shard has one."""

LABELS = ("id", "source")
"""Fields and columns that are stored beside the ids, by formats that have a place for them."""


Tokens: TypeAlias = Any
"""An output of `Tokenize`: a document's ids, a dict or row with a field `tokens`, a batch or table
with a column `tokens`; with or without a key."""

_JOB = "WriteTokens"

_LOST = "WriteTokens: the runner lost a part of the tokens, or delivered it twice; run it again"


@beam.typehints.with_output_types(str)
class WriteTokens(beam.PTransform):
    """Writes tokenized documents as a folder of shards that trainers read.

    Takes every output of `Tokenize`: `pyarrow.UInt32Array`s, one a document; dicts or rows with a
    list of ids in the field `tokens`; Arrow batches or tables with a column `tokens`; and any of
    them with a key, which is dropped. Writes at most `shards` shards, the tokenizer, and
    finally a manifest, so that `bpe-beam verify` can check the folder. For bounded input in the
    global window. The worker of a shard keeps about 250 bytes a document in memory, 500 with an id
    or a source, and the ids in a local temporary file. The output is the manifest's URL.

    Formats with a place for them (`parquet`, `arrow`) get the fields or columns `id` and `source`,
    which may have strings, numbers, dates or UUIDs.

    One run has the folder: another `WriteTokens` fails, in the same pipeline when it is built, in
    another one when it runs. A run that fails before it writes leaves the folder empty; after a
    later failure the next one needs `overwrite`.

    The hash of a document decides its shard. A shard without tokens is not written, and the others
    are numbered without gaps. Without any token the manifest lists no shards.

    Args:
        folder: An empty or new folder; with `overwrite`, one that holds nothing else than what
            this package wrote.
        tokenizer: The tokenizer that made the ids.
        shards: The most shards to write, from 1 to 100,000.
        storage: The storage client.
        format: The format of the shards, one of SHARD_FORMATS. The readers of `llmc` know a
            document by the end-of-text token, with which each must begin.
        overwrite: Whether to remove what a job or another run, finished or not, wrote in the
            folder. It is removed when the pipeline is built.

    Raises:
        UsageError: An argument out of its range, a folder that is not empty or that the pipeline
            writes already, or input that is unbounded or in windows.
    """

    def __init__(
        self,
        folder: PathName,
        tokenizer: Tokenizer,
        *,
        shards: int = 1,
        storage: Storage | None = None,
        format: str = DEFAULT_SHARD_FORMAT,
        overwrite: bool = False,
    ) -> None:
        super().__init__()
        require_choice("format", format, SHARD_FORMATS)
        require_between("shards", shards, 1, _MAX_SHARDS)
        folder = path_name(folder, "folder")
        self.folder = absolute(folder)
        self.tokenizer = tokenizer
        self.shards = shards
        self.format = format
        self.storage = storage or Storage()
        self.overwrite = overwrite
        names = self.storage.list_names(folder)
        require(
            overwrite or not names,
            f"must be empty or new, got {folder}, which has files: {list_few(names)}",
            "folder",
            remedy="give another one, or set overwrite=True to remove what bpe-beam wrote there",
        )

    def expand(self, tokens: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        """Return the URL of the manifest."""
        if tokens.element_type in (str, bytes, int):
            raise UsageError(
                "WriteTokens: an element must be an output of Tokenize, such as a "
                f"pyarrow.UInt32Array, got {tokens.element_type.__name__}"
            )
        if not tokens.is_bounded or not isinstance(tokens.windowing.windowfn, GlobalWindows):
            raise UsageError(
                "WriteTokens needs bounded input in the global window, since it writes a folder "
                "when all documents have arrived; for new files over time use bpe-beam "
                "stream-tokenize"
            )
        take_folder(tokens.pipeline, self.folder, "folder")
        if self.overwrite:
            _remove_old(self.storage, self.folder)
        self.storage.make_folder(self.folder)
        target = _Target(
            self.storage,
            self.folder,
            self.shards,
            self.tokenizer.to_json(),
            self.format,
            secrets.token_hex(16),
        )
        with_labels = shard_format(self.format).labelled_writer is not None
        split = beam.FlatMap(_to_chunks, self.shards, with_labels)
        split = split.with_output_types(tuple[int, Chunk])
        chunks = tokens | "SplitToChunks" >> split
        # A number that is no shard's: there is at least one element to gather.
        check = beam.Map(_check_free, target).with_output_types(tuple[int, int])
        begin = (
            tokens.pipeline
            | "Begin" >> CreateElements([(0, -1)], tuple[int, int])
            | "CheckFolder" >> check
        )
        names = (
            (chunks | "WithTokens" >> beam.ParDo(_ShardsWithTokens()), begin)
            | "WithBegin" >> beam.Flatten().with_output_types(tuple[int, int])
            | "GatherNumbers" >> beam.GroupByKey()
            | "NameShards"
            >> beam.FlatMap(_name_shards, target).with_output_types(tuple[int, Chunk])
        )
        return (
            (chunks, names)
            | "WithNames" >> beam.Flatten().with_output_types(tuple[int, Chunk])
            | "GatherShards" >> beam.GroupByKey()
            | "WriteShard"
            >> beam.FlatMap(_write_shard, target).with_output_types(tuple[int, bytes])
            # Not as a side input, which Dataflow gives a coder of its own, a pickling one.
            | "GatherRows" >> beam.GroupByKey()
            | "WriteManifest" >> beam.FlatMap(_write_manifest, target).with_output_types(str)
        )


def _digest(ids: bytes) -> bytes:
    """Return a hash that identifies a document, and by which documents are ordered."""
    return hashlib.blake2b(ids, digest_size=16).digest()


class _Target(NamedTuple):
    """The folder of the shards, their tokenizer, their format, and the number of the claim."""

    storage: Storage
    folder: str
    shards: int
    tokenizer_json: str
    format: str = DEFAULT_SHARD_FORMAT
    claim: str | None = None

    @property
    def job_url(self) -> str:
        """The file that claims the folder."""
        return self.storage.join(self.folder, JOB_FILE)

    def claimed(self) -> JobRecord | None:
        """Return the `__job` of the folder; None if there is none or it is of another run."""
        record = recorded_job(self.storage, self.folder)
        ours = record is not None and record.settings.get("claim") == self.claim
        return record if ours else None

    def require_claimed(self) -> JobRecord:
        """Return the `__job` of the folder, which must be of this run.

        Raises:
            DataError: It is not.
        """
        record = self.claimed()
        if record is None:
            raise DataError(
                f"WriteTokens: another run took the folder {self.folder} while this one ran: run "
                "this one again with another folder"
            )
        return record

    @property
    def vocab_size(self) -> int:
        """One more than the greatest id."""
        return Tokenizer.from_json(self.tokenizer_json).max_id + 1


def _remove_old(storage: Storage, folder: str) -> None:
    """Remove what a job or another run wrote in a folder.

    Raises:
        UsageError: The folder has other files, too; nothing has been removed.
        DataError: A job of the command line works there.
    """
    names = storage.list_names(folder)
    record = recorded_job(storage, folder)
    if record is None and MANIFEST_FILE in names and JOB_FILE not in names:
        manifest = read_manifest(storage, folder)
        if not manifest.has_plan:  # a finished run of this transform, which leaves no `__job`
            files = [file.name for shard in manifest.shards for file in shard.files]
            record = _record(manifest.format, files)
    known = set() if record is None else {name.partition("/")[0] for name in record.all_names}
    known.add(WORK)
    foreign = [name for name in names if (attempted_name(name) or name) not in known]
    require(
        not foreign,
        f"must have nothing else than what bpe-beam wrote, got {folder} with {list_few(foreign)}",
        "folder",
        remedy="move that away, or give another folder",
    )
    if record is not None:
        if JOB_FILE not in names:
            storage.write_bytes(storage.join(folder, JOB_FILE), record.to_bytes())
        OutputFolder.claim(storage, folder, {"job": _JOB}, (), overwrite=True).release()


def _record(format_name: str, names: Iterable[str], claim: str | None = None) -> JobRecord:
    """Return the `__job` of a folder of shards.

    Args:
        format_name: The shards' format.
        names: The names of the files of the shards.
        claim: The number of the claim of a run; None: no run works there.
    """
    all_names = {*names, SHARDS_TOKENIZER_FILE, *index_names(format_name)}
    return JobRecord(_JOB, {"claim": claim}, MANIFEST_FILE, frozenset(all_names))


def _check_free(element: tuple[int, int], target: _Target) -> tuple[int, int]:
    """Return the element, if no other run has claimed the folder or finished there.

    Raises:
        UsageError: One has.
    """
    if target.claimed() is None:
        names = target.storage.list_names(target.folder)
        if JOB_FILE in names:
            raise UsageError(
                f"WriteTokens: another run has claimed the folder {target.folder}, and works there "
                "or has failed: give another folder, or, when none works there, set overwrite=True "
                "to remove what it wrote"
            )
        others = [name for name in names if attempted_name(name) != JOB_FILE]
        if others:
            raise UsageError(
                f"WriteTokens: the folder {target.folder} must be empty or new, got "
                f"{list_few(others)}, which came after the pipeline was built: give another folder"
            )
    return element


def _claim(target: _Target, names: Collection[str]) -> None:
    """Claim the folder for this run, before it writes shards.

    Args:
        target: The folder.
        names: The names of the files of the shards.

    Raises:
        UsageError: Another run has claimed the folder or finished there.
    """
    record = target.claimed()
    if record is not None:  # this step runs again, after a runner lost what it had made
        if not record.names.issuperset(names):
            record = replace(record, names=record.names | frozenset(names))
            target.storage.write_bytes(target.job_url, record.to_bytes())
        return
    _check_free((0, -1), target)
    storage, url = target.storage, target.job_url
    if write_once(storage, url, _record(target.format, names, target.claim).to_bytes()):
        present = storage.list_names(target.folder)
        if all(JOB_FILE in (name, attempted_name(name)) for name in present):
            return
        storage.remove(url)  # another run has finished meanwhile
    _check_free((0, -1), target)


def _to_chunks(
    element: Tokens, shards: int, with_labels: bool = False
) -> Iterator[tuple[int, Chunk]]:
    """Yield the chunks of one document, or of each document of a batch, with their shards."""
    documents = _ids_of(element)
    labels = _labels_of(element, len(documents)) if with_labels else [b""] * len(documents)
    for document, label in zip(documents, labels, strict=True):
        ids = document.to_numpy().astype("<u4", copy=False)
        digest = _digest(ids.tobytes())
        shard = int.from_bytes(digest[:8], "big") * shards >> 64
        if label:
            digest += _digest(label)
            yield shard, (digest, -1, label)
        for number, start in enumerate(range(0, max(1, len(ids)), CHUNK_TOKENS)):
            yield shard, (digest, number, ids[start : start + CHUNK_TOKENS].tobytes())


def _ids_of(element: Tokens) -> list[pa.UInt32Array]:
    """Return the ids of each document; Beam does not know the types of all elements beforehand."""
    value = without_key(element)
    fields = None if is_batch(value) else fields_of(value)
    documents = [value]
    if is_batch(value) or fields is not None:
        names = value.schema.names if fields is None else list(fields)
        if TOKENS not in names:
            what = "batch has no column" if fields is None else "document has no field"
            raise DataError(f"WriteTokens: a {what} {TOKENS!r}, only {', '.join(map(str, names))}")
        if fields is None:
            documents = [getattr(row, "values", row) for row in column_of(value, TOKENS)]
        else:
            documents = [_ids_in_list(fields[TOKENS])]
    for document in documents:
        if not isinstance(document, pa.UInt32Array):
            raise DataError(
                "WriteTokens: the ids of a document must be a pyarrow.UInt32Array, got "
                f"{type(document).__name__}"
            )
    return documents


def _ids_in_list(ids: Any) -> Any:
    """Return the list of ids of a dict or row as an array; anything else unchanged."""
    if not isinstance(ids, list):
        return ids
    try:
        return pa.array(ids, pa.uint32())
    except (pa.ArrowException, OverflowError, TypeError) as error:
        raise DataError(f"WriteTokens: a document has invalid ids: {error}") from error


def _labels_of(element: Tokens, documents: int) -> list[bytes]:
    """Return the labels of each document as JSON; empty where a document has none.

    Raises:
        DataError: A label is of a type that cannot be one.
    """
    value = without_key(element)
    if is_batch(value):
        columns = [_label_column(value, name) for name in LABELS]
    else:
        fields = fields_of(value) or {}
        columns = [[_label(fields.get(name), name)] for name in LABELS]
    rows = zip(*(column or [None] * documents for column in columns), strict=True)
    return [
        msgspec.json.encode(row) if any(each is not None for each in row) else b"" for row in rows
    ]


def _label_column(batch: Any, name: str) -> list[str | None]:
    """Return the labels in a column of a batch or table; none if it has no such column."""
    if name not in batch.schema.names:
        return []
    column = column_of(batch, name)
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return _texts(column, f"the column {name!r} of a batch", column.type)


def _label(value: Any, name: str) -> str | None:
    """Return a label in a field of a document as text."""
    what = f"the field {name!r} of a document"
    if isinstance(value, (str, bytes)):
        return utf8_of(value, what).decode()
    if type(value) is int or isinstance(value, UUID):
        return str(value)
    try:
        column = pa.array([value])
    except (pa.ArrowException, OverflowError, TypeError):
        column = pa.array([{}])
    return _texts(column, what, type(value).__name__)[0]


def _texts(column: pa.Array, what: str, kind: object) -> list[str | None]:
    """Return labels as text.

    Args:
        column: The labels.
        what: What has them, for errors.
        kind: Their type, for errors.
    """
    try:
        texts = names_in(column)
    except pa.ArrowException as error:
        raise DataError(f"WriteTokens: {what} is no valid text: {error}") from error
    if texts is None:
        raise DataError(
            f"WriteTokens: {what} must have strings, numbers, dates or UUIDs, got {kind}: convert "
            "or rename it"
        )
    found: list[str | None] = texts.to_pylist()
    return found


@beam.typehints.with_input_types(tuple[int, Chunk])
@beam.typehints.with_output_types(tuple[int, int])
class _ShardsWithTokens(beam.DoFn):
    """Chunks to the numbers of the shards with tokens, under one key; each number once a bundle."""

    def start_bundle(self) -> None:
        """Begin without shards."""
        self.seen: set[int] = set()

    def process(self, element: tuple[int, Chunk]) -> Iterator[tuple[int, int]]:
        """Yield the number of the chunk's shard, if it is new."""
        shard, (_, number, ids) = element
        if ids and number >= 0 and shard not in self.seen:
            self.seen.add(shard)
            yield 0, shard


def _name_shards(
    element: tuple[int, Iterable[int]], target: _Target
) -> Iterator[tuple[int, Chunk]]:
    """Claim the folder, and yield the final names of shards; none for a shard without tokens.

    They are numbered without gaps.
    """
    with_tokens = sorted(set(element[1]) - {-1})
    names = {shard: shard_name(index, len(with_tokens)) for index, shard in enumerate(with_tokens)}
    suffixes = shard_format(target.format).suffixes
    _claim(target, [f"{name}{suffix}" for name in names.values() for suffix in suffixes])
    for shard in range(target.shards):
        yield shard, (b"", 0, names.get(shard, "").encode())


class _StoredChunk(NamedTuple):
    """A chunk in the temporary file: its document's hash, its number, and its bytes there."""

    document: bytes
    number: int
    offset: int
    size: int


def _write_shard(
    element: tuple[int, Iterable[Chunk]], target: _Target
) -> Iterator[tuple[int, bytes]]:
    """Write one shard, its documents in the order of their hashes; yield its row under one key."""
    number, chunks = element
    require_visible(target.storage, target.folder)
    if target.claim is not None:
        target.require_claimed()
    with tempfile.TemporaryFile() as spool:
        names: set[str] = set()
        stored: list[_StoredChunk] = []
        for document, position, ids in chunks:
            if document:
                stored.append(_StoredChunk(document, position, spool.tell(), len(ids)))
                spool.write(ids)
            else:
                names.add(ids.decode())
        stored.sort()
        name = names.pop() if len(names) == 1 else None
        if name is None or bool(name) != any(chunk.size for chunk in stored if chunk.number >= 0):
            raise DataError(_LOST)
        format_ = shard_format(target.format)
        # Without tokens no file is made.
        name = name or f"shard {number} without tokens"
        with format_.writer(target.storage, target.folder, name, target.vocab_size) as writer:
            for batch in _batches(_documents(spool, stored)):
                writer.write_documents(*batch)
    files = writer.result()
    counters.counter(metric_names.DOCUMENTS_WRITTEN).inc(files.documents)
    counters.counter(metric_names.TOKENS_WRITTEN).inc(files.tokens)
    shard = Shard(
        name=name,
        split=number,
        slices=(),
        documents=files.documents,
        text_bytes=0,
        tokens=files.tokens,
        rejects=0,
        files=tuple(files.files),
    )
    yield 0, msgspec.json.encode(shard)


_Document: TypeAlias = tuple[npt.NDArray[np.uint32], tuple[str | None, ...]]
"""The ids of a document, and the values of LABELS."""


def _batches(
    documents: Iterator[_Document],
) -> Iterator[tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64], pa.RecordBatch | None]]:
    """Yield the arguments of `ShardWriter.write_documents` for some documents at a time."""
    waiting: list[_Document] = []
    bounds = [0]
    for document in documents:
        waiting.append(document)
        bounds.append(bounds[-1] + len(document[0]))
        if len(waiting) == BATCH_DOCUMENTS or bounds[-1] >= CHUNK_TOKENS:
            yield _batch(waiting, bounds)
            waiting, bounds = [], [0]
    if waiting:
        yield _batch(waiting, bounds)


def _batch(
    documents: list[_Document], bounds: list[int]
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64], pa.RecordBatch | None]:
    labels = [label for _, label in documents]
    columns = [pa.array(column, pa.string()) for column in zip(*labels, strict=True)]
    batch = pa.RecordBatch.from_arrays(columns, LABELS)
    known = any(column.null_count < len(column) for column in columns)
    ids = np.concatenate([ids for ids, _ in documents])
    return ids, np.array(bounds, np.int64), batch if known else None


def _documents(spool: IO[bytes], chunks: list[_StoredChunk]) -> Iterator[_Document]:
    """Yield the ids and the labels of each document, of sorted chunks.

    Equal documents have as many copies of each chunk.
    """
    for document, equal in groupby(chunks, key=lambda chunk: chunk.document):
        copied = list(equal)
        copies = sum(chunk.number == 0 for chunk in copied)
        if copies == 0 or len(copied) % copies:
            raise DataError(_LOST)
        for copy in range(copies):
            parts = copied[copy::copies]
            label = b"".join(_read(spool, chunk) for chunk in parts if chunk.number < 0)
            ids = b"".join(_read(spool, chunk) for chunk in parts if chunk.number >= 0)
            if _digest(ids) + (_digest(label) if label else b"") != document:
                raise DataError(_LOST)
            labels = tuple(decode(label, list)) if label else (None,) * len(LABELS)
            yield np.frombuffer(ids, "<u4").astype(np.uint32, copy=False), labels


def _read(spool: IO[bytes], chunk: _StoredChunk) -> bytes:
    spool.seek(chunk.offset)
    return spool.read(chunk.size)


def _write_manifest(element: tuple[int, Iterable[bytes]], target: _Target) -> Iterator[str]:
    """Write the tokenizer and, of all rows, the manifest, which completes the folder."""
    storage, folder = target.storage, target.folder
    rows = [json_structs.decode(row, Shard) for row in element[1]]
    rows.sort(key=lambda row: row.split)
    shards = tuple(row for row in rows if row.tokens)
    names = [shard_name(index, len(shards)) for index in range(len(shards))]
    numbers = [row.split for row in rows]
    if numbers != list(range(target.shards)) or [row.name for row in shards] != names:
        raise DataError(_LOST)
    tokenless = tuple(
        TokenlessSplit(row.split, slices=(), documents=row.documents, text_bytes=0, rejects=0)
        for row in rows
        if not row.tokens
    )
    files = [(storage.join(folder, f.name), f.bytes) for shard in shards for f in shard.files]
    data = target.tokenizer_json.encode()
    manifest = Manifest(
        format=target.format,
        version=VERSION,
        tokenizer=TokenizerInfo(hashlib.sha256(data).hexdigest(), target.vocab_size),
        settings={"append": None, "prepend": None, "allowed_special": "none"},
        plan=NO_PLAN,
        shards=shards,
        totals=Totals.of(shards, tokenless),
        rejects=Rejects({}, ()),
        tokenless=tokenless,
    )
    manifest = with_files(manifest, data)
    url = storage.join(folder, MANIFEST_FILE)
    record = None if target.claim is None else target.claimed()
    if target.claim is not None and record is None:
        # The runner repeats this step after it has ended.
        if not storage.exists(url) or storage.read_bytes(url) != manifest.to_bytes():
            target.require_claimed()
        yield url
        return
    side_by_side(lambda file: _check_file(storage, *file), files)
    for name, content in small_files(manifest, data).items():
        storage.write_bytes(storage.join(folder, name), content)
    if record is not None:
        _remove_strays(target, record, {file.name for shard in shards for file in shard.files})
    storage.sync_folders(folder)
    storage.write_bytes(url, manifest.to_bytes())
    storage.sync_folders(folder)
    if record is not None:
        storage.remove(target.job_url)
    yield url


def _remove_strays(target: _Target, record: JobRecord, files: Collection[str]) -> None:
    """Remove what repeated or killed steps left: attempts, and shards of other numbers."""
    folder = RunFolder(target.storage, target.folder, record)
    present = names_present(target.storage, target.folder, ())
    folder.clear_attempts(present)
    fixed = {SHARDS_TOKENIZER_FILE, *index_names(target.format)}
    folder.remove((present & record.names) - fixed - set(files))


def _check_file(storage: Storage, url: str, size: int) -> None:
    """Check that a file of a shard exists whole, before the manifest lists it."""
    if storage.size(url) != size:
        raise DataError(f"{url}: changed after it was written")
