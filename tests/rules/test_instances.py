"""Instances found by search are the first matches of the definition."""

from __future__ import annotations

import random

import pytest

from bilevel.rules.instances import Instances
from bilevel.rules.matching import Match, best_matches, matches_in_order, output_variables
from random_rules import OBJECTS, random_atoms, random_domain, random_rule


def first_of_each(matches: list[Match]) -> list[Match]:
    """The first of all matches that agree in rule and outputs."""
    found: dict[object, Match] = {}
    for match in matches:
        found.setdefault((id(match.rule), *(match.binding[v] for v in output_variables(match.rule))), match)
    return list(found.values())


@pytest.mark.parametrize("block", range(4))
def test_instances_are_the_first_matches(block: int) -> None:
    for seed in range(100 * block, 100 * block + 100):
        rng = random.Random(seed)
        domain = random_domain(rng)
        rules = [random_rule(rng, domain) for _ in range(3)]
        state, goal = random_atoms(rng, domain, OBJECTS, 12), random_atoms(rng, domain, OBJECTS, 5)
        found, context = Instances(rules, domain), (state, goal, OBJECTS)
        assert list(found.in_order(*context)) == first_of_each(list(matches_in_order(rules, domain, *context))), seed
        matches = best_matches(rules, domain, *context)
        assert found.best(*context) == first_of_each(matches), seed
        for match in matches[:1]:
            known = {v: match.binding[v] for v in output_variables(match.rule)}
            assert next(Instances([match.rule], domain).in_order(*context, known)) == match, seed
