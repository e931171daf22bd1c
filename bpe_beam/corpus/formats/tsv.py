"""TSV: CSV with tabs; see `csv.py`."""

from dataclasses import replace
from functools import partial

from bpe_beam.corpus.formats import csv

FORMAT = replace(
    csv.FORMAT,
    name="tsv",
    read=partial(csv.read_delimited, delimiter="\t"),
    endings=(".tsv", ".tab"),
)
