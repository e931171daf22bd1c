"""Read the first batch of a rank through grain, from shards of any format.

python first_batch.py FOLDER
"""

import sys
from typing import Any

import grain
import numpy as np

import bpe_beam


def next_token(ids: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """Return the inputs of a sequence, and the id that follows each of them."""
    return {"input": ids[:-1], "labels": ids[1:]}


def pipeline(
    folder: str, length: int, size: int, *, seed: int = 1, rank: int = 0, ranks: int = 1
) -> grain.IterDataset:
    """Return the batches of a rank, over and over.

    Args:
        folder: Path or URL of the tokens folder.
        length: The number of inputs of a sequence.
        size: The number of sequences of a batch.
        seed: Chooses the order; each epoch has another one.
        rank: The number of this rank.
        ranks: The number of ranks.
    """
    sequences = bpe_beam.shards.open(folder).sequences(length + 1, stride=length).astype(np.int64)
    data = grain.MapDataset.source(sequences).seed(seed).shuffle().repeat()
    data = data.map(next_token)[rank::ranks]
    return data.to_iter_dataset().batch(size)


def first_batch(folder: str, length: int = 64, size: int = 4) -> dict[str, np.ndarray[Any, Any]]:
    """Return the first inputs and labels, each int64[size, length].

    Args:
        folder: Path or URL of the tokens folder.
        length: The number of inputs of a sequence.
        size: The number of sequences.
    """
    batch: dict[str, np.ndarray[Any, Any]] = next(iter(pipeline(folder, length, size)))
    return batch


if __name__ == "__main__":
    for name, values in first_batch(sys.argv[1]).items():
        print(name, values.shape, values[0, :10])
