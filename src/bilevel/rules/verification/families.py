"""Is a rule policy right on all problems of a family, that is, does it always do what could be done?

Problems with goals that nobody can reach belong to a family too (two blocks that want the same place). They are not
held against a policy as unsolved; but it must not leave undone what could have been done. A run is *at fault* if it
stops, or loops, with a set of goal facts achieved that is a proper part of a set that some policy would surely have
achieved from some state on the way (surely: by a strong cyclic policy, nature being fair). Where the whole goal is
surely attainable this says: the run must end in the goal. Where it is not, achieving a largest possible set will do,
whichever; picking up a block that can never be put down while another could still be served will not.

Problems are told apart up to the renaming of objects only. As the policy decides ties by name, every tie is followed
every way; so what is proved holds for every naming.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, islice, product
from typing import NamedTuple

from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import check_rules
from bilevel.rules.verification.growing import (
    Family,
    Starts,
    at_rest,
    check_family,
    distinct_goals,
    goals,
    grow,
    grown_name,
    sizes,
    symmetries,
)
from bilevel.rules.verification.policies import (
    MAX_STATES,
    Answer,
    Counterexample,
    Failure,
    RuleGraph,
    counterexample,
    follow_policy,
    listed,
    shortest_failure,
    starts,
)
from bilevel.rules.verification.state_space import MOST_RENAMED, Situation, StateSpace
from bilevel.symbolic.domain import Atom, BadInput, Domain, Facts, Problem, is_variable
from bilevel.symbolic.exploration import traps

NAMINGS_TRIED = 200

Size = Mapping[str, int]  # how many objects of each growing type


@dataclass(frozen=True)
class FamilyVerdict:
    """The answer for a family.

    `problems` counts those looked at, up to renaming, `unattainable` those among them whose whole goal no policy surely
    reaches, and `explored` the pairs of state and goal. With the bound hit, `beyond_bound` names the smallest grown
    problems with too many states or goals; larger ones were not looked at, and on all others the policy is right. Of a
    counterexample, `problem` is the problem; `only_some_ties` says that the policy fails there only if ties are decided
    in another way than by name, so that the policy as it runs was not shown to fail.
    """

    answer: Answer
    problems: int = 0
    unattainable: int = 0
    explored: int = 0
    counterexample: Counterexample | None = None
    problem: Problem | None = None
    only_some_ties: bool = False
    beyond_bound: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return a line on what was looked at, and the counterexample or what was left out."""
        if self.counterexample is not None and self.problem is not None:
            lines = [f"problem: {self.problem.name}", f"  goal: {listed(self.problem.goal)}"]
            lines += ["  (only where ties are decided otherwise than by name)"] if self.only_some_ties else []
            return "\n".join([*lines, str(self.counterexample)])
        right = "always does all that can be done" if self.unattainable else Answer.SOLVED.value
        answer = Answer.BOUND_HIT.value if self.beyond_bound else right
        count = f"{self.problems} problems up to names, {self.explored} states with goals"
        rest = f"; of {self.unattainable} the whole goal is out of reach" if self.unattainable else ""
        beyond = "".join(f"\n  too large: {name}, or larger" for name in self.beyond_bound)
        return f"{answer} ({count}{rest}){beyond}"


class Fault(NamedTuple):
    """A run at fault, and what was surely attainable and is not achieved in the end."""

    failure: Failure
    missed: Facts


class GrownProblem:
    """A grown seed with all its states; what was found out about one goal is used for the next."""

    def __init__(self, rules: Sequence[Rule], domain: Domain, problem: Problem) -> None:
        named = {t for rule in rules for a in (*rule.atoms, rule.action) for t in a[1] if not is_variable(t)}
        self.problem = problem
        self.space = StateSpace(domain, problem.all_objects(domain), rules)
        self.space.number(Situation(problem.state))
        self.renamings = symmetries(problem, frozenset(named))
        self.attainable = cache(self.space.attainable)
        self._rules = rules

    def possible(self, predicates: Set[str]) -> list[Atom]:
        """Return the facts of these predicates, over the problem's own objects, that some state has."""
        facts = {atom for facts, _ in self.space.situations for atom in facts if atom.predicate in predicates}
        return sorted(atom for atom in facts if self.space.objects.keys() >= set(atom.terms))

    def goals(self, predicates: Set[str], family: Family, max_states: int) -> list[Facts] | None:
        """Return the family's goals up to names; `None` if there are more of them, or of the states, than the bound."""
        if not self.space.explore(max_states):
            return None
        candidates = list(islice(goals(self.possible(predicates), family.complete_goals), max_states + 1))
        return distinct_goals(candidates, self.renamings) if len(candidates) <= max_states else None

    def starts(self, kind: Starts) -> list[int]:
        """Return the states to begin in: the first, all, or those at rest."""
        nodes = range(1 if kind == "initial" else len(self.space))
        return [n for n in nodes if kind != "at-rest" or at_rest(self.problem.state, self.space.facts(n))]

    def follow(self, goal: Facts, nodes: Sequence[int], every_tie: bool, up_to_names: bool) -> RuleGraph:
        """Return what the policy does; up to names, a state stands for all its renamings that keep the goal."""
        renamings = [renaming for renaming in self.renamings if renaming(goal) == goal] if up_to_names else []
        known: dict[int, int] = {}

        def representative(node: int) -> int:
            if node not in known:
                facts, made = self.space.situations[node]
                known[node] = node
                for renaming in renamings if len(made) <= MOST_RENAMED else ():
                    known.setdefault(self.space.number(Situation(renaming(facts), made)), node)
            return known[node]

        return follow_policy(
            self.space, self._rules, goal, nodes, len(self.space), every_tie, representative, rule_ties=False
        )

    def unattainable(self, goal: Facts, graph: RuleGraph) -> int:
        """Return from how many starts no policy surely reaches the goal."""
        return len(set(starts(graph)) - self.attainable(goal)) if traps(graph, graph.goals) else 0

    def fault(self, goal: Facts, graph: RuleGraph) -> Fault | None:
        """Return a shortest run at fault, if there is one."""
        if not traps(graph, graph.goals):
            return None
        achieved = {node: goal & self.space.facts(node) for node in graph.choices}
        faults = []
        for size in range(len(goal), 0, -1):
            for wanted in map(frozenset, combinations(sorted(goal), size)):
                trapped = traps(graph, {node for node in graph.choices if not achieved[node] < wanted})
                failure = shortest_failure(graph, trapped, able=self.attainable(wanted)) if trapped else None
                if failure is not None:
                    faults.append(Fault(failure, wanted - achieved[failure.path[-1]]))
        return min(faults, key=lambda fault: fault.failure.length, default=None)


