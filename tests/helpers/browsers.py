"""A browser without a window, and the rules of accessibility that pages are checked by."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from starting import npm_package

AXE = "4.14.1"

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextmanager
def chromium() -> Iterator[Any]:
    """Start Chromium; yield the browser as playwright has it."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, _NAMES)), None)
    assert program is not None, "there is no Chromium: apt-get install chromium"
    with sync_playwright() as started:
        # Without a sandbox, which the root user of a container cannot have.
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@cache
def axe_script() -> str:
    """Return the script of axe-core."""
    return (npm_package("axe-core", AXE) / "axe.min.js").read_text("utf-8")


def expect(found: Any) -> Any:
    """Return playwright's assertions about elements, which wait until they are true."""
    from playwright import sync_api

    sync_api.expect.set_options(timeout=60_000)  # a loaded machine takes long
    return sync_api.expect(found)
