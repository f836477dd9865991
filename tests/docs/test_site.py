"""The site that `make docs` builds: every link leads somewhere, nothing comes from elsewhere, search and dark work."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import which
from threading import Thread

import pytest
from page_links import dead_links, dead_links_in_markdown
from test_pages import PAGES, ROOT

import bilevel
from bilevel.cli import all_commands

pytest.importorskip("mkdocs", reason="the site is built with the extra docs")
CHROMIUM = which("chromium")


def built(folder: Path) -> Path:
    """Return the site, built as `make docs` builds it; any warning is an error."""
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    return folder


def test_the_site_is_whole(tmp_path: Path) -> None:
    site = built(tmp_path / "site")
    assert list(dead_links(site)) == []
    commands = (site / "commands.html").read_text(encoding="utf-8")
    assert re.findall(r'<h2 id="[^"]*">bilevel ([^<]*)<', commands) == list(all_commands())
    names = re.findall(r'<h3 id="bilevel\.(\w+)"', (site / "api.html").read_text(encoding="utf-8"))
    assert sorted(names) == sorted(set(bilevel.__all__) - {"__version__"})
    if CHROMIUM:
        look_at(site, CHROMIUM)


def look_at(site: Path, chromium: str) -> None:
    """Search the site, switch it to dark, and see that no page is wider than a phone."""
    playwright = pytest.importorskip("playwright.sync_api")
    with served(site) as address, playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="light")
        for name in ("index", "policies", "api", "commands", "results"):
            page.goto(f"{address}/{name}.html")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, f"{name} is wider than a phone"
        page.locator("label[title=Dark]:visible").click()
        assert page.locator("body").get_attribute("data-md-color-scheme") == "slate"
        page.set_viewport_size({"width": 1440, "height": 900})
        search = page.get_by_role("textbox", name="Search")
        search.click()
        search.press_sequentially("regression")
        page.locator('.md-search-result__link[href*="rules.html"]').first.wait_for()
        browser.close()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_the_repository_has_what_pages_link_to(page: Path) -> None:
    assert list(dead_links_in_markdown(page)) == []
