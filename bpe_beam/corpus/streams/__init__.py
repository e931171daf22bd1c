"""The bytes of a file: checked against the plan, decompressed, from any unit on."""

from bpe_beam.corpus.streams.decompressed import BrokenStream
from bpe_beam.corpus.streams.source import Source, decompress

__all__ = ["BrokenStream", "Source", "decompress"]
