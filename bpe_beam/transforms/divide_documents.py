"""`DivideDocuments`: documents for training and for validation, by a hash of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import apache_beam as beam
import numpy as np
import pyarrow as pa

from bpe_beam.corpus.rejects import Limit
from bpe_beam.errors import DataError, require, require_choice
from bpe_beam.folders.artifact_names import PARTS
from bpe_beam.shards.formats.table_schema import ID_HASH, TEXT_HASH
from bpe_beam.transforms import elements
from bpe_beam.transforms.document_fn import Document, DocumentFn, NamedOutputs
from bpe_beam.transforms.document_order import order_of
from bpe_beam.transforms.ids_and_sources import label_column, label_of
from bpe_beam.transforms.shuffles import outputs_of
from bpe_beam.workers.document_hashes import for_validation, with_hashes

TRAIN, VALIDATION = PARTS


class DivideDocuments(beam.PTransform):
    """Divides documents into two collections: `outputs.train` and `outputs.validation`.

    A hash of each document decides, as `tokenize --validation-share` does: the same documents are
    for validation. Takes the documents that `Tokenize` takes, with or without keys, and returns
    them unchanged; a batch is divided into two. Give each collection a `Tokenize` and a
    `WriteTokens`. A document without a usable text is in `train`, where `Tokenize` refuses it.

    Args:
        validation_share: The share of the documents that are for validation, such as "0.5%".
        validation_by: `text`: documents with equal texts go together. `id`: documents with equal
            values of the field or column `id` do; documents without one go by their text.
        text_field: The field or column of the text, or a path to one, `meta.body`.

    Raises:
        UsageError: The share is no share above 0 %.
    """

    def __init__(
        self,
        validation_share: str,
        *,
        validation_by: Literal["text", "id"] = "text",
        text_field: str = "text",
    ) -> None:
        super().__init__()
        require_choice("validation_by", validation_by, ("text", "id"))
        is_share = isinstance(validation_share, str) and validation_share.endswith("%")
        require(
            is_share and Limit.parse(validation_share, "validation_share").numerator > 0,
            "must be a share above 0% with a percent sign, such as '0.5%', got "
            f"{validation_share!r}",
            "validation_share",
        )
        self.validation_share = validation_share
        self.validation_by = validation_by
        self.text_field = text_field

    def display_data(self) -> dict[str, Any]:
        return {"validation_share": self.validation_share, "validation_by": self.validation_by}

    def expand(self, documents: beam.pvalue.PCollection) -> NamedOutputs:
        types = dict.fromkeys((TRAIN, VALIDATION), documents.element_type)
        outputs = outputs_of(documents, "Divide", beam.ParDo(_Divide(self)), types)
        return NamedOutputs({name: outputs[name] for name in types})


class _Divide(DocumentFn):
    def __init__(self, divide: DivideDocuments) -> None:
        super().__init__(divide.text_field, dead_letters=True)
        self.share = divide.validation_share
        self.by = divide.validation_by

    def use(self, documents: list[Document], texts: pa.Array, batch: Any = None) -> Iterator[Any]:
        if batch is None:
            ids = [_id_of(each) for each in documents] if self.by == "id" else None
            chosen = self._for_validation(ids, texts)
            for document, is_chosen in zip(documents, chosen.tolist(), strict=True):
                yield _output(document, document.element, is_chosen)
            return
        (document,) = documents
        ids = label_column(batch, "id", "DivideDocuments") if self.by == "id" else None
        order = order_of(batch)
        text_files = () if order is None else order.text_files
        chosen = self._for_validation(ids, texts, text_files)
        for is_chosen in (False, True):
            part = batch.filter(pa.array(chosen == is_chosen))
            if part.num_rows:
                yield _output(document, elements.with_value(document.element, part), is_chosen)

    def check(self, document: Document, texts: pa.Array, batch: Any) -> None:
        """Accept every text; an unusable one has raised an error before."""

    def _for_validation(
        self, ids: Any, texts: pa.Array, text_files: tuple[str, ...] = ()
    ) -> np.ndarray[Any, np.dtype[np.bool_]]:
        known = [None] * len(texts) if ids is None else ids
        columns = [pa.array(known, pa.large_string()), texts.cast(pa.large_string())]
        batch = with_hashes(pa.RecordBatch.from_arrays(columns, ["id", "text"]), text_files)
        hashes = batch.column(TEXT_HASH if self.by == "text" else ID_HASH)
        return for_validation(hashes.to_numpy(), self.share)

    def _unusable(self, document: Document, error: DataError) -> Any:
        return document.output(document.element)


def _id_of(document: Document) -> str | None:
    fields = elements.fields_of(elements.without_key(document.element)) or {}
    return label_of(fields.get("id"), "the field 'id' of a document", "DivideDocuments")


def _output(document: Document, element: Any, is_for_validation: bool) -> Any:
    output = document.output(element)
    return beam.pvalue.TaggedOutput(VALIDATION, output) if is_for_validation else output
