"""Megatron shards with the bytes that Megatron-LM's own `tools/preprocess_data.py` writes.

That tool stores ids as uint16 only if the vocabulary has fewer than 65,500 entries, so the pairs
differ from `megatron` for 65,500 to 65,536 entries alone. All readers read both, but Megatron with
`--per-dataset-sequences-path` takes uint16 up to 65,536 entries, whatever the index says.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bpe_beam.shards.formats.id_stream import stream_format
from bpe_beam.shards.formats.megatron import WIDTH_AT, MegatronStream, MegatronWriter

MIN_WIDE_VOCAB = 65_500  # the smallest vocabulary whose ids are int32


class PreprocessDataWriter(MegatronWriter):
    """A `ShardWriter`; see `MegatronWriter`."""

    @classmethod
    def dtype_for(cls, vocab_size: int) -> np.dtype[Any]:
        """See `IdStreamWriter.dtype_for`."""
        dtype = super().dtype_for(vocab_size)
        return cls.dtypes[-1] if vocab_size >= MIN_WIDE_VOCAB else dtype


FORMAT = stream_format(
    "megatron_preprocess_data",
    PreprocessDataWriter,
    MegatronStream,
    width_at=WIDTH_AT,
    megatron_pairs=True,
)
