"""Two attempts at one shard, as runners make them: neither removes what the other has made."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from twins import SECONDS, LateWriter

from bpe_beam.errors import DataError
from bpe_beam.shards.formats.megatron import MegatronStream, MegatronWriter
from bpe_beam.storage import Storage

NAME = "shard-00000-of-00001"


def write(storage: Storage, folder: str) -> None:
    with MegatronWriter(storage, folder, NAME, 300) as writer:
        writer.write_documents(np.array([1, 2, 3], np.uint32), np.array([0, 2, 3]))


@pytest.mark.parametrize("store", ["local", "memory"])
def test_an_attempt_that_fails_leaves_the_file_of_the_one_that_succeeds(
    tmp_path: Path, store: str
) -> None:
    folder = str(tmp_path) if store == "local" else f"memory://{tmp_path.name}"
    failing = LateWriter(late=".idx", failure="the rename failed")
    late = LateWriter(late=".idx", writing=failing.other_is_done)
    failures: list[str] = []

    def fail() -> None:
        try:
            write(failing, folder)
        except DataError as error:
            failures.append(str(error))
        late.other_is_done.set()

    thread = threading.Thread(target=fail)
    thread.start()
    assert failing.writing.wait(SECONDS)
    write(late, folder)
    thread.join()
    assert failures == ["the rename failed"]
    assert sorted(Storage().list_names(folder)) == [f"{NAME}.bin", f"{NAME}.idx"]
    with MegatronStream.open(Storage(), folder, NAME) as reader:
        assert [reader.document(i).tolist() for i in range(2)] == [[1, 2], [3]]
