"""The page in a real browser: it loads nothing, its table sorts, its figures fit, its films follow their timelines."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from in_browser import DESKTOP, PHONE, SHOWN, Report, make_report, opened
from playwright.sync_api import Browser, Page, expect, sync_playwright
from synthetic import about

from bilevel.experiments.report.page import episode, page_html
from bilevel.experiments.reproduction.films import Timeline
from bilevel.experiments.reproduction.findings import Findings
from bilevel.viewer.live import Beat, Fired

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no browser here; on Debian: apt-get install chromium")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return make_report(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM)
        yield launched
        launched.close()


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


MISFITS = """() => [...document.querySelectorAll("figure svg, .stacks:not([hidden]) .stack")]
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


def top(page: Page, selector: str) -> float:
    box = page.locator(selector).first.bounding_box()
    assert box
    return box["y"]


@pytest.mark.parametrize("size", [PHONE, (900, 700), DESKTOP])
def test_the_heads_of_the_table_stay_in_sight_and_no_entry_of_the_menu_is_cut_off(
    browser: Browser, report: Report, size: tuple[int, int]
) -> None:
    with opened(browser, report.page, size) as page:
        for entry in page.locator("nav a").all():
            box = entry.bounding_box()
            assert box
            assert 0 <= box["x"] <= box["x"] + box["width"] <= size[0]
        page.locator("table.results tbody tr").last.scroll_into_view_if_needed()
        page.evaluate("document.querySelector('.scroll').scrollBy(0, 400)")
        page.evaluate("scrollBy(0, document.querySelector('table.results tbody tr').getBoundingClientRect().bottom)")
        head, menu = page.locator("table.results thead th").first, page.locator("nav")
        below = menu.evaluate("nav => nav.getBoundingClientRect().bottom")
        assert top(page, "table.results thead th") == pytest.approx(max(below, top(page, ".scroll")), abs=2)
        assert head.evaluate(
            """head => {
              const box = head.getBoundingClientRect();
              return head.contains(document.elementFromPoint(box.left + 20, box.top + box.height / 2));
            }"""
        )


def test_a_value_is_shown_on_hover_and_on_focus(browser: Browser, report: Report) -> None:
    with opened(browser, report.page) as page:
        mark, tip = page.locator("figure svg .hit").first, page.locator("#tip")
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


# Films

READY = f"document.querySelector('{SHOWN} video').readyState >= 2"
CURRENT = f"[...document.querySelectorAll('{SHOWN} .viewer-beat[aria-current]')].map((beat) => +beat.dataset.step)"


def until_shown(page: Page, timeline: Timeline, beat: Beat) -> None:
    """Wait until the film is at a beat, and its timeline too."""
    time, picture = beat.step / timeline.steps_per_second, 1 / timeline.pictures_per_second
    page.wait_for_function(
        f"""() => {{
          const video = document.querySelector("{SHOWN} video");
          const current = {CURRENT};
          return !video.seeking && Math.abs(video.currentTime - {time}) <= {picture} && current[0] === {beat.step};
        }}"""
    )
    assert page.evaluate(CURRENT) == [beat.step]
    fired = page.locator(f"{SHOWN} .viewer-rule-line[aria-current] code").all_inner_texts()
    assert fired == ([beat.rule.text] if beat.rule else [])
    open_goals = page.locator(f"{SHOWN} .viewer-atoms .is-open").all_inner_texts()
    assert open_goals == list(beat.goals_left)


ROOM = 80  # pixels that a browser's controls take


@pytest.mark.parametrize("size", [PHONE, DESKTOP])
def test_controls_have_room_below_the_picture(browser: Browser, report: Report, size: tuple[int, int]) -> None:
    with opened(browser, report.page, size) as page:
        page.wait_for_function(READY)
        below = page.locator(f"{SHOWN} video").evaluate(
            "video => video.clientHeight - video.clientWidth * video.videoHeight / video.videoWidth"
        )
        assert ROOM <= below <= 1.5 * ROOM


def test_a_film_is_as_long_as_its_timeline_and_others_wait(browser: Browser, report: Report) -> None:
    with opened(browser, report.page) as page:
        for number, timeline in enumerate(report.timelines.values()):
            page.get_by_role("tab").nth(number).click()
            page.wait_for_function(READY)
            duration = page.locator(f"{SHOWN} video").evaluate("video => video.duration")
            assert abs(duration - timeline.seconds) < 1 / timeline.pictures_per_second
            waiting = page.locator(".viewer-episode video").evaluate_all(
                "films => films.map((film) => [film.readyState, film.preload, film.checkVisibility()])"
            )[number + 1 :]
            assert waiting == [[0, "none", False]] * (len(report.timelines) - number - 1)


def test_the_timeline_follows_a_film_that_plays(browser: Browser, report: Report) -> None:
    timeline = report.timelines["blocks"]
    with opened(browser, report.page) as page:
        page.wait_for_function(READY)
        page.evaluate(
            f"""() => {{
              window.told = [];
              const note = () => {{ const [step] = {CURRENT}; if (told.at(-1) !== step) told.push(step); }};
              const settings = {{ attributes: true, subtree: true, attributeFilter: ["aria-current"] }};
              new MutationObserver(note).observe(document.querySelector("{SHOWN} .viewer-beats"), settings);
              const video = document.querySelector("{SHOWN} video");
              video.playbackRate = 4;
              video.play();
            }}"""
        )
        page.wait_for_function(f"document.querySelector('{SHOWN} video').ended")
        page.wait_for_function(f"told.at(-1) === {timeline.beats[-1].step}")
        told = page.evaluate("told")
        assert told == sorted(told)
        assert len(told) > 1
        assert set(told) <= {beat.step for beat in timeline.beats}
        playhead = page.locator(f"{SHOWN} .viewer-playhead").evaluate("head => parseFloat(head.style.left)")
        assert playhead == pytest.approx(100, abs=5)


