"""Adding rules until a policy fails nowhere in some small problems, and making them fewer and more general.

In a state in which the policy fails although the goal can be reached, the shortest way to one more goal fact gives
rules, as a demonstration would. These stand behind all rules that were given, so what those do is left as it is; among
themselves they are ordered by how far from the goal fact they are. So a rule that fires leads to a state in which one
nearer to a goal fact applies, and a policy with enough of them never stops before it has achieved one more.

It may still run in circles, where achieving one goal fact undoes another. Commitment cures that: the policy serves a
goal fact until it holds. Whether the rules need it is found out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import NamedTuple

from bilevel.rules.completion.generalising import droppable, generalisations
from bilevel.rules.completion.policy_space import Failing, PolicySpace
from bilevel.rules.learning import rules_of_segment, subsumes
from bilevel.rules.rule import Rule, canonical
from bilevel.rules.traces import TraceStep
from bilevel.symbolic.domain import Domain, Facts

Callback = Callable[[str, int, int], None]  # what is being done, how much of it is done, and how much there is

MOST_WASTE = 1.02  # how much longer the ways to the goals may become where a rule is dropped


LARGER_PROBLEM = -1  # in place of the number of a small one


class RuleSet:
    """The rules that were given, and behind them those that were found, ordered by their distance to a goal fact."""

    def __init__(self, given: Sequence[Rule], domain: Domain) -> None:
        self.given, self.domain = tuple(given), domain
        self.found: dict[Rule, int] = {}  # and the number of the small problem that asked for each
        self._last = max((rule.priority for rule in given), default=0)
        self._place = cache(lambda rule: (rule.priority, str(rule)))

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that were given, then those that were found, in the order in which they count."""
        return (*self.given, *sorted(self.found, key=self._place))

    def add(self, rule: Rule, asked_by: int) -> bool:
        """Add a rule whose priority is its distance to a goal fact, unless others make it superfluous already."""
        new = replace(rule, priority=self._last + rule.priority)
        if any(subsumes(other, new, self.domain) for other in chain(self.given, self.found)):
            return False
        self.found = {other: n for other, n in self.found.items() if not subsumes(new, other, self.domain)}
        self.found[new] = asked_by
        return True

    def swap(self, old: Rule, new: Rule | None) -> dict[Rule, int]:
        """Put a rule in another's place, or drop one; return the rules found before, by which it can be undone."""
        before = self.found
        number = before[old]
        self.found = {rule: n for rule, n in before.items() if rule != old}
        if new is not None:
            self.found = {rule: n for rule, n in self.found.items() if not subsumes(new, rule, self.domain)}
            self.found[new] = number
        return before


class Unsolved(NamedTuple):
    """A goal of a small problem, and a state in which the policy fails for it whatever is added."""

    space: PolicySpace
    goal: Facts
    failing: Failing


