"""Compare `bpe_beam.shards.open` with the readers of megatron-core and datatrove, on local files.

    pip install --no-deps megatron-core datatrove humanize loguru
    python benchmarks/reading.py --documents 100000 --pairs 7

Both read the same shards, of random ids in documents of about 500 tokens (log-normal), in the page
cache. Each pair is one run of the other reader and one of ours, one after the other. It prints the
medians of the speeds, and the median of the ratios within pairs. Megatron's reader returns a view
of the stored type; "as int64" adds the copy that an embedding needs to both. datatrove's reader
returns int64. If torch is not installed, stand-ins of `tests/helpers` take the place of the few
functions that the readers use of it.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))
import megatron_core
import trainer_readers
from token_folders import write_folder

import bpe_beam

VOCAB_SIZE = 50_257
WINDOW = 2_049

Read = Callable[[], int]
"""Reads, and returns the number of ids."""


def made(count: int) -> list[list[int]]:
    """Return documents of random ids."""
    rng = np.random.default_rng(1)
    lengths = np.maximum(rng.lognormal(np.log(500), 1, count).astype(np.int64), 1)
    ids = rng.integers(0, VOCAB_SIZE, int(lengths.sum()), dtype=np.uint32)
    return np.split(ids, np.cumsum(lengths)[:-1])  # type: ignore[return-value]


def each(data: Any, positions: Sequence[int], of: Callable[[Any], Any]) -> Read:
    """Return what reads items one by one."""
    return lambda: sum(of(data[at]).size for at in positions)


def all_in_order(data: Any) -> Read:
    """Return what iterates over all items."""
    return lambda: sum(item.size for item in data)


def as_int64(ids: Any) -> Any:
    """Return a copy as int64."""
    return ids.astype(np.int64)


def as_is(ids: Any) -> Any:
    """Return ids as they are."""
    return ids


def compare(name: str, items: int, theirs: Read, ours: Read, pairs: int) -> str:
    """Return a row of the table.

    Args:
        name: What is read.
        items: The number of items.
        theirs: Reads them with the other reader.
        ours: Reads them with ours.
        pairs: The number of pairs.
    """
    assert theirs() == ours()
    times: list[list[float]] = [[], []]
    ids = 0
    for _ in range(pairs):
        for side, read in zip(times, (theirs, ours), strict=True):
            began = time.perf_counter()
            ids = read()
            side.append(time.perf_counter() - began)
    ratio = statistics.median(other / own for other, own in zip(*times, strict=True))
    cells = [
        f"{items / statistics.median(side):,.0f}, {2 * ids / statistics.median(side) / 1e6:,.0f}"
        for side in times
    ]
    return f"| {name} | {cells[0]} | {cells[1]} | {ratio:.2f} |"


@contextmanager
def megatron(prefix: Path) -> Iterator[Any]:
    """Open a pair with megatron-core."""
    torch = importlib.util.find_spec("torch") is not None
    with nullcontext() if torch else megatron_core.importable():
        module = importlib.import_module("megatron.core.datasets.indexed_dataset")
        yield module.IndexedDataset(str(prefix))


@contextmanager
def datatrove(folder: Path) -> Iterator[Any]:
    """Open a folder with datatrove."""
    if importlib.util.find_spec("torch") is not None:
        modules: Any = nullcontext((importlib.import_module("datatrove.utils.dataset"), None))
    else:
        modules = trainer_readers.datatrove()
    with modules as (module, _):
        yield module.DatatroveFolderDataset(str(folder), WINDOW - 1, token_size=2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--pairs", type=int, default=7)
    options = parser.parse_args()
    documents = made(options.documents)
    rng = np.random.default_rng(2)
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        pair = write_folder(folder / "megatron", "megatron", [documents], VOCAB_SIZE)
        quarter = -(-len(documents) // 4)
        shards = [documents[at : at + quarter] for at in range(0, len(documents), quarter)]
        several = write_folder(folder / "datatrove", "datatrove", shards, VOCAB_SIZE)
        with megatron(Path(pair) / "shard-00000-of-00001") as theirs:
            data = bpe_beam.shards.open(pair)
            order = rng.permutation(len(data)).tolist()
            for name, of, ours in (
                ("", as_is, data),
                (", as int64", as_int64, data.astype(np.int64)),
            ):
                rows.append(
                    compare(
                        f"Megatron documents at random{name}",
                        len(ours),
                        each(theirs, order, of),
                        each(ours, order, as_is),
                        options.pairs,
                    )
                )
                rows.append(
                    compare(
                        f"Megatron documents in order{name}",
                        len(ours),
                        each(theirs, range(len(ours)), of),
                        all_in_order(ours),
                        options.pairs,
                    )
                )
        with datatrove(Path(several)) as theirs:
            windows = bpe_beam.shards.open(several).sequences(WINDOW).astype(np.int64)
            order = rng.permutation(len(theirs)).tolist()
            count = min(len(theirs), len(windows))
            order = [at for at in order if at < count]

            def of_theirs(item: Any) -> Any:
                return item["input_ids"]

            rows.append(
                compare(
                    f"datatrove, {WINDOW:,} ids at random, int64",
                    count,
                    each(theirs, order, of_theirs),
                    each(windows, order, as_is),
                    options.pairs,
                )
            )
            rows.append(
                compare(
                    f"datatrove, {WINDOW:,} ids in order, int64",
                    count,
                    each(theirs, range(count), of_theirs),
                    all_in_order(windows[:count]),
                    options.pairs,
                )
            )
    print("| read | theirs: items, MB per second | ours | times theirs |\n|---|---|---|---|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