def test_a_click_on_the_timeline_moves_the_film_and_not_the_page(browser: Browser, report: Report) -> None:
    timeline = report.timelines["blocks-noisy"]
    with opened(browser, report.page, PHONE) as page:
        page.get_by_role("tab", name="Blocks, noisy").click()
        page.wait_for_function(READY)
        scrolled = page.evaluate("scrollY")
        events = [beat for beat in timeline.beats if beat.events]
        for kind, beats in (
            ("beat", [timeline.beats[-1], timeline.beats[2], timeline.beats[0]]),
            ("event", events),
            ("segment", [timeline.beats[1]]),
        ):
            for beat in beats:
                page.locator(f'{SHOWN} .viewer-{kind}[data-step="{beat.step}"]').evaluate("item => item.click()")
                until_shown(page, timeline, beat)
                page.wait_for_function(
                    f"""() => {{
                      const list = document.querySelector("{SHOWN} .viewer-beats").getBoundingClientRect();
                      const beat = document.querySelector("{SHOWN} .viewer-beat[aria-current]").getBoundingClientRect();
                      return beat.top >= list.top - 1 && beat.top < list.bottom - 20;
                    }}"""
                )
        assert page.evaluate("scrollY") == scrolled
        page.locator(f"{SHOWN} .viewer-event").first.click()  # by a finger, where it is drawn
        until_shown(page, timeline, events[0])


def test_the_viewer_can_be_used_with_keys_alone(browser: Browser, report: Report) -> None:
    timeline = report.timelines["blocks-noisy"]
    with opened(browser, report.page) as page:
        page.get_by_role("tab").first.focus()
        page.keyboard.press("ArrowRight")
        assert page.get_by_role("tab", selected=True).inner_text() == "Blocks, noisy"
        page.wait_for_function(READY)
        assert page.locator(f"{SHOWN} .viewer-beat[tabindex='0']").count() == 1
        page.locator(f"{SHOWN} .viewer-beat[tabindex='0']").focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        until_shown(page, timeline, timeline.beats[2])
        page.keyboard.press("End")
        page.keyboard.press("Space")
        until_shown(page, timeline, timeline.beats[-1])


def test_a_beat_says_all_that_there_is_to_say(browser: Browser, report: Report) -> None:
    timeline = report.timelines["blocks-noisy"]
    with opened(browser, report.page) as page:
        page.get_by_role("tab").nth(1).click()
        texts = [" ".join(text.split()) for text in page.locator(f"{SHOWN} .viewer-beat").all_inner_texts()]
    for beat, text in zip(timeline.beats, texts, strict=True):
        said = [*beat.events, *(f"+ {fact}" for fact in beat.appeared), *(f"− {fact}" for fact in beat.vanished)]
        said += [beat.action or f"the end: {timeline.outcome}", ", ".join(beat.goals_left) or "no goal left"]
        if beat.rule:
            said += [beat.rule.sentence, f"rule {beat.rule.number} with "]
            said += [f"{variable} = {value}" for variable, value in beat.rule.binding.items()]
        assert [part for part in said if part not in text] == []


def test_on_paper_there_is_a_still_and_the_whole_list(browser: Browser, report: Report) -> None:
    with opened(browser, report.page) as page:
        page.emulate_media(media="print")
        clipped = "list => list.scrollHeight - list.clientHeight"
        assert page.locator(f"{SHOWN} .viewer-beats").evaluate(clipped) <= 1
        assert page.locator(".viewer-tabs").is_hidden()
        assert page.locator(f"{SHOWN} video").get_attribute("poster")
        assert page.locator(".viewer-on-paper").is_visible()


def made_up(beats: list[Beat], outcome: str = "success") -> Timeline:
    return Timeline(
        task="blocks",
        variant="bison",
        objects=1,
        seed=4,
        outcome=outcome,
        steps=4,
        steps_per_second=40.0,
        pictures_per_second=20.0,
        seconds=1.1,
        beats=beats,
    )


def test_what_a_timeline_says_is_never_taken_for_a_page(browser: Browser, report: Report) -> None:
    odd = """<img src=x onerror="alert('1')">' onclick='alert(2)' </script><script>alert(3)</script>&amp;"""
    rule = Fired(1, odd, {odd: odd}, odd)
    beats = [Beat(0, f"{odd}(x)", rule, [odd], [odd], [odd], [odd]), Beat(4, None, None, [], [], [odd], [])]
    timeline = made_up(beats, outcome=odd)
    film = (report.page.parent / "all" / "films" / "blocks.mp4").read_bytes()
    with opened(browser, None) as page:
        page.set_content(page_html(Findings(about(), [], []), [(timeline, film)]))
        assert page.locator("img, script").count() == 2  # the page's own
        assert page.locator(".viewer-sentence").inner_text() == odd
        assert page.locator("[onclick], [onerror]").count() == 0
        assert page.locator(".viewer-rule").get_attribute("title") == odd


def test_a_film_that_cannot_be_drawn_has_no_still_but_a_timeline(browser: Browser) -> None:
    timeline = made_up([Beat(0, "wait()", None, [], [], [], [])])
    assert episode(timeline, b"not a film").still is None
    with opened(browser, None) as page:
        page.set_content(page_html(Findings(about(), [], []), [(timeline, b"not a film")]))
        assert page.locator(".viewer-segment").all_inner_texts() == ["wait()"]
