"""A web server for tests; the first folder of a URL chooses how it misbehaves."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Web:
    """A running server of files in memory.

    The URL is `http://127.0.0.1:PORT/MANNER/NAME`. Manners: `ranges`, as most servers; `whole`,
    gives no ranges; `headless`, knows no HEAD; `unsized`, tells no size; `encoded`, says that it is
    gzip by its Content-Encoding; `busy`, answers 503 at first; `cut`, ends each answer in its
    middle, at first; `always-cut`; `short`, answers with fewer bytes than asked for, and says so,
    at first; `shifted`, with another range; `secret`, wants a query; `changing`, with
    another tag from the second look into the file on; `listing`, a page of links.

    Attributes:
        files: Content by name.
        troubles: How often a file misbehaves at first.
        asked: How often each path was asked for, and how.
        tag: What all files have as their ETag.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    troubles: int = 2
    asked: Counter[str] = field(default_factory=Counter)
    tag: str = '"one"'
    port: int = 0

    def url(self, manner: str, name: str) -> str:
        """Return the URL of a file."""
        return f"http://127.0.0.1:{self.port}/{manner}/{name}"

    async def answer(self, request: Any) -> Any:
        """Answer one request."""
        from aiohttp import web

        manner, _, name = request.match_info["path"].partition("/")
        changed = manner == "changing" and self.asked[f"GET {manner}/{name}"] > 0
        self.asked[f"{request.method} {manner}/{name}"] += 1
        if manner == "listing" and not name:
            links = "".join(f'<a href="{each}">{each}</a>' for each in self.files)
            return web.Response(text=links, content_type="text/html")
        if name not in self.files:
            raise web.HTTPNotFound
        if manner == "secret" and request.query.get("sig") != "hunter2":
            raise web.HTTPForbidden
        if manner == "headless" and request.method == "HEAD":
            raise web.HTTPMethodNotAllowed("HEAD", ["GET"])
        data = self.files[name]
        first = self.asked[f"GET {manner}/{name}"] <= self.troubles
        if manner == "busy" and first:
            raise web.HTTPServiceUnavailable
        headers = {"ETag": '"changed"' if changed else self.tag}
        if manner == "encoded":
            headers["Content-Encoding"] = "gzip"
        status, total = 200, len(data)
        if "Range" in request.headers and manner not in ("whole", "unsized"):
            start, _, end = request.headers["Range"].removeprefix("bytes=").partition("-")
            low, high = int(start), min(int(end) + 1, total)
            if low >= total:
                headers["Content-Range"] = f"bytes */{total}"
                return web.Response(status=416, headers=headers)
            if manner == "shifted":
                low, high = low + 1, high + 1
            if manner == "short" and first:
                high = max(low + 1, high - 1)
            headers["Content-Range"] = f"bytes {low}-{high - 1}/{total}"
            status, data = 206, data[low:high]
        return await self._send(request, status, headers, data, manner, first)

    async def _send(
        self, request: Any, status: int, headers: Any, data: bytes, manner: str, first: bool
    ) -> Any:
        from aiohttp import web

        response = web.StreamResponse(status=status, headers=headers)
        if manner == "unsized":
            response.enable_chunked_encoding()
        else:
            response.content_length = len(data)
        await response.prepare(request)
        if request.method == "HEAD":
            return response
        if manner == "always-cut" or (manner == "cut" and first):
            await response.write(data[: len(data) // 2])
            request.transport.abort()
            return response
        await response.write(data)
        await response.write_eof()
        return response

    @contextlib.contextmanager
    def running(self) -> Iterator[Web]:
        """Serve until the block ends."""
        with serving(self.answer) as self.port:
            yield self


@contextlib.contextmanager
def serving(answer: Any) -> Iterator[int]:
    """Run an aiohttp handler of any `path` on a free port, in a thread of its own."""
    from aiohttp import web

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> tuple[Any, int]:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", answer)
        # Handlers that never answer are cut off at once.
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return runner, runner.addresses[0][1]

    runner, port = asyncio.run_coroutine_threadsafe(start(), loop).result(30)
    try:
        yield port
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()
