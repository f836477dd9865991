"""Links of pages, in HTML and in Markdown, and where they lead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "source": "src", "video": "src", "iframe": "src", "link": "href"}
LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


class Link(NamedTuple):
    """A link of a page, and whether what it names is loaded with the page."""

    page: Path
    target: str
    is_loaded: bool

    def __str__(self) -> str:
        return f"{self.page}: {self.target}"


class Document(HTMLParser):
    """The links and the anchors of a page of HTML."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.page, self.links, self.anchors = page, list[Link](), {"", "__skip"}
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attributes if value}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        is_alternate = values.get("rel") in ("canonical", "alternate", "prev", "next")
        loaded = None if is_alternate else values.get(LOADED.get(tag, ""))
        target = loaded or values.get("href")
        if target:
            self.links.append(Link(self.page, target, loaded is not None))


def dead_links(site: Path) -> Iterator[str]:
    """Yield the links of a site that lead nowhere, and what it would load from elsewhere."""
    documents = {page: Document(page) for page in sorted(site.rglob("*.html"))}
    for link in (link for document in documents.values() for link in document.links):
        scheme, host, path, _, fragment = urlsplit(link.target)
        if scheme in ("data", "mailto", "javascript"):
            continue
        if scheme or host:
            if link.is_loaded or scheme != "https" or "." not in host:
                yield f"{link}: from elsewhere"
            continue
        above = site if path.startswith("/") else link.page.parent  # the page for missing ones does not know where it is
        file = (above / unquote(path).lstrip("/")).resolve() if path else link.page
        file = file / "index.html" if file.is_dir() else file
        if not file.is_file():
            yield f"{link}: no such file"
        elif file in documents and unquote(fragment) not in documents[file].anchors:
            yield f"{link}: no such anchor"


def dead_links_in_markdown(page: Path) -> Iterator[str]:
    """Yield the relative links of a page of Markdown that lead nowhere, as the viewer of a repository follows them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in LINK.findall(text):
        path, _, fragment = target.partition("#")
        file = page.parent / path if path else page
        if urlsplit(target).scheme:
            continue
        if not file.exists():
            yield f"{page.name}: {target}: no such file"
        elif fragment and file.suffix == ".md" and fragment not in anchors_of(file):
            yield f"{page.name}: {target}: no such heading"


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of the headings, as a repository's viewer makes them."""
    headings = HEADING.findall(page.read_text(encoding="utf-8"))
    texts = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-") for text in texts}
