"""The tables of the hard suite's page in the docs: of what was measured, and a word where nothing was."""

from __future__ import annotations

import json

from hard_tables import demonstrations_needed, falling_behind, of_axis, of_time
from result_tables import NOT_MEASURED
from synthetic_curves import curves_like


def test_axes_that_were_not_measured_have_no_table() -> None:
    rows = [json.loads(line) for line in curves_like(["teleports"], ["blocks"]).lines().splitlines()]
    told = of_axis("teleports")(rows, "hard.jsonl")
    assert told.startswith("![Success: teleports, by task](images/hard-teleports.png)")
    assert "| BISON, our preset |" in told
    others = [of_axis("control-noise"), of_time("deciding", "pause"), demonstrations_needed, falling_behind]
    assert [other(rows, "hard.jsonl") for other in others] == 4 * [NOT_MEASURED]
