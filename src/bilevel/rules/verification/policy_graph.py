"""What a rule policy does in every state it can get into, as a graph, and where it goes wrong in it.

Where several instances of rules tie, each is a choice of its own. With `every_tie` all are followed and whatever is
proved holds however ties are decided; otherwise only the first is. Nature is fair: an outcome that is possible again
and again happens in the end. So a state is a trap for a target exactly if it lies in the largest set of states outside
the target in which each state has no rule, or some choice all of whose outcomes stay in the set.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from bilevel.rules.matching import Match
from bilevel.rules.rule import Rule
from bilevel.rules.verification.state_space import StateSpace
from bilevel.symbolic.domain import BadInput, Domain, Facts

Matcher = Callable[[Sequence[Rule], Domain, Facts, Facts, Mapping[str, str]], Sequence[Match]]


class Choice(NamedTuple):
    """An instance of a rule and the states it may lead to; none if its action is not applicable."""

    match: Match
    nodes: tuple[int, ...]


@dataclass(frozen=True)
class PolicyGraph:
    """The choices in each state explored, in the order of exploration; `complete` unless the bound was hit."""

    starts: tuple[int, ...]
    choices: Mapping[int, tuple[Choice, ...]]
    complete: bool

    def stops(self, node: int) -> bool:
        """Whether no rule applies, or one whose action cannot be done."""
        choices = self.choices[node]
        return not choices or any(not choice.nodes for choice in choices)


def same_node(node: int) -> int:
    return node


def explore_policy(
    space: StateSpace,
    goal: Facts,
    starts: Iterable[int],
    decide: Callable[[int], Sequence[Match]],
    max_states: int,
    representative: Callable[[int], int] = same_node,
    first_stop: bool = False,
) -> PolicyGraph:
    """Follow the policy breadth first from `starts`, up to goal states; with `first_stop`, only up to the first stop.

    `representative` names the state to be explored in the place of one that is the same up to names.
    """
    roots = tuple(dict.fromkeys(map(representative, starts)))
    choices: dict[int, tuple[Choice, ...]] = {}
    queue, met = deque(roots), set(roots)
    while queue:
        if len(met) > max_states:
            return PolicyGraph(roots, choices, complete=False)
        node = queue.popleft()
        solved = goal <= space.facts(node)
        matches = {} if solved else {match.action: match for match in reversed(decide(node))}
        found = []
        for action, match in reversed(matches.items()):
            results = space.results(node, action) or ()
            found.append(Choice(match, tuple(dict.fromkeys(representative(result.node) for result in results))))
        choices[node] = tuple(found)
        new = [after for choice in found for after in choice.nodes if after not in met]
        if first_stop and not solved and (not found or not all(choice.nodes for choice in found)):
            return PolicyGraph(roots, choices, complete=False)
        met.update(new)
        queue.extend(dict.fromkeys(new))
    return PolicyGraph(roots, choices, complete=True)


def traps(graph: PolicyGraph, target: Set[int]) -> frozenset[int]:
    """The states in which the policy may never reach the target, whatever luck it has with nature."""
    outside = set(graph.choices) - target
    before: dict[int, list[tuple[int, int]]] = {}
    staying = {}  # how many choices of a state cannot leave
    for node in sorted(outside):
        for index, choice in enumerate(graph.choices[node]):
            for after in choice.nodes:
                before.setdefault(after, []).append((node, index))
        staying[node] = len(graph.choices[node])
    escaped = deque(node for node in graph.choices if node not in outside)
    leaving: set[tuple[int, int]] = set()
    while escaped:
        for node, index in before.get(escaped.popleft(), ()):
            if (node, index) not in leaving:
                leaving.add((node, index))
                staying[node] -= 1
                if staying[node] == 0:
                    outside.remove(node)
                    escaped.append(node)
    return frozenset(outside)


class Failure(NamedTuple):
    """A path of states from a start to a stop, or to the first state of a loop; `loop` then leads back to it."""

    path: tuple[int, ...]
    loop: tuple[int, ...] = ()


Place = tuple[int, int]  # a state, and how far a run has come: one of the three below

UNDERWAY, ABLE, FALLEN = range(3)


def shortest_failure(graph: PolicyGraph, trapped: frozenset[int], able: frozenset[int]) -> Failure | None:
    """A shortest run that is once in a state of `able`, then or later falls into the trap, and ends there in a stop.

    Only where there is no such run, a shortest one that ends in a loop within the trap.
    """

    def arrive(node: int, stage: int) -> list[Place]:
        stage = ABLE if stage == UNDERWAY and node in able else stage
        return [(node, stage), (node, FALLEN)] if stage == ABLE and node in trapped else [(node, stage)]

    queue = deque(place for node in graph.starts for place in arrive(node, UNDERWAY))
    came_from: dict[Place, Place | None] = dict.fromkeys(queue)
    fallen = []
    while queue:
        node, stage = place = queue.popleft()
        nodes = _within(graph, node, trapped if stage == FALLEN else None)
        if stage == FALLEN:
            if graph.stops(node):
                return Failure(_path(came_from, place))
            fallen.append(place)
        for after in (next_place for next_node in nodes for next_place in arrive(next_node, stage)):
            if after not in came_from:
                came_from[after] = place
                queue.append(after)
    for place in fallen:
        loop = _shortest_loop(graph, place[0], trapped)
        if loop:
            return Failure(_path(came_from, place), loop)
    return None


def _within(graph: PolicyGraph, node: int, trapped: frozenset[int] | None) -> list[int]:
    """The states next to this one; in a trap, only by choices that stay in it."""
    choices = graph.choices.get(node, ())
    return [n for choice in choices if trapped is None or trapped.issuperset(choice.nodes) for n in choice.nodes]


def _shortest_loop(graph: PolicyGraph, start: int, trapped: frozenset[int]) -> tuple[int, ...]:
    """The states after `start` on a shortest way back to it within the trap, itself last; empty if there is none."""
    came_from: dict[int, int] = {}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for after in _within(graph, node, trapped):
            if after not in came_from:
                came_from[after] = node
                queue.append(after)
        if start in came_from:
            back = [start]
            while came_from[back[-1]] != start:
                back.append(came_from[back[-1]])
            return tuple(reversed(back))
    return ()


def _path(came_from: Mapping[Place, Place | None], place: Place) -> tuple[int, ...]:
    path, at = [place[0]], came_from[place]
    while at is not None:
        path.append(at[0])
        at = came_from[at]
    return tuple(reversed(path))


def check_vocabulary(rules: Sequence[Rule], domain: Domain) -> None:
    """Refuse rules that speak of predicates or actions that the domain does not have."""
    for rule in rules:
        for atom in sorted(rule.state_condition | rule.goal_condition | rule.absent):
            predicate = domain.predicates.get(atom.predicate)
            if predicate is None or predicate.arity != len(atom.terms):
                raise BadInput(f"rule '{rule}': domain '{domain.name}' has no predicate like {atom}; mend the rule")
        schema = domain.schemas.get(rule.action.name)
        if schema is None or len(schema.parameters) != len(rule.action.arguments):
            raise BadInput(f"rule '{rule}': domain '{domain.name}' has no action like {rule.action}; mend the rule")
