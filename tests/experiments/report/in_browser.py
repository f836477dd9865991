"""A report with real films in it, and windows of a real browser to look at it in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from playwright.sync_api import Browser, Page
from synthetic import run_like

from bilevel.experiments.report.writing import write_report
from bilevel.experiments.reproduction.films import Timeline, interesting_seed, make_film
from bilevel.tabletop import TASKS
from bilevel.tabletop.rendering import QUALITIES, Image, Quality
from bilevel.tabletop.tabletop import Tabletop
from blocks_policies import moving_policy
from drawing import can_draw

PHONE, DESKTOP = (390, 844), (1280, 900)
SHOWN = ".viewer-episode:not([hidden])"
FILMS = {"blocks": 1, "blocks-noisy": 3}  # objects


class Report(NamedTuple):
    """A page, and the timelines of its films, by task."""

    page: Path
    timelines: dict[str, Timeline]


def make_report(folder: Path) -> Report:
    """Of findings that are made up, but with films that are not."""
    timelines, policy = {}, moving_policy()
    with drawing():
        for name, objects in FILMS.items():
            seed = interesting_seed(policy, TASKS[name], objects)
            film = folder / "all" / "films" / f"{name}.mp4"
            look: Any = {"quality": "fast", "encoder": {"crf": "35", "preset": "ultrafast"}}
            timelines[name] = make_film(policy, TASKS[name], objects, seed, film, "bison", **look)
            film.with_suffix(".json").write_text(timelines[name].text(), encoding="utf-8")
    findings = run_like(seeds=(0,), objects=(1, 4, 10))
    (folder / "all" / "findings.jsonl").write_text(findings.lines(), encoding="utf-8")
    write_report(folder / "all", folder / "report.html", None)
    return Report(folder / "report.html", timelines)


@contextmanager
def drawing() -> Iterator[None]:
    """Meanwhile pictures are small, and so soon drawn; where nothing can be drawn, they are grey."""

    def grey(world: Tabletop) -> Image:
        return np.full((120, 160, 3), 128, np.uint8)

    small = Quality(width=160, height=120, shadows=False, samples=0)
    with patch.dict(QUALITIES, {"fast": small}) if can_draw() else patch.object(Tabletop, "render", grey):
        yield


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
    page.on("dialog", lambda dialog: dialog.dismiss())
    page.on("request", lambda request: asked.append(request.url))
    if path:
        page.goto(path.as_uri())
    yield page
    context.close()
    assert wrong == []
    assert [url for url in asked if not url.startswith(("data:", "blob:"))] == ([path.as_uri()] if path else [])
