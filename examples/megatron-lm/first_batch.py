"""Read the first documents of Megatron shards with Megatron's own reader.

python first_batch.py FOLDER
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from megatron.core.datasets.indexed_dataset import IndexedDataset


def first_batch(folder: str, size: int = 4) -> list[np.ndarray[Any, Any]]:
    """Return the ids of the first documents.

    Args:
        folder: The tokens folder.
        size: The number of documents.
    """
    index = min(Path(folder).glob("shard-*.idx"))
    data = IndexedDataset(str(index.with_suffix("")))
    # Copies: the reader's own arrays are views of its map of the file, and end with it.
    return [np.array(data[number]) for number in range(size)]


if __name__ == "__main__":
    for document in first_batch(sys.argv[1]):
        print(document.dtype, document.size, document[:10])
