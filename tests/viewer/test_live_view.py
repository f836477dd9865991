"""Episodes that are watched: what pages are shown of them, and what comes of what their viewers ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from live_episode import Live, eventually, live, recorded

from bilevel.symbolic.domain import BadInput
from bilevel.viewer.live import News, Request
from tiny_policies import PICK, PUT, RULES_TEXT
from tiny_task import TINY_ACTING, TINY_DISCRETE

PUT_AT_ONCE = "1: lying(?p) & empty(?s) & goal at(?p, ?s) -> put(?p, ?s)"
OTHER_RULES = RULES_TEXT.replace(PICK, PUT_AT_ONCE)
AS_FAST_AS_POSSIBLE = Request("pace", paused=False, speed=0)


def news(watched: Live) -> News:
    """All that there is to know now."""
    found = watched.board.next(0, 0, 0, 10.0)
    assert found is not None
    return found


def at_step(watched: Live, step: int) -> Any:
    """All that is known once the episode is paused before a step."""

    def is_paused_there() -> bool:
        found = news(watched)
        return found.paused and found.now is not None and found.now["step"] == step

    eventually(is_paused_there)
    return news(watched)


def after_step(watched: Live, *requests: Request) -> Any:
    """All that is known after these requests and one further step."""
    now = news(watched).now
    assert now is not None
    for request in (*requests, Request("step")):
        watched.view.tell(request)
    return at_step(watched, now["step"] + 1)


def at_the_end(watched: Live) -> Any:
    eventually(lambda: news(watched).ending is not None)
    return news(watched)


@pytest.mark.parametrize("noise", [0.0, 0.7])
def test_beats_are_the_entries_of_the_episode_with_the_rules_that_fired(noise: float) -> None:
    episode = recorded(2, 1, noise)
    with live(noise=noise) as watched:
        at_step(watched, 0)
        watched.view.tell(AS_FAST_AS_POSSIBLE)
        found = at_the_end(watched)
    assert (found.ending["outcome"], found.ending["steps"], found.ending["why"]) == ("success", episode.steps, None)
    shown = [(beat.step, beat.action, beat.rule and beat.rule.text) for beat in found.beats]
    assert shown == [
        (entry.step, entry.action and str(entry.action), entry.match and str(entry.match.rule))
        for entry in episode.entries
    ]
    assert {text for _, _, text in shown} == {PUT, PICK, None}
    assert watched.runs == [episode]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (RULES_TEXT.replace("carrying(?p)", "carries(?p)"), "rules:2:4: unknown predicate 'carries'"),
        ("", "rules: there is no rule in the text"),
        (RULES_TEXT.replace("empty(?s)", "not empty(?s)", 1), "tests for the absent fact"),
    ],
)
def test_wrong_rules_are_refused_in_one_line_and_change_nothing(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "rules.txt"
    file.write_text(RULES_TEXT, encoding="utf-8")
    with live(folder=tmp_path) as watched:
        before = at_step(watched, 0)
        for kind in ("edit", "save"):
            with pytest.raises(BadInput) as refused:
                watched.view.tell(Request(kind, text=text))
            assert said in str(refused.value)
            assert "\n" not in str(refused.value)
        after = after_step(watched)
        assert (after.rules, len(after.beats)) == (before.rules, len(before.beats))
    assert file.read_text(encoding="utf-8") == RULES_TEXT


def test_rules_are_saved_only_where_they_have_a_file(tmp_path: Path) -> None:
    file = tmp_path / "rules.txt"
    file.write_text(RULES_TEXT, encoding="utf-8")
    with live(folder=tmp_path) as watched:
        at_step(watched, 0)
        after_step(watched, Request("edit", text=OTHER_RULES))
        assert file.read_text(encoding="utf-8") == RULES_TEXT
        watched.view.tell(Request("save", text=OTHER_RULES))
        assert file.read_text(encoding="utf-8") == OTHER_RULES
    with live() as watched, pytest.raises(BadInput, match="no file of yours"):
        watched.view.tell(Request("save", text=OTHER_RULES))


@pytest.mark.parametrize(("task", "has_actions"), [(TINY_DISCRETE, True), (TINY_ACTING, False)])
def test_experts_without_rules_show_what_there_is(task: Any, has_actions: bool) -> None:
    with live(task, expert=True, pictures=False) as watched:
        found = at_step(watched, 0)
        assert (found.about["can_edit"], found.picture) == (False, 0)
        assert "gives no pictures" in found.about["no_pictures"]
        assert (found.beats[0].action is not None) == has_actions
        with pytest.raises(BadInput, match="no rules"):
            watched.view.tell(Request("edit", text=RULES_TEXT))
        assert len(after_step(watched).now["control"]) == (1 if task is TINY_DISCRETE else 3)
