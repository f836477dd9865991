"""The figures of the hard suite's page, from what was measured:

bilevel benchmark hard --output build/hard && cp build/hard/curves.jsonl results/hard.jsonl
python benchmarks/hard_figures.py && python benchmarks/tables.py --write
"""

from __future__ import annotations

import argparse
from pathlib import Path

from hard_tables import ELSEWHERE
from msgspec.structs import replace

from bilevel.experiments.hard.curves import read_curves
from bilevel.experiments.report.drawing import figure_bytes
from bilevel.experiments.report.hard_figures import hard_figures
from bilevel.experiments.report.hard_results import HardResults
from bilevel.files import write_atomically

HARD = "hard.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("results"), help="the folder with the files of curves")
    parser.add_argument("--output", type=Path, default=Path("docs/images"))
    given = parser.parse_args()
    for file in dict.fromkeys([HARD, *ELSEWHERE.values()]):
        curves = read_curves(given.results / file)
        shown = [curve for curve in curves.curves if ELSEWHERE.get(curve.axis, HARD) == file]
        for figure in hard_figures(HardResults(replace(curves, curves=shown))).values():
            write_atomically(given.output / f"{figure.name}.png", figure_bytes(figure, "png"))
            print(given.output / f"{figure.name}.png")


if __name__ == "__main__":
    main()
