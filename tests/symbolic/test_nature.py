"""Nature draws outcomes by her seed, and only what the semantics allows her."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from bilevel.symbolic.domain import NO_FACTS, Atom, Domain, Outcome, Parameter, Schema
from bilevel.symbolic.plans import Nature
from bilevel.symbolic.semantics import natures_choices

TYPES = {"red-ball": "ball", "ball": "object", "hue": "object"}
DOMAIN = Domain("d", {}, {}, TYPES)


def schema(*outcomes: Outcome) -> Schema:
    return Schema("act", (), NO_FACTS, outcomes)


def chosen(*variables: tuple[str, str], new: tuple[str, ...] = ()) -> Outcome:
    add = frozenset({Atom("r", tuple(name for name, _ in variables))})
    return Outcome(add, NO_FACTS, tuple(Parameter(*variable) for variable in variables), frozenset(new))


def test_the_same_seed_gives_the_same_moves() -> None:
    act = schema(chosen(("?h", "hue")), chosen(("?b", "ball"), ("?h", "hue"), new=("?b",)))
    objects = {"h1": "hue", "h2": "hue", "h3": "hue"}

    def moves(seed: int) -> list[object]:
        nature = Nature(DOMAIN, objects, random.Random(seed))
        return [nature.move(act) for _ in range(20)]

    assert moves(1) == moves(1)
    assert len({str(moves(seed)) for seed in range(5)}) == 5


def test_every_outcome_and_value_is_drawn_about_as_often() -> None:
    nature = Nature(DOMAIN, {"h1": "hue", "h2": "hue"}, random.Random(0))
    act = schema(Outcome(NO_FACTS, NO_FACTS), chosen(("?h", "hue")))
    counts = Counter((move.outcome, move.binding.get("?h")) for move in (nature.move(act) for _ in range(4000)))
    assert counts.keys() == {(0, None), (1, "h1"), (1, "h2")}
    assert 1800 < counts[0, None] < 2200
    assert 800 < counts[1, "h1"] < 1200


def test_an_action_without_choice_draws_nothing() -> None:
    rng = random.Random(0)
    before = rng.getstate()
    assert Nature(DOMAIN, {}, rng).move(schema(Outcome(NO_FACTS, NO_FACTS))) == (0, {})
    assert rng.getstate() == before


def test_new_objects_have_names_of_their_own_and_are_remembered() -> None:
    nature = Nature(DOMAIN, {"ball1": "hue", "u": "ball"}, random.Random(0))
    made = [nature.move(schema(chosen(("?b", "ball"), new=("?b",)))).binding["?b"] for _ in range(3)]
    assert made == ["ball2", "ball3", "ball4"]
    assert nature.objects == {"ball1": "hue", "u": "ball", "ball2": "ball", "ball3": "ball", "ball4": "ball"}


def test_what_nature_made_she_can_choose_later_by_any_of_its_types() -> None:
    nature = Nature(DOMAIN, {"u": "ball"}, random.Random(0))
    pick = schema(chosen(("?b", "ball")))
    assert {nature.move(pick).binding["?b"] for _ in range(50)} == {"u"}
    nature.move(schema(chosen(("?r", "red-ball"), new=("?r",))))
    assert {nature.move(pick).binding["?b"] for _ in range(50)} == {"u", "red-ball1"}


def test_the_given_objects_are_left_alone() -> None:
    objects = {"u": "ball"}
    Nature(DOMAIN, objects, random.Random(0)).move(schema(chosen(("?b", "ball"), new=("?b",))))
    assert objects == {"u": "ball"}


@pytest.mark.parametrize(
    "outcome",
    [
        chosen(("?b", "ball")),
        chosen(("?b", "ball"), ("?c", "ball")),
        chosen(("?b", "ball"), ("?c", "ball"), new=("?b",)),
        chosen(("?b", "ball"), ("?c", "ball"), new=("?c",)),
        chosen(("?b", "ball"), ("?c", "ball"), new=("?b", "?c")),
        chosen(("?r", "red-ball"), ("?b", "ball"), new=("?r",)),
        chosen(("?r", "red-ball"), ("?s", "red-ball")),
        chosen(("?h", "hue"), ("?i", "hue")),
    ],
)
@pytest.mark.parametrize("objects", [{}, {"u": "ball"}, {"u": "ball", "v": "red-ball", "ball1": "hue", "w": "hue"}])
def test_nature_does_what_the_semantics_lets_her_do(outcome: Outcome, objects: dict[str, str]) -> None:
    drawn = [dict(Nature(DOMAIN, objects, random.Random(seed)).move(schema(outcome)).binding) for seed in range(60)]
    allowed = list(natures_choices(outcome, DOMAIN, objects))
    assert all(binding in allowed for binding in drawn)
    assert all(binding in drawn for binding in allowed)
