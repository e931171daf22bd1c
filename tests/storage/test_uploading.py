"""Uploads in parts: equal ones, and then large ones."""

from __future__ import annotations

import io
import random
from typing import Any

import fsspec.spec
import pytest

from bpe_beam.storage import uploading
from bpe_beam.storage.uploading import LARGE_PART, PART, Upload
from bpe_beam.storage.writing import write_attempt

pytestmark = pytest.mark.quick


class File(fsspec.spec.AbstractBufferedFile):
    """An upload in memory, the way fsspec's stores do it."""

    def __init__(self, sent: list[bytes], **settings: Any) -> None:
        super().__init__(None, "bucket/key", **settings)
        self.sent = sent

    def _initiate_upload(self) -> None:
        pass

    def _upload_chunk(self, final: bool = False) -> bool:
        self.sent.append(self.buffer.getvalue())
        return True

    def discard(self) -> None:
        self.sent.append(b"<discarded>")


class Files:
    """A store."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def open(self, path: str, mode: str, block_size: int) -> File:
        return File(self.sent, mode=mode, block_size=block_size)


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploading, "PART", 10)
    monkeypatch.setattr(uploading, "_MANY_PARTS", 3)
    monkeypatch.setattr(uploading, "LARGE_PART", 40)


@pytest.mark.parametrize("size", [1, 9, 10, 11, 29, 30, 31, 69, 70, 71, 200])
def test_parts_are_equal_and_then_large(size: int) -> None:
    data, chance = random.Random(size).randbytes(size), random.Random(size)
    files = Files()
    upload = Upload(files, "bucket/key", "s3://bucket/key", ())
    stream = io.BytesIO(data)
    while piece := stream.read(chance.randrange(1, 90)):
        assert upload.write(piece) == len(piece)
    upload.finish()
    assert b"".join(files.sent) == data
    sizes = [len(part) for part in files.sent]
    assert sizes[:3][:-1] == [10] * len(sizes[:3][:-1])
    assert all(part == 40 for part in sizes[3:-1])


def test_the_limit_of_ten_thousand_parts_is_far() -> None:
    small = 4000 * PART
    for size in (500 * 10**9, 3 * 2**39):
        parts = 4000 + -(-(size - small) // LARGE_PART)
        assert parts <= 10_000


def test_what_is_given_up_does_not_finish_itself() -> None:
    files = Files()
    upload = Upload(files, "bucket/key", "s3://bucket/key", ())

    writing = write_attempt(upload, "a", publish=upload.finish, remove=upload.discard)
    with pytest.raises(RuntimeError, match="given up"), writing as stream:
        stream.write(bytes(25))
        stream.flush()
        stream.write(bytes(99))
        raise RuntimeError("given up")
    file = upload._file
    del upload, writing
    file.__del__()
    assert files.sent == [bytes(10), bytes(10), b"<discarded>"]
