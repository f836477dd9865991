"""Predicates proposed from demonstrations of which nothing is known but what is seen."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from kinematic_demonstrations import SIZE, cube_demonstrations

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.demonstration import Demonstration
from bilevel.domain_learning.predicates.definitions import measure_all, states_of
from bilevel.domain_learning.predicates.evidence import Evidence
from bilevel.domain_learning.predicates.grammar import candidates
from bilevel.domain_learning.predicates.proposal import Proposal, propose_predicates
from bilevel.domain_learning.predicates.tracks import Track, runs
from bilevel.symbolic.domain import NO_FACTS, Atom, BadInput, Domain
from bilevel.symbolic.pddl import read_domain
from bilevel.tasks.controls import BoxControls
from bilevel.tasks.registry import find_function
from bilevel.tasks.scene import Scene
from bilevel.tasks.spec import LabelOnly, Scalar, Spec

EXPECTED = ["clear(pad)", "free()", "holding(cube)", "loose(cube)", "on(cube, pad)"]


@cache
def shown() -> Demonstrations:
    return cube_demonstrations(12)


@cache
def proposal() -> Proposal:
    return propose_predicates(shown())


def signatures(found: Proposal) -> list[str]:
    return sorted(definition.signature for definition in found.definitions)


def others(**changes: object) -> Demonstrations:
    """The same demonstrations, each changed."""
    data = shown()
    items = [replace(one, **changes) for one in data]  # type: ignore[arg-type]
    return Demonstrations(items, task=data.task, spec=data.spec, domain=data.domain, controls=data.controls)


def test_what_moves_with_the_hand_is_carried_and_what_does_not_rests() -> None:
    data = shown()
    evidence = Evidence.of(data, data.spec)
    assert (evidence.carried, evidence.moving) == (("cube",), ("cube",))
    for track, motion in evidence.both:
        closed = track.agent[:, 3] == np.float32(0.6)
        for start, end in runs(np.asarray(motion.carried.any(axis=1))):
            assert closed[start + 1 : end - 1].all()
        assert motion.carried.sum() > 0.5 * closed.sum()
        assert motion.at_rest[:, 3:].all()
        assert not (motion.at_rest & motion.carried).any()


def test_the_predicates_of_the_task_are_found() -> None:
    found = proposal()
    assert signatures(found) == EXPECTED
    assert [goal.text for goal in found.goals] == ["on(cube, pad) for all with the same hue"]
    assert (found.description.untold, found.description.rare) == (0, 0)
    assert found.candidates > len(EXPECTED)
    assert {"pick", "place"} == set(found.validation.learned.counts)


def test_the_rules_learned_with_them_say_what_was_done_in_demonstrations_held_out() -> None:
    found = proposal().validation
    assert (found.demonstrations, found.actions, found.agreeing, found.solved) == (3, 18, 18, 3)
    assert found.unexplained == 0


def test_thresholds_lie_in_the_gaps_of_what_was_measured() -> None:
    constants = {name: one for definition in proposal().definitions for name, one in definition.constants.items()}
    assert 0.006 < constants["CUBE_PAD_NEAR"].value < 0.1
    assert 0 < constants["CUBE_REACH"].value < 0.1
    assert 0.3 < constants["CUBE_HELD_CLOSED"].value < 0.6
    assert constants["CUBE_GRASP_Z"].value == pytest.approx(0.01, rel=0.1)
    assert "measured at rest: at most 0.00" in constants["CUBE_PAD_NEAR"].comment


def test_the_file_gives_the_very_facts_that_were_measured(tmp_path: Path) -> None:
    found, data = proposal(), shown()
    frame = read_domain(found.write(tmp_path / "labels.py"))
    assert (frame.name, dict(frame.predicates), frame.schemas) == ("cubes", dict(found.frame.predicates), {})
    label, goal = (find_function(f"{tmp_path / 'labels.py'}:{name}") for name in ("label", "goal"))
    for demonstration in data[:3]:
        track = Track(demonstration, data.spec, ("x", "y", "z"))
        states = states_of(found.definitions, track, measure_all(found.definitions, track))
        wanted = found.goals[0].facts(track)
        for scene, state, goals in zip(demonstration.scenes(data.spec), states, wanted, strict=True):
            assert frozenset(label(scene)) == frozenset(found.label(scene)) == state
            assert frozenset(goal(scene)) == frozenset(found.goal(scene)) == goals
        assert states[0] != states[-1] >= wanted[-1]


def test_noise_in_what_is_seen_is_no_motion() -> None:
    noise = 0.002
    data = cube_demonstrations(12, noise=noise)
    evidence = Evidence.of(data, data.spec)
    assert (evidence.carried, evidence.moving) == (("cube",), ("cube",))
    assert evidence.resolution > noise
    found = propose_predicates(data)
    assert signatures(found) == EXPECTED
    assert (found.validation.actions, found.validation.agreeing) == (18, 18)


def test_the_same_demonstrations_give_the_same_file() -> None:
    assert propose_predicates(cube_demonstrations(12)).source == proposal().source


def test_labels_that_were_recorded_are_not_looked_at() -> None:
    nonsense = ((0, frozenset({Atom("nonsense")})),)
    assert propose_predicates(others(states=nonsense)).source == proposal().source


def test_cubes_that_rest_on_each_other_do_so_at_several_heights() -> None:
    data = cube_demonstrations(8, tower=True)
    found = candidates(Evidence.of(data, data.spec))
    heights = {
        constant.value: definition
        for definition in found
        if definition.types == ("cube", "cube")
        for name, constant in definition.constants.items()
        if "HEIGHT" in name and not name.endswith("_OFF")
    }
    assert heights[SIZE].name.startswith("on")
    assert heights[-SIZE].name.startswith("under")
    assert set(heights) == {SIZE, -SIZE, 2 * SIZE, -2 * SIZE}


def test_features_that_change_are_candidates_without_any_place() -> None:
    spec = Spec({"power": Scalar}, {"lamp": {"lit": LabelOnly, "size": Scalar}})
    items = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        steps = rng.permutation([10, 25, 40]) + rng.integers(0, 8, 3)
        lit = np.arange(60)[:, None] >= steps
        features = np.stack([lit, np.full(lit.shape, seed)], axis=2).astype(np.float32)
        controls, nothing = np.zeros((59, 1), np.float32), ((0, NO_FACTS),)
        agent = lit.sum(axis=1, keepdims=True).astype(np.float32)
        names = dict.fromkeys(("a", "b", "c"), "lamp")
        seen = names, agent, features, np.ones(lit.shape, bool), controls, controls
        items.append(Demonstration(*seen, (None,) * 59, nothing, nothing))
    controls_of = BoxControls([-1.0], [1.0], [1])
    data = Demonstrations(items, task="lamps", spec=spec, domain=Domain("lamps", {}, {}), controls=controls_of)
    found = propose_predicates(data)
    assert signatures(found) == ["lit(lamp)", "not-lit(lamp)"]
    assert [goal.text for goal in found.goals] == ["lit(lamp) for all"]
    assert "if lamp.lit > LAMP_LIT_THRESHOLD" in found.source


def test_angles_agree_up_to_the_symmetry_of_things() -> None:
    data = shown()
    evidence = Evidence.of(data, data.spec)
    found = candidates(evidence)
    (aligned,) = (one for one in found if one.name.startswith("aligned") and one.types == ("cube", "pad"))
    assert "remainder(cube.yaw - pad.yaw, 1.5708)" in aligned.tests[0]
    for track in evidence.tracks:
        turned = track.features[0, :3, 4]
        expected = (turned < 0.1) | (turned > 1)
        assert (measure_all(found, track)[aligned.name][0] == expected[:, None]).all()


def test_a_goal_may_be_facts_whose_name_its_predicate_gets() -> None:
    items = []
    for demonstration in shown():
        cubes, pads = (demonstration.features[0, rows, 3].tolist() for rows in (slice(3), slice(3, 6)))
        pairs = [(cube, pads.index(hue)) for cube, hue in enumerate(cubes)]
        goals = frozenset(Atom("home", (f"cube{cube}", f"pad{pad}")) for cube, pad in pairs)
        items.append(replace(demonstration, goals=((0, goals),)))
    data = shown()
    named = Demonstrations(items, task=data.task, spec=data.spec, domain=data.domain, controls=data.controls)
    found = propose_predicates(named, goal="task")
    assert signatures(found) == ["clear(pad)", "free()", "holding(cube)", "home(cube, pad)", "loose(cube)"]
    assert [goal.text for goal in found.goals] == ["home(cube, pad) for all with the same hue"]


def test_a_goal_may_be_a_function_of_the_scene() -> None:
    def all_stand(scene: Scene) -> bool:
        pads = {pad.hue: pad for pad in scene.of_type("pad")}
        cubes = [(cube, pads[cube.hue]) for cube in scene.of_type("cube")]
        is_open = scene.agent.closed < 0.4
        return is_open and all(abs(cube.x - pad.x) + abs(cube.y - pad.y) < 0.02 for cube, pad in cubes)

    found = propose_predicates(shown(), goal=all_stand)
    assert [goal.text for goal in found.goals] == ["on(cube, pad) for all with the same hue"]


def test_what_cannot_be_is_one_line() -> None:
    data = shown()
    few = Demonstrations(data[:7], task=data.task, spec=data.spec, domain=data.domain, controls=data.controls)
    still = [
        replace(
            one,
            agent=np.repeat(one.agent[:1], one.steps + 1, axis=0),
            features=np.repeat(one.features[:1], one.steps + 1, axis=0),
        )
        for one in data
    ]
    resting = Demonstrations(still, task=data.task, spec=data.spec, domain=data.domain, controls=data.controls)
    half = [
        replace(
            one,
            **{name: getattr(one, name)[:60] for name in ("agent", "features", "visible")},
            **{name: getattr(one, name)[:59] for name in ("controls", "executed", "actions")},
        )
        for one in data
    ]
    unfinished = Demonstrations(half, task=data.task, spec=data.spec, domain=data.domain, controls=data.controls)
    for demonstrations, goal, reason in (
        (few, "final", "it takes at least 8 demonstrations to propose predicates, not 7"),
        (resting, "final", "nothing in the demonstrations comes to rest, is carried or changes"),
        (unfinished, "final", "the last scenes have nothing in common that is not so in the first ones"),
        (data, "task", "the demonstrations have no goals; give the goal as a function"),
        (data, "finally", "the goal is 'final', 'task' or a function, not 'finally'"),
        (data, lambda scene: True, "the goal's function is True in all scenes"),
    ):
        with pytest.raises(BadInput, match=reason):
            propose_predicates(demonstrations, goal=goal)


def test_names_in_a_data_set_cannot_become_code() -> None:
    data, evil = shown(), 'x"]; import os; os.abort() #'
    roles = {evil if name == "hue" else name: role for name, role in data.spec.object_roles["cube"].items()}
    for spec, task in ((data.spec, 'a"""\nimport os'), (Spec(data.spec.agent, {"cube": roles, "pad": roles}), "cubes")):
        named = Demonstrations(data[:], task=task, spec=spec, domain=data.domain, controls=data.controls)
        with pytest.raises(BadInput, match="cannot be written in Python; use letters, digits, - and _"):
            propose_predicates(named)


def test_a_goal_that_no_feature_tells_is_the_tasks_own() -> None:
    items = []
    for demonstration in shown():  # the goal is about the cube of the least hue alone, wherever that is
        cube = int(demonstration.features[0, :3, 3].argmin())
        pad = int(demonstration.features[0, 3:, 3].argmin())
        items.append(replace(demonstration, goals=((0, frozenset({Atom("home", (f"cube{cube}", f"pad{pad}"))})),)))
    data = shown()
    named = Demonstrations(items, task=data.task, spec=data.spec, domain=data.domain, controls=data.controls)
    with pytest.raises(BadInput, match=r"only the task can tell: say where it is \(--task\)"):
        propose_predicates(named, goal="task")
