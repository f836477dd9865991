"""Mirrored samples of end-to-end networks: the images of a sample are what encoding the image of its scene gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bilevel.baselines.graph_encoding import ENCODINGS, GraphEncoding, encode_graphs
from bilevel.baselines.graph_network import EndToEndNetwork
from bilevel.lowlevel.augmentation import augmentation, images
from bilevel.lowlevel.network import Table
from bilevel.symbolic.domain import Atom
from bilevel.tabletop import TASKS
from bilevel.tasks.controls import BoxControls
from bilevel.tasks.scene import Array, Scene
from bilevel.tasks.spec import Features, LabelOnly, Mirror, Position, Scalar, Spec, Transpose
from tiny_task import DOMAIN

CONTROLS = BoxControls([-1.0] * 3, [1.0] * 3, [3])
MIRROR, TRANSPOSE = Mirror(("x",), (0,)), Transpose(("x", "y"), (0, 1))
PLACE: Features = {"x": Position, "y": Position}
SPEC = Spec(
    {**PLACE, "closed": Scalar},
    {"parcel": PLACE, "spot": {**PLACE, "end": LabelOnly(Position(along="x"))}},
    symmetries=(MIRROR, TRANSPOSE),
)
STATE = frozenset({Atom("at", ("p", "s"))})


def drawn(mirrored: bool = False, swapped: bool = False) -> tuple[Scene, Array]:
    """A random scene and control, or their image."""
    rng, sign = np.random.default_rng(1), -1 if mirrored else 1

    def place() -> dict[str, float]:
        x, y = rng.normal(size=2).tolist()
        return {"x": y, "y": x} if swapped else {"x": sign * x, "y": y}

    agent = {**place(), "closed": 1.0}
    seen = {"parcel": {"p": place(), "q": place()}, "spot": {"s": {**place(), "end": sign * 0.7}}}
    control = np.array([sign * 0.3, 0.2, 0.1], np.float32)
    return Scene(SPEC, agent, seen), control[[1, 0, 2]] if swapped else control


def network_of(encoding: GraphEncoding) -> EndToEndNetwork:
    network = EndToEndNetwork(encoding, CONTROLS, hidden=4)
    with torch.no_grad():  # scales of their own
        network.agent_scale += torch.arange(len(network.agent_scale))
        network.object_scale += torch.arange(len(network.object_scale))
    return network


def table_of(network: EndToEndNetwork, scene: Scene, control: Array, times: int = 1) -> Table:
    situations = [(STATE, STATE, None)] * times
    return network.table(encode_graphs(network.encoding, [scene] * times, situations, np.stack([control] * times), 0))


@pytest.mark.parametrize(
    ("method", "change"),
    [("pddl-nn", {"mirrored": True}), ("pddl-nn", {"swapped": True}), ("pure-nn", {"mirrored": True})],
)
def test_an_image_is_what_encoding_the_image_of_a_scene_gives(method: str, change: dict[str, bool]) -> None:
    network = network_of(ENCODINGS[method](DOMAIN, SPEC))
    table = table_of(network, *drawn())
    columns = network.columns(table)
    assert columns is not None
    _, image = images([TRANSPOSE if "swapped" in change else MIRROR], columns.columns)
    row = table[0].numpy()[0]
    expected = table_of(network, *drawn(**change))[0].numpy()[0]
    assert row[image.sources] * image.factors == pytest.approx(expected, rel=1e-4)
    assert not np.array_equal(row, expected)


def test_symmetries_are_those_that_hold_whatever_is_being_done() -> None:
    """A lid is slid along x, one way, and a network that does all is not told when that is."""
    found = {
        name: {method: encode(TASKS[name].domain, TASKS[name].spec).symmetries for method, encode in ENCODINGS.items()}
        for name in ("colour", "gacha")
    }
    everywhere = TASKS["colour"].spec.symmetries
    assert found["colour"]["pddl-nn"] == tuple(everywhere)
    assert found["gacha"]["pddl-nn"] == found["gacha"]["pure-nn"] == tuple(everywhere[:1])
    assert found["colour"]["pure-nn"] == tuple(everywhere[:2])


def test_samples_are_shown_as_all_of_their_images() -> None:
    network = network_of(ENCODINGS["pddl-nn"](DOMAIN, SPEC))
    table = table_of(network, *drawn(), times=200)
    change = augmentation(network.columns(table), table, 0)
    assert change is not None
    change(0, 0)
    assert len(np.unique(table[0].numpy(), axis=0)) == 8
