"""What a run of the hard suite has to do."""

from __future__ import annotations

from bilevel.experiments.hard.curves import CURVES, write_curves
from bilevel.experiments.hard.selection import HardSelection, left_out, points
from bilevel.experiments.reproduction.folder import Experiment
from bilevel.experiments.reproduction.selection import Request, require_methods, with_training
from bilevel.experiments.reproduction.variants import VARIANTS
from bilevel.symbolic.domain import BadInput


def hard_request(selection: HardSelection, experiment: Experiment, writes_report: bool = True) -> Request:
    """Return the units that measure all points, each once; `BadInput` for a method that lacks something here."""
    wanted = list(points(selection, experiment))
    require_methods([VARIANTS[name] for name in dict.fromkeys(point.curve.variant for point in wanted)])
    missing = left_out(selection, experiment)
    if not wanted:
        raise BadInput(f"there is nothing to measure: {'; '.join(missing)}")
    units = with_training(list(dict.fromkeys(point.unit for point in wanted)), [point.training for point in wanted])
    return Request(units, missing, "hard.html" if writes_report else None, CURVES, write_curves, selection.note)
