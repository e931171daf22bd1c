"""Read the first batch of Parquet shards with `datasets`, padded as a collator does.

python first_batch.py FOLDER
"""

import sys
from pathlib import Path
from typing import Any

import datasets
import numpy as np

IGNORED = -100
"""The label that the loss leaves out."""


def first_batch(folder: str, size: int = 4, pad: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """Return ids, attention mask and labels of the first documents, each int64[size, longest].

    Args:
        folder: The tokens folder.
        size: The number of documents.
        pad: The id that fills up shorter documents.
    """
    files = sorted(str(path) for path in Path(folder).glob("shard-*.parquet"))
    data = datasets.load_dataset("parquet", data_files=files, split="train", streaming=True)
    rows = [row["input_ids"] for row in data.select_columns("input_ids").take(size)]
    shape = len(rows), max(map(len, rows))
    batch = {
        "input_ids": np.full(shape, pad, np.int64),
        "attention_mask": np.zeros(shape, np.int64),
        "labels": np.full(shape, IGNORED, np.int64),
    }
    for number, ids in enumerate(rows):
        batch["input_ids"][number, : len(ids)] = ids
        batch["attention_mask"][number, : len(ids)] = 1
        batch["labels"][number, : len(ids)] = ids
    return batch


if __name__ == "__main__":
    for name, values in first_batch(sys.argv[1]).items():
        print(name, values.shape, values[0, :10])
