"""All small problems of a domain: the given ones with fewer or more objects, each with all its states and goals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from itertools import chain, combinations, islice, permutations, product
from math import prod
from typing import NamedTuple

from bilevel.rules.completion.policy_space import PolicySpace
from bilevel.rules.rule import Rule
from bilevel.rules.verification.families import GrownProblem
from bilevel.rules.verification.growing import Family, check_family, distinct_goals, grow, sizes
from bilevel.rules.verification.state_space import Situation, StateSpace
from bilevel.symbolic.domain import Domain, Facts, Problem
from bilevel.symbolic.semantics import substitute_all

MOST_SIZES = 300  # of one problem; with more, it is looked at only as it is
MOST_NAMED_GOALS = 50_000  # before those that are the same up to names are told
MOST_NAMINGS = 100  # that are tried to find out whether two problems are the same but for names
MOST_EXPLORED = 500  # states of a problem, to find out what is true of one object at a time
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
    single = single_facts(seeds, domain) if objects else set()
    for seed in seeds:
        counts = dict(objects) if objects else own_counts(seed)
        check_family(Family((seed,), counts), domain)
        known = sizes(counts) if counts and prod(counts.values()) <= MOST_SIZES else [{}]
        grown = [SmallProblem(size, grow(seed, domain, size) if size else seed) for size in known]
        found += [small for small in grown if is_plausible(small.problem, domain, single)]
    found.sort(key=lambda small: len(small.problem.objects))
    distinct: dict[tuple[tuple[tuple[str, str], ...], frozenset[object]], SmallProblem] = {}
    for small in found:
        key = tuple(sorted(small.problem.objects.items())), frozenset(small.problem.state)
        distinct.setdefault(key, small)
    return list(distinct.values())


def single_facts(seeds: Sequence[Problem], domain: Domain) -> set[tuple[str, int, str]]:
    """Return which facts can be true of an object of some type at one place for one other object at a time.

    For example `("at", 0, "block")`: no state that the seeds' actions lead to has a block at two places, though there
    are two.
    """
    most: Counter[tuple[str, int, str]] = Counter()
    for seed in seeds:
        space = StateSpace(domain, seed.all_objects(domain), ())
        space.number(Situation(seed.state))
        space.explore(MOST_EXPLORED)
        for facts, _ in space.situations:
            for (predicate, place, name), count in _occurrences(facts).items():
                other = domain.predicates[predicate].parameters[1 - place].type
                kinds = [kind for kind in space.objects.values() if domain.is_subtype(kind, other)]
                if len(kinds) > 1 and name in space.objects:
                    key = predicate, place, space.objects[name]
                    most[key] = max(most[key], count)
    return {key for key, count in most.items() if count == 1}


def _occurrences(facts: Facts) -> Counter[tuple[str, int, str]]:
    """Return how often each object comes first and second in facts of each predicate with two arguments."""
    return Counter((atom.predicate, i, atom.terms[i]) for atom in facts if len(atom.terms) == 2 for i in (0, 1))


def is_plausible(problem: Problem, domain: Domain, single: Set[tuple[str, int, str]]) -> bool:
    """Return whether no object is in two places at once just because one of them was cloned."""
    types = problem.all_objects(domain)
    occurrences = _occurrences(problem.state).items()
    return all(count == 1 or (p, place, types[name]) not in single for (p, place, name), count in occurrences)


def own_counts(problem: Problem) -> dict[str, int]:
    """Return the number of objects of each type that has several."""
    return {kind: count for kind, count in Counter(problem.objects.values()).items() if count > 1}


def make_spaces(
    small: Sequence[SmallProblem], seeds: Sequence[Problem], domain: Domain, rules: Sequence[Rule], max_states: int
) -> tuple[list[PolicySpace], list[SmallProblem], list[SmallProblem]]:
    """Return the spaces of those problems that have no more states or goals than the bound, these, and the others."""
    predicates = {atom.predicate for seed in seeds for atom in seed.goal}
    spaces: list[PolicySpace] = []
    done: list[SmallProblem] = []
    too_large: list[SmallProblem] = []
    for size, problem in small:
        if any(_contains(problem, other.problem) for other in too_large):
            too_large.append(SmallProblem(size, problem))
            continue
        if any(_is_part_of(problem, space.space) for space in spaces):
            done.append(SmallProblem(size, problem))
            continue
        grown = GrownProblem(rules, domain, problem)
        goals = reachable_goals(grown, predicates, max_states) if grown.space.explore(max_states) else None
        if goals is None:
            too_large.append(SmallProblem(size, problem))
        elif goals:
            spaces.append(PolicySpace(grown.space, grown.possible(predicates), goals))
            done.append(SmallProblem(size, problem))
    return spaces, done, too_large


def reachable_goals(grown: GrownProblem, predicates: Set[str], most: int) -> list[Facts] | None:
    """Return every goal of these predicates that some state has, up to names, unless there are more than so many.

    That is each set of facts, about the problem's own objects, that a state has and that is not empty.
    """
    possible = set(grown.possible(predicates))
    together = {frozenset(possible & facts) for facts, _ in grown.space.situations}
    goals: set[Facts] = set()
    for facts in sorted(together, key=sorted):
        if 2 ** len(facts) > MOST_NAMED_GOALS:
            return None
        goals.update(frozenset(goal) for size in range(1, len(facts) + 1) for goal in combinations(facts, size))
        if len(goals) > MOST_NAMED_GOALS:
            return None
    distinct = distinct_goals(sorted(goals, key=sorted), grown.renamings)
    return distinct if len(distinct) <= most else None


def _is_part_of(problem: Problem, space: StateSpace) -> bool:
    """Return whether the problem begins in one of these states but for the names of objects; some are tried."""
    names, kinds = (
        _by_type(problem.objects),
        _by_type({o: k for o, k in space.objects.items() if o not in space.domain.constants}),
    )
    if {kind: len(found) for kind, found in names.items()} != {kind: len(found) for kind, found in kinds.items()}:
        return False
    for order in islice(product(*(permutations(kinds[kind]) for kind in names)), MOST_NAMINGS):
        renaming = dict(zip(chain(*names.values()), chain(*order), strict=True))
        if space.knows(substitute_all(problem.state, renaming)):
            return True
    return False


def _by_type(objects: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, kind in objects.items():
        found.setdefault(kind, []).append(name)
    return found


def _contains(problem: Problem, other: Problem) -> bool:
    return problem.objects.items() >= other.objects.items() and problem.state >= other.state


def lasting_facts(small: Sequence[SmallProblem], domain: Domain) -> tuple[str, ...]:
    """Return the predicates that the problems' states have facts of and that no action changes."""
    outcomes = [outcome for schema in domain.schemas.values() for outcome in schema.outcomes]
    changing = {atom.predicate for outcome in outcomes for atom in outcome.add | outcome.delete}
    return tuple(sorted({atom.predicate for _, problem in small for atom in problem.state} - changing))


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
    return f"{count} {' and '.join(kind if count == 1 else _plural(kind) for kind in key.split('+'))}"


def _plural(kind: str) -> str:
    return f"{kind}{'es' if kind.endswith(('s', 'x', 'z', 'ch', 'sh')) else 's'}"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
