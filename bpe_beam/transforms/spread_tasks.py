"""`SpreadTasks`: the splits of a plan as elements, spread over the workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import apache_beam as beam

from bpe_beam.errors import DataError
from bpe_beam.transforms.create_elements import CreateElements

_PIECE_CHARACTERS = 240_000
"""Of a work, that travel together: at four bytes each, under 1 MB."""

_Piece = tuple[int, int, str]
"""Where it begins, how long the work is, and the piece."""


@beam.typehints.with_output_types(str)
class SpreadTasks(beam.PTransform):
    """Works, see `works_of`, spread over the workers.

    A shuffle by the work's number. Beam's own Reshuffle does the same by random numbers, but
    carries windows and timestamps along, pickled. A work of many small files has some MB: it is
    shuffled in pieces.
    """

    def __init__(self, works: Iterable[str]) -> None:
        super().__init__()
        self.pieces = [
            (number, (start, len(work), work[start : start + _PIECE_CHARACTERS]))
            for number, work in enumerate(works)
            for start in range(0, len(work), _PIECE_CHARACTERS)
        ]

    def expand(self, begin: beam.pvalue.PBegin) -> beam.pvalue.PCollection:
        """Wires the steps."""
        return (
            begin
            | "Works" >> CreateElements(self.pieces, tuple[int, _Piece])
            | "Spread" >> beam.GroupByKey()
            | "TakeWork" >> beam.ParDo(_TakeWork())
        )


@beam.typehints.with_input_types(tuple[int, Iterable[_Piece]])
@beam.typehints.with_output_types(str)
class _TakeWork(beam.DoFn):
    """The pieces of a numbered work to the work."""

    def process(self, element: tuple[int, Iterable[_Piece]]) -> Iterator[str]:
        """Joins them.

        Raises:
            DataError: They are not the whole work.
        """
        pieces = sorted(element[1])
        work = "".join(piece for _, _, piece in pieces)
        if len(work) != pieces[0][1]:
            raise DataError("the runner lost a part of what is to be done, or gave it twice")
        yield work
