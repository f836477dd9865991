"""Networks that do all have as many parameters as BISON's, whatever the task."""

from __future__ import annotations

import pytest

from bilevel.baselines.graph_encoding import ENCODINGS
from bilevel.baselines.graph_network import EndToEndNetwork
from bilevel.baselines.sizes import matching_hidden
from bilevel.lowlevel.encoding import encoding_of
from bilevel.lowlevel.network import GraphNetwork, ImitationNetwork
from bilevel.tabletop import TASKS
from bilevel.tasks.controls import BoxControls
from bilevel.tasks.task import Task
from tiny_task import TINY

CONTROLS = BoxControls([-1.0] * 4, [1.0] * 4, [4])


def parameters(network: ImitationNetwork) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


@pytest.mark.parametrize("task", [*TASKS.values(), TINY], ids=lambda task: task.name)
@pytest.mark.parametrize("method", ENCODINGS)
@pytest.mark.parametrize("hidden", [32, 64])
def test_end_to_end_networks_are_as_large_as_bisons(method: str, task: Task, hidden: int) -> None:
    like, encoding = encoding_of(task.domain, task.spec), ENCODINGS[method](task.domain, task.spec)
    width = matching_hidden(encoding, like, CONTROLS, hidden, 2)
    sizes = [parameters(EndToEndNetwork(encoding, CONTROLS, each, 2)) for each in (width - 1, width, width + 1)]
    wanted = parameters(GraphNetwork(like, CONTROLS, hidden, 2))
    assert sizes[1] == pytest.approx(wanted, rel=0.05)
    assert min(sizes, key=lambda size: abs(size - wanted)) == sizes[1]
