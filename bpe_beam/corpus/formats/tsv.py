"""TSV: records in which newlines may be within quotes; see `reading/delimited.py`."""

from __future__ import annotations

from functools import partial

from bpe_beam.corpus.formats.interface import InputFormat
from bpe_beam.corpus.reading.delimited import read_delimited

FORMAT = InputFormat(
    name="tsv",
    read=partial(read_delimited, delimiter="\t"),
    endings=(".tsv", ".tab"),
    speculative=True,
    reject_gap=None,
)
