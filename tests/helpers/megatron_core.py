"""Package megatron-core without torch: its modules of data sets, which use little of torch.

Small stand-ins take the place of torch and of the parent packages, whose own imports want it too.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

EOD = 0


class Tensor:
    """What the builder of an indexed data set uses of a tensor."""

    def __init__(self, ids: np.ndarray) -> None:
        self._ids = ids

    def numpy(self) -> np.ndarray:
        return self._ids


def module(name: str, **names: Any) -> ModuleType:
    made = ModuleType(name)
    made.__dict__.update(names)
    return made


@contextmanager
def importable() -> Iterator[None]:
    """Make `megatron.core.datasets.*` importable, as its own package ships it."""
    # Not an importorskip: whoever selects these tests wants them run.
    home = Path(str(importlib.metadata.distribution("megatron-core").locate_file("megatron")))
    data = module("torch.utils.data", Dataset=type("Dataset", (), {}))
    utils = module("torch.utils", data=data)
    distributed = module("torch.distributed", is_initialized=lambda: False)
    with pytest.MonkeyPatch.context() as patch:
        for stand_in in (
            module("torch", Tensor=Tensor, utils=utils, distributed=distributed),
            utils,
            data,
            distributed,
            module("megatron", __path__=[str(home)]),
            module("megatron.core", __path__=[str(home / "core")]),
            module("megatron.core.datasets", __path__=[str(home / "core" / "datasets")]),
            module("megatron.core.tokenizers", MegatronTokenizerBase=object),
            module("megatron.core.utils", log_single_rank=lambda *args, **named: None),
        ):
            patch.setitem(sys.modules, stand_in.__name__, stand_in)
        before = set(sys.modules)
        yield
        for name in set(sys.modules) - before:
            if name.startswith("megatron."):
                del sys.modules[name]


def gpt_samples(
    prefix: Path, sequence_length: int, samples: int | None = None
) -> tuple[list[list[int]], list[int]]:
    """Return what a training run reads of one pair: the samples of `GPTDataset`, unshuffled.

    Args:
        prefix: The pair's path without `.bin` and `.idx`.
        sequence_length: Tokens a sample; each has one more, the last label.
        samples: How many are wanted; None: those of one epoch.

    Returns:
        The samples in the order in which they were cut, and the order of the documents.
    """
    gpt = importlib.import_module("megatron.core.datasets.gpt_dataset")
    split = importlib.import_module("megatron.core.datasets.utils").Split
    config = gpt.GPTDatasetConfig(
        random_seed=1,
        sequence_length=sequence_length,
        blend=([str(prefix)], None),
        split="1,0,0",
        tokenizer=SimpleNamespace(vocab_size=300, unique_identifiers={}, pad=-1, eod=EOD),
        reset_position_ids=False,
        reset_attention_mask=False,
        eod_mask_loss=False,
        path_to_cache=f"{prefix}.cache",
    )
    low_level = gpt.GPTDataset.build_low_level_dataset(str(prefix), config)
    indices = np.arange(gpt.GPTDataset.numel_low_level_dataset(low_level), dtype=np.int32)
    data = gpt.GPTDataset(low_level, str(prefix), indices, samples, split.train, config)
    order = np.argsort(data.shuffle_index)
    read = [data._query_document_sample_shuffle_indices(int(i))[0].tolist() for i in order]
    return read, data.document_index.tolist()
