"""Reading a file in speculative slices, as a job does: sliced and proven, or as one."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from corpus_reading import STORAGE, Found

from bpe_beam.corpus.boundaries import files_with_gaps
from bpe_beam.corpus.file_types import HEAD_BYTES, compression_of
from bpe_beam.corpus.plan import InputFile, Plan, Slice, Split
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.read_split import read_split
from bpe_beam.corpus.slices import Boundaries


def plan_of(path: Path, kind: str) -> Plan:
    """Return a plan of one file, taken for a format whatever its content."""
    content = path.read_bytes()
    compression = compression_of(content[:HEAD_BYTES])
    return Plan(str(path.parent), (InputFile(path.name, len(content), kind, compression),), ())


def read_cut(
    plan: Plan, cuts: Iterable[int] = (), batch: int = 1 << 20, **options: Any
) -> tuple[Found, bool]:
    """Read the plan's one file sliced at offsets; return also whether slices are contiguous."""
    bounds = [0, *sorted(cuts), plan.size]
    pieces = [Slice(0, *each) for each in itertools.pairwise(bounds)]
    plan = Plan(plan.root, plan.files, tuple(Split(i, (p,)) for i, p in enumerate(pieces)))
    found, edges = Found(), list[Boundaries]()
    settings = ReadSettings(**options)
    for split in plan.splits:
        for rows in read_split(
            STORAGE, plan, split, settings, found.rejects.append, edges.append, batch_bytes=batch
        ):
            found.add(rows)
    assert len(edges) == (0 if len(pieces) == 1 else len(pieces))
    return found, not files_with_gaps(plan, edges)
