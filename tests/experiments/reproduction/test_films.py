"""Films of episodes, and what their timelines say: the same as the world and the policy themselves."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from bilevel.experiments.methods import find_policy
from bilevel.experiments.reproduction import films
from bilevel.experiments.reproduction.films import Timeline, interesting_seed, make_film, read_timeline
from bilevel.methods.methods import RunnablePolicy
from bilevel.policies import film as filming
from bilevel.policies.episode import STOPPED
from bilevel.policies.film import Video
from bilevel.policies.rollout import rollout
from bilevel.seeds import evaluation_seed
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import TASKS, rendering
from bilevel.tabletop.tabletop import Tabletop
from bilevel.tasks.scene_env import SUCCESS, SceneEnv
from blocks_policies import PICK, PLACE, moving_policy
from drawing import can_draw

SMALL = {"width": 96, "quality": "fast", "encoder": {"crf": "40", "preset": "ultrafast"}}
NOISY = 3  # objects, in a noisy world

WHY_PLACE = "Because you hold block1, place1 is clear and block1 belongs at place1, place block1 at place1."


def film(path: Path, *, objects: int = 1, noisy: bool = False, seed: int = 4, **options: Any) -> Timeline:
    """Film blocks, by a policy with rules unless another is given."""
    given = {"policy": moving_policy(), "variant": "bison", **SMALL, **options}
    return make_film(task=TASKS["blocks-noisy" if noisy else "blocks"], objects=objects, seed=seed, path=path, **given)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """Films whose pictures are not drawn: for each, the step that the world is at, and the caption."""
    shown: list[tuple[int, str]] = []

    def note(film: Any, world: int, caption: str = "", below: int = 0) -> None:
        shown.append((world, caption))

    monkeypatch.setattr(Video, "add", note)
    monkeypatch.setattr(Video, "__exit__", lambda film, *error: None)
    monkeypatch.setattr(Tabletop, "render", lambda world: world._steps)
    return shown


def test_a_timeline_tells_actions_rules_facts_and_goals(undrawn: list[tuple[int, str]], tmp_path: Path) -> None:
    told = film(tmp_path / "film.mp4")
    pick, *_, place, end = told.beats
    assert (told.outcome, told.beats[0].step, end.step) == (SUCCESS, 0, told.steps)
    assert (pick.action, place.action, end.action) == ("pick(block1)", "place(block1, place1)", None)
    assert pick.rule
    assert place.rule
    assert (pick.rule.number, pick.rule.text) == (2, PICK)
    assert (place.rule.number, place.rule.text) == (1, PLACE)
    assert place.rule.binding == {"?b": "block1", "?p": "place1"}
    assert place.rule.sentence == WHY_PLACE
    assert (pick.appeared, pick.vanished, pick.goals_left) == ([], [], ["at(block1, place1)"])
    assert (place.appeared, "gripper-free()" in place.vanished) == (["holding(block1)"], True)
    assert ("at(block1, place1)" in end.appeared, end.goals_left, end.events) == (True, [], [])
    assert (pick.goals_done, end.goals_done) == ([], ["at(block1, place1)"])
    assert [rule.text for rule in told.beginning.rules] == [PLACE, PICK]
    assert "gripper-free()" in told.beginning.facts
    (tmp_path / "film.json").write_text(told.text(), encoding="utf-8")
    assert read_timeline(tmp_path / "film.json") == told
    older = json.loads(told.text())
    del older["beginning"]
    for beat in older["beats"]:
        del beat["goals_done"]
    (tmp_path / "film.json").write_text(json.dumps(older), encoding="utf-8")
    assert read_timeline(tmp_path / "film.json").beats[0].rule == pick.rule


def test_every_step_is_shown_when_the_timeline_says_and_the_end_for_a_second(
    undrawn: list[tuple[int, str]], tmp_path: Path
) -> None:
    told = film(tmp_path / "film.mp4")
    held = round(told.pictures_per_second)
    for picture, (step, caption) in enumerate(undrawn[:-held]):
        assert picture / told.pictures_per_second == step / told.steps_per_second
        doing = [beat for beat in told.beats if beat.step <= step][-1]
        assert doing.rule
        assert caption.replace("\n", " ") == f"{doing.action} {doing.rule.sentence}"
    assert set(undrawn[-held:]) == {(told.steps, SUCCESS)}
    assert undrawn[-held - 1][0] in range(told.steps - 2, told.steps)
    assert told.seconds == len(undrawn) / told.pictures_per_second


def test_events_are_told_as_the_world_reports_them(
    undrawn: list[tuple[int, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[str] = []
    happened = Tabletop.happened

    def note(world: Tabletop, event: str) -> None:
        reported.append(event)
        happened(world, event)

    monkeypatch.setattr(Tabletop, "happened", note)
    seed = interesting_seed(moving_policy(), TASKS["blocks-noisy"], NOISY)
    make = moving_policy().make
    assert make is not None
    with closing(SceneEnv(TASKS["blocks-noisy"], NOISY)) as env:
        unseen = rollout(env, make(env), seed)
    reported.clear()
    told = film(tmp_path / "film.mp4", objects=NOISY, noisy=True, seed=seed)
    assert (told.outcome, told.steps) == (unseen.outcome, unseen.steps)
    assert [event for beat in told.beats for event in beat.events] == reported
    assert any(event.startswith("teleport block") for event in reported)
    steps = [beat.step for beat in told.beats]
    assert steps == sorted(set(steps))
    for before, beat in zip(told.beats, told.beats[1:], strict=False):
        gone = set(before.goals_left) - set(beat.goals_left)
        assert gone <= set(beat.appeared)
        assert beat.events or beat.appeared or beat.vanished or beat.action != before.action


def test_what_nature_moves_is_drawn_where_it_is(
    undrawn: list[tuple[int, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    astray: list[float] = []

    def compare(world: Tabletop) -> int:
        drawn = [world.simulation.data.body(f"block{number + 1}").xpos for number in range(NOISY)]
        astray.append(float(np.abs(np.array(drawn) - world.simulation.blocks()).max()))
        return 0

    seed = interesting_seed(moving_policy(), TASKS["blocks-noisy"], NOISY)
    monkeypatch.setattr(Tabletop, "render", compare)
    monkeypatch.setattr(filming, "MAX_RATE", 80.0)  # every step
    film(tmp_path / "film.mp4", objects=NOISY, noisy=True, seed=seed)
    assert len(astray) > 100
    assert max(astray[1:]) < 1e-6


def test_a_seed_worth_a_film_is_one_of_an_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(films, "TRIED", 3)
    seeds, noisy = ([evaluation_seed(0, size, episode) for episode in range(films.TRIED)] for size in (1, NOISY))
    assert interesting_seed(moving_policy(), TASKS["blocks"], 1) == seeds[0]
    assert interesting_seed(moving_policy(), TASKS["blocks-noisy"], NOISY) in noisy
    monkeypatch.setattr(films, "SURPRISE", "what never happens")
    assert interesting_seed(moving_policy(), TASKS["blocks-noisy"], 1) == seeds[0]  # the first that succeeds
    monkeypatch.setattr(films, "LONGEST", 1)
    assert interesting_seed(moving_policy(), TASKS["blocks"], 1) == seeds[0]  # or the first of all


def test_an_endless_episode_is_not_shown_to_its_end(
    undrawn: list[tuple[int, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(films, "LONGEST", 9)
    told = film(tmp_path / "film.mp4")
    assert (told.outcome, told.steps, told.beats[-1].step) == (STOPPED, 9, 9)
    assert [step for step, _ in undrawn[:6]] == [0, 2, 4, 6, 8, 9]


def test_the_expert_has_no_rules_to_tell(undrawn: list[tuple[int, str]], tmp_path: Path) -> None:
    told = film(tmp_path / "film.mp4", policy=find_policy("expert"))
    assert (told.beats[0].action, told.beats[0].rule) == ("pick(block1)", None)
    assert undrawn[0] == (0, "pick(block1)")


def test_a_film_lasts_as_long_as_its_timeline_says_and_is_the_same_every_time(tmp_path: Path) -> None:
    if not can_draw():
        with pytest.raises(BadInput, match="no pictures: "):
            film(tmp_path / "film.mp4")
        assert list(tmp_path.iterdir()) == []
        return
    first, second = ((film(path := tmp_path / name), path.read_bytes()) for name in ("first.mp4", "second.mp4"))
    assert first == second
    with av.open(str(tmp_path / "first.mp4")) as shown:
        stream = shown.streams.video[0]
        assert (stream.codec_context.name, stream.pix_fmt, stream.width) == ("h264", "yuv420p", 96)
        assert stream.frames / first[0].pictures_per_second == first[0].seconds


def test_where_nothing_can_be_drawn_a_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> str:
        raise BadInput("no pictures: nothing works here")

    monkeypatch.setattr(rendering, "backend", nowhere)
    with pytest.raises(BadInput, match="no pictures: nothing works here"):
        film(tmp_path / "film.mp4")
    assert list(tmp_path.iterdir()) == []


def test_a_policy_of_another_domain_is_refused(tmp_path: Path) -> None:
    def refuse(task: object) -> None:
        raise BadInput("learned on another task")

    with pytest.raises(BadInput, match="learned on another task"):
        film(tmp_path / "film.mp4", policy=RunnablePolicy("bison", moving_policy().make, check=refuse))


def test_what_is_no_timeline_is_refused(tmp_path: Path) -> None:
    for text in ("", "[]", '{"beats": [{}]}', '{"beats": 1}'):
        (tmp_path / "film.json").write_text(text, encoding="utf-8")
        with pytest.raises(BadInput, match="not the timeline of a film"):
            read_timeline(tmp_path / "film.json")
