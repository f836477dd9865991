"""A strong-cyclic planner for nondeterministic domains: policies that reach the goal if nature is fair.

In the manner of PRP (Muise, McIlraith and Beck, ICAPS 2012): find a plan that works if nature is kind, keep of each
state on the way only what the rest of the plan needs, then plan for every outcome that no part of the policy covers
yet. A state from which there is no plan is dead, and from then on no step is taken that may lead to it.
"""

from __future__ import annotations

from bilevel.planning.bit_masks import Task, apply, bits_of, ground_fond_task
from bilevel.planning.fond_graph import Link, Node, PartialPolicy
from bilevel.planning.fond_search import WeakPlanner, WeakStep
from bilevel.planning.grounding import makers_of_new_objects
from bilevel.planning.planner import ContingentPolicy, Deadline, Decision, NoModel, PlanResult, Status, TimeUp
from bilevel.symbolic.domain import Domain, Problem
from bilevel.symbolic.semantics import Condition, is_solved


def fond(domain: Domain, problem: Problem, time_limit: float) -> PlanResult:
    """A strong-cyclic policy for the problem, if there is one and it is found in time."""
    for name in makers_of_new_objects(domain, problem):
        raise NoModel(
            f"action '{name}' makes new objects, for which there are no policies; "
            "the planner 'search' finds a plan that hopes for the best"
        )
    if is_solved(problem, problem.state):
        return PlanResult(Status.SOLVED, policy=ContingentPolicy(()))
    deadline = Deadline(time_limit)
    try:
        task = ground_fond_task(domain, problem, deadline)
        nodes = solve(task, deadline) if task else None
    except TimeUp:
        return PlanResult(Status.TIMED_OUT)
    if task is None or nodes is None:
        return PlanResult(Status.UNSOLVABLE, message="no strong-cyclic policy exists")
    decisions = tuple(_decision(node, task) for node in nodes)
    return PlanResult(Status.SOLVED, policy=ContingentPolicy(decisions))


def solve(task: Task, deadline: Deadline) -> list[Node] | None:
    """The nodes of a strong-cyclic policy, nearest to the goal first, or `None` where there is none."""
    builder = _Builder(task, deadline)
    graph = builder.graph
    while not builder.is_finished():
        if graph.root not in graph.nodes:
            return None
    graph.trim()
    return [node for node in graph.with_distances() if node is not graph.root]


class _Builder:
    """Links the open outcomes of a policy graph one after the other."""

    def __init__(self, task: Task, deadline: Deadline) -> None:
        self.graph = PartialPolicy(task.state, task.goal, deadline)
        self._planner = WeakPlanner(task, deadline)
        self._stranded: set[int] = set()

    def is_finished(self) -> bool:
        """Whether the graph is that of a strong-cyclic policy; otherwise works on it."""
        if self.graph.open:
            self._close(self.graph.open.pop())
            return False
        stranded = self.graph.nodes.keys() - set(self.graph.with_distances()) - {self.graph.root}
        for node in [node for node in self.graph.nodes if node in stranded]:
            self._stranded.add(node.state)
            self.graph.remove(node)
        return not stranded

    def _close(self, link: Link) -> None:
        """Link the outcome to a node that covers it, if need be at the end of a plan; without one, drop its node."""
        if link.node.links[link.index] is not None:
            return
        target = self.graph.covering(link.state) or self._plan(link.state)
        if target is None:
            self.graph.remove(link.node)
        else:
            self.graph.connect(link, target)

    def _plan(self, state: int) -> Node | None:
        """The first of new nodes that lead from the state to one that is covered; `None` where the state is dead."""
        plan = self._planner.find(state, lambda reached: self.graph.covering(reached) is not None)
        if plan is None:
            return None
        target = self.graph.covering(apply(plan[-1].state, plan[-1].hoped))
        assert target is not None
        nodes = [self._node(step) for step in plan]
        for step, node in zip(reversed(plan), reversed(nodes), strict=True):
            node.distance = target.distance + 1
            self.graph.connect(Link(node, step.action.outcomes.index(step.hoped)), target)
            target = node
        return target

    def _node(self, step: WeakStep) -> Node:
        """A node for the step; where one for its state went astray before, it is for that state alone.

        So nodes that are only for one state become more and more, and the search for a policy comes to an end.
        """
        condition = step.state if step.state in self._stranded else step.action.precondition
        return self.graph.add(step.state, step.action, condition)


def _decision(node: Node, task: Task) -> Decision:
    assert node.action is not None
    literals = [task.literals[bit] for bit in bits_of(node.condition)]
    positive = frozenset(literal.atom for literal in literals if literal.present)
    negative = frozenset(literal.atom for literal in literals if not literal.present)
    return Decision(Condition(positive, negative), node.action.action, node.distance)
