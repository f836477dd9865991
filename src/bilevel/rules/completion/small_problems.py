"""All small problems of a domain: the given ones with fewer or more objects, each with all its states and goals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

from bilevel.rules.completion.policy_space import PolicySpace
from bilevel.rules.rule import Rule
from bilevel.rules.verification.families import GrownProblem
from bilevel.rules.verification.growing import Family, check_family, grow, sizes
from bilevel.symbolic.domain import Domain, Problem
from bilevel.symbolic.semantics import substitute_all

MOST_SIZES = 300  # of one problem; with more, it is looked at only as it is
MOST_DESCRIBED = 3

Size = Mapping[str, int]


class SmallProblem(NamedTuple):
    """A problem, and how many objects of each type that may have more or fewer it has; none if it is as it was."""

    size: Size
    problem: Problem


def problems_from_rules(rules: Sequence[Rule], domain: Domain) -> list[Problem]:
    """Return for each rule that serves a goal a problem in which it is just applicable, for want of given ones."""
    found = []
    for number, rule in enumerate(rules, 1):
        if rule.goal_condition:
            objects = {variable.name.lstrip("?"): variable.type for variable in rule.variables}
            names = {f"?{name}": name for name in objects}
            state, goal = substitute_all(rule.state_condition, names), substitute_all(rule.goal_condition, names)
            known = frozenset(fact for fact in state if fact.predicate in domain.predicates)
            found.append(Problem(f"rule-{number}", domain.name, objects, known, goal))
    return found


def small_problems(seeds: Sequence[Problem], domain: Domain, objects: Size | None) -> list[SmallProblem]:
    """Return each seed with up to so many objects, or up to as many as it has, those with the fewest objects first."""
    found: list[SmallProblem] = []
    for seed in seeds:
        counts = dict(objects) if objects else _own_counts(seed)
        check_family(Family((seed,), counts), domain)
        known = sizes(counts) if counts and prod(counts.values()) <= MOST_SIZES else [{}]
        found += [SmallProblem(size, grow(seed, domain, size) if size else seed) for size in known]
    found.sort(key=lambda small: len(small.problem.objects))
    distinct: dict[tuple[tuple[tuple[str, str], ...], frozenset[object]], SmallProblem] = {}
    for small in found:
        key = tuple(sorted(small.problem.objects.items())), frozenset(small.problem.state)
        distinct.setdefault(key, small)
    return list(distinct.values())


def _own_counts(problem: Problem) -> dict[str, int]:
    """Return the number of objects of each type that has several."""
    return {kind: count for kind, count in Counter(problem.objects.values()).items() if count > 1}


def make_spaces(
    small: Sequence[SmallProblem], seeds: Sequence[Problem], domain: Domain, rules: Sequence[Rule], max_states: int
) -> tuple[list[PolicySpace], list[SmallProblem], list[SmallProblem]]:
    """Return the spaces of those problems that have no more states or goals than the bound, these, and the others.

    Goals are those that can be made of facts that come up, of the predicates of the seeds' goals, and that can be
    reached from some state.
    """
    predicates = {atom.predicate for seed in seeds for atom in seed.goal}
    spaces: list[PolicySpace] = []
    done: list[SmallProblem] = []
    too_large: list[SmallProblem] = []
    for size, problem in small:
        if any(_contains(problem, other.problem) for other in too_large):
            too_large.append(SmallProblem(size, problem))
            continue
        grown = GrownProblem(rules, domain, problem)
        goals = grown.goals(predicates, Family(tuple(seeds)), max_states)
        if goals is None:
            too_large.append(SmallProblem(size, problem))
            continue
        reachable = [goal for goal in goals if any(goal <= facts for facts, _ in grown.space.situations)]
        if reachable:
            spaces.append(PolicySpace(grown.space, grown.possible(predicates), reachable))
            done.append(SmallProblem(size, problem))
    return spaces, done, too_large


def _contains(problem: Problem, other: Problem) -> bool:
    return problem.objects.items() >= other.objects.items() and problem.state >= other.state


def described(small: Sequence[SmallProblem]) -> str:
    """Return the largest of these sizes in words: up to 3 blocks and 4 places."""
    kinds: list[Size] = []
    for size, problem in small:
        counts = size or Counter(problem.objects.values())
        kinds = [other for other in kinds if not _covers(counts, other)]
        if not any(_covers(other, counts) for other in kinds):
            kinds.append(counts)
    texts = ["up to " + _listed([_counted(key, count) for key, count in counts.items()]) for counts in kinds]
    more = f"; and {len(texts) - MOST_DESCRIBED} more sizes" if len(texts) > MOST_DESCRIBED else ""
    return "; ".join(texts[:MOST_DESCRIBED]) + more


def _covers(one: Size, other: Size) -> bool:
    return one.keys() == other.keys() and all(one[key] >= other[key] for key in other)


def _counted(key: str, count: int) -> str:
    return f"{count} {' and '.join(kind if count == 1 else f'{kind}s' for kind in key.split('+'))}"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
