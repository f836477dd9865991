"""The episode viewer in a real browser: films play and their timelines follow; a click on a moment moves the film."""

from __future__ import annotations

import pytest
from in_browser import PHONE, SHOWN, Report, needs_browser, opened
from playwright.sync_api import Browser, Page

from bilevel.experiments.report.viewer import viewer_html
from bilevel.experiments.reproduction.timeline import Beat, Fired, Timeline

pytestmark = needs_browser

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
              document.querySelector("{SHOWN} video").play();
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


def test_what_a_timeline_says_is_never_taken_for_a_page(browser: Browser, report: Report) -> None:
    odd = """<img src=x onerror="alert('1')">' onclick='alert(2)' </script><script>alert(3)</script>&amp;"""
    rule = Fired(1, odd, {odd: odd}, odd)
    beats = [Beat(0, f"{odd}(x)", rule, [odd], [odd], [odd], [odd]), Beat(4, None, None, [], [], [odd], [])]
    timeline = Timeline("blocks", "bison", 1, 4, odd, 4, 40.0, 20.0, 1.1, beats)
    film = (report.page.parent / "all" / "films" / "blocks.mp4").read_bytes()
    with opened(browser, None) as page:
        page.set_content(viewer_html([(timeline, film)]))
        assert page.locator("img, script").count() == 1  # the viewer's own
        assert page.locator(".viewer-sentence").inner_text() == odd
        assert page.locator("[onclick], [onerror]").count() == 0
        assert page.locator(".viewer-rule").get_attribute("title") == odd


def test_no_films_no_viewer() -> None:
    assert viewer_html([]) == ""
