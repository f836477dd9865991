"""Episodes that are watched: what pages are shown of them, and what comes of what their viewers ask for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from live_episode import Live, eventually, live, recorded

from bilevel.symbolic.domain import BadInput
from bilevel.viewer import requests
from bilevel.viewer.board import Asked, Board, News
from bilevel.viewer.requests import Again, Edit, Hold, Move, Pace, Push, Quit, Revert, Save, Step, read_request
from drawn_task import DRAWN
from tiny_policies import PICK, PUT, RULES_TEXT
from tiny_task import TINY_ACTING, TINY_DISCRETE, Delivery

PUT_AT_ONCE = "1: lying(?p) & empty(?s) & goal at(?p, ?s) -> put(?p, ?s)"
OTHER_RULES = RULES_TEXT.replace(PICK, PUT_AT_ONCE)
AS_FAST_AS_POSSIBLE = Pace(paused=False, speed=0)


def news(watched: Live) -> News:
    """All that there is to know now."""
    found = watched.board.news(Asked(), 10.0)
    assert found is not None
    return found


def at_step(watched: Live, step: int) -> News:
    """All that is known once the episode is paused before a step."""

    def is_paused_there() -> bool:
        found = news(watched)
        return found.pace.paused and found.now is not None and found.now.step >= step

    eventually(is_paused_there)
    found = news(watched)
    assert found.now is not None
    assert found.now.step == step
    return found


def at_the_end(watched: Live) -> News:
    eventually(lambda: news(watched).ending is not None)
    return news(watched)


@pytest.mark.parametrize("noise", [0.0, 0.7])
def test_beats_are_the_entries_of_the_log_with_the_rules_that_fired(noise: float) -> None:
    log = recorded(2, 1, noise)
    with live(noise=noise) as watched:
        at_step(watched, 0)
        watched.view.tell(AS_FAST_AS_POSSIBLE)
        found = at_the_end(watched)
    assert found.ending is not None
    assert (found.ending.outcome, found.ending.steps, found.ending.why) == ("success", log.steps, None)
    shown = [(beat.step, beat.action, beat.rule and beat.rule.text) for beat in found.beats]
    assert shown == [
        (entry.step, entry.action and str(entry.action), entry.match and str(entry.match.rule)) for entry in log.entries
    ]
    assert {text for _, _, text in shown} == {PUT, PICK, None}
    assert watched.runs[0] is not None
    assert watched.runs[0].reason is None


def test_a_step_is_one_step() -> None:
    with live() as watched:
        for step in range(4):
            at_step(watched, step)
            watched.view.tell(Step())
        at_step(watched, 4)
        assert watched.env.steps == 4


def test_edited_rules_decide_at_the_next_step_and_can_be_taken_back() -> None:
    with live() as watched:
        assert at_step(watched, 0).beats[-1].action == "pick(parcel1)"
        watched.view.tell(Edit(OTHER_RULES))
        watched.view.tell(Step())
        found = at_step(watched, 1)
        last = found.beats[-1]
        assert (last.step, last.action, last.events) == (1, "put(parcel1, spot1)", ["you change the rules"])
        assert last.rule is not None
        assert last.rule.text == PUT_AT_ONCE
        assert found.rules is not None
        assert (found.rules.text, found.rules.is_edited) == (OTHER_RULES, True)
        watched.view.tell(Revert())
        watched.view.tell(Step())
        found = at_step(watched, 2)
        assert found.beats[-1].action == "pick(parcel1)"
        assert found.rules is not None
        assert not found.rules.is_edited


def test_rules_that_say_the_same_are_shown_as_they_are_now() -> None:
    """Though neither state nor action are others."""
    reordered = RULES_TEXT.replace(PICK, PICK.replace("2:", "3:"))
    with live() as watched:
        watched.view.tell(Edit(reordered))
        watched.view.tell(Step())
        last = at_step(watched, 1).beats[-1]
        assert last.rule is not None
        assert (last.action, last.rule.text[:2]) == ("pick(parcel1)", "3:")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (RULES_TEXT.replace("carrying(?p)", "carries(?p)"), "rules:2:4: unknown predicate 'carries'"),
        (RULES_TEXT.replace("-> put(?p, ?s)", ""), "rules:3"),
        ("", "rules: there is no rule in the text"),
        (RULES_TEXT.replace("empty(?s)", "not empty(?s)", 1), "tests for the absent fact"),
    ],
)
def test_wrong_rules_are_refused_in_one_line_and_change_nothing(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "rules.txt"
    file.write_text(RULES_TEXT, encoding="utf-8")
    with live(rules_file=file) as watched:
        before = at_step(watched, 0)
        for request in (Edit(text), Save(text)):
            with pytest.raises(BadInput) as refused:
                watched.view.tell(request)
            assert said in str(refused.value)
            assert len(str(refused.value).splitlines()) == 1
        watched.view.tell(Step())
        after = at_step(watched, 1)
        assert after.rules == before.rules
        assert len(after.beats) == len(before.beats)
    assert file.read_text(encoding="utf-8") == RULES_TEXT


def test_rules_are_saved_only_when_asked_and_only_where_they_have_a_file(tmp_path: Path) -> None:
    file = tmp_path / "rules.txt"
    file.write_text(f"# mine\n{RULES_TEXT}", encoding="utf-8")
    with live(rules_file=file) as watched:
        found = at_step(watched, 0)
        assert found.rules is not None
        assert found.rules.text == f"# mine\n{RULES_TEXT}"
        watched.view.tell(Edit(OTHER_RULES))
        watched.view.tell(Step())
        at_step(watched, 1)
        assert file.read_text(encoding="utf-8") == f"# mine\n{RULES_TEXT}"
        watched.view.tell(Save(OTHER_RULES))
        assert file.read_text(encoding="utf-8") == OTHER_RULES
    with live() as watched, pytest.raises(BadInput, match="no file of yours"):
        watched.view.tell(Save(OTHER_RULES))


def test_a_push_perturbs_what_is_executed_and_a_number_can_be_held() -> None:
    with live() as watched:
        watched.view.tell(Push())
        watched.view.tell(Step())
        pushed = at_step(watched, 1)
        assert pushed.now is not None
        assert [number.wanted for number in pushed.now.control] != [number.executed for number in pushed.now.control]
        assert pushed.beats[-1].events == ["you push the controls for 15 steps"]
        watched.view.tell(Hold(0, 7.0))
        watched.view.tell(Step())
        held = at_step(watched, 2)
        assert held.now is not None
        assert held.now.control[0].executed == pytest.approx(held.now.control[0].high)
        watched.view.tell(Hold(0))
        with pytest.raises(BadInput, match="no number 4"):
            watched.view.tell(Hold(3, 0.0))


def test_objects_move_where_the_task_has_a_way() -> None:
    def displace(env: Any, name: str) -> bool:
        world: Delivery = env.unwrapped
        world.parcels[0, :2] = 0.25, 0.5
        return True

    with live(replace(DRAWN, displace=displace)) as watched:
        before = at_step(watched, 0)
        assert before.about is not None
        assert before.about.can_move
        watched.view.tell(Move("nobody"))
        eventually(lambda: news(watched).notice == "nobody cannot be put there")
        watched.view.tell(Move("parcel1", (0.25, 0.5)))
        watched.view.tell(Step())
        after = at_step(watched, 1)
        assert after.now is not None
        features = {thing.name: thing.features for thing in after.now.seen}
        assert (features["parcel1"]["x"], features["parcel1"]["y"]) == (0.25, 0.5)
        assert after.beats[-1].events == ["you move parcel1"]
    with live(replace(DRAWN, displace=lambda env, name: False)) as watched:
        at_step(watched, 0)
        watched.view.tell(Move("parcel1"))
        eventually(lambda: news(watched).notice == "parcel1 cannot be put there")
        watched.view.tell(Step())
        assert at_step(watched, 1).notice == ""
    with live() as watched, pytest.raises(BadInput, match="has no way to put objects elsewhere"):
        watched.view.tell(Move("parcel1"))


def test_what_is_seen_is_what_the_action_names_and_the_network_is_told() -> None:
    with live() as watched:
        found = at_step(watched, 0)
        assert found.now is not None
        assert [(thing.name, list(thing.features)) for thing in found.now.seen] == [
            ("agent", ["x", "y", "closed"]),
            ("parcel1", ["x", "y", "held"]),
        ]


def test_again_begins_another_episode_in_the_middle_and_after_the_end() -> None:
    with live() as watched:
        at_step(watched, 0)
        watched.view.tell(Step())
        at_step(watched, 1)
        watched.view.tell(Again())
        eventually(lambda: news(watched).episode == 2)
        again = at_step(watched, 0)
        assert again.about is not None
        assert (again.about.seed, len(again.beats)) == ("1", 1)
        watched.view.tell(AS_FAST_AS_POSSIBLE)
        at_the_end(watched)
        watched.view.tell(Again(ahead=4))
        eventually(lambda: news(watched).episode == 3)
        assert at_the_end(watched).about is not None
    assert watched.runs[0] is not None
    assert watched.runs[0].seed == 5


def test_an_episode_that_is_left_has_no_outcome() -> None:
    with live() as watched:
        at_step(watched, 0)
        watched.view.tell(Quit())
        eventually(lambda: watched.runs == [None])


def test_nothing_is_drawn_for_nobody_and_nobody_waits_for_a_slow_page() -> None:
    drawn: list[int] = []
    with live(paused=False) as watched:
        watched.view.tell(AS_FAST_AS_POSSIBLE)
        render = watched.env.env.render

        def noting() -> Any:
            drawn.append(watched.env.steps)
            return render()

        watched.env.env.render = noting
        news(watched)  # a page that asks once, and not again
        eventually(lambda: watched.board._episode.ending is not None)
        found = news(watched)
    assert found.ending is not None
    assert len(drawn) <= 3 < found.ending.steps  # the first, the last, and what was due while it was watched


def test_a_page_that_waits_for_long_still_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else nothing would be drawn for it after a long pause."""
    monkeypatch.setattr("bilevel.viewer.board.WATCHED", 0.0)
    board = Board()
    assert not board.is_watched
    page = Thread(target=lambda: board.news(Asked(), 10.0))
    page.start()
    eventually(lambda: board.is_watched)
    board.close()
    page.join()
    assert not board.is_watched


