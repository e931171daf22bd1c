"""`WriteTokens`: token ids of a user's pipeline in, a folder of shards out.

A `PCollection` has no order and no splits, so a hash of a document's ids decides its shard and its
position there: equal documents give equal bytes, in whatever order they arrive.

`document_chunks.py` divides documents into chunks and makes shards of these; `tokens_folder.py`
keeps other runs out of the folder.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Iterator

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows

from bpe_beam import json_structs
from bpe_beam.errors import DataError, UsageError, require, require_between, require_choice
from bpe_beam.messages import list_few
from bpe_beam.shards.formats import DEFAULT_SHARD_FORMAT, SHARD_FORMATS, shard_format
from bpe_beam.shards.manifest import (
    NO_PLAN,
    Manifest,
    Rejects,
    TokenizerInfo,
    small_files,
    with_files,
)
from bpe_beam.shards.numbering import shard_name
from bpe_beam.shards.shard_rows import Shard, TokenlessSplit, Totals
from bpe_beam.storage import PathName, Storage, path_name
from bpe_beam.storage.json_file import VERSION
from bpe_beam.storage.names import absolute
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.transforms.claimed_folder import take_folder
from bpe_beam.transforms.document_chunks import LOST, Chunk, chunks_of, write_shard
from bpe_beam.transforms.shuffles import CreateElements
from bpe_beam.transforms.tokens_folder import TokensFolder, remove_earlier_run

_MAX_SHARDS = 100_000


@beam.typehints.with_output_types(str)
class WriteTokens(beam.PTransform):
    """Writes tokenized documents as a folder of shards that trainers read.

    Takes every output of `Tokenize`: a `pyarrow.UInt32Array` per document; dicts or rows with a
    list of ids in the field `tokens`; Arrow batches or tables with a column `tokens`; and any of
    them with a key, which is dropped. Writes at most `shards` shards, the tokenizer, and
    finally a manifest, so that `bpe-beam verify` can check the folder. For bounded input in the
    global window. The worker of a shard keeps about 250 bytes per document in memory, 500 with an
    id or a source, and the ids in a local temporary file. The output is the manifest's URL.

    The formats `parquet` and `arrow` store the fields or columns `id` and `source`, which may have
    strings, numbers, dates or UUIDs.

    One run owns the folder: another `WriteTokens` fails, in the same pipeline when it is built, in
    another pipeline when it runs. A run that fails before it writes leaves the folder empty; after
    a later failure the next run needs `overwrite`.

    The hash of a document decides its shard. A shard without tokens is not written, and the others
    are numbered without gaps. Without any token the manifest lists no shards.

    Args:
        folder: An empty or new folder; with `overwrite`, one with only files that this
            package wrote.
        tokenizer: The tokenizer that made the ids.
        shards: Maximum number of shards, from 1 to 100,000.
        storage: The storage client.
        format: The format of the shards, one of SHARD_FORMATS. The readers of `llmc` recognise a
            document by the end-of-text token at its beginning.
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
            remove_earlier_run(self.storage, self.folder)
        self.storage.make_folder(self.folder)
        target = TokensFolder(
            self.storage,
            self.folder,
            self.shards,
            self.tokenizer.to_json(),
            self.format,
            secrets.token_hex(16),
        )
        with_labels = shard_format(self.format).labelled
        split = beam.FlatMap(chunks_of, self.shards, with_labels)
        split = split.with_output_types(tuple[int, Chunk])
        chunks = tokens | "SplitToChunks" >> split
        # No shard has the number -1; it makes sure that there is an element to gather.
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
            | "WriteShard" >> beam.FlatMap(write_shard, target).with_output_types(tuple[int, bytes])
            # Not as a side input, because Dataflow gives it a coder that pickles.
            | "GatherRows" >> beam.GroupByKey()
            | "WriteManifest" >> beam.FlatMap(_write_manifest, target).with_output_types(str)
        )


@beam.typehints.with_input_types(tuple[int, Chunk])
@beam.typehints.with_output_types(tuple[int, int])
class _ShardsWithTokens(beam.DoFn):
    """Chunks to the numbers of shards with tokens, under one key; each number once per bundle."""

    def start_bundle(self) -> None:
        self.seen: set[int] = set()

    def process(self, element: tuple[int, Chunk]) -> Iterator[tuple[int, int]]:
        shard, (_, number, ids) = element
        if ids and number >= 0 and shard not in self.seen:
            self.seen.add(shard)
            yield 0, shard


def _check_free(element: tuple[int, int], folder: TokensFolder) -> tuple[int, int]:
    """Return the element, if no other run has claimed the folder or finished there."""
    folder.require_free()
    return element


def _name_shards(
    element: tuple[int, Iterable[int]], target: TokensFolder
) -> Iterator[tuple[int, Chunk]]:
    """Claim the folder, and yield the final names of shards, empty for a shard without tokens.

    They are numbered without gaps.
    """
    with_tokens = sorted(set(element[1]) - {-1})
    names = {shard: shard_name(index, len(with_tokens)) for index, shard in enumerate(with_tokens)}
    suffixes = shard_format(target.format).suffixes
    target.claim([f"{name}{suffix}" for name in names.values() for suffix in suffixes])
    for shard in range(target.shards):
        yield shard, (b"", 0, names.get(shard, "").encode())


def _write_manifest(element: tuple[int, Iterable[bytes]], target: TokensFolder) -> Iterator[str]:
    """Write the tokenizer, and the manifest with all rows, which completes the folder."""
    rows = [json_structs.decode(row, Shard) for row in element[1]]
    rows.sort(key=lambda row: row.split)
    shards = tuple(row for row in rows if row.tokens)
    names = [shard_name(index, len(shards)) for index in range(len(shards))]
    numbers = [row.split for row in rows]
    if numbers != list(range(target.shards)) or [row.name for row in shards] != names:
        raise DataError(LOST)
    tokenless = tuple(
        TokenlessSplit(row.split, slices=(), documents=row.documents, text_bytes=0, rejects=0)
        for row in rows
        if not row.tokens
    )
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
    sizes = {file.name: file.bytes for shard in shards for file in shard.files}
    yield target.complete(manifest.to_bytes(), sizes, small_files(manifest, data))
