"""Where documents come from: a plan of files and splits, readers to Arrow batches, rejects."""

from bpe_beam.corpus.batches import BATCH_SCHEMA
from bpe_beam.corpus.boundaries import apart
from bpe_beam.corpus.limits import Limit
from bpe_beam.corpus.losses import FileLoss, Loss
from bpe_beam.corpus.plan import InputFile, Plan, Slice, Split
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.readers import read_split
from bpe_beam.corpus.rejects import Reject, RejectWriter
from bpe_beam.corpus.split_planning import make_plan

__all__ = [
    "BATCH_SCHEMA",
    "FileLoss",
    "InputFile",
    "Limit",
    "Loss",
    "Plan",
    "ReadSettings",
    "Reject",
    "RejectWriter",
    "Slice",
    "Split",
    "apart",
    "make_plan",
    "read_split",
]
