"""One browser, and one report with real films in it, for all tests that look at it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pytest
from in_browser import CHROMIUM, Report
from playwright.sync_api import Browser, sync_playwright
from synthetic import run_like

from bilevel.environments.rendering import QUALITIES, Image, Quality
from bilevel.environments.tabletop import Tabletop
from bilevel.execution.policy_folder import write_policy
from bilevel.experiments.report.writing import write_report
from bilevel.experiments.reproduction.films import Look, interesting_seed, make_film
from drawing import can_draw
from idle_policy import idle_policy, moving_as_the_expert

FILMS = {"blocks": 1, "blocks-noisy": 3}  # objects
LOOK = Look(quality="fast", encoder={"crf": "35", "preset": "ultrafast"})


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Findings that are made up, but films that are not."""
    folder = tmp_path_factory.mktemp("report")
    write_policy(folder / "policy", idle_policy())
    timelines = {}
    with moving_as_the_expert(), drawing():
        for task, objects in FILMS.items():
            seed = interesting_seed(folder / "policy", task, objects)
            film = folder / "all" / "films" / f"{task}.mp4"
            timelines[task] = make_film(folder / "policy", task, objects, seed, film, look=LOOK)
            film.with_suffix(".json").write_text(timelines[task].text(), encoding="utf-8")
    findings = run_like(seeds=(0,), objects=(1, 4, 10))
    (folder / "all" / "findings.jsonl").write_text(findings.lines(), encoding="utf-8")
    return Report(write_report(folder / "all", folder / "report.html", with_files=False).page, timelines)


@contextmanager
def drawing() -> Iterator[None]:
    """Meanwhile pictures are small, and so soon drawn; where nothing can be drawn, they are grey."""

    def grey(world: Tabletop) -> Image:
        return np.full((120, 160, 3), 128, np.uint8)

    small = Quality(width=160, height=120, shadows=False, samples=0)
    with patch.dict(QUALITIES, {"fast": small}) if can_draw() else patch.object(Tabletop, "render", grey):
        yield


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM)
        yield launched
        launched.close()
