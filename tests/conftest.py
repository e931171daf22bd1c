"""What all tests share: text, small tokenizers, and a check of what is tested.

The modules of `helpers/` are importable from all tests.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from made_text import documents

if TYPE_CHECKING:
    from some_of import SomeOf

    from bpe_beam import Tokenizer


MEMORY = Path("/dev/shm")
ENOUGH = 12_000_000_000
"""Free bytes of a file system in memory from which temporary folders may be there."""

ALSO_SLOW = ("mark.sampled", "some_of")
"""What makes cases slow without that marker; see `pytest_collection_modifyitems` and `some_of`."""


def pytest_configure(config: pytest.Config) -> None:
    """Refuse sources that were not built: each import would fail."""
    _keep_temporary_folders_in_memory()
    if importlib.util.find_spec("hypothesis") is not None:
        from hypothesis import settings

        settings.register_profile("loaded machine", deadline=None)
        settings.load_profile("loaded machine")
    if importlib.util.find_spec("bpe_beam") is None:
        raise pytest.UsageError("bpe-beam is not installed: pip install -e '.[test]'")
    if importlib.util.find_spec("bpe_beam._native") is None:
        raise pytest.UsageError(
            "the bpe_beam that Python finds first has no compiled module; a folder of sources may "
            "hide the installed one: pip install -e '.[test]', or start pytest by its own name"
        )


def _keep_temporary_folders_in_memory() -> None:
    """Choose a file system in memory if there is room, and if nobody has chosen another place.

    Jobs flush every file that they finish, which on a disk takes a fifth of the tests' time.
    """
    if "TMPDIR" in os.environ or "PYTEST_DEBUG_TEMPROOT" in os.environ or not MEMORY.is_dir():
        return
    no_programs = os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
    if shutil.disk_usage(MEMORY).free >= ENOUGH and not no_programs:
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(MEMORY)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `-m MARKER`, skip modules without it: they may need packages, and all take seconds."""
    marker = config.getoption("-m").removesuffix(" and not scheduled")
    if collection_path.suffix == ".py" and marker.isidentifier():
        words = ALSO_SLOW if marker == "slow" else ()
        text = collection_path.read_text("utf-8")
        return None if any(word in text for word in (f"mark.{marker}", *words)) else True
    return None


@pytest.hookimpl(tryfirst=True)  # before cases are chosen by their markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the cases that `sampled` leaves out; leave out longer ones than `-m` asks for."""
    cases: Counter[tuple[str, int]] = Counter()
    for item in items:
        if (sampled := item.get_closest_marker("sampled")) is not None:
            for level, every in enumerate(sampled.args):
                if item.get_closest_marker("scheduled") is not None:
                    break
                key = item.nodeid.partition("[")[0], level
                cases[key] += 1
                if cases[key] % every == 1 % every:
                    break
                slow = item.get_closest_marker("slow") is not None
                item.add_marker(pytest.mark.scheduled if slow else pytest.mark.slow)
    longer = {"quick": {"slow", "scheduled"}, "slow": {"scheduled"}}
    if left_out := longer.get(config.getoption("-m")):
        others = [item for item in items if left_out & {m.name for m in item.iter_markers()}]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]


@pytest.fixture(scope="session", params=["some", pytest.param("others", marks=pytest.mark.slow)])
def some_of(request: pytest.FixtureRequest) -> SomeOf:
    """Return a function that takes a part of the cases within a test, such as random trials.

    `some_of(cases, every=4)` returns every fourth case by default, and all others in the slow
    tests.
    """

    def chosen(cases: Sequence[Any], every: int = 4) -> list[Any]:
        some = request.param == "some"
        return [case for place, case in enumerate(cases) if (place % every == 0) is some]

    return chosen


@pytest.fixture(autouse=True)
def empty_memory_store() -> Iterator[None]:
    """Remove after each test what it left in `memory://`, which is one store for all of a process.

    The folder of a test that passed is removed, and a later one may get the same name.
    """
    yield
    if (memory := sys.modules.get("fsspec.implementations.memory")) is not None:
        memory.MemoryFileSystem.store.clear()
        memory.MemoryFileSystem.pseudo_dirs[:] = [""]


@pytest.fixture(scope="session")
def texts() -> list[str]:
    """Return some hundred documents of a line each."""
    return documents(400)


@pytest.fixture(scope="session")
def sample() -> str:
    """Return the text that the small tokenizers were trained on."""
    from small_tokenizers import SAMPLE

    return SAMPLE


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """Return a tokenizer of all bytes, six special tokens (one begins another) and 150 merges."""
    # Not at the top: sources that were not built are refused first, see pytest_configure.
    from small_tokenizers import SPECIAL_TOKENS, learn

    return learn("bytes", SPECIAL_TOKENS, 150)
