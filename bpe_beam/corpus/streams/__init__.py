"""The bytes of a file: held to what was planned, decompressed, begun in the middle."""

from bpe_beam.corpus.streams.decompressed import BrokenStream
from bpe_beam.corpus.streams.source import Source, open_source

__all__ = ["BrokenStream", "Source", "open_source"]
