"""Two attempts at one shard, as runners make them: neither removes what the other has made."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest

from bpe_beam.errors import DataError
from bpe_beam.shards.formats.megatron import MegatronReader, MegatronWriter
from bpe_beam.storage import Storage

NAME = "shard-00000-of-00001"
SECONDS = 120


@dataclass(frozen=True)
class FailsAtTheIdx(Storage):
    """Publishes the .bin, waits for the other attempt to do so, and cannot publish the .idx."""

    mine_is_there: threading.Event = field(default_factory=threading.Event)
    other_is_there: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def create(self, url: str) -> Iterator[BinaryIO]:
        with super().create(url) as file:
            yield file
            if url.endswith(".idx"):
                self.mine_is_there.set()
                assert self.other_is_there.wait(SECONDS)
                raise DataError("the rename failed")


@dataclass(frozen=True)
class WaitsBeforeTheIdx(Storage):
    """Publishes the .bin after the other attempt, and the .idx when that one has failed."""

    mine_is_there: threading.Event = field(default_factory=threading.Event)
    other_has_failed: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def create(self, url: str) -> Iterator[BinaryIO]:
        with super().create(url) as file:
            yield file
            if url.endswith(".idx"):
                self.mine_is_there.set()
                assert self.other_has_failed.wait(SECONDS)


def write(storage: Storage, folder: str) -> None:
    with MegatronWriter(storage, folder, NAME, 300) as writer:
        writer.write_documents(np.array([1, 2, 3], np.uint32), np.array([0, 2, 3]))


@pytest.mark.parametrize("store", ["local", "memory"])
def test_an_attempt_that_fails_leaves_the_file_of_the_one_that_succeeds(
    tmp_path: Path, store: str
) -> None:
    folder = str(tmp_path) if store == "local" else f"memory://{tmp_path.name}"
    failing = FailsAtTheIdx()
    late = WaitsBeforeTheIdx(mine_is_there=failing.other_is_there)
    failures: list[str] = []

    def fail() -> None:
        try:
            write(failing, folder)
        except DataError as error:
            failures.append(str(error))
        late.other_has_failed.set()

    thread = threading.Thread(target=fail)
    thread.start()
    assert failing.mine_is_there.wait(SECONDS)
    write(late, folder)
    thread.join()
    assert failures == ["the rename failed"]
    assert sorted(Storage().list_names(folder)) == [f"{NAME}.bin", f"{NAME}.idx"]
    with MegatronReader(Storage(), folder, NAME) as reader:
        assert [reader.document(i).tolist() for i in range(2)] == [[1, 2], [3]]
