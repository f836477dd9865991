"""Rules beyond those that were shown: find where a rule policy fails, plan from there, learn, and look again.

Small problems are looked at as a whole: every state that any actions lead to, with every goal that some state has. So
what is said of them is proved. In a state in which the policy fails although the goal can be reached, the shortest way
to one more goal fact gives rules, as a demonstration would. These stand behind all rules that were given; among
themselves they are ordered by how far from the goal fact they are. So a policy with enough of them never stops before
it has achieved one more goal fact. It may still run in circles, where achieving one goal fact undoes another.
Commitment cures that; whether the rules need it is found out.

Larger problems, drawn at random or met in episodes, are then tried one by one. At last the rules are made more general
and fewer, as long as the policy fails nowhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain, islice
from operator import or_
from typing import NamedTuple

from bilevel.rules.derived import can_be_chained, closure, static_predicates
from bilevel.rules.learning import rules_of_segment, subsumes
from bilevel.rules.matching import free_variables
from bilevel.rules.rule import Rule, canonical, orders_of
from bilevel.rules.rule_file import check_rules
from bilevel.rules.small_problems import Size, grown_problems, namings, random_larger_problems, small_problems
from bilevel.rules.solving import Solution, Stop, final_state, solve
from bilevel.rules.state_graph import Situation, StateGraph
from bilevel.rules.traces import PlanFor, TraceStep
from bilevel.rules.verify import counterexample
from bilevel.symbolic.axioms import outcome_in
from bilevel.symbolic.domain import Atom, Domain, Facts, Problem
from bilevel.symbolic.packed import no_garbage_collection
from bilevel.symbolic.plans import listed
from bilevel.symbolic.semantics import ground_action, substitute_all

MAX_STATES = 2_000
BUDGET = 3_000_000  # states with goals, or instances of rules: a minute or two
RANDOM_PROBLEMS = 100
MOST_ROUNDS = 5  # of small problems, which are proved, and larger ones, which are tried
MOST_NAMINGS = 100  # that are tried to find out whether two problems are the same but for names
MOST_HELP = 30  # plans for one larger problem
MOST_FAILURES = 10  # of the planner, before it is not asked any more
STEPS_PER_GOAL = 1_000

Callback = Callable[[str, int, int], None]  # what is being done, how much of it is done, and how much there is
Found = Mapping[Rule, Mapping[str, str] | None]  # rules with the objects of the small problem that asked for them


class Completion(NamedTuple):
    """The rules, and what is known of them.

    The first `given` rules are those that were given, as they were. With `commit` the policy must serve a goal fact
    until it holds, as `solve` does. `problems` counts the states with goals from which the goal can surely be reached,
    in small problems of the `sizes` told; if it `is_proved`, the policy gets there on all of them. `tried` and `solved`
    count larger problems. `statement` says all that is known, a line for each thing.
    """

    rules: tuple[Rule, ...]
    given: int
    commit: bool
    is_proved: bool
    sizes: str
    problems: int
    tried: int
    solved: int
    statement: str


@no_garbage_collection()
def complete_rules(
    rules: Sequence[Rule],
    domain: Domain,
    problems: Sequence[Problem],
    *,
    objects: Size | None = None,
    met: Sequence[Problem] = (),
    plan_for: PlanFor | None = None,
    random_problems: int = RANDOM_PROBLEMS,
    max_states: int = MAX_STATES,
    budget: int = BUDGET,
    seed: int = 0,
    callback: Callback = lambda stage, done, total: None,
) -> Completion:
    """Return the rules and, behind them, others with which no goal that can be reached is missed.

    The problems are seeds, as in `verify_family`: each is looked at with up to so many `objects` of each type, by
    default up to as many as it has. `met` are larger problems to be solved as well; with `plan_for`, a planner, these
    and random ones are learned from where no rule applies.
    """
    check_rules(rules, domain)
    seeds = [problem for problem in problems if problem.goal]
    grown = grown_problems(seeds, domain, objects)
    larger = [*met, *(random_larger_problems(seeds, domain, objects, random_problems, seed) if plan_for else ())]

    def completed(generalise: bool) -> Completion:
        completer = Completer(rules, domain, budget, callback)
        for _ in range(MOST_ROUNDS):
            completer.complete(small_problems(seeds, grown, domain, completer.rules, max_states), generalise)
            before = completer.rules
            completer.try_larger(larger, plan_for)
            if completer.rules == before:
                break
        return completer.completion(len(larger))

    best = completed(True)
    if best.is_proved and best.solved < best.tried:  # rules that are too general may fail in larger problems
        best = max(best, completed(False), key=lambda other: (other.is_proved, other.solved))
    return best


# Adding rules until the policy fails nowhere


class Completer:
    """The rules that were given and those that were found, and how they were found.

    `budget` bounds how many states with goals are looked at, as often as they are; when it is used up, what was found
    so far stands.
    """

    def __init__(self, given: Sequence[Rule], domain: Domain, budget: int, callback: Callback) -> None:
        self.given, self.domain, self.callback = tuple(given), domain, callback
        self._budget = budget
        self._last = max((rule.priority for rule in given), default=0)
        self._take({})

    def complete(self, small: Iterable[tuple[Size, StateGraph, list[Facts] | None]], generalise: bool) -> None:
        """Add what is missing in small problems, then simplify."""
        self._small, self._too_large = list[tuple[Size, Problem]](), list[str]()
        self._graphs, self._jobs = list[StateGraph](), list[tuple[StateGraph, Facts]]()
        for size, graph, goals in small:
            if goals is None:
                self._too_large.append(graph.problem.name)
            elif goals:
                self._small.append((size, graph.problem))
                if not any(_is_part_of(graph.problem, other) for other in self._graphs):
                    self._graphs.append(graph)
                    self._jobs += [(graph, goal) for goal in goals]
        self._learned: set[object] = set()  # ways that have been learned from, which give nothing new
        self.commit = self.is_finished = False
        self.unsolved: list[tuple[StateGraph, Facts]] = []
        self._add_missing()
        if self.is_finished and not self.unsolved:
            if generalise:
                self._generalise()
            self._prune()

    def _take(self, found: Found) -> None:
        """Let the rules be those that were given, then these, in the order in which they count."""
        self.found = found
        self.rules = (*self.given, *sorted(found, key=lambda rule: (rule.priority, str(rule))))

    @property
    def is_exhausted(self) -> bool:
        """Whether no more states may be looked at."""
        return sum(graph.looked_at for graph in self._graphs) >= self._budget

    def _add_missing(self) -> None:
        """Add rules until nothing fails; with commitment, where it fails without."""
        while not self.is_exhausted:
            self.unsolved, before = [], self.found
            followed = dict.fromkeys(self._graphs, self.rules)  # what one graph teaches helps others the next time
            for done, (graph, goal) in enumerate(self._jobs, 1):
                while (fails := failing(followed[graph], graph, goal, self.commit)) and not self.is_exhausted:
                    if not any(self._learn(way_to_a_goal(graph, state, goal), graph.objects) for state in fails):
                        self.unsolved.append((graph, goal))
                        break
                    followed[graph] = self.rules
                self.callback("completing", done, len(self._jobs))
            if self.found == before and (self.commit or not self.unsolved):
                self.is_finished = not self.is_exhausted
                return
            self.commit |= self.found == before

    def _learn(self, steps: Sequence[TraceStep], objects: Mapping[str, str], is_small: bool = True) -> bool:
        """Learn from a way to one goal fact; return whether there is anything new in it.

        The priority of a rule is its distance to the goal fact; others may make it superfluous already.
        """
        way, before = (is_small, *((step.action.action, step.outcome, step.goal) for step in steps)), self.found
        if not steps or way in self._learned:
            return False
        self._learned.add(way)
        for rule, _ in rules_of_segment(min(steps[-1].goal), steps, objects, self.domain):
            new = replace(rule, priority=self._last + rule.priority, orders=orders_of(self.given))
            if not any(subsumes(other, new, self.domain) for other in chain(self.given, self.found)):
                self._take(self._with(new, objects if is_small else None))
        return self.found is not before

    def _with(self, new: Rule, asked_by: Mapping[str, str] | None) -> Found:
        """Return the rules found with one more, and without those that it makes superfluous."""
        kept = {rule: objects for rule, objects in self.found.items() if not subsumes(new, rule, self.domain)}
        return {**kept, new: asked_by}

    # Fewer and more general rules

    def _fails_nowhere(self, commit: bool) -> bool:
        """Return whether the policy fails nowhere; the goal for which it last failed is tried first."""
        for index, (graph, goal) in enumerate(self._jobs):
            if failing(self.rules, graph, goal, commit):
                self._jobs.insert(0, self._jobs.pop(index))
                return False
        return True

    def _accept(self, found: Found) -> bool:
        """Take these rules instead of those found, unless the policy then fails somewhere; return whether they do."""
        before = self.found
        self._take(found)
        if self.is_exhausted or not self._fails_nowhere(self.commit):
            self._take(before)
        return self.found is found

    def _generalise(self) -> None:
        """Make the rules that the largest problems asked for more general, as long as the policy fails nowhere.

        The last ones come first: what stands behind all others is asked only where nothing else helps. Where the
        problems with the most objects of a type asked for none, the rules are taken to be general enough.
        """
        counts = [Counter(graph.objects.values()) for graph in self._graphs]
        most = reduce(or_, counts, Counter[str]())
        growing = {kind for count in counts for kind in most - count}
        asked = [
            rule
            for rule, objects in self.found.items()
            if objects is None or any([*objects.values()].count(kind) == most[kind] for kind in growing)
        ]
        for rule in self._last_first("generalising", asked):
            written = rule  # with its variables as they are, while those of `rule` are canonical
            for atom in droppable(rule, self.domain) if rule in self.found else ():
                for general in generalisations(written, atom, self.domain):
                    new = canonical(general, self.domain)
                    if self._accept(self._with(new, self.found[rule])):
                        rule, written = new, general
                        break

    def _prune(self) -> None:
        """Drop rules that were found in small problems and can be spared, the last ones first."""
        for rule in self._last_first("pruning", [rule for rule, objects in self.found.items() if objects is not None]):
            self._accept({other: objects for other, objects in self.found.items() if other != rule})

    def _last_first(self, stage: str, rules: Sequence[Rule]) -> Iterator[Rule]:
        for done, rule in enumerate(sorted(rules, key=lambda rule: (-rule.priority, str(rule))), 1):
            self.callback(stage, done, len(rules))
            yield rule

    # Larger problems, which are tried and not proved

    def try_larger(self, problems: Sequence[Problem], plan_for: PlanFor | None) -> None:
        """Solve problems by the rules; where no rule applies, a planner helps, and its plan is learned from."""
        self.solved = self._failures = 0
        for done, problem in enumerate(problems, 1):
            bound = STEPS_PER_GOAL * (len(problem.goal) + 1)
            for _ in range(MOST_HELP):
                solution = solve(self.domain, problem, self.rules, max_steps=bound, commit=self.commit)
                self.solved += solution.is_solved
                if solution.stop is not Stop.NO_RULE or not (plan_for and self._help(problem, solution, plan_for)):
                    break
            self.callback("larger problems", done, len(problems))

    def _help(self, problem: Problem, solution: Solution, plan_for: PlanFor) -> bool:
        """Plan for a goal fact from where the rules stopped; return whether it taught anything."""
        state, objects = final_state(self.domain, problem, solution.plan)
        own = {name: kind for name, kind in objects.items() if name not in self.domain.constants}
        for fact in sorted(problem.goal - state):
            if self._failures < MOST_FAILURES:
                goal = frozenset({fact})
                plan = plan_for(self.domain, replace(problem, objects=own, state=state, goal=goal)) or ()
                self._failures += not plan
                steps = list[TraceStep]()
                for action, outcome in plan:
                    here = steps[-1].next_state if steps else state
                    steps.append(TraceStep(here, action, outcome_in(here, outcome, self.domain, objects), goal))
                if self._learn(steps, objects, is_small=False):
                    return True
        return False

    def completion(self, tried: int) -> Completion:
        """Return what is known when all has been looked at and tried."""
        sizes, number = described(self._small), sum(len(graph.attainable(goal)) for graph, goal in self._jobs)
        is_proved = bool(sizes) and self.is_finished and not self.unsolved
        if not sizes:
            lines = ["nothing is proved: every problem is too large to look at as a whole"]
        elif not self.is_finished:
            lines = [f"the budget is used up before all problems of {sizes} were looked at; nothing is proved"]
        elif self.unsolved:
            graph, goal = self.unsolved[0]
            runs = graph.follow(self.rules, goal, sorted(graph.attainable(goal)), commit=self.commit)
            found = counterexample(graph, goal, runs)
            lines = [f"not complete in problems of {sizes}, as no rule that could be found helps:", str(found)]
        else:
            every = f"from every state from which the goals can be reached ({number} states with goals)"
            lines = [f"no rule missing and no loop for all problems of {sizes}, {every}"]
            if self.commit:
                lines.append(
                    "this needs commitment to a goal until it holds, as in `bilevel solve`; memoryless, the rules loop"
                )
            else:
                also = "and with commitment, too" if self._fails_nowhere(True) else "not with commitment"
                lines.append(f"this holds for the memoryless policy, {also}")
            known = {atom.predicate for _, problem in self._small for atom in problem.state}
            if static := sorted(known.intersection(static_predicates(self.domain))):
                lines.append(f"facts that no action changes are as in the problems given: {', '.join(static)}")
        if self._too_large:
            lines.append(f"too large to look at as a whole: {listed(self._too_large)}")
        if tried:
            lines.append(f"larger problems drawn at random or met: {self.solved} of {tried} solved")
        statement, given = "\n".join(lines), len(self.given)
        return Completion(self.rules, given, self.commit, is_proved, sizes, number, tried, self.solved, statement)


def _is_part_of(problem: Problem, graph: StateGraph) -> bool:
    """Return whether the problem begins in one of these states but for the names of objects; some are tried."""
    renamings = islice(namings(problem.objects, graph.problem.objects), MOST_NAMINGS)
    return any(Situation(substitute_all(problem.state, renaming)) in graph.numbers for renaming in renamings)


def described(small: Iterable[tuple[Size, Problem]]) -> str:
    """Return the largest of these sizes in words: up to 3 blocks and 4 places."""
    sizes = [Counter(size or problem.objects.values()) for size, problem in small]
    distinct = [size for place, size in enumerate(sizes) if size not in sizes[:place]]
    largest = [size for size in distinct if not any(size < other for other in distinct)]
    return listed([f"up to {' and '.join(_counted(*each) for each in size.items())}" for size in largest])


def _counted(key: str, count: int) -> str:
    return f"{count} {' and '.join(kind if count == 1 else f'{kind}s' for kind in key.split('+'))}"


def failing(rules: Sequence[Rule], graph: StateGraph, goal: Facts, commit: bool) -> list[int]:
    """Return the states in which the policy fails: those first from which a plan could help, among these the stops."""
    able = graph.attainable(goal)
    runs = graph.follow(rules, goal, sorted(able), commit=commit)
    graph.looked_at += len(runs.choices)
    trapped = runs.traps()
    stops = {node[0] for node in trapped if runs.stops(node)}
    return sorted({state for state, _ in trapped}, key=lambda state: (state not in able, state not in stops, state))


def way_to_a_goal(graph: StateGraph, state: int, goal: Facts) -> list[TraceStep]:
    """Return a way to one more goal fact, on which the whole goal stays attainable; none where there is none.

    The fact is one in turn that is nearest.
    """
    inside, steps = graph.attainable(goal), list[TraceStep]()
    facts = sorted(graph.in_turn(state, goal) - graph.facts(state)) if state in inside else []
    distances = {fact: graph.distances(frozenset({fact}), inside) for fact in facts}
    fact = min(facts, key=lambda fact: distances[fact][state], default=None)
    while fact and (left := distances[fact][state]):
        action, outcome, after = next(
            (action, outcome, after)
            for action, results in graph.moves(state)
            if inside.issuperset(results)
            for after, outcome in results.items()
            if distances[fact].get(after, left) < left
        )
        steps.append(TraceStep(graph.facts(state), ground_action(graph.domain, action), outcome, frozenset({fact})))
        state = after
    return steps


# More general rules


def droppable(rule: Rule, domain: Domain) -> list[Atom]:
    """Return the conditions that the action itself does not need: facts first, then inequalities."""
    needed = ground_action(domain, rule.action).condition
    return sorted(rule.state_condition - needed.positive) + sorted(rule.negative_condition - needed.negative)


def generalisations(rule: Rule, atom: Atom, domain: Domain) -> Iterator[Rule]:
    """Yield the rule without one of its conditions and what this alone mentioned, and the rule with its closure.

    A condition stays that connects what nothing else does, or that alone says which object the action is about.
    """
    facts = rule.state_condition - {atom}
    used = {t for a in facts | rule.goal_condition for t in a.terms}.union(rule.action.arguments)
    negative = frozenset(a for a in rule.negative_condition - {atom} if used.issuperset(a.terms))
    variables = tuple(variable for variable in rule.variables if variable.name in used)
    rest = replace(rule, state_condition=facts, negative_condition=negative, variables=variables)
    connected = _connected(rest)
    if free_variables(rest) == free_variables(rule) and all(
        any(group & rest.types.keys() <= other for other in connected) for group in _connected(rule)
    ):
        yield rest
    predicate = domain.predicates.get(atom.predicate)
    if atom in rule.state_condition and predicate is not None and can_be_chained(predicate, domain):
        yield replace(rule, state_condition=facts | {closure(atom)})


def _connected(rule: Rule) -> list[set[str]]:
    """Return the groups of variables that facts, goals and the action connect."""
    groups: list[set[str]] = []
    for terms in (*(a.terms for a in rule.state_condition | rule.goal_condition), rule.action.arguments):
        touched = [group for group in groups if group & set(terms)]
        groups = [group for group in groups if not group & set(terms)] + [set(terms).union(*touched)]
    return groups
