"""Servers between us and a store: a proxy that cuts and delays, others that answer wrongly."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starting import go_server, started
from stores import Store
from web import serving

SLOW_DOWN = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code>'
    b"<Message>Please reduce your request rate.</Message></Error>"
)
DENIED = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>AccessDenied</Code>'
    b"<Message>Access Denied.</Message></Error>"
)


@dataclass(frozen=True)
class Toxiproxy:
    """A running toxiproxy.

    Attributes:
        port: The port of its commands.
    """

    port: int

    @contextlib.contextmanager
    def before(self, store: Store, *toxics: dict[str, Any]) -> Iterator[Store]:
        """Yield the same store behind a proxy.

        Args:
            store: What is behind it.
            *toxics: What it does to connections, as toxiproxy has it.
        """
        name, there = uuid.uuid4().hex, f"127.0.0.1:{store.port}"
        proxy = {"name": name, "listen": "127.0.0.1:0", "upstream": there}
        port = int(self._ask("POST", "/proxies", proxy)["listen"].rpartition(":")[2])
        try:
            for toxic in toxics:
                self._ask("POST", f"/proxies/{name}/toxics", toxic)
            yield store.moved(port)
        finally:
            self._ask("DELETE", f"/proxies/{name}")

    def _ask(self, method: str, path: str, what: Any = None) -> Any:
        data = None if what is None else json.dumps(what).encode()
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, data, method=method)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.loads(answer.read() or b"null")


@contextlib.contextmanager
def toxiproxy_running(folder: Path) -> Iterator[Toxiproxy]:
    """Start toxiproxy."""
    server = [go_server("server"), "-host", "127.0.0.1"]
    with started(lambda port: [*server, "-port", str(port)], folder) as port:
        yield Toxiproxy(port)


class Throttle:
    """A server before a store that refuses the first requests.

    Attributes:
        left: So many are still turned away.
        asked: The requests that came.
    """

    def __init__(self, store: Store, left: int) -> None:
        self.left = left
        self.asked = 0
        self._store = store

    @contextlib.contextmanager
    def before(self) -> Iterator[Store]:
        """Yield the same store behind this server."""
        with serving(self._answer) as port:
            yield self._store.moved(port)

    async def _answer(self, request: Any) -> Any:
        from aiohttp import web

        self.asked += 1
        body = await request.read()
        if self.left:
            self.left -= 1
            if self._store.name == "fake-gcs-server":
                return web.json_response({"error": {"code": 429, "message": "slow"}}, status=429)
            return web.Response(status=503, body=SLOW_DOWN, content_type="application/xml")
        return await _passed_on(self._store, request, body)


class Faults:
    """A server before a store that answers some requests wrongly.

    How it does: `empty`, status 200 and no content, though the request was carried out; `lost`, the
    same, and it was not; `stalled`, no answer ever, though the request was carried out;
    `half`, the head of the answer and never the rest; `unread`, no answer ever, and no more than
    the first bytes of a large request are taken; `refused`, status 403.

    Args:
        store: What is behind it.
        how: One of these.
        share: The share of requests that are answered so; 1: the first of each method and path.
        seed: Draws them.
        only: Spoil only those whose method and path contain this text, and each of them.
        most: The number of requests that are spoiled at most.

    Attributes:
        asked: The requests that came: method and path.
        spoiled: Those that were answered wrongly.
    """

    def __init__(
        self,
        store: Store,
        how: str,
        share: float = 1,
        seed: int = 0,
        only: str = "",
        most: int = 1 << 30,
    ) -> None:
        self._only, self._most = only, most
        self.asked: list[str] = []
        self.spoiled: list[str] = []
        self._store, self._how, self._share = store, how, share
        self._chance = random.Random(seed)
        self._seen: set[str] = set()

    @contextlib.contextmanager
    def before(self) -> Iterator[Store]:
        """Yield the same store behind this server."""
        with serving(self._answer) as port:
            yield self._store.moved(port)

    def _spoils(self, what: str) -> bool:
        if self._only:
            return self._only in what and len(self.spoiled) < self._most
        if self._share < 1:
            return self._chance.random() < self._share
        first = what not in self._seen
        self._seen.add(what)
        return first

    async def _answer(self, request: Any) -> Any:
        from aiohttp import web

        what = f"{request.method} {request.raw_path}"
        self.asked.append(what)
        if self._how == "unread" and (request.content_length or 0) > _LARGE and self._spoils(what):
            self.spoiled.append(what)
            return await _silence()
        body = await request.read()
        if self._how == "unread" or not self._spoils(what):
            return await _passed_on(self._store, request, body)
        self.spoiled.append(what)
        if self._how == "lost":
            return web.Response(status=200)
        if self._how == "refused":
            return _refusal()
        answer = await _passed_on(self._store, request, body)
        if self._how == "empty":
            headers = {name: value for name, value in answer.headers.items() if name in KEPT}
            return web.Response(status=200, headers=headers)
        if self._how == "half" and request.method != "HEAD" and answer.body:
            half = web.StreamResponse(status=answer.status, headers=answer.headers)
            half.content_length = len(answer.body)
            await half.prepare(request)
            await half.write(answer.body[: len(answer.body) // 2])
        return await _silence()


async def _silence() -> Any:
    """No answer; at the end a refusal, so that a client without a time limit fails its test."""
    await asyncio.sleep(_LONGEST_STALL_SECONDS)
    return _refusal()


def _refusal() -> Any:
    from aiohttp import web

    return web.Response(status=403, body=DENIED, content_type="application/xml")


_LONGEST_STALL_SECONDS = 300
_LARGE = 8 << 20
"""Bytes of a request; more than the buffers between two processes take."""
KEPT = ("ETag", "x-amz-checksum-crc32", "x-amz-checksum-type", "Content-Type")
"""What an empty answer has of the right one."""


async def _passed_on(store: Store, request: Any, body: bytes) -> Any:
    """The store's own answer."""
    import aiohttp
    import yarl
    from aiohttp import web

    url = yarl.URL(f"http://127.0.0.1:{store.port}{request.raw_path}", encoded=True)
    async with (
        aiohttp.ClientSession(auto_decompress=False) as session,
        session.request(
            request.method,
            url,
            headers=request.headers,
            data=body or None,
            # What a request is signed over must not change.
            skip_auto_headers=("Content-Type", "User-Agent"),
        ) as answer,
    ):
        data = await answer.read()
        passed = {
            name: value
            for name, value in answer.headers.items()
            if name.lower() not in ("transfer-encoding", "connection", "content-length")
        }
        response: Any = web.Response(status=answer.status, headers=passed, body=data)
        if request.method == "HEAD":
            response = web.StreamResponse(status=answer.status, headers=answer.headers)
        return response
