"""Read the first batch of llm.c shards as modded-nanogpt does: a header, then uint16 ids.

python first_batch.py FOLDER
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

Ids = np.ndarray[Any, Any]
HEADER_BYTES = 1024
MAGIC, VERSION = 20240520, 1


def read_shard(path: Path) -> Ids:
    """Return the ids of a file, mapped into memory."""
    magic, version, count = np.fromfile(path, np.int32, 3).tolist()
    if (magic, version) != (MAGIC, VERSION):
        raise ValueError(
            f"{path}: must be uint16 ids of llm.c, got magic {magic}, version {version}"
        )
    return np.memmap(path, np.uint16, "r", HEADER_BYTES, (count,))


def first_batch(
    folder: str, length: int = 64, size: int = 4, begin: int = 0
) -> tuple[Ids, Ids, Ids]:
    """Return inputs and targets, each int64[size, length], and where documents begin in the inputs.

    Args:
        folder: The tokens folder.
        length: The number of inputs of a sequence.
        size: The number of sequences.
        begin: The id of the token that documents begin with.
    """
    _, *training = sorted(Path(folder).glob("shard-*.bin"))  # the first is for validation
    ids = read_shard(training[0])[: length * size + 1].astype(np.int64)
    inputs, targets = (part.reshape(size, length) for part in (ids[:-1], ids[1:]))
    return inputs, targets, np.argwhere(inputs == begin)


if __name__ == "__main__":
    inputs, _, starts = first_batch(sys.argv[1])
    print(inputs.shape, inputs[0, :10], len(starts), "documents begin in the batch")
