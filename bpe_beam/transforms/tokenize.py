"""`Tokenize`: documents in, token ids out, in the user's own pipeline."""

from __future__ import annotations

from collections.abc import Iterator

import apache_beam as beam
import pyarrow as pa

from bpe_beam.splits import measures
from bpe_beam.splits.encoding import AllowedSpecial, Encoding
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.transforms import counters
from bpe_beam.transforms.texts import Element, array_of, text_column, utf8_of


class Tokenize(beam.PTransform):
    """Encodes documents, element by element.

    A `str` or `bytes` (UTF-8) becomes a `pyarrow.UInt32Array` of its ids. An Arrow batch with a
    column `text` becomes the same batch with a column `tokens` (large_list of uint32) in its
    place. Windows, timestamps and order stay as they are.

    Args:
        tokenizer: The tokenizer; held once a process, however many workers encode there.
        append: Token put after each document.
        prepend: Token put before each document.
        allowed_special: Special tokens that count as such in the text; the others are plain text.

    Raises:
        UsageError: A token that the tokenizer does not have.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        append: str | None = None,
        prepend: str | None = None,
        allowed_special: AllowedSpecial = (),
    ) -> None:
        super().__init__()
        self.encoding = Encoding.of(
            tokenizer, append=append, prepend=prepend, allowed_special=allowed_special
        )

    def expand(self, documents: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        """Wires the step; the output's type follows from the input's."""
        batches = documents.element_type is pa.RecordBatch
        made = pa.RecordBatch if batches else pa.UInt32Array
        encode = beam.ParDo(_Encode(self.encoding)).with_output_types(made)
        return documents | "Encode" >> encode


@beam.typehints.with_input_types(Element)
class _Encode(beam.DoFn):
    """One element to its ids."""

    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding

    def process(self, element: Element) -> Iterator[pa.UInt32Array | pa.RecordBatch]:
        """Encodes a document, or a batch of them."""
        is_batch = isinstance(element, pa.RecordBatch)
        texts = text_column(element) if is_batch else array_of([utf8_of(element)])
        ids = self.encoding.encode(texts)
        counters.counter(measures.DOCUMENTS_TOKENIZED).inc(len(ids))
        counters.counter(measures.TOKENS_MADE).inc(len(ids.flatten()))
        if is_batch:
            place = element.schema.get_field_index("text")
            yield element.remove_column(place).add_column(place, "tokens", ids)
        else:
            yield ids.flatten()
