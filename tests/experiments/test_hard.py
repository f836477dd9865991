"""The hard suite: axes whose values can be measured, and a tiny run of it with its report."""

from __future__ import annotations

from pathlib import Path

import pytest

from bilevel.experiments import making
from bilevel.experiments.experiment import Settings
from bilevel.experiments.reproduce import benchmark_hard, points
from bilevel.experiments.results import read_results
from bilevel.experiments.rows import AXES, HARD_METHODS, HARD_TASKS, ON_OUR_NETWORK, ROWS, Axis, find_axes
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import TASKS
from bilevel.tasks.perception import read_perception


@pytest.mark.parametrize("axis", AXES.values(), ids=lambda axis: axis.name)
def test_every_value_of_an_axis_can_be_measured_on_each_of_its_tasks(axis: Axis) -> None:
    """Cells that differ have files that differ."""
    found = list(points(axis, HARD_TASKS, [*HARD_METHODS, *ON_OUR_NETWORK], [], 3, Settings()))
    assert {cell.value for cell in found} == set(axis.values)
    assert {cell.task for cell in found} == set(axis.tasks)
    assert len({(cell.value, cell.file) for cell in found}) == len(found)
    for cell in found:
        assert set(cell.options) <= {"noise", "perception", *TASKS[cell.task].arguments}
        assert read_perception(cell.options.get("perception", "")) is not None
        assert cell.learned is None or cell.learned == ROWS[cell.learned.name]
        assert axis.show(cell.value)


def test_axes_are_found_by_their_names_and_by_the_beginnings_of_these() -> None:
    assert len(find_axes(["perception", "swap"])) == 6
    assert find_axes([]) == list(AXES.values())
    with pytest.raises(BadInput, match="unknown axis 'magic'; there are: teleports,"):
        find_axes(["magic"])


def test_a_tiny_run_has_curves_of_worlds_and_of_symbols_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "LIMIT", 1.0)  # seconds, beyond which planners of large problems give up
    outcome = benchmark_hard(
        tmp_path / "hard",
        axes=["control-noise", "symbols"],
        tasks=["blocks"],
        methods=["expert", "det-replan"],
        objects=[1],
        episodes=1,
        seeds=1,
        demonstrations=4,
        epochs=1,
        workers=1,
    )
    assert outcome.failed == {}
    found = read_results(tmp_path / "hard").table
    assert set(found["axis"]) == {"control-noise", "symbols"}
    solved = found[(found["axis"] == "symbols") & (found["value"] == 10)]
    assert list(solved["row"]) == ["det-replan-search"] or solved["successes"].sum() >= 1
    expert = found[(found["axis"] == "control-noise") & (found["row"] == "expert")].set_index("value")["successes"]
    assert expert[0] == 1
    assert outcome.report
    assert "Harder: control noise" in outcome.report.read_text(encoding="utf-8")
    assert (outcome.report.parent / "report-files" / "hard-control-noise.png").exists()
