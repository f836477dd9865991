"""The live page in a real browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from live_episode import Live, eventually, live, recorded
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tiny_policies import PICK, RULES_TEXT

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no browser here; on Debian: apt-get install chromium")

PHONE, DESKTOP = (390, 844), (1280, 900)
FIRED = ".viewer-rule-line[aria-current]"
PUT_AT_ONCE = "1: lying(?p) & empty(?s) & goal at(?p, ?s) -> put(?p, ?s)"
SHOWN = f"""() => Object.fromEntries(Object.entries({{
    rules: "{FIRED} code",
    why: "{FIRED} .viewer-binding",
    action: "#doing",
    goals: ".is-goals .is-open",
    facts: ".is-facts li:not(.is-gone)",
}}).map(([name, what]) => [name, [...document.querySelectorAll(what)].map((element) => element.textContent)]))"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM)
        yield launched
        launched.close()


@contextmanager
def opened(browser: Browser, watched: Live, size: tuple[int, int] = DESKTOP, **settings: Any) -> Iterator[Page]:
    """The page in a window of its own, on which nothing goes wrong, and which asks nobody else for anything."""
    wrong: list[str] = []
    asked: list[str] = []
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **settings)
    page = context.new_page()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if "400" not in message.text else None)
    page.on("request", lambda request: asked.append(request.url))
    page.goto(watched.server.address)
    expect(page.locator("#title")).to_have_text(watched.env.task.name)
    yield page
    context.close()
    assert wrong == []
    assert [url for url in asked if not url.startswith((watched.server.address, "data:", "blob:"))] == []


def at_step(page: Page, step: int) -> None:
    page.locator(f'#counter[data-step="{step}"]').wait_for()


def test_the_rule_shown_is_the_rule_that_fired(browser: Browser) -> None:
    """At every step of an episode, as the log has it of the same episode that nobody watched."""
    log = recorded(1, 1)
    with live(objects=1) as watched, opened(browser, watched) as page:
        for step in range(log.steps):
            at_step(page, step)
            entry = next(entry for entry in reversed(log.entries) if entry.step <= step)
            assert entry.match is not None
            shown = page.evaluate(SHOWN)
            assert (shown["rules"], shown["action"]) == ([str(entry.match.rule)], [str(entry.action)])
            assert all(f"{variable} = {value}" in shown["why"][0] for variable, value in entry.match.binding.items())
            assert shown["why"][0].endswith(entry.sentence or "")
            assert shown["goals"] == [str(fact) for fact in sorted(entry.goal - entry.state)]
            assert shown["facts"] == sorted(map(str, entry.state))
            page.locator("#step").click()
        expect(page.locator("#ending")).to_have_text(f"success after {log.steps} steps")
        expect(page.locator(FIRED)).to_have_count(0)
        expect(page.locator("#step")).to_be_disabled()


def test_pause_step_push_and_edited_rules(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "rules.txt").write_text(RULES_TEXT, encoding="utf-8")
    with live(objects=12, folder=tmp_path) as watched, opened(browser, watched) as page:
        at_step(page, 0)
        page.locator("#push").click()
        page.locator("body").press("Shift+ArrowRight")
        at_step(page, 1)
        expect(page.locator(".live-control.is-perturbed")).not_to_have_count(0)
        page.locator("#editor summary").click()
        text = page.locator("#rules-text")
        expect(text).to_have_value(RULES_TEXT)
        text.fill(RULES_TEXT.replace(PICK, "2: flying(?p) -> pick(?p)"))
        page.locator("#apply").click()
        expect(page.locator("#rules-wrong")).to_contain_text("rules:3:4: unknown predicate 'flying'")
        assert text.evaluate("text => text.value.slice(text.selectionStart).startsWith('flying(')")
        text.fill(RULES_TEXT.replace(PICK, PUT_AT_ONCE))
        page.locator("#apply").click()
        expect(page.locator("#rules-wrong")).to_be_empty()
        page.locator("#step").click()
        at_step(page, 2)
        expect(page.locator("#doing")).to_have_text("put(parcel1, spot1)")
        expect(page.locator(f"{FIRED} code")).to_have_text(PUT_AT_ONCE)
        page.locator("#revert").click()
        page.locator("#play").click()
        eventually(lambda: watched.env.steps > 4)
        page.locator("#play").click()
        expect(page.locator("#play")).to_have_text("Play")
        page.wait_for_timeout(200)
        at_step(page, watched.env.steps)


def test_the_end_says_why_one_can_look_back_and_begin_again(browser: Browser) -> None:
    with live(objects=1, seed=2**60) as watched, opened(browser, watched) as page:
        first = page.locator("#picture")
        expect(first).to_be_visible()
        page.locator("#editor summary").click()
        page.locator("#rules-text").fill("variables: ?p - parcel\n1: carrying(?p) & lying(?p) -> pick(?p)")
        page.locator("#apply").click()
        page.locator("#step").click()
        expect(page.locator("#ending")).to_have_text("no action after 1 step")
        expect(page.locator("#why")).to_contain_text("no rule applies")
        page.locator('#picture[data-step="1"]').wait_for()
        page.locator("#next").click()
        expect(page.locator("#about")).to_contain_text(f"1 object, seed {2**60 + 1}")
        expect(page.locator("#ending")).to_contain_text("no action after 0 steps")
        page.locator("#quit").click()
        expect(page.locator("#lost")).to_be_hidden()


@pytest.mark.parametrize("size", [PHONE, DESKTOP])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_fits_and_can_be_read(browser: Browser, size: tuple[int, int], scheme: str) -> None:
    with live(objects=12) as watched, opened(browser, watched, size, color_scheme=scheme) as page:
        at_step(page, 0)
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
        ink, ground = page.evaluate("['color', 'backgroundColor'].map((name) => getComputedStyle(document.body)[name])")
        lightness = [sum(map(int, colour.strip("rgb()").split(","))) for colour in (ink, ground)]
        assert (lightness[0] < lightness[1]) == (scheme == "light")
        for part in ("#picture", FIRED, ".is-goals", ".is-facts", "#controls", ".viewer-beats"):
            expect(page.locator(part)).to_be_visible()
