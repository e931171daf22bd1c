"""Read the first documents of Parquet shards with grain's own reader, padded to one length.

python first_batch.py FOLDER
"""

import itertools
import sys
from pathlib import Path
from typing import Any

import grain
import numpy as np


def first_batch(folder: str, length: int = 64, size: int = 4) -> np.ndarray[Any, Any]:
    """Return the first ids of the first documents, int32[size, length], filled up with 0.

    Args:
        folder: The tokens folder.
        length: The number of ids of a row.
        size: The number of documents.
    """
    path = str(min(Path(folder).glob("shard-*.parquet")))
    batch = np.zeros((size, length), np.int32)
    rows = grain.experimental.ParquetIterDataset(path)
    for target, row in zip(batch, itertools.islice(rows, size), strict=True):
        ids = row["input_ids"][:length]
        target[: len(ids)] = ids
    return batch


if __name__ == "__main__":
    found = first_batch(sys.argv[1])
    print(found.shape, found[:, :10])
