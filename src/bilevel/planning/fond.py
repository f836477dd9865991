"""A strong-cyclic planner for nondeterministic domains: policies that reach the goal if nature is fair.

In the manner of PRP (Muise, McIlraith and Beck, ICAPS 2012): find a plan that works if nature is kind, keep of each
state on the way only what the rest of the plan needs, then plan for every outcome that no part of the policy covers
yet. A state from which there is no plan is dead, and from then on no step is taken that may lead to it.

The policy in the making is a graph. A node stands for all states in which its condition holds. Its outcomes are linked
to other nodes, and its condition is strong enough that each outcome satisfies the condition of the node it is linked
to. So where all outcomes are linked and the goal can be reached from every node, the policy is strong-cyclic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from bilevel.planning.grounding import ConditionIndex, FondAction, Grounding, GroundOperator, GroundTask
from bilevel.planning.placeholders import remember_newest
from bilevel.planning.planner import ContingentPolicy, Deadline, Decision, NoModel, PlanResult, PlanStep, Status, TimeUp
from bilevel.planning.search import BestFirst, Estimate, RelaxedPlans, path_to
from bilevel.symbolic.domain import Action, Domain, Problem
from bilevel.symbolic.packed import no_garbage_collection
from bilevel.symbolic.semantics import is_solved

START, REST = Action("start"), Action("rest")
LOCAL_STATES = 100  # that are looked at on the way back to a state that is covered


@dataclass(eq=False)
class Node:
    """What to do where the condition holds; it always holds in `state`, for which the node was made."""

    state: int
    action: FondAction
    condition: int
    links: dict[GroundOperator, Node | None]  # for each outcome; `None` while nothing is known of it
    number: int = -1  # in the order in which nodes are made
    distance: int = 0  # from the goal, if nature is kind
    callers: dict[Link, None] = field(default_factory=dict)

    def holds(self, state: int) -> bool:
        """Return whether its condition holds in a state."""
        return state & self.condition == self.condition


class Link(NamedTuple):
    """An outcome of a node."""

    node: Node
    outcome: GroundOperator

    @property
    def state(self) -> int:
        """The state after the outcome, from the state for which the node was made."""
        return self.outcome.apply(self.node.state)

    def regress(self, condition: int) -> int:
        """What must hold before the outcome so that the condition, which holds in `state`, holds after it.

        Where facts are derived, all that holds is taken to matter.
        """
        return self.node.state if self.outcome.close else condition & ~self.outcome.add


class PartialPolicy:
    """A growing graph; `open` has the outcomes that are not linked yet, the most urgent last, and some that are gone.

    The root is a pretended step whose only outcome is the first state; it covers no state.
    """

    def __init__(self, task: GroundTask, deadline: Deadline) -> None:
        start, goal = task.state, task.goal
        begin = GroundOperator(PlanStep(START), 0, add=start, delete=0)
        self.goal = Node(goal, FondAction(REST, goal, ()), goal, {})
        self.root = Node(0, FondAction(START, 0, (begin,)), 0, {begin: None})
        self.nodes: dict[Node, None] = {self.root: None}
        self.open = [Link(self.root, begin)]
        self._deadline = deadline
        self._made: list[Node] = []  # every node but the root, by number; some may be removed
        self._index = ConditionIndex()

    def add(self, state: int, action: FondAction, condition: int) -> Node:
        """A new node, all its outcomes open."""
        node = Node(state, action, condition, dict.fromkeys(action.outcomes), number=len(self._made))
        self.nodes[node] = None
        self._made.append(node)
        self._index.put(node.number, condition)
        self.open += [Link(node, outcome) for outcome in action.outcomes]
        return node

    def covering(self, state: int) -> Node | None:
        """A node that says what to do in the state, the nearest to the goal."""
        if self.goal.holds(state):
            return self.goal
        nodes = (self._made[number] for number in self._index.holding(state))
        return min(nodes, key=lambda node: node.distance, default=None)

    def connect(self, link: Link, target: Node) -> None:
        """Let a link lead to a node, whose condition the link's own node must then ensure."""
        link.node.links[link.outcome] = target
        target.callers[link] = None
        self._strengthen(link.node, link.regress(target.condition))

    def _strengthen(self, node: Node, needed: int) -> None:
        """Make the node's condition imply what is needed, and so on for the nodes that lead to it.

        Where an outcome no longer satisfies the condition of the node it is linked to, it is open again.
        """
        waiting = [(node, needed)]
        while waiting:
            self._deadline.check()
            node, needed = waiting.pop()
            if needed & ~node.condition == 0:
                continue
            self._set_condition(node, node.condition | needed)
            for link in list(node.callers):
                if node.holds(link.state):
                    waiting.append((link.node, link.regress(node.condition)))
                else:
                    self._disconnect(link)

    def _set_condition(self, node: Node, condition: int) -> None:
        node.condition = condition
        if node is not self.root:
            self._index.put(node.number, condition)

    def _disconnect(self, link: Link) -> None:
        target = link.node.links[link.outcome]
        assert target is not None
        del target.callers[link]
        link.node.links[link.outcome] = None
        self.open.append(link)

    def remove(self, node: Node) -> None:
        """Outcomes linked to the node are open again."""
        for link in list(node.callers):
            self._disconnect(link)
        for outcome, target in node.links.items():
            if target is not None:
                del target.callers[Link(node, outcome)]
        del self.nodes[node]
        if node is not self.root:
            self._index.remove(node.number)

    def with_distances(self) -> Iterator[Node]:
        """The nodes from which the goal can be reached, nearest first, after setting how far it is at best."""
        reached, frontier = {self.goal}, [self.goal]
        for target in frontier:  # grows while it is read
            self._deadline.check()
            for link in target.callers:
                if link.node not in reached:
                    reached.add(link.node)
                    frontier.append(link.node)
                    link.node.distance = target.distance + 1
        yield from frontier[1:]

    def trim(self) -> None:
        """Leave only the nodes that can be reached from the root, with the weakest conditions that the links allow."""
        reached, frontier = {self.root}, [self.root]
        for node in frontier:  # grows while it is read
            for target in node.links.values():
                if target is not None and target is not self.goal and target not in reached:
                    reached.add(target)
                    frontier.append(target)
        for node in [node for node in self.nodes if node not in reached]:
            self.remove(node)
        for node in self.nodes:
            self._set_condition(node, node.action.precondition)
        for node in [self.goal, *self.nodes]:
            for link in list(node.callers):
                self._strengthen(link.node, link.regress(node.condition))


