"""A batch of documents to ids, by the rules for documents, without those that no shard can hold."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe_beam.corpus.batches import PLACE_BITS
from bpe_beam.corpus.formats.interface import input_format
from bpe_beam.corpus.plan import InputFile, Plan
from bpe_beam.corpus.rejects import Reject, RejectReason
from bpe_beam.errors import DataError, TextError
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.document_rules import RuledDocuments, apply_rules


def encode_documents(
    encoding: Encoding,
    batch: pa.RecordBatch,
    plan: Plan,
    on_reject: Callable[[Reject], None],
    max_tokens: int,
) -> RuledDocuments:
    """Encode documents by the rules for them, and reject those too long for a shard's index.

    A record has at most 2^31 - 1 bytes, but a normalizer, or the bytes of unknown characters, may
    make a longer document of it.

    Returns:
        The documents that are left, the ids of each, and what was changed.
    """
    try:
        encoded = encoding.encode_texts(batch.column("text"))
    except TextError as error:
        raise DataError(f"{_record(batch, error.number, plan)}: {error.reason}") from None
    frame = encoding.frame(encoding.tokenizer())
    ruled = apply_rules(encoding.rules, batch, encoded, *frame)
    batch, ids, changes = ruled
    lengths = np.diff(ids.offsets.to_numpy())
    if lengths.max(initial=0) <= max_tokens:
        return ruled
    fits = lengths <= max_tokens
    for number in np.flatnonzero(~fits).tolist():
        on_reject(_reject(batch, number, plan, int(lengths[number]), max_tokens))
    kept: npt.NDArray[np.int64] = np.flatnonzero(fits)
    return RuledDocuments(batch.take(pa.array(kept)), ids.take(pa.array(kept)), changes)


def _reject(batch: pa.RecordBatch, number: int, plan: Plan, tokens: int, max_tokens: int) -> Reject:
    text = batch.column("text")[number].as_py().encode("utf-8", "surrogatepass")
    detail = f"the document has {tokens:,} tokens; a shard holds at most {max_tokens:,} a document"
    file, at = _position(batch, number, plan) or (plan.files[plan.splits[0].slices[0].file], None)
    kind = "row" if input_format(file.format).columnar else "offset"
    return Reject.of(file.name, RejectReason.TOO_MANY_TOKENS, detail, text, **{kind: at})


def _position(batch: pa.RecordBatch, number: int, plan: Plan) -> tuple[InputFile, int] | None:
    """Return the file of a document and its byte or row there; None if they are unknown."""
    place = batch.column("place")[number].as_py()
    if place is None:
        return None
    return plan.files[place >> PLACE_BITS], place & ((1 << PLACE_BITS) - 1)


def _record(batch: pa.RecordBatch, number: int, plan: Plan) -> str:
    """Return the name of a record in errors: its position, or its id if that is unknown."""
    position = _position(batch, number, plan)
    if position is None:
        name = batch.column("id")[number].as_py()
        files = ", ".join(plan.files[part.file].name for part in plan.splits[0].slices[:3])
        return f"the record {name}" if name else f"a record without an id in {files}"
    file, at = position
    unit = "row" if input_format(file.format).columnar else "byte"
    return f"{file.name}: the record at {unit} {at:,}"
