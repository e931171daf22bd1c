"""Read the first windows of datatrove shards with datatrove's own data set, as nanotron does.

python first_batch.py FOLDER
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from datatrove.utils.dataset import DatatroveFolderDataset


def first_batch(folder: str, length: int = 64, size: int = 4) -> dict[str, np.ndarray[Any, Any]]:
    """Return the ids and the positions of the first windows, each int64[size, length + 1].

    Args:
        folder: The tokens folder.
        length: The sequence length.
        size: The number of windows.
    """
    manifest = json.loads((Path(folder) / "__manifest").read_bytes())
    width = 2 if manifest["tokenizer"]["vocab_size"] <= 65_536 else 4
    data = DatatroveFolderDataset(
        folder, length, filename_pattern="*.ds", token_size=width, return_positions=True
    )
    windows = [data[number] for number in range(size)]
    return {name: np.stack([window[name] for window in windows]) for name in windows[0]}


if __name__ == "__main__":
    for name, values in first_batch(sys.argv[1]).items():
        print(name, values.shape, values[0, :10])
