"""Hugging Face's file system, against a server that answers as the hub does."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import run_whole
from made_text import documents, write
from read_back import tree
from starting import missing
from web import serving

from bpe_beam.errors import DataError
from bpe_beam.storage import Storage, retry
from bpe_beam.storage import file_systems as clients
from bpe_beam.storage.remote_file import BLOCK

pytestmark = pytest.mark.servers

TOP = "hf://datasets/somebody/texts"


class Hub:
    """A dataset `somebody/texts`.

    Attributes:
        files: Its files by path.
        asked: What it was asked for.
        short: So many answers with content come short.
        silent: So many listings get no answer; one that is still waiting after 300 s is refused.
    """

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.asked: list[str] = []
        self.short = 0
        self.silent = 0

    async def answer(self, request: Any) -> Any:
        from aiohttp import web

        path = request.match_info["path"]
        self.asked.append(path)
        if self.silent and "/tree/" in path:
            self.silent -= 1
            await asyncio.sleep(300)
            raise web.HTTPForbidden
        if path == "api/datasets/somebody/texts":
            return web.json_response({"id": "somebody/texts", "sha": "0" * 40, "siblings": []})
        if path.startswith("api/datasets/somebody/texts/tree/main"):
            folder = path.removeprefix("api/datasets/somebody/texts/tree/main").strip("/")
            return self._tree(folder, request.query.get("recursive") == "true")
        name = path.removeprefix("datasets/somebody/texts/resolve/main/")
        if name not in self.files:
            raise web.HTTPNotFound
        data = self.files[name]
        first, last = request.headers["Range"][6:].split("-")
        headers = {"Content-Range": f"bytes {first}-{last}/{len(data)}"}
        part = data[int(first) : int(last) + 1]
        if self.short:
            self.short -= 1
            part = part[:-1]
        return web.Response(status=206, body=part, headers=headers)

    def _tree(self, folder: str, deep: bool) -> Any:
        from aiohttp import web

        head = f"{folder}/".lstrip("/")
        entries: dict[str, dict[str, Any]] = {}
        for name, data in self.files.items():
            if name.startswith(head):
                part, slash, _ = name[len(head) :].partition("/")
                oid = hashlib.sha1(data).hexdigest()
                entry = {"type": "file", "path": name, "size": len(data), "oid": oid}
                if deep:
                    part = name[len(head) :]
                elif slash:
                    entry = {"type": "directory", "path": head + part, "oid": oid}
                entries[head + part] = entry
        if not entries:
            raise web.HTTPNotFound(headers={"X-Error-Code": "EntryNotFound"})
        return web.json_response(list(entries.values()))


@pytest.fixture
def hub() -> Iterator[tuple[Hub, Storage]]:
    for package in ("huggingface_hub", "aiohttp"):
        if importlib.util.find_spec(package) is None:
            missing(f"{package} is not installed")
    files = {"data/a #1.txt": b"some text\n", "data/sub/b.txt": b"more\n", "README.md": b""}
    made = Hub(files | {"large": bytes(range(256)) * (BLOCK // 100)})
    with serving(made.answer) as port:
        yield made, Storage({"hf": {"endpoint": f"http://127.0.0.1:{port}", "token": "hf_hunter2"}})


def test_reading(hub: tuple[Hub, Storage]) -> None:
    made, storage = hub
    url = f"{TOP}/data/a #1.txt"
    found = storage.expand(f"{TOP}/**/*.txt")
    assert [each.url for each in found] == [url, f"{TOP}/data/sub/b.txt"]
    assert storage.stat(url) == found[0]
    assert found[0].tag
    assert storage.expand(url) == [found[0]]
    assert storage.list_names(f"{TOP}/data") == ["a #1.txt", "sub"]
    assert storage.is_folder(f"{TOP}/data")
    assert storage.exists(url)
    assert not storage.exists(f"{TOP}/data/none")
    assert storage.read_bytes(f"{TOP}/large") == made.files["large"]
    assert storage.read_head(url, 4) == b"some"
    made.files["data/a #1.txt"] = b"other text\n"
    assert storage.expand(url)[0].tag != found[0].tag


def test_a_file_that_was_listed_is_not_listed_again(hub: tuple[Hub, Storage]) -> None:
    made, storage = hub
    assert storage.expand(f"{TOP}/lar*")
    made.asked.clear()
    storage.read_bytes(f"{TOP}/large")
    assert set(made.asked) == {"datasets/somebody/texts/resolve/main/large"}


def test_answers_that_are_short(hub: tuple[Hub, Storage], monkeypatch: pytest.MonkeyPatch) -> None:
    made, storage = hub
    monkeypatch.setattr(retry, "_FIRST_WAIT_SECONDS", 0)
    made.short = 2
    assert storage.read_bytes(f"{TOP}/large") == made.files["large"]
    made.short = 99
    with pytest.raises(DataError, match="got 262143 bytes for the range"):
        storage.read_bytes(f"{TOP}/large")


def test_answers_that_never_come(hub: tuple[Hub, Storage], monkeypatch: pytest.MonkeyPatch) -> None:
    made, storage = hub
    monkeypatch.setattr(clients, "SILENCE_SECONDS", 1)
    made.silent = 1
    assert "large" in storage.list_names(TOP)
    assert made.silent == 0


def test_a_job(hub: tuple[Hub, Storage], tmp_path: Path) -> None:
    made, storage = hub
    for name in ("a.jsonl", "b.txt.gz"):
        made.files[f"corpus/{name}"] = write(tmp_path / "in" / name, documents(90)).read_bytes()
    options = tmp_path / "options.json"
    endpoint = storage.options["hf"]["endpoint"]
    options.write_text(f'{{"hf": {{"endpoint": "{endpoint}"}}}}')
    for out, where in (("here", tmp_path / "in" / "*"), ("there", f"{TOP}/corpus/*")):
        reading = ("--input", where, "--storage-options", f"@{options}", "--range-bytes", "3KB")
        run_whole("count", *reading, "--output", tmp_path / out)
    assert tree(tmp_path / "here") == tree(tmp_path / "there")
