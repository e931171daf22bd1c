"""Writing shards whose records are tf.train.Examples: what TFRecord and ArrayRecord share.

An Example has one feature, `input_ids`, a list of int64: the ids of a document.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpe_beam.errors import DataError
from bpe_beam.shards.formats.id_stream import groups_of_documents
from bpe_beam.shards.formats.one_file_writer import OneFileWriter

if TYPE_CHECKING:
    import pyarrow as pa

MAX_TOKENS = 400_000_000
"""The maximum tokens of a document: an Example is below 2 GiB, and an id has up to five bytes."""

_TOKENS = 1 << 18


class ExampleWriter(OneFileWriter):
    """The base of `ShardWriter`s of such shards. A subclass writes records."""

    @abstractmethod
    def write_records(self, ids: NDArray[np.uint32], offsets: NDArray[np.int64]) -> None:
        """Write documents: about as many tokens as are processed at a time, or one document."""

    def add(
        self,
        ids: NDArray[np.uint32],
        offsets: NDArray[np.int64],
        labels: pa.RecordBatch | None,
    ) -> None:
        """See `OneFileWriter.add`."""
        lengths = np.diff(offsets)
        if lengths.max(initial=0) > MAX_TOKENS:
            document = int(np.argmax(lengths > MAX_TOKENS))
            raise DataError(
                f"{self.name}: document {self.documents + document} has {int(lengths[document])} "
                f"tokens; the format allows at most {MAX_TOKENS} a document: divide the document"
            )
        for row, stop in groups_of_documents(offsets, _TOKENS):
            part = ids[offsets[row] : offsets[stop]]
            self.write_records(part, offsets[row : stop + 1] - offsets[row])
