"""The tasks of workers: splits of a plan, steps of a merge round, windows of a stream. No Beam."""
