"""Reading gzip; its units are members."""

from __future__ import annotations

import re
import zlib

from bpe_beam.corpus.streams.decompressed import Decompressed
from bpe_beam.corpus.streams.stored import Stored

_GZIP_STEP = 64 << 10
"""The bytes that zlib gets at once: it copies those after the end of a member, and files of Common
Crawl have a member a record."""

_CHECKSUM = re.compile("incorrect (data|length) check")


class Gzip(Decompressed):
    """gzip, of any number of members; zeros after one are padding, as for Python."""

    def __init__(self, stored: Stored) -> None:
        super().__init__(stored)
        self._member: zlib._Decompress | None = None

    def advance(self, limit: int) -> bytes | None:
        self._sound = self._position
        more = self._fill(1)
        if self._member is None:
            while more and self._input[self._at] == 0:
                self._input, self._at = self._input[self._at :].lstrip(b"\0"), 0
                more = self._fill(1)
            if not more:
                return None
            self._begin_unit(self._position)
            self._member = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        output = self._decompress(self._member, limit)
        if self._member.eof:
            self._member = None
        elif not more and not output:
            raise self._broken("the gzip stream ends too soon")
        return output

    def _decompress(self, member: zlib._Decompress, limit: int) -> bytes:
        """Return the bytes of one step.

        If it fails, half as much is tried, so that all bytes before the broken one are used.
        """
        count = min(_GZIP_STEP, len(self._input) - self._at)
        while True:
            self._member = member.copy()
            try:
                output = self._member.decompress(self._input[self._at : self._at + count], limit)
            except zlib.error as error:
                if count <= 1:
                    wrong = _CHECKSUM.search(str(error))
                    broken = self._wrong_checksum if wrong else self._broken
                    raise broken(f"the gzip stream is corrupt ({error})") from None
                count //= 2
                continue
            ended = self._member.eof  # then the tail can hold the same bytes again
            rest = self._member.unused_data if ended else self._member.unconsumed_tail
            self._at += count - len(rest)
            return output