# An action in a state, and the outcome that is hoped for.
WeakStep = tuple[int, FondAction, GroundOperator]


class WeakPlanner:
    """Searches for weak plans, ways to the goal if nature is kind, by steps none of whose outcomes is known to be dead.

    A state is dead if no strong-cyclic policy starts in it: because no relaxed plan does, or because every way from it
    to the goal has a step one of whose outcomes is dead. What is known of states is remembered.
    """

    def __init__(self, task: GroundTask, deadline: Deadline) -> None:
        self._task, self._deadline = task, deadline
        self._search, self._relaxed_plans = BestFirst(task, deadline), RelaxedPlans(task, deadline)
        self._estimates: dict[int, Estimate | None] = {}

    def find(self, start: int, is_covered: Callable[[int], bool], nearby: int) -> list[WeakStep] | None:
        """Return steps from the state to one that is covered, or `None` where there are none: the state is dead then.

        First it is tried for a while to get to where the bits of `nearby` are set, which are those of a covered state.
        """
        run, safe = self._search.run, self._is_safe
        parents, end = run(start, is_covered, lambda state: self._relaxed_plans(state, nearby), safe, LOCAL_STATES)
        if end is None:
            parents, end = run(start, is_covered, self._estimate, safe)
        if end is None:
            self._estimates.update(dict.fromkeys(parents))  # none of them leads to the goal
            return None
        operators, owners = self._task.operators, self._task.owners
        return [(state, owners[index], operators[index]) for state, index in path_to(end, parents)]

    def _estimate(self, state: int) -> Estimate | None:
        """Return how far the goal seems to be, and the operators that look helpful; `None` where the state is dead."""
        if state not in self._estimates:
            self._deadline.check()
            self._estimates[state] = self._relaxed_plans(state)
        return self._estimates[state]

    def _is_safe(self, state: int, index: int) -> bool:
        """Return whether the operator may bring something there, and no outcome of its action is dead."""
        outcomes = self._task.owners[index].outcomes
        is_new = bool(self._task.operators[index].add & ~state)
        return is_new and all(self._estimate(outcome.apply(state)) for outcome in outcomes)


