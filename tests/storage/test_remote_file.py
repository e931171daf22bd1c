"""A remote file as a stream: any part of it, by ranges that may come short."""

from __future__ import annotations

import random

import pytest

from bpe_beam.errors import DataError
from bpe_beam.storage import StoredFile, retry
from bpe_beam.storage.remote_file import BLOCK, FIRST_BLOCK, RangeSource, open_reader

pytestmark = pytest.mark.quick

DATA = random.Random(1).randbytes(3 * BLOCK + 77)
URL = "s3://bucket/key"


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "_FIRST_WAIT_SECONDS", 0)


class Ranges:
    """Ranges of DATA, of which the first ones come wrong.

    Attributes:
        asked: What was asked for.
        wrong: What becomes of the first answers.
    """

    def __init__(self, *wrong: object) -> None:
        self.asked: list[tuple[int, int]] = []
        self.wrong = list(wrong)
        self.closed = False

    def fetch(self, start: int, end: int) -> bytes:
        self.asked.append((start, end))
        wrong = self.wrong.pop(0) if self.wrong else 0
        if isinstance(wrong, Exception):
            raise wrong
        assert isinstance(wrong, int)
        return DATA[start : end + wrong]

    def opened(self) -> RangeSource:
        return RangeSource(StoredFile(URL, len(DATA)), self.fetch, self._close)

    def _close(self) -> None:
        self.closed = True


def test_ranges_grow_and_end_with_the_file() -> None:
    ranges = Ranges()
    with open_reader(ranges.opened, URL, ())[1] as stream:
        assert stream.read() == DATA
    sizes = [end - start for start, end in ranges.asked]
    assert sizes[:3] == [FIRST_BLOCK, 4 * FIRST_BLOCK, BLOCK]
    assert max(sizes) == BLOCK
    assert ranges.asked[-1][1] == len(DATA)
    assert ranges.closed


def test_any_part() -> None:
    ranges, chance = Ranges(), random.Random(2)
    with open_reader(ranges.opened, URL, ())[1] as stream:
        for _ in range(200):
            start, count = chance.randrange(len(DATA) + 9), chance.choice([1, 99, 70_000, BLOCK])
            assert stream.seek(start) == start
            if chance.random() < 0.5:
                assert stream.read(count) == DATA[start : start + count]
            else:
                view = bytearray(count)
                got = stream.readinto(view)  # type: ignore[attr-defined]
                assert view[:got] == DATA[start : start + count]
            assert stream.tell() == min(start + count, max(start, len(DATA)))
        with pytest.raises((ValueError, OSError)):
            stream.seek(-1)


@pytest.mark.parametrize("wrong", [-1, 1, -BLOCK, ConnectionResetError(), TimeoutError()])
def test_a_wrong_answer_is_asked_for_again(wrong: object) -> None:
    ranges = Ranges(0, wrong, wrong)
    with open_reader(ranges.opened, URL, ())[1] as stream:
        assert stream.read(2 * FIRST_BLOCK) == DATA[: 2 * FIRST_BLOCK]
    assert len(ranges.asked) == 4


@pytest.mark.parametrize(("wrong", "got"), [(-1, 2**18 - 1), (1, 2**18 + 1)])
def test_an_answer_that_stays_wrong_is_an_error(wrong: int, got: int) -> None:
    ranges = Ranges(*[wrong] * 99)
    with (
        pytest.raises(DataError, match=rf"cannot read {URL}: got {got} bytes for the range"),
        open_reader(ranges.opened, URL, ())[1] as stream,
    ):
        stream.read(1)
    assert len(ranges.asked) == retry.ATTEMPTS


def test_what_fails_for_good_fails_at_once() -> None:
    ranges = Ranges(PermissionError("Forbidden"))
    with (
        pytest.raises(DataError, match=f"cannot read {URL}: Forbidden"),
        open_reader(ranges.opened, URL, ())[1] as stream,
    ):
        stream.read(1)
    assert len(ranges.asked) == 1
