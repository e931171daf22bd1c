"""`WriteTokens`: token ids of a user's pipeline in, a folder of shards out.

A `PCollection` has no order and no splits, so a hash of a document's ids decides its shard and its
position there: equal documents give equal bytes, in whatever order they arrive.

`document_chunks.py` divides documents into chunks and makes shards of these; `tokens_folder.py`
keeps other runs out of the folder.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import apache_beam as beam
import msgspec
from apache_beam.transforms.window import GlobalWindows
from msgspec import UNSET, UnsetType

from bpe_beam import json_structs
from bpe_beam.errors import DataError, UsageError, require, require_between, require_choice
from bpe_beam.folders.artifact_names import MANIFEST_FILE
from bpe_beam.messages import list_few
from bpe_beam.shards.formats import (
    DEFAULT_SHARD_FORMAT,
    SHARD_FORMATS,
    TRAINER_COLUMNS,
    shard_format,
)
from bpe_beam.shards.formats.trainer_columns import require_columns
from bpe_beam.shards.manifest import (
    NO_PLAN,
    Manifest,
    Rejects,
    TokenizerInfo,
    small_files,
    with_files,
)
from bpe_beam.shards.numbering import shard_name
from bpe_beam.shards.shard_rows import Shard, TokenlessSplit, manifest_rows
from bpe_beam.storage import PathName, Storage, path_name, redact
from bpe_beam.storage.json_file import VERSION
from bpe_beam.storage.names import absolute
from bpe_beam.transforms.arrange_tokens import Arranger, ArrangeShards, arrangement_of
from bpe_beam.transforms.claimed_folder import take_folder
from bpe_beam.transforms.document_chunks import (
    LOST,
    Chunk,
    SplitToChunks,
    WrittenShard,
    tokenless,
    with_sources,
    write_shard,
)
from bpe_beam.transforms.shuffles import CreateElements
from bpe_beam.transforms.token_origin import (
    ChosenTokenizer,
    TokenizerInput,
    WrittenTokens,
    makers_of,
    settings_of,
)
from bpe_beam.transforms.tokens_folder import TokensFolder, remove_earlier_run
from bpe_beam.transforms.write_windows import (
    WindowFolder,
    WriteWindows,
    is_windows_folder,
    windows_folder,
)
from bpe_beam.workers.document_encoding import Encoding, cached_tokenizer

_MAX_SHARDS = 100_000

_LOG = logging.getLogger(__name__)


@beam.typehints.with_output_types(str)
class WriteTokens(beam.PTransform):
    """Writes tokenized documents as a folder of shards that trainers read.

    Takes every output of `Tokenize`: a `pyarrow.UInt32Array` per document; dicts or rows with a
    list of ids in the field `tokens`; Arrow batches or tables with a column `tokens`; and any of
    them with a key. Writes at most `shards` shards, the tokenizer, and finally a manifest, so that
    `bpe-beam verify` can check the folder. The worker of a shard keeps about 250 bytes per document
    in memory, 500 with an id or a source, and the ids in a local temporary file. The output is the
    manifest's URL.

    Input that is unbounded or in windows becomes a folder `window-00000000`, … for each pane, with
    shards and a manifest of its own; the output has the URL of each manifest. Documents with an id
    are written once for each window of time, whatever a runner repeats, a source sends again, or
    several pipelines write.

    The source of a document is its key; without a key, its field or column `source`. A source and
    an `id` may be strings, numbers, dates or UUIDs; other keys are dropped. The formats `parquet`
    and `arrow` store them. The manifest has the totals of each source if all documents have one, of
    at most 1,000. A warning in the log names the fields for which the folder has no place.

    One run owns the folder: another `WriteTokens` fails, in the same pipeline when it is built, in
    another pipeline when it runs. A run that fails before it writes leaves the folder empty; after
    a later failure the next run needs `overwrite`.

    The hash of a document decides its shard. A shard without tokens is not written, and the others
    are numbered without gaps. Without any token the manifest lists no shards.

    Counters: `documents_written`, `tokens_written`; of windows also `windows_finished`,
    `documents_late`, `documents_repeated`.

    Args:
        folder: An empty or new folder; with `overwrite`, one with only files that this
            package wrote.
        tokenizer: The tokenizer that made the ids, given in any way in which `Tokenize` takes it.
            It is compared with the tokenizer of the `Tokenize` before, and of batches.
        shards: Maximum number of shards, from 1 to 100,000.
        storage: The storage client.
        format: The format of the shards, one of SHARD_FORMATS. The readers of `llmc` recognise a
            document by the end-of-text token at its beginning.
        columns: The columns for trainers that tables get, as `tokenize --columns`.
        append, prepend: The token after and before each document, or None: for ids that no
            `Tokenize` of this pipeline made, or that were changed after it. By default the manifest
            has what that `Tokenize` puts around documents. Each document is checked.
        overwrite: Whether to remove what a job or another run, finished or not, wrote in the
            folder. It is removed when the pipeline is built.
        sequence_length, packing, max_documents_per_sequence, pad_token: The options of `tokenize`
            of these names: sequences of so many tokens.
        shuffle_seed, shard_tokens: The options of these names: a seeded order; `shard_tokens` alone
            keeps the order. Batches of `ReadDocuments` have their order in the corpus, so that the
            shards have the bytes of `tokenize`; other documents have the order of a hash of their
            ids. They wait in `work/` of the folder, in as many portions as the corpus has splits,
            or `shards`. The worker of a new shard needs about 10 bytes of memory for each token.

    Raises:
        UsageError: An argument out of its range, a folder that is not empty or that the pipeline
            writes already, windows that accumulate panes or never end, another tokenizer than the
            `Tokenize` before, or several of these that put different tokens around documents.
    """

    def __init__(
        self,
        folder: PathName,
        tokenizer: TokenizerInput,
        *,
        shards: int = 1,
        storage: Storage | None = None,
        format: str = DEFAULT_SHARD_FORMAT,
        columns: Iterable[str] = (),
        append: str | UnsetType | None = UNSET,
        prepend: str | UnsetType | None = UNSET,
        overwrite: bool = False,
        sequence_length: int | None = None,
        packing: str | None = None,
        max_documents_per_sequence: int | None = None,
        pad_token: str | None = None,
        shuffle_seed: int | None = None,
        shard_tokens: int | None = None,
    ) -> None:
        super().__init__()
        require_choice("format", format, SHARD_FORMATS)
        self.arrangement = arrangement_of(
            format,
            sequence_length=sequence_length,
            packing=packing,
            max_documents_per_sequence=max_documents_per_sequence,
            pad_token=pad_token,
            shuffle_seed=shuffle_seed,
            shard_tokens=shard_tokens,
        )
        require_between("shards", shards, 1, _MAX_SHARDS)
        folder = path_name(folder, "folder")
        self.folder = absolute(folder)
        self.storage = storage or Storage()
        self.tokenizer = ChosenTokenizer.of(tokenizer, self.storage)
        self.shards = shards
        self.format = format
        self.columns = _columns(columns, format, sequences=sequence_length is not None)
        given = {"append": append, "prepend": prepend}
        self.framing: dict[str, Any] = {
            name: value for name, value in given.items() if value is not UNSET
        }
        if self.tokenizer.known is not None:
            # Refuses tokens that it lacks.
            Encoding.of(self.tokenizer.known, **self.framing)
            WrittenTokens.of(self.tokenizer.known, {}, (), pad_token)
        self.pad_token = pad_token
        self.overwrite = overwrite
        names = self.storage.list_names(folder)
        require(
            overwrite or not names or is_windows_folder(self.storage, folder),
            f"must be empty or new, got {redact(folder)}, which has files: {list_few(names)}",
            "folder",
            remedy="give another one, or set overwrite=True to remove what bpe-beam wrote there",
        )

    def display_data(self) -> dict[str, Any]:
        return {
            "folder": redact(self.folder),
            "format": self.format,
            "shards": self.shards,
            "tokenizer": str(self.tokenizer),
            **({} if self.arrangement is None else msgspec.to_builtins(self.arrangement)),
        }

    def expand(self, tokens: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        """Return the URL of the manifest."""
        if tokens.element_type in (str, bytes, int):
            raise UsageError(
                "WriteTokens: an element must be an output of Tokenize, such as a "
                f"pyarrow.UInt32Array, got {tokens.element_type.__name__}"
            )
        chosen = self.framing or settings_of(makers_of(tokens), self.tokenizer)
        known = WrittenTokens.of(self.tokenizer.known, chosen, self.columns, self.pad_token)
        self._require_begin(known.encoding)
        take_folder(tokens.pipeline, self.folder, "folder")
        number = secrets.token_hex(16)
        target = TokensFolder(
            self.storage, self.folder, self.shards, self.format, number, self.arrangement
        )
        if not tokens.is_bounded or not isinstance(tokens.windowing.windowfn, GlobalWindows):
            return self._write_windows(tokens, target, known)
        require(
            not is_windows_folder(self.storage, self.folder),
            f"must be empty or new, got {redact(self.folder)}, which has windows of a stream",
            "folder",
        )
        if self.overwrite:
            remove_earlier_run(self.storage, self.folder)
        self.storage.make_folder(self.folder)
        labelled = shard_format(target.shards_format).labelled
        in_order = self.arrangement is not None
        split = beam.ParDo(SplitToChunks(self.shards, labelled, in_order))
        chunks = tokens | "SplitToChunks" >> split
        # No shard has the number -1; it makes sure that there is an element to gather.
        check = beam.Map(_check_free, target).with_output_types(tuple[int, int])
        begin = (
            tokens.pipeline
            | "Begin" >> CreateElements([(0, -1)], tuple[int, int])
            | "CheckFolder" >> check
        )
        names = (
            (chunks | "ShardNumbers" >> beam.ParDo(_ShardNumbers()), begin)
            | "WithBegin" >> beam.Flatten().with_output_types(tuple[int, int])
            | "GatherNumbers" >> beam.GroupByKey()
            | "NameShards"
            >> beam.FlatMap(_name_shards, target).with_output_types(tuple[int, Chunk])
        )
        learned = self.tokenizer.side_inputs
        write = beam.FlatMap(write_shard, target, known, *learned)
        rows = (
            (chunks, names)
            | "WithNames" >> beam.Flatten().with_output_types(tuple[int, Chunk])
            | "GatherShards" >> beam.GroupByKey()
            | "WriteShard" >> write.with_output_types(tuple[int, bytes])
        )
        end = _End(target, self._encoding(known), self.columns)
        if self.arrangement is None:
            finish = beam.FlatMap(end.of_hashes, *learned).with_output_types(str)
            # Not as a side input, because Dataflow gives it a coder that pickles.
            return rows | "GatherRows" >> beam.GroupByKey() | "WriteManifest" >> finish
        arranger = Arranger.of(target, self.folder, known)
        return rows | "Arrange" >> ArrangeShards(
            arranger, partial(_documents, end), partial(end.arranged, arranger), learned
        )

    def _write_windows(
        self, tokens: beam.pvalue.PCollection, plain: TokensFolder, known: WrittenTokens
    ) -> beam.pvalue.PCollection:
        """Return the URLs of the manifests of window folders."""
        require(not self.overwrite, "cannot be set for windows: remove the folder", "overwrite")
        require(
            self.tokenizer.known is not None,
            "must be known when the pipeline is built, for windows",
            "tokenizer",
        )
        settings = {
            "tokenizer": known.facts(None).origin.fingerprint,
            "format": self.format,
            **known.encoding.settings,
            "columns": list(self.columns),
            "arrangement": msgspec.to_builtins(self.arrangement),
            "shards": self.shards,
        }
        folder, record = windows_folder(plain, tokens, settings)
        folder.begin(record)
        labelled = shard_format(folder.shards_format).labelled
        split = beam.ParDo(SplitToChunks(self.shards, labelled, whole=True)).with_output_types(
            tuple[int, bytes]
        )
        end = _End(plain, self._encoding(known), self.columns)
        windows = WriteWindows(folder, known, end)
        return tokens | "SplitToChunks" >> split | "WriteWindows" >> windows

    def _require_begin(self, encoding: Encoding) -> None:
        """Refuse documents that begin with no token for a format that needs one."""
        begins = encoding.prepend is not None or (
            encoding.add_special_tokens
            and self.tokenizer.known is not None
            and any(encoding.frame(self.tokenizer.known)[:1])
        )
        require(
            begins or not shard_format(self.format).needs_prepend,
            f"must be given for shards of {self.format}, whose readers know a document by the "
            "token that it begins with",
            "prepend",
            remedy="give it to Tokenize, or here if the documents begin with it already",
        )

    def _encoding(self, tokens: WrittenTokens) -> Encoding:
        """Return the encoding for the manifest, the only step that needs the tokenizer's file."""
        if self.tokenizer.known is None:
            return tokens.encoding
        encoding = Encoding.of(self.tokenizer.known, **tokens.encoding.settings)
        return self.tokenizer.travelling(encoding, self.storage)


