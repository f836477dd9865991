"""Families of problems that grow, each at a small size: answered as it should be, and every policy checked."""

from __future__ import annotations

import pytest
from exact_fond import has_policy
from fond_families import FAMILIES, made

from bilevel.planning.fond import fond
from bilevel.planning.planner import Status
from bilevel.planning.strong_cyclic import check_policy

SMALL = [("towers", 4), ("workshop", 4), ("crossing", 6), ("questions", 5), ("arbiter", 4)]


def test_every_family_is_tried() -> None:
    assert {family for family, _ in SMALL} == set(FAMILIES)


@pytest.mark.parametrize(("family", "size"), SMALL)
@pytest.mark.parametrize("seed", [0, 1])
def test_family_is_solved(family: str, size: int, seed: int) -> None:
    domain, problem = made(family, size, seed)
    result = fond(domain, problem, 60)
    assert result.status is Status.SOLVED
    assert result.policy is not None
    assert check_policy(domain, problem, result.policy.choose).is_strong_cyclic


@pytest.mark.parametrize(("family", "size"), [("arbiter", 2), ("arbiter", 3), ("crossing", 3), ("questions", 3)])
def test_answers_agree_with_definition(family: str, size: int) -> None:
    domain, problem = made(family, size)
    assert (fond(domain, problem, 60).status is Status.SOLVED) is has_policy(domain, problem)


def test_a_lost_game_has_no_policy() -> None:
    assert fond(*made("arbiter", 3), 60).status is Status.UNSOLVABLE


def test_mending_bad_luck_takes_few_decisions() -> None:
    """A decision or two for each job, not for each set of jobs that may have gone wrong."""
    result = fond(*made("workshop", 12), 60)
    assert result.policy is not None
    assert len(result.policy.decisions) == 24
