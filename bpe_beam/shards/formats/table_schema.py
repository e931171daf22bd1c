"""The columns of shards that are one table of documents: Parquet and Arrow.

A row is a document:

    input_ids  list<int32>  its ids
    length     int32        their number
    id         string       the document's id; null if it has none or it is unknown
    source     string       its source; null if unknown
    text_bytes int64        its text before encoding, in bytes of UTF-8; null if unknown

Rows that are sequences (see `ShardOrigin.sequence_length`) have one column in place of the last
three:

    seq_lengths  list<int32>  the tokens of each document, or slice of one, in the sequence; the
                              tokens after them are padding; null if unknown

Temporary documents that will be divided (see `ShardOrigin.hashes`) have two more columns:

    id_hash      uint64       the hash of a document's id; without one, the hash of its text
    text_hash    uint64       the hash of its text

Columns that trainers ask for come last (`trainer_columns.py`).

The schema's metadata has a JSON object under the key `bpe_beam`: `document` is `row`, where a
document begins and ends; `prepend` and `append` are the token that is put before and after each
document and its id, or a list of several, or null; `tokenizer` has the `fingerprint` and the
`vocab_size`; sequences have `sequence_length`, rows with hashes have `hashes`, true. The
fingerprint, `prepend` and `append` are absent if unknown.

Rows are in groups of limited size, which depend on the documents alone: equal documents give equal
bytes. int32 holds the ids of any vocabulary.
"""

from __future__ import annotations

import json

import pyarrow as pa

from bpe_beam.shards.formats import TRAINER_COLUMNS
from bpe_beam.shards.formats.interface import ShardOrigin
from bpe_beam.shards.formats.trainer_columns import column_fields

IDS = "input_ids"
LENGTH = "length"
TEXT_BYTES = "text_bytes"
SEQUENCE_LENGTHS = "seq_lengths"
ID_HASH = "id_hash"
TEXT_HASH = "text_hash"

_ROW = [(IDS, pa.list_(pa.int32())), (LENGTH, pa.int32())]
SCHEMA = pa.schema([*_ROW, ("id", pa.string()), ("source", pa.string()), (TEXT_BYTES, pa.int64())])
HASHED_SCHEMA = pa.schema([*SCHEMA, (ID_HASH, pa.uint64()), (TEXT_HASH, pa.uint64())])
SEQUENCES_SCHEMA = pa.schema([*_ROW, (SEQUENCE_LENGTHS, pa.list_(pa.int32()))])

METADATA_KEY = b"bpe_beam"


def table_metadata(vocab_size: int, origin: ShardOrigin | None) -> dict[bytes, str]:
    tokenizer: dict[str, int | str] = {"vocab_size": vocab_size}
    values: dict[str, object] = {"document": "row", "tokenizer": tokenizer}
    if origin is not None:
        tokenizer["fingerprint"] = origin.fingerprint
        for name, frame in (("prepend", origin.prepend), ("append", origin.append)):
            tokens = [{"token": token, "id": token_id} for token, token_id in frame]
            values[name] = tokens if len(tokens) > 1 else tokens[0] if tokens else None
        if origin.sequence_length is not None:
            values["sequence_length"] = origin.sequence_length
        if origin.hashes:
            values["hashes"] = True
    return {METADATA_KEY: json.dumps(values, ensure_ascii=False, sort_keys=True)}


def vocab_size_of(schema: pa.Schema) -> int:
    """Return the vocabulary size in the metadata of a shard's schema; refuse another schema."""
    metadata = schema.metadata or {}
    values = json.loads(metadata.get(METADATA_KEY, b"{}"))
    hashed = isinstance(values, dict) and values.get("hashes") is True
    columns = column_fields(columns_of(schema))
    schemas = [
        pa.schema([*each, *columns])
        for each in ((HASHED_SCHEMA,) if hashed else (SCHEMA, SEQUENCES_SCHEMA))
    ]
    if schema.remove_metadata() not in schemas:
        columns_of_file, expected = (
            ", ".join(f"{field.name}: {field.type}" for field in each)
            for each in (schema, schemas[0])
        )
        raise ValueError(f"the columns are {columns_of_file}; expected {expected}")
    if METADATA_KEY not in metadata:
        raise ValueError(f"the schema's metadata lack {METADATA_KEY.decode()!r}")
    if values["document"] != "row":
        raise ValueError(f"a document is a {values['document']!r}; expected a row")
    return int(values["tokenizer"]["vocab_size"])


def label_fields(schema: pa.Schema) -> list[pa.Field]:
    """Return the columns that are labels of the rows."""
    return [field for field in schema if field.name not in (IDS, LENGTH, *TRAINER_COLUMNS)]


def columns_of(schema: pa.Schema) -> tuple[str, ...]:
    """Return the columns for trainers."""
    return tuple(name for name in TRAINER_COLUMNS if name in schema.names)