@beam.typehints.with_input_types(tuple[int, Chunk])
@beam.typehints.with_output_types(tuple[int, int])
class _ShardNumbers(beam.DoFn):
    """Chunks to twice the numbers of shards, one more for those with tokens, under one key.

    Each number comes once per bundle.
    """

    def start_bundle(self) -> None:
        self.seen: set[int] = set()

    def process(self, element: tuple[int, Chunk]) -> Iterator[tuple[int, int]]:
        shard, (_, number, ids) = element
        seen = 2 * shard + (bool(ids) and number >= 0)
        if seen not in self.seen:
            self.seen.add(seen)
            yield 0, seen


def _check_free(element: tuple[int, int], folder: TokensFolder) -> tuple[int, int]:
    """Return the element, if no other run has claimed the folder or finished there."""
    folder.require_free()
    return element


def _name_shards(
    element: tuple[int, Iterable[int]], target: TokensFolder
) -> Iterator[tuple[int, Chunk]]:
    """Claim the folder, and yield the names of shards, empty for a shard without tokens.

    They are numbered without gaps. If documents are arranged, only shards with documents are named.
    """
    numbers = set(element[1]) - {-1}
    with_tokens = sorted(number >> 1 for number in numbers if number & 1)
    names = {shard: shard_name(index, len(with_tokens)) for index, shard in enumerate(with_tokens)}
    suffixes = shard_format(target.format).suffixes
    shards: Iterable[int] = range(target.shards)
    if target.arrangement is None:
        target.claim([f"{name}{suffix}" for name in names.values() for suffix in suffixes])
    else:
        target.claim([])
        target.storage.make_folder(target.shards_url)
        # Notes about elements are sent to shard 0.
        shards = sorted({0, *(number >> 1 for number in numbers)})
    for shard in shards:
        yield shard, (b"", 0, names.get(shard, "").encode())


