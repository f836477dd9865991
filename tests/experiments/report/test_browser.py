"""The page in a real browser: it loads nothing, its table sorts, its figures fit, values show where one points."""

from __future__ import annotations

import pytest
from in_browser import DESKTOP, PHONE, SHOWN, Report, needs_browser, opened
from playwright.sync_api import Browser, expect

pytestmark = needs_browser


def test_all_works_with_no_more_than_the_page_allows_itself(browser: Browser, report: Report) -> None:
    with opened(browser, report.page, bypass_csp=False) as page:
        tabs = page.get_by_role("tab")
        assert tabs.all_inner_texts() == ["Blocks", "Blocks, noisy"]
        for number in range(tabs.count()):
            tabs.nth(number).click()
            expect(page.locator(f"{SHOWN} video")).to_have_js_property("readyState", 4)
            page.locator(f"{SHOWN} .viewer-beat").nth(1).click()
            expect(page.locator(f"{SHOWN} .viewer-beat").nth(1)).to_have_attribute("aria-current", "true")
        page.locator("table.results thead button").last.click()
        expect(page.locator("table.results thead th").last).to_have_attribute("aria-sort", "descending")


def test_the_table_sorts_by_number_both_ways(browser: Browser, report: Report) -> None:
    with opened(browser, report.page) as page:
        heads = page.locator("table.results thead th")
        for column in (1, heads.count() - 1, 0):
            for _ in range(2):
                heads.nth(column).get_by_role("button").click()
                order = heads.nth(column).get_attribute("aria-sort")
                values = page.locator(f"table.results tbody tr > :nth-child({column + 1})").evaluate_all(
                    "cells => cells.map((cell) => cell.dataset.value).filter((value) => value !== '').map(Number)"
                )
                assert len(set(values)) > 2
                assert order in ("ascending", "descending")
                assert values == sorted(values, reverse=order == "descending")
            others = {heads.nth(other).get_attribute("aria-sort") for other in range(heads.count()) if other != column}
            assert others == {"none"}
        first = heads.nth(0).get_attribute("aria-sort")
        heads.nth(0).get_by_role("button").press("Enter")
        assert {first, heads.nth(0).get_attribute("aria-sort")} == {"ascending", "descending"}


MISFITS = """() => [...document.querySelectorAll("figure svg, .stacks:not([hidden]) svg")]
  .map((svg) => [svg, svg.getBoundingClientRect()])
  .filter(([svg, box]) => !svg.checkVisibility() || box.width < 40 || box.height < 5 || box.left < 0
    || box.right > innerWidth + 1)
  .map(([svg, box]) => `${svg.getAttribute("class")} ${box.left} ${box.right} ${box.height}`)"""


@pytest.mark.parametrize("size", [PHONE, DESKTOP])
def test_every_figure_is_seen_and_the_page_is_no_wider_than_the_window(
    browser: Browser, report: Report, size: tuple[int, int]
) -> None:
    with opened(browser, report.page, size) as page:
        assert page.locator("figure svg").count() >= 10
        assert page.evaluate(MISFITS) == []
        tabs = page.get_by_role("tab")
        for number in range(tabs.count()):
            tabs.nth(number).click()
            assert page.evaluate("document.documentElement.scrollWidth") == size[0]
            box = page.locator(".viewer-episode:not([hidden]) video").bounding_box()
            assert box
            assert box["width"] > 300
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= size[0]


def test_a_value_is_shown_on_hover_and_on_focus(browser: Browser, report: Report) -> None:
    with opened(browser, report.page) as page:
        mark, tip = page.locator("figure svg [data-tip]").first, page.locator("#tip")
        assert tip.is_hidden()
        mark.scroll_into_view_if_needed()
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        mark.hover(force=True)  # now that nothing scrolls any more, which would hide the value
        tip.wait_for(state="visible")
        hovered = tip.inner_text()
        assert any(letter.isdigit() for letter in hovered)
        page.mouse.move(0, 0)
        tip.wait_for(state="hidden")
        mark.focus()
        tip.wait_for(state="visible")
        assert tip.inner_text() == hovered


def test_dark_is_another_look(browser: Browser, report: Report) -> None:
    colours = """() => ["body", ".viewer", ".viewer-beats", ".viewer-segment", ".viewer-new"].map((name) => {
      const style = getComputedStyle(document.querySelector(name));
      return [style.color, style.backgroundColor];
    })"""
    seen = []
    for scheme in ("light", "dark"):
        with opened(browser, report.page, color_scheme=scheme) as page:
            seen.append(page.evaluate(colours))
    assert all(light != dark for light, dark in zip(*seen, strict=True))
