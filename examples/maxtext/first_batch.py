"""Read the first documents of ArrayRecord shards with grain's own reader, padded to one length.

python first_batch.py FOLDER
"""

import sys
from pathlib import Path
from typing import Any

import grain
import numpy as np
from tfrecord.example_pb2 import Example


def first_batch(folder: str, length: int = 64, size: int = 4) -> np.ndarray[Any, Any]:
    """Return the first ids of the first documents, int32[size, length], filled up with 0.

    Args:
        folder: The tokens folder.
        length: The number of ids of a row.
        size: The number of documents.
    """
    paths = sorted(map(str, Path(folder).glob("shard-*.array_record")))
    records = grain.sources.ArrayRecordDataSource(paths)
    batch = np.zeros((size, length), np.int32)
    for target, record in zip(batch, (records[number] for number in range(size)), strict=True):
        example = Example.FromString(record)
        ids = example.features.feature["input_ids"].int64_list.value[:length]
        target[: len(ids)] = ids
    return batch


if __name__ == "__main__":
    found = first_batch(sys.argv[1])
    print(found.shape, found[:, :10])
