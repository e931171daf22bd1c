"""`SpreadWorks`: the splits of a plan as elements, spread over the workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import apache_beam as beam

from bpe_beam.transforms.given_elements import GivenElements

_PIECE_CHARACTERS = 240_000
"""Of a work, that travel together: at four bytes each, under 1 MB."""

_Piece = tuple[int, str]


@beam.typehints.with_output_types(str)
class SpreadWorks(beam.PTransform):
    """Works, see `works_of`, spread over the workers.

    A shuffle by the work's number. Beam's own Reshuffle does the same by random numbers, but
    carries windows and timestamps along, pickled. A work of many small files has some MB: it is
    shuffled in pieces.
    """

    def __init__(self, works: Iterable[str]) -> None:
        super().__init__()
        self.pieces = [
            (number, (start, work[start : start + _PIECE_CHARACTERS]))
            for number, work in enumerate(works)
            for start in range(0, len(work), _PIECE_CHARACTERS)
        ]

    def expand(self, begin: beam.pvalue.PBegin) -> beam.pvalue.PCollection:
        """Wires the steps."""
        return (
            begin
            | "Works" >> GivenElements(self.pieces, tuple[int, _Piece])
            | "Spread" >> beam.GroupByKey()
            | "TakeWork" >> beam.ParDo(_TakeWork())
        )


@beam.typehints.with_input_types(tuple[int, Iterable[_Piece]])
@beam.typehints.with_output_types(str)
class _TakeWork(beam.DoFn):
    """The pieces of a numbered work to the work."""

    def process(self, element: tuple[int, Iterable[_Piece]]) -> Iterator[str]:
        """Joins them."""
        yield "".join(piece for _, piece in sorted(element[1]))
