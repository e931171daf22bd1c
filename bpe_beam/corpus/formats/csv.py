"""CSV: records in which newlines may be within quotes; see `reading/delimited.py`."""

from __future__ import annotations

from functools import partial

from bpe_beam.corpus.formats.interface import InputFormat
from bpe_beam.corpus.reading.delimited import read_delimited

FORMAT = InputFormat(
    name="csv",
    read=partial(read_delimited, delimiter=","),
    endings=(".csv",),
    speculative=True,
    reject_gap=None,
)