@no_garbage_collection()
def fond(domain: Domain, problem: Problem, time_limit: float) -> PlanResult:
    """A strong-cyclic policy for the problem, if there is one and it is found in time.

    Where actions make new objects, it speaks of placeholders; `NoModel` where there is none that does.
    """
    domain, problem, placeholders = remember_newest(domain, problem)
    if is_solved(problem, problem.state):
        return PlanResult(Status.SOLVED, policy=ContingentPolicy(()))
    deadline = Deadline(time_limit)
    try:
        task = Grounding().task(domain, problem, deadline)
        nodes = solve(task, deadline) if task else None
    except TimeUp:
        return PlanResult(Status.TIMED_OUT)
    if task is None or nodes is None:
        if placeholders:
            raise NoModel(
                "no strong-cyclic policy exists that remembers of new objects only the last; "
                "the planner 'search' may find a plan that hopes for the best"
            )
        return PlanResult(Status.UNSOLVABLE, message="no strong-cyclic policy exists")
    decisions = tuple(Decision(task.condition(node.condition), node.action.action, node.distance) for node in nodes)
    return PlanResult(Status.SOLVED, policy=ContingentPolicy(decisions, placeholders))


def solve(task: GroundTask, deadline: Deadline) -> list[Node] | None:
    """The nodes of a strong-cyclic policy, nearest to the goal first, or `None` where there is none."""
    graph, planner = PartialPolicy(task, deadline), WeakPlanner(task, deadline)
    stranded: set[int] = set()  # states whose nodes went astray
    while graph.root in graph.nodes:
        if graph.open:
            link = graph.open.pop()
            if link.node in graph.nodes and link.node.links[link.outcome] is None:
                target = graph.covering(link.state) or _planned(link, graph, planner, stranded)
                graph.connect(link, target) if target else graph.remove(link.node)
            continue
        hopeless = graph.nodes.keys() - set(graph.with_distances()) - {graph.root}
        if not hopeless:
            graph.trim()
            return [node for node in graph.with_distances() if node is not graph.root]
        for node in [node for node in graph.nodes if node in hopeless]:
            stranded.add(node.state)
            graph.remove(node)
    return None


def _planned(link: Link, graph: PartialPolicy, planner: WeakPlanner, stranded: Set[int]) -> Node | None:
    """The first of new nodes that lead from the outcome's state to one that is covered; `None` where that is dead.

    An outcome that was not hoped for is best mended by getting to where the one that was leads. Where a node for a
    state went astray before, the new one is for that state alone. So nodes that are only for one state become more and
    more, and the search for a policy comes to an end.
    """
    hoped = [target.condition for target in link.node.links.values() if target is not None]
    nearby = hoped[0] if hoped else graph.goal.condition
    plan = planner.find(link.state, lambda reached: graph.covering(reached) is not None, nearby)
    if plan is None:
        return None
    last, _, outcome = plan[-1]
    target = graph.covering(outcome.apply(last))
    assert target is not None
    nodes = [graph.add(state, action, state if state in stranded else action.precondition) for state, action, _ in plan]
    for (_, _, outcome), node in zip(reversed(plan), reversed(nodes), strict=True):
        node.distance = target.distance + 1
        graph.connect(Link(node, outcome), target)
        target = node
    return target
