"""The transforms of a pipeline that made a collection."""

from __future__ import annotations

from collections.abc import Iterator

import apache_beam as beam
from apache_beam.pipeline import AppliedPTransform


def producers_of(
    collection: beam.pvalue.PCollection, kind: type | tuple[type, ...]
) -> Iterator[tuple[beam.pvalue.PCollection, AppliedPTransform]]:
    """Yield the transforms of a kind that made a collection, the nearest on each way back, each
    with its output."""
    seen: set[int] = set()
    waiting = [collection]
    while waiting:
        output = waiting.pop()
        producer = output.producer
        if producer is None or id(producer) in seen:
            continue
        seen.add(id(producer))
        part = producer
        while part is not None and not isinstance(part.transform, kind):
            part = part.parent
        if part is None:
            waiting += [each for each in producer.inputs if hasattr(each, "producer")]
        else:
            yield output, part
