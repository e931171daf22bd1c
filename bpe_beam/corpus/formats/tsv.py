"""TSV: CSV with tabs; see `csv.py`."""

from functools import partial

from msgspec.structs import replace

from bpe_beam.corpus.formats import csv

_read = partial(csv.read_delimited, delimiter="\t")
FORMAT = replace(csv.FORMAT, name="tsv", read=_read, endings=(".tsv", ".tab"))