class _End(NamedTuple):
    """The last step: writes the tokenizer, and the manifest, which completes the folder."""

    target: TokensFolder
    encoding: Encoding
    columns: tuple[str, ...]

    def complete(
        self,
        rows: Iterable[Shard | TokenlessSplit],
        learned: str | None = None,
        target: WindowFolder | None = None,
        **known: Any,
    ) -> str:
        """Complete a folder of shards and splits; return the URL of the manifest."""
        tokenizer = self.encoding.tokenizer() if learned is None else cached_tokenizer(learned)
        data = tokenizer.json_bytes
        manifest = Manifest(
            format=self.target.format,
            version=VERSION,
            tokenizer=TokenizerInfo(hashlib.sha256(data).hexdigest(), tokenizer.max_id + 1),
            settings=self.encoding.settings,
            plan=NO_PLAN,
            rejects=Rejects({}, ()),
            columns=self.columns or UNSET,
            **manifest_rows(rows),
            **known,
        )
        manifest = with_files(manifest, data)
        sizes = {file.name: file.bytes for shard in manifest.shards for file in shard.files}
        small = small_files(manifest, data)
        return (target or self.target).complete(manifest.to_bytes(), sizes, small)

    def of_hashes(
        self, element: tuple[int, Iterable[bytes]], learned: str | None = None
    ) -> Iterator[str]:
        """Complete a folder of documents in the order of their hashes, by all rows."""
        written = [json_structs.decode(row, WrittenShard) for row in element[1]]
        rows = sorted(with_sources(written), key=lambda row: row.split)
        shards = [row for row in rows if row.tokens]
        names = [shard_name(index, len(shards)) for index in range(len(shards))]
        numbers = [row.split for row in rows]
        if numbers != list(range(self.target.shards)) or [row.name for row in shards] != names:
            raise DataError(LOST)
        url = self.complete([row if row.tokens else tokenless(row) for row in rows], learned)
        self.say_what_is_left_out(written)
        yield url

    def say_what_is_left_out(self, rows: Iterable[WrittenShard]) -> None:
        fields = sorted(frozenset().union(*(row.left_out for row in rows)))
        if fields:
            _LOG.warning(
                "WriteTokens: %s has no place for these fields of documents: %s (parquet and arrow "
                "store id and source of documents, not of sequences)",
                redact(self.target.url),
                list_few(fields),
            )

    def arranged(self, arranger: Arranger, learned: str | None = None) -> str:
        """Complete a folder of arranged documents."""
        target, url = self.target, self.target.path(MANIFEST_FILE)
        if target.is_complete():
            return url
        arranged = arranger.finish(learned)
        target.claim([final for _, final in arranged.moves])
        for name, final in arranged.moves:
            target.storage.move(target.path(name), target.path(final))
        return self.complete(arranged.rows, learned, arranged=arranged.part)


def _documents(end: _End, rows: Iterable[bytes]) -> list[Shard]:
    """Return the shards of documents that are to be arranged, in their order."""
    written = [json_structs.decode(row, WrittenShard) for row in rows]
    end.say_what_is_left_out(written)
    return sorted(with_sources(written), key=lambda row: row.split)


def _columns(columns: Iterable[str], format_name: str, *, sequences: bool) -> tuple[str, ...]:
    """Return the columns for trainers in their order; refuse unknown ones and those without a
    place."""
    require(not isinstance(columns, str), f"must be a list, got {columns!r}", "columns")
    chosen = tuple(columns)
    for name in chosen:
        require_choice("columns", name, TRAINER_COLUMNS)
    require_columns(chosen, format_name, sequences=sequences)
    return tuple(name for name in TRAINER_COLUMNS if name in chosen)
