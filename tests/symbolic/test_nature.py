"""Nature draws outcomes by her seed, and only what the semantics allows her."""

from __future__ import annotations

import random

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