class Completer:
    """Adds rules until the policy fails nowhere in the spaces, then makes them fewer and more general.

    `budget` bounds how many states with goals are looked at, as often as they are; when it is used up, what was found
    so far stands.
    """

    def __init__(
        self,
        rules: RuleSet,
        spaces: Sequence[PolicySpace],
        budget: int,
        callback: Callback,
        generalise: bool = True,
    ) -> None:
        self.rules, self.spaces, self.callback = rules, spaces, callback
        self._generalise = generalise
        self.commit = False
        self.unsolved: list[Unsolved] = []
        self.is_finished = False  # whether all was looked at
        self._budget = budget
        self._learned: set[tuple[object, ...]] = set()  # ways that have been learned from, which give nothing new
        self._jobs = [(number, goal) for number, space in enumerate(spaces) for goal in space.goals]

    @property
    def looked_at(self) -> int:
        """How many states of all problems were looked at."""
        return sum(space.looked_at for space in self.spaces)

    @property
    def is_exhausted(self) -> bool:
        """Whether no more states may be looked at."""
        return self.looked_at >= self._budget

    def complete(self) -> None:
        """Add what is missing, then simplify."""
        self.add_missing()
        if self.is_finished and not self.unsolved:
            if self._generalise:
                self.generalise()
            self.prune()
        self._use()

    def works_either_way(self) -> bool:
        """Return whether the policy, which fails nowhere, does not do so with commitment either."""
        return all(not self.spaces[number].failing(goal, True) for number, goal in self._jobs)

    def add_missing(self) -> None:
        """Add rules until nothing fails; with commitment, where it fails without."""
        while not self.is_exhausted:
            self.unsolved = []
            self._use()
            changed = False
            for done, (number, goal) in enumerate(self._jobs, 1):
                changed |= self._mend(number, goal)
                self.callback("completing", done, len(self._jobs))
            if not changed and (self.commit or not self.unsolved):
                self.is_finished = not self.is_exhausted
                return
            self.commit |= not changed

    def _use(self) -> None:
        for space in self.spaces:
            space.set_rules(self.rules.rules)

    def _mend(self, number: int, goal: Facts) -> bool:
        """Add rules until the policy does not fail for this goal; return whether any were added."""
        space, changed = self.spaces[number], False
        while failing := space.failing(goal, self.commit):
            ways = (space.plan(state, goal) for state, _, lost in failing if not lost)
            if self.is_exhausted:
                return changed
            if not any(self.learn(steps, space.space.objects, number) for steps in ways):
                self.unsolved.append(Unsolved(space, goal, failing[0]))
                return changed
            changed = True
            space.set_rules(self.rules.rules)
        return changed

    def learn(self, steps: Sequence[TraceStep], objects: Mapping[str, str], asked_by: int) -> bool:
        """Learn from a way to one goal fact; return whether there is anything new in it."""
        way = asked_by, *((step.action.action, step.outcome, step.goal) for step in steps)
        if way in self._learned:
            return False
        self._learned.add(way)
        (fact,) = steps[-1].goal
        learned = rules_of_segment(fact, steps, objects, self.rules.domain)
        added = [self.rules.add(rule, asked_by) for rule, _ in learned]
        return any(added)

    # Fewer and more general rules

    def works(self) -> bool:
        """Return whether the policy fails nowhere; the goal for which it last failed is tried first."""
        self._use()
        for index, (number, goal) in enumerate(self._jobs):
            if self.spaces[number].failing(goal, self.commit):
                self._jobs.insert(0, self._jobs.pop(index))
                return False
        return True

    def generalise(self) -> None:
        """Make the rules that the largest problems asked for more general, as long as the policy fails nowhere.

        The last ones come first: what stands behind all others is asked only where nothing else helps. Where the
        problems with the most objects of a type asked for none, the rules are taken to be general enough.
        """
        domain, counts = self.rules.domain, [Counter(space.space.objects.values()) for space in self.spaces]
        most = {kind: max(count[kind] for count in counts) for kind in set().union(*counts)}
        growing = [kind for kind in most if any(count[kind] < most[kind] for count in counts)]
        asking = {n for n, count in enumerate(counts) if any(count[kind] == most[kind] for kind in growing)}
        asked = [rule for rule in self.rules.found if self.rules.found[rule] in asking | {LARGER_PROBLEM}]
        for done, rule in enumerate(sorted(asked, key=_last_first), 1):
            self.callback("generalising", done, len(asked))
            written = rule  # with its variables as they are, while those of `rule` are canonical
            for atom in droppable(rule, domain) if rule in self.rules.found else ():
                for general in generalisations(written, atom, domain):
                    new = canonical(general, domain)
                    before = self.rules.swap(rule, new)
                    if not self.is_exhausted and self.works():
                        rule, written = new, general
                        break
                    self.rules.found = before

    def prune(self) -> None:
        """Drop found rules that can be spared, the last ones first, unless the ways to the goals become longer."""
        most = self._steps() * MOST_WASTE
        asked = [rule for rule, number in self.rules.found.items() if number != LARGER_PROBLEM]
        for done, rule in enumerate(sorted(asked, key=_last_first), 1):
            self.callback("pruning", done, len(asked))
            before = self.rules.swap(rule, None)
            if self.is_exhausted or not self.works() or self._steps() > most:
                self.rules.found = before

    def _steps(self) -> int:
        self._use()
        return sum(self.spaces[number].steps(goal, self.commit) for number, goal in self._jobs)


def _last_first(rule: Rule) -> tuple[int, str]:
    return -rule.priority, str(rule)
