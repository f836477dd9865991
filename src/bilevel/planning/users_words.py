"""Plans and policies for a compiled problem, in the words of the domain that its user wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bilevel.planning.contingent import ContingentPolicy
from bilevel.planning.planner import Step
from bilevel.planning.strong_cyclic import Node, PolicyGraph
from bilevel.symbolic.adl import Compiled


def users_steps(compiled: Compiled, steps: Sequence[Step]) -> list[Step]:
    """The steps of a plan without the last one where it only says that the goal is reached."""
    named = ((step, compiled.users_action(step.action)) for step in steps)
    return [step._replace(action=action) for step, action in named if action is not None]


def users_policy(compiled: Compiled, policy: ContingentPolicy) -> ContingentPolicy:
    """The decisions without those that only say that the goal is reached: where they would count, it is."""
    named = [(decision, compiled.users_action(decision.action)) for decision in policy.decisions]
    nearer = int(any(action is None for _, action in named))
    kept = [
        replace(decision, action=action, distance=decision.distance - nearer)
        for decision, action in named
        if action is not None
    ]
    return ContingentPolicy(tuple(kept))


def users_graph(compiled: Compiled, graph: PolicyGraph) -> PolicyGraph:
    """The graph without the states after the goal is said to be reached."""
    nodes = [_users_node(compiled, node) for node in graph.nodes]
    kept = {0: None}
    for number in (frontier := [0]):  # grows while it is read
        new = [after for after in (nodes[number].outcomes if number < len(nodes) else ()) if after not in kept]
        kept.update(dict.fromkeys(new))
        frontier += new
    numbers = {old: new for new, old in enumerate(sorted(kept))}
    return PolicyGraph(
        tuple(graph.states[old] for old in numbers),
        tuple(
            nodes[old]._replace(outcomes=tuple(numbers[after] for after in nodes[old].outcomes))
            for old in numbers
            if old < len(nodes)
        ),
        tuple(numbers.get(graph.parents[old], -1) for old in numbers),
        graph.complete,
    )


def _users_node(compiled: Compiled, node: Node) -> Node:
    if node.action is None:
        return node
    action = compiled.users_action(node.action)
    return Node(is_goal=True) if action is None else node._replace(action=action)