def test_a_page_gets_only_what_it_does_not_know() -> None:
    with live() as watched:
        first = at_step(watched, 0)
        watched.view.tell(Step())
        at_step(watched, 1)
        known = Asked(first.version, first.episode, len(first.beats), first.rules_version)
        then = watched.board.news(known, 10.0)
        assert then is not None
        assert (then.about, then.rules, list(then.beats)) == (None, None, [])
        assert watched.board.news(Asked(then.version + 100), 0.0) is None


@pytest.mark.parametrize(("task", "has_actions"), [(TINY_DISCRETE, True), (TINY_ACTING, False)])
def test_experts_without_rules_show_what_there_is(task: Any, has_actions: bool) -> None:
    with live(task, expert=True, no_pictures="none here") as watched:
        found = at_step(watched, 0)
        assert found.about is not None
        assert (found.about.can_edit, found.about.no_pictures, found.picture) == (False, "none here", 0)
        assert found.rules is None
        assert (found.beats[0].action is not None) == has_actions
        with pytest.raises(BadInput, match="no rules"):
            watched.view.tell(Edit(RULES_TEXT))
        watched.view.tell(Hold(0, 2))
        watched.view.tell(Step())
        after = at_step(watched, 1)
        assert after.now is not None
        assert after.now.control[0].executed in (2, after.now.control[0].high)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"[]",
        b"{}",
        b'{"type": "fly"}',
        b'{"type": "hold"}',
        b'{"type": "hold", "place": -1}',
        b'{"type": "hold", "place": 0.5, "value": 1}',
        b'{"type": "pace", "speed": -1}',
        b'{"type": "pace", "speed": 1e999}',
        b'{"type": "move", "name": "parcel1", "point": [0, 2]}',
        b'{"type": "again", "ahead": -1}',
        b'{"type": "step", "more": 1}',
        b"[" * 100_000,
        b'"\xff"',
    ],
)
def test_what_is_no_request_is_refused_in_one_line(sent: bytes) -> None:
    with pytest.raises(BadInput, match=r"^no request of the page: .*$"):
        read_request(sent)


def test_requests_are_read_as_they_are_sent() -> None:
    sent = b'{"type": "move", "name": "parcel1", "point": [0.25, 1]}'
    assert read_request(sent) == requests.Move("parcel1", (0.25, 1.0))
