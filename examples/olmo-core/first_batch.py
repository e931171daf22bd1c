"""Read the first sequences and documents of dolma shards with OLMo-core's own functions.

python first_batch.py FOLDER
"""

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from olmo_core.data.utils import iter_document_indices, load_array_slice

Ids = np.ndarray[Any, Any]


def first_batch(folder: str, length: int = 64, size: int = 4) -> tuple[Ids, list[Ids]]:
    """Return the first sequences, of shape [size, length], and the first documents.

    Args:
        folder: The tokens folder.
        length: The number of ids of a sequence.
        size: The number of sequences, and of documents.
    """
    vocab_size = json.loads((Path(folder) / "__manifest").read_bytes())["tokenizer"]["vocab_size"]
    dtype = np.min_scalar_type(vocab_size - 1).type
    path = str(min(Path(folder).glob("shard-*.npy")))
    ids = load_array_slice(path, 0, length * size, dtype)
    bounds = itertools.islice(iter_document_indices(path), size)
    documents = [load_array_slice(path, start, end, dtype) for start, end in bounds]
    return ids.reshape(size, length), documents


if __name__ == "__main__":
    sequences, documents = first_batch(sys.argv[1])
    print(sequences.dtype, sequences.shape)
    for document in documents:
        print(document.size, document[:10])
