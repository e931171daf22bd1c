"""Deterministic coders for the Arrow elements that travel between our transforms.

They are registered for their types when this module is imported, so that no pipeline falls back to
pickling.
"""

from __future__ import annotations

from typing import Any

import apache_beam as beam
import pyarrow as pa

from bpe_beam.counts.pair_counts import PairCounts


class _ArrowCoder(beam.coders.Coder):
    """A coder whose equal values have equal bytes."""

    kind: Any
    """The type that the coder is registered for."""

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> Any:
        return self.kind


class RecordBatchCoder(_ArrowCoder):
    """A `pyarrow.RecordBatch` as an Arrow IPC stream of one batch, schema included."""

    kind = pa.RecordBatch

    def encode(self, value: pa.RecordBatch) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema) as writer:
            writer.write_batch(value)
        return bytes(sink.getvalue())

    def decode(self, encoded: bytes) -> pa.RecordBatch:
        with pa.ipc.open_stream(encoded) as reader:
            return reader.read_next_batch()


class TokensCoder(_ArrowCoder):
    """A `pyarrow.UInt32Array` without nulls, the ids of one document, as little-endian bytes."""

    kind = pa.UInt32Array

    def encode(self, value: pa.UInt32Array) -> bytes:
        return bytes(value.to_numpy().astype("<u4", copy=False).tobytes())

    def decode(self, encoded: bytes) -> pa.UInt32Array:
        buffers = [None, pa.py_buffer(encoded)]
        return pa.Array.from_buffers(pa.uint32(), len(encoded) // 4, buffers)


class PairCountsCoder(_ArrowCoder):
    """A `PairCounts`, the accumulator of `PairCountsFn`: 16 bytes per pair."""

    kind = PairCounts

    def encode(self, value: PairCounts) -> bytes:
        return value.to_bytes()

    def decode(self, encoded: bytes) -> PairCounts:
        return PairCounts.from_bytes(encoded)


for coder in (PairCountsCoder, RecordBatchCoder, TokensCoder):
    beam.coders.registry.register_coder(coder.kind, coder)
