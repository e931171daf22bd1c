"""datatrove shards: a `.ds` of token ids, the documents' ends, and a short description.

`datatrove/pipeline/tokens/tokenizer.py` (datatrove) defines the layout, which nanotron reads, too;
little-endian:

    .ds           the ids of all documents one after the other, uint16 or uint32
    .ds.index     uint64[D]: where each document ends, in tokens
    .ds.metadata  three lines of text: the file of the tokenizer, `|` and the bytes of an id; the
                  number of tokens; the same number for people, such as `1.23 GT`

The types are datatrove's: uint16 for a vocabulary of up to 65,536 ids. Documents end by the index.
datatrove's reader computes wrong positions after a document without tokens, so a token should be
appended to each document if positions are read from the index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bpe_beam.errors import DataError
from bpe_beam.folders.artifact_names import TOKENIZER_FILE
from bpe_beam.shards.formats.id_stream import IdStream, IdStreamWriter, stream_format
from bpe_beam.shards.stored_shard import RangeFile, ShardFile
from bpe_beam.storage.hashing import HashingFile

_UNITS = ("", "k", "M", "G", "T", "P", "E")


class DatatroveWriter(IdStreamWriter):
    """A `ShardWriter`."""

    suffixes = (".ds", ".ds.index", ".ds.metadata")
    dtypes = (np.dtype("<u2"), np.dtype("<u4"))

    def finish(self, *others: HashingFile) -> None:
        index, metadata = others
        for _, ends in self.bounds():
            index.write(ends.astype("<u8").tobytes())
        metadata.write(_description(self.dtype, self.tokens))


def _description(dtype: np.dtype[Any], tokens: int) -> bytes:
    """Return the content of a `.ds.metadata`."""
    return f"{TOKENIZER_FILE}|{dtype.itemsize}\n{tokens}\n{for_people(tokens)}".encode()


def for_people(tokens: int) -> str:
    """Return a number of tokens with three digits and a unit."""
    thousands, digits = divmod(len(str(tokens)) - 1, 3)
    shown = f"{tokens / 1000**thousands:.{2 - digits}f}"
    if float(shown) >= 10 ** (digits + 1):  # rounded up, such as 999,900 to a million
        thousands, digits = divmod(len(str(tokens)), 3)
        shown = f"{tokens / 1000**thousands:.{2 - digits}f}"
    return f"{shown} {_UNITS[thousands]}T"


class DatatroveStream(IdStream):
    """The documents of a datatrove shard."""

    suffixes = DatatroveWriter.suffixes
    missing = "first"

    def read_heads(self, *others: RangeFile | ShardFile) -> None:
        index, self._metadata = others
        self._index_url = index.url
        self.count, rest = divmod(index.size, 8)
        if rest:
            raise DataError(f"{index.url}: has {index.size} bytes; expected 8 for each document")
        self.bounds = index.array(np.dtype("<i8"), self.count)

    def dtypes(self) -> Sequence[np.dtype[Any]]:
        """Return the type of ids that the description names."""
        file, tokens = self._metadata, self.token_count
        expected = {_description(dtype, tokens): dtype for dtype in DatatroveWriter.dtypes}
        # No more than what is compared: the file may be of any size.
        text = file.read(0, min(file.size, 1 + max(map(len, expected))))
        if text not in expected:
            texts = " or ".join(repr(each.decode()) for each in expected)
            raise DataError(
                f"{file.url}: byte 0: the description is {text.decode('ascii', 'replace')!r}; "
                f"expected {texts} for the {tokens} tokens of the index"
            )
        return (expected[text],)

    def describe_bound(self, document: int) -> str:
        return f"{self._index_url}: byte {8 * document}"


FORMAT = stream_format(
    "datatrove", DatatroveWriter, DatatroveStream, width_at=".ds.metadata: byte 0"
)
