"""The readers of trainers as their own packages ship them, with stand-ins for heavy dependencies.

Of torch they use a few functions on arrays, which numpy has, too; the stand-ins of other packages
are not called when files are local.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest


@contextmanager
def datatrove() -> Iterator[tuple[ModuleType, ModuleType]]:
    """Yield datatrove's modules of data sets and of its tokenizer step."""
    with _stand_ins(*_torch()), _forgotten("datatrove"):
        yield (
            importlib.import_module("datatrove.utils.dataset"),
            importlib.import_module("datatrove.pipeline.tokens.tokenizer"),
        )


@contextmanager
def olmo_core() -> Iterator[ModuleType]:
    """Yield OLMo-core's module that finds documents and reads ids, `olmo_core.data.utils`."""
    # Not an importorskip: whoever selects these tests wants them run.
    home = Path(str(importlib.metadata.distribution("ai2-olmo-core").locate_file("olmo_core")))
    cached_path = _module("cached_path", cached_path=lambda path, **_: Path(path))
    client = type("Client", (), {"recoverable_errors": ()})
    schemes = {"S3Client": client, "SchemeClient": client, "add_scheme_client": None}
    with (
        _stand_ins(
            *_torch(),
            cached_path,
            _module("cached_path.schemes", **schemes),
            _module("rich"),
            _module("rich.progress", track=None),
            # Without what the packages import for training.
            _module("olmo_core", __path__=[str(home)]),
            _module("olmo_core.data", __path__=[str(home / "data")]),
            _module("olmo_core.config", StrEnum=object),
            _module("olmo_core.fs_cache", maybe_cache=_uncached),
            _module("olmo_core.utils", capped_powers_of_2=None),
        ),
        _forgotten("olmo_core"),
    ):
        yield importlib.import_module("olmo_core.data.utils")


@contextmanager
def mosaic_streaming() -> Iterator[tuple[ModuleType, ModuleType]]:
    """Yield the modules of mosaicml-streaming that read and write MDS files."""
    with (
        _stand_ins(
            # bytes_to_int is for sizes such as 64MB.
            _module(
                "streaming.base.util",
                bytes_to_int=lambda size: size,
                get_import_exception_message=None,
                retry=_uncached,
            ),
            _module(
                "streaming.base.compression",
                compress=None,
                decompress=None,
                get_compression_extension=None,
                is_compression=None,
            ),
            _module("streaming.base.hashing", get_hash=None, is_hash=None),
            *_packages("mosaicml-streaming", "streaming", "base", "base.format", "base.format.mds"),
        ),
        _forgotten("streaming"),
    ):
        yield (
            importlib.import_module("streaming.base.format.mds.reader"),
            importlib.import_module("streaming.base.format.mds.writer"),
        )


@contextmanager
def litdata() -> Iterator[ModuleType]:
    """Yield litdata's module of item loaders."""
    with (
        _stand_ins(
            _module("torch", Tensor=np.ndarray, __getattr__=_any_type),
            *_packages("litdata", "litdata", "streaming", "utilities"),
            _module("litdata.debugger", CAT_DELETE=None, trace_span=None),
            _module("litdata.streaming.serializers", JsonLeaf=None, Serializer=None),
            _module("litdata.utilities._pytree", __getattr__=_any_type),
        ),
        _forgotten("litdata"),
    ):
        yield importlib.import_module("litdata.streaming.item_loader")


def _any_type(name: str) -> type:
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (), {})


def _packages(distribution: str, package: str, *inside: str) -> list[ModuleType]:
    """Return a package, and some inside, without what they import for training."""
    home = Path(str(importlib.metadata.distribution(distribution).locate_file(package)))
    found = [_module(package, __path__=[str(home)])]
    for name in inside:
        path = str(home.joinpath(*name.split(".")))
        found.append(_module(f"{package}.{name}", __path__=[path]))
    return found


def _uncached(**_: Any) -> Callable[[Any], Any]:
    return lambda function: function


def _torch() -> list[ModuleType]:
    data = _module("torch.utils.data", Dataset=type("Dataset", (), {}))
    functional = _module("torch.nn.functional")
    torch = _module(
        "torch",
        Tensor=np.ndarray,
        int=np.int32,
        int64=np.int64,
        long=np.int64,
        as_tensor=np.asarray,
        cat=np.concatenate,
        cumsum=lambda array, dim: np.cumsum(array, axis=dim),
        ones=np.ones,
        ones_like=np.ones_like,
        tensor=np.array,
        where=np.where,
    )
    utils, nn = _module("torch.utils", data=data), _module("torch.nn", functional=functional)
    return [torch, utils, data, nn, functional]


def _module(name: str, **names: Any) -> ModuleType:
    made = ModuleType(name)
    made.__spec__ = ModuleSpec(name, None)
    made.__dict__.update(names)
    return made


@contextmanager
def _stand_ins(*modules: ModuleType) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for each in modules:
            patch.setitem(sys.modules, each.__name__, each)
        yield


@contextmanager
def _forgotten(package: str) -> Iterator[None]:
    """Remove the modules of a package that the block imported."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith(f"{package}."):
            del sys.modules[name]
