"""Rules beyond those that were shown: find where a rule policy fails, plan from there, learn, and look again.

Small problems are looked at as a whole: every state that any actions lead to, with every goal that some state has. So
what is said of them is proved. Larger problems, drawn at random or met in episodes, are then tried one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bilevel.rules.completion.completer import Callback, Completer, RuleSet, Unsolved
from bilevel.rules.completion.small_problems import SmallProblem, described, lasting_facts, make_spaces, small_problems
from bilevel.rules.completion.trials import Trials, random_larger_problems
from bilevel.rules.completion.way_out import NoWayOut, no_way_out
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import check_rules
from bilevel.rules.traces import PlanFor
from bilevel.rules.verification.policies import listed
from bilevel.symbolic.domain import BadInput, Domain, Problem

MAX_STATES = 2_000
BUDGET = 3_000_000  # states with goals, or bindings of rules: a minute or two
RANDOM_PROBLEMS = 100
MOST_NAMED = 3  # problems
MOST_ROUNDS = 5  # of small problems, which are proved, and larger ones, which are tried


@dataclass(frozen=True)
class Completion:
    """The rules, and what is known of them.

    The first `given` rules are those that were given, as they were. With `commit` the policy must serve a goal fact
    until it holds, as `solve` does; else it needs no memory, and may commit if it works `either_way`. `problems` counts
    the states with goals from which the goal can surely be reached, in small problems of the `sizes` told; on all of
    them the policy gets there, but for those of `unsolved`, unless the budget was `exhausted` before all were seen.
    Facts of the predicates in `lasting` are always as in the given problems, as no action changes them.
    `tried` and `solved` count larger problems, and `unknown` those in which no plan helped where the rules stopped.
    """

    rules: tuple[Rule, ...]
    given: int
    commit: bool
    either_way: bool
    sizes: str
    lasting: tuple[str, ...]
    problems: int
    too_large: tuple[str, ...]
    unsolved: tuple[Unsolved, ...]
    exhausted: bool
    tried: int
    solved: int
    unknown: int
    no_way_out: NoWayOut | None

    @property
    def is_proved(self) -> bool:
        """Whether the policy is known to reach every goal that can be reached, in all of the small problems."""
        return bool(self.sizes) and not self.unsolved and not self.exhausted

    def __str__(self) -> str:
        """Return what is known, a line for each thing."""
        lines = [self._first_line()]
        if self.is_proved:
            lines.append(self._memory())
        if self.is_proved and self.lasting:
            lines.append(f"facts that no action changes are as in the problems given: {', '.join(self.lasting)}")
        if self.too_large:
            more = f" and {len(self.too_large) - MOST_NAMED} more" if len(self.too_large) > MOST_NAMED else ""
            lines.append(f"too large to look at as a whole: {'; '.join(self.too_large[:MOST_NAMED])}{more}")
        if self.tried:
            unknown = f"; in {self.unknown} no plan was found from where the rules stopped" if self.unknown else ""
            lines.append(f"larger problems drawn at random or met: {self.solved} of {self.tried} solved{unknown}")
        if self.no_way_out is not None:
            lines.append(str(self.no_way_out))
        return "\n".join(lines)

    def _memory(self) -> str:
        if self.commit:
            return "this needs commitment to a goal until it holds, as in `bilevel solve`; memoryless, the rules loop"
        also = (
            "and with commitment, too" if self.either_way else "not with commitment: use `bilevel solve --memoryless`"
        )
        return f"this holds for the memoryless policy, {also}"

    def _first_line(self) -> str:
        if self.is_proved:
            every = f"from every state from which the goals can be reached ({self.problems} states with goals)"
            return f"no rule missing and no loop for all problems of {self.sizes}, {every}"
        if not self.sizes:
            return "nothing is proved: every problem is too large to look at as a whole"
        if not self.unsolved:
            return f"the budget is used up before all problems of {self.sizes} were looked at; nothing is proved"
        space, goal, (state, stops, _) = self.unsolved[0]
        how = "no rule applies" if stops else "the rules go round in circles, or into a dead end"
        goals = f"{len(self.unsolved)} goal{'' if len(self.unsolved) == 1 else 's'}"
        return (
            f"not complete: {how}, and no rule that could be found helps ({goals} in problems of {self.sizes})\n"
            f"  for example from {listed(space.space.facts(state))}\n  with the goal {listed(goal)}"
        )


def silent(stage: str, done: int, total: int) -> None:
    """The callback of those who do not want to know how far it is."""


def complete_rules(
    rules: Sequence[Rule],
    domain: Domain,
    problems: Sequence[Problem],
    *,
    objects: Mapping[str, int] | None = None,
    met: Sequence[Problem] = (),
    plan_for: PlanFor | None = None,
    random_problems: int = RANDOM_PROBLEMS,
    max_states: int = MAX_STATES,
    budget: int = BUDGET,
    seed: int = 0,
    callback: Callback = silent,
) -> Completion:
    """Return the rules and, behind them, others with which no goal that can be reached is missed.

    The problems are seeds, as in `verify_family`: each is looked at with up to so many `objects` of each type, by
    default up to as many as it has. `met` are larger problems to be solved as well; with `plan_for`, a planner, these
    and random ones are learned from where no rule applies.
    """
    check_rules(rules, domain)
    seeds = [problem for problem in problems if problem.goal]
    if not seeds:
        raise BadInput("no problem with a goal to start from: goals are made of the predicates of the problems' goals")
    small = small_problems(seeds, domain, objects)
    larger = [*met, *random_larger_problems(seeds, domain, objects or {}, random_problems if plan_for else 0, seed)]

    def completed(generalise: bool) -> Completion:
        found = RuleSet(rules, domain)
        for _ in range(MOST_ROUNDS):
            spaces, looked_at, too_large = make_spaces(small, seeds, domain, found.rules, max_states)
            completer = Completer(found, spaces, budget, callback, generalise)
            completer.complete()
            before = found.rules
            trials = Trials(completer, plan_for, callback)
            trials.run(larger)
            if found.rules == before:
                break
        return _known(completer, trials, looked_at, too_large, len(larger))

    best = completed(True)
    if best.is_proved and best.solved < best.tried:  # rules that are too general may fail in larger problems
        best = max(best, completed(False), key=lambda other: (other.is_proved, other.solved))
    return best


def _known(
    completer: Completer, trials: Trials, small: Sequence[SmallProblem], too_large: Sequence[SmallProblem], larger: int
) -> Completion:
    """Return what is known when all has been looked at and tried."""
    spaces, rules = completer.spaces, completer.rules
    return Completion(
        rules=rules.rules,
        given=len(rules.given),
        commit=completer.commit,
        either_way=completer.is_finished and not completer.commit and completer.works_either_way(),
        sizes=described(small),
        lasting=lasting_facts(small, rules.domain),
        problems=sum(len(space.attainable(goal)) for space in spaces for goal in space.goals),
        too_large=tuple(small.problem.name for small in too_large),
        unsolved=tuple(completer.unsolved),
        exhausted=not completer.is_finished,
        tried=larger,
        solved=trials.solved,
        unknown=trials.unknown,
        no_way_out=no_way_out(spaces, rules.domain),
    )
