"""A small pipeline on Beam's own runner: the program by which `doctor` checks Beam."""

from __future__ import annotations

import apache_beam as beam

if __name__ == "__main__":
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        pipeline | beam.Create([1, 2]) | beam.Map(lambda n: (0, n)) | beam.GroupByKey()
