"""A report in a real browser, for all tests that look at it there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, Page

from bilevel.experiments.reproduction.timeline import Timeline

PHONE, DESKTOP = (390, 844), (1280, 900)
SHOWN = ".viewer-episode:not([hidden])"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no browser here; on Debian: apt-get install chromium")


class Report(NamedTuple):
    """A page, and the timelines of its films, by task."""

    page: Path
    timelines: dict[str, Timeline]


@contextmanager
def opened(browser: Browser, path: Path | None, size: tuple[int, int] = DESKTOP, **settings: Any) -> Iterator[Page]:
    """A page in a window of its own, on which nothing goes wrong and which asks nobody for anything.

    What it forbids all scripts is lifted for the tests' own, unless its being there is tested.
    """
    settings = {"bypass_csp": True, "reduced_motion": "reduce", **settings}
    wrong: list[str] = []
    asked: list[str] = []
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **settings)
    page = context.new_page()
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    page.on("request", lambda request: asked.append(request.url))
    if path:
        page.goto(path.as_uri())
    yield page
    context.close()
    assert wrong == []
    assert [url for url in asked if not url.startswith(("data:", "blob:"))] == ([path.as_uri()] if path else [])
