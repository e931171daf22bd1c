"""Reading from web servers of many manners: right bytes or an error."""

from __future__ import annotations

import gzip
import importlib.util
import itertools
import random
from collections.abc import Iterator

import pytest
from starting import missing
from web import Web

from bpe_beam.errors import DataError, UsageError
from bpe_beam.storage import Storage, retry
from bpe_beam.storage.remote_file import BLOCK

pytestmark = pytest.mark.servers

DATA = random.Random(7).randbytes(2 * BLOCK + 12_345)
FILES = {"large": DATA, "small": b"some text\n", "empty": b"", "a.txt.gz": gzip.compress(b"text")}
GOOD = ("ranges", "whole", "headless", "encoded")
TROUBLED = ("busy", "cut", "short")


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    if importlib.util.find_spec("aiohttp") is None:
        missing("aiohttp is not installed")
    monkeypatch.setattr(retry, "_FIRST_WAIT_SECONDS", 0.01)
    with Web(dict(FILES)).running() as running:
        yield running


@pytest.mark.parametrize(("manner", "name"), list(itertools.product((*GOOD, *TROUBLED), FILES)))
def test_whole_files(web: Web, manner: str, name: str) -> None:
    storage, url, data = Storage(), web.url(manner, name), FILES[name]
    assert storage.stat(url).size == len(data)
    assert storage.stat(url).tag == "ETag=one"
    assert storage.read_bytes(url) == data
    assert storage.read_head(url, 7) == data[:7]
    assert [found.size for found in storage.expand(url)] == [len(data)]
    assert storage.exists(url)
    assert not storage.is_folder(url)


@pytest.mark.parametrize("manner", [*GOOD, *TROUBLED])
def test_any_part(web: Web, manner: str) -> None:
    chance = random.Random(3)
    with Storage().open(web.url(manner, "large")) as stream:
        for _ in range(12):
            start, count = chance.randrange(len(DATA)), chance.choice([1, 1000, BLOCK])
            stream.seek(start)
            assert stream.read(count) == DATA[start : start + count]


def test_a_server_without_ranges_is_read_once(web: Web) -> None:
    with Storage().open(web.url("whole", "large")) as stream:
        while stream.read(100_000):
            pass
    assert web.asked["GET whole/large"] == 1


def test_a_part_is_no_more_than_was_asked_for(web: Web) -> None:
    with Storage().open(web.url("ranges", "large")) as stream:
        stream.seek(BLOCK)
        stream.read(10)
    assert web.asked["GET ranges/large"] == 1


def test_what_never_gets_better_is_an_error(web: Web) -> None:
    storage = Storage()
    for manner, why in (("always-cut", "payload"), ("shifted", "another range")):
        with pytest.raises(DataError, match=rf"cannot read http.*{why}"):
            storage.read_bytes(web.url(manner, "large"))
        assert web.asked[f"GET {manner}/large"] == retry.ATTEMPTS
    with pytest.raises(DataError, match="does not report the file's size"):
        storage.read_bytes(web.url("unsized", "large"))


def test_a_file_that_changes_while_it_is_read(web: Web) -> None:
    for manner in ("ranges", "whole"):
        with Storage().open(web.url(manner, "large")) as stream:
            stream.read(1)
            web.tag = f'"{manner}"'
            with pytest.raises(DataError, match="the file was changed while it was read"):
                stream.seek(0 if manner == "whole" else BLOCK)
                stream.read(BLOCK)
                stream.seek(0)
                stream.read()


def test_what_is_missing_or_refused_fails_at_once(web: Web) -> None:
    storage = Storage()
    missing = web.url("ranges", "none")
    assert not storage.exists(missing)
    assert storage.expand(missing) == []
    with pytest.raises(DataError, match="No such file"):
        storage.read_bytes(missing)
    with pytest.raises(DataError, match="the server answers 403 Forbidden") as caught:
        storage.read_bytes(web.url("secret", "small") + "?sig=hunter3")
    assert "hunter3" not in str(caught.value)
    assert web.asked["GET secret/small"] == 1
    assert storage.read_bytes(web.url("secret", "small") + "?sig=hunter2") == b"some text\n"


def test_a_server_that_stays_busy_is_not_a_missing_file(web: Web) -> None:
    web.troubles = 1000
    with pytest.raises(DataError, match="503"):
        Storage().read_bytes(web.url("busy", "small"))


def test_a_page_of_links_is_listed(web: Web) -> None:
    found = Storage().expand(web.url("listing", "*a*"))
    assert [(each.url, each.size) for each in found] == [
        (web.url("listing", name), len(FILES[name])) for name in ("a.txt.gz", "large", "small")
    ]


def test_the_web_is_not_written_to(web: Web) -> None:
    with pytest.raises(UsageError, match="http:// can be read only"):
        Storage().write_bytes(web.url("ranges", "new"), b"")


def test_headers_come_from_the_options(web: Web) -> None:
    options = {"http": {"headers": {"Range": "bytes=0-0", "X-Key": "hunter2"}}}
    assert Storage(options).read_bytes(web.url("ranges", "small")) == b"some text\n"