def verify_family(rules: Sequence[Rule], domain: Domain, family: Family, max_states: int = MAX_STATES) -> FamilyVerdict:
    """Return whether no run of the policy is at fault on any problem of the family; `max_states` bounds a grown seed.

    The counterexample is one with the fewest objects, among these one with the shortest run.
    """
    check_rules(rules, domain)
    check_family(family, domain)
    predicates = {atom.predicate for seed in family.seeds for atom in seed.goal}
    problems = unattainable = explored = 0
    too_large: list[tuple[Problem, Size]] = []
    for seed, size, problem in _grown_seeds(family, domain, too_large):
        grown = GrownProblem(rules, domain, problem)
        candidates = grown.goals(predicates, family, max_states)
        if candidates is None:
            too_large.append((seed, size))
            continue
        nodes = grown.starts(family.starts)
        faults = []
        for goal in candidates:
            graph = grown.follow(goal, nodes, every_tie=True, up_to_names=True)
            problems += len(starts(graph))
            unattainable += grown.unattainable(goal, graph)
            explored += len(graph.choices)
            fault = grown.fault(goal, graph)
            if fault is not None:
                faults.append((goal, fault))
        if faults:
            goal, fault = min(faults, key=lambda found: found[1].failure.length)
            return _refuted(grown, goal, fault, FamilyVerdict(Answer.REFUTED, problems, unattainable, explored))
    if not problems and not too_large:
        named = ", ".join(sorted(predicates))
        raise BadInput(f"the family is empty: no fact of the goals' predicates ({named}) can hold")
    beyond = tuple(grown_name(seed, size) for seed, size in too_large)
    answer = Answer.BOUND_HIT if beyond else Answer.SOLVED
    return FamilyVerdict(answer, problems, unattainable, explored, beyond_bound=beyond)


def _grown_seeds(
    family: Family, domain: Domain, too_large: Sequence[tuple[Problem, Size]]
) -> Iterator[tuple[Problem, Size, Problem]]:
    """Yield each seed in each size, but none that comes out equal to another or is as large as one found too large."""
    seen: list[Problem] = []
    for size, seed in product(sizes(family.counts), family.seeds):
        if any(other is seed and all(size[key] >= smaller[key] for key in size) for other, smaller in too_large):
            continue
        grown = grow(seed, domain, size)
        if not any(other.objects == grown.objects and other.state == grown.state for other in seen):
            seen.append(grown)
            yield seed, size, grown


def _refuted(grown: GrownProblem, goal: Facts, fault: Fault, verdict: FamilyVerdict) -> FamilyVerdict:
    """Return the fault in a problem that is the same up to names and in which the policy, deciding by name, has it.

    Where no such naming is among the first tried, the run shown decides some tie otherwise.
    """
    facts, made = grown.space.situations[fault.failure.path[0]]
    for every_tie, renaming in product((False, True), grown.renamings[:NAMINGS_TRIED]):
        start = grown.space.number(Situation(renaming(facts), made))
        named_goal = renaming(goal)
        graph = grown.follow(named_goal, [start], every_tie, up_to_names=False)
        found = grown.fault(named_goal, graph)
        if found is not None:
            objects = {**grown.problem.objects, **dict(made)}
            problem = replace(grown.problem, objects=objects, state=grown.space.facts(start), goal=named_goal)
            run = counterexample(grown.space, graph, found.failure, found.missed)
            return replace(verdict, counterexample=run, problem=problem, only_some_ties=every_tie)
    raise AssertionError("a fault is one in every naming where every tie is followed")
