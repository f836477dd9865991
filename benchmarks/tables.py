"""The tables of README and docs, from the files in results/:

    python benchmarks/tables.py                              # print them
    python benchmarks/tables.py --write                      # put each between its marks

A table's marks are `<!-- table: NAME -->` and `<!-- end of table -->`.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import mean
from typing import Any

from bench import RESULTS, ROOT, Row, read_rows

from bilevel.experiments.statistics import wilson_interval

NAMES = {
    "bison-printed": "BISON, Algorithm 1 as printed",
    "bison-paper": "BISON, paper's setting",
    "bison-without-dagger": "BISON, our preset without DAgger",
    "bison": "BISON, our preset",
    "expert": "Expert",
    "det-plan": "DetPlan",
    "det-replan": "DetReplan",
    "det-replan-dagger": "DetReplan, on the network of our preset",
    "ndt-plan": "NdtPlan",
    "ndt-replan": "NdtReplan",
    "ndt-replan-dagger": "NdtReplan, on the network of our preset",
    "pddl-nn": "PddlNN",
    "pddl-nn-dagger": "PddlNN with DAgger",
    "pure-nn": "PureNN",
    "pure-nn-dagger": "PureNN with DAgger",
    "det-replan-lama": "DetReplan, LAMA alone",
}
IN_README = ("bison-paper", "bison", "expert", "det-plan", "det-replan", "ndt-plan", "ndt-replan", "pddl-nn", "pure-nn")
ENVIRONMENTS = ["cube-single", "cube-double", "cube-triple", "cube-quadruple", "cube-octuple", "scene"]
ENVIRONMENTS += ["puzzle-3x3", "puzzle-4x4", "puzzle-4x5", "puzzle-4x6"]
PUBLISHED = ("GCBC", "GCIVL", "GCIQL", "QRL", "CRL", "HIQL")


def markdown(head: Sequence[object], lines: Iterable[Sequence[object]]) -> str:
    """Return a table whose first column is to the left and whose others are to the right."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in (head, rule, *lines))


def counts(rows: Iterable[Row]) -> tuple[int, int]:
    """Return the successes and the episodes of all rows together."""
    rows = list(rows)
    return sum(row["successes"] for row in rows), sum(row["episodes"] for row in rows)


def fraction(rows: Iterable[Row]) -> str:
    successes, episodes = counts(rows)
    return f"{successes}/{episodes}" if episodes else "–"


def rate(rows: Iterable[Row]) -> str:
    successes, episodes = counts(rows)
    return f"{successes / episodes:.2f}" if episodes else "–"


def with_interval(rows: Iterable[Row]) -> str:
    """Return successes of episodes, with Wilson's 95% interval in per cent."""
    successes, episodes = counts(rows)
    if not episodes:
        return "–"
    low, high = wilson_interval(successes, episodes)
    return f"{successes}/{episodes} ({100 * low:.0f}–{100 * high:.0f}%)"


def pivot(
    rows: Sequence[Row],
    line: str,
    columns: Mapping[str, Mapping[str, Any]],
    cell: Callable[[Iterable[Row]], str] = fraction,
) -> str:
    """Return a table with a line for each value of a key, and in each column the rows that agree with what it asks for.

    A column asks for values of keys; a list asks for any of these.
    """

    def agrees(row: Row, wanted: Mapping[str, Any]) -> bool:
        return all(row.get(key) in (value if isinstance(value, list) else [value]) for key, value in wanted.items())

    values = dict.fromkeys(row[line] for row in rows)
    lines = (
        [
            value,
            *(cell([row for row in rows if row[line] == value and agrees(row, wanted)]) for wanted in columns.values()),
        ]
        for value in values
    )
    return markdown([line, *columns], lines)


def reproduction() -> list[Row]:
    """Return a row for each method, task, seed and number of objects of the whole experiment."""
    rows = [json.loads(line) for line in (RESULTS / "reproduction.jsonl").read_text(encoding="utf-8").splitlines()]
    return [{**row, "method": row["row"], "world": row["task"].removesuffix("-noisy")} for row in rows[1:]]


def summary() -> str:
    rows = [{**row, "method": NAMES[row["method"]]} for row in reproduction() if row["method"] in IN_README]
    worlds = {world.title(): {"world": world} for world in ("blocks", "factory", "colour", "gacha")}
    return pivot(sorted(rows, key=lambda row: list(NAMES.values()).index(row["method"])), "method", worlds, rate)


def all_methods() -> str:
    rows = sorted(reproduction(), key=lambda row: list(NAMES).index(row["method"]))
    tasks: dict[str, dict[str, Any]] = {task: {"task": task} for task in dict.fromkeys(row["task"] for row in rows)}
    return pivot([{**row, "method": NAMES[row["method"]]} for row in rows], "method", {**tasks, "all": {}})


def by_objects() -> str:
    rows = [{**row, "method": NAMES[row["method"]]} for row in reproduction() if row["method"] in IN_README]
    return pivot(rows, "method", {str(n): {"objects": n} for n in range(1, 11)})


def worlds() -> str:
    small, large = list(range(1, 11)), [15, 20]
    asked = {"method": "bison", "noise": 0.0, "preset": None}
    columns = {
        "our preset, n = 1–10": {**asked, "objects": small},
        "n = 15 and 20": {**asked, "objects": large},
        "n = 3, pushed": {**asked, "noise": 0.7},
        "paper's setting, n = 1–10": {**asked, "preset": "paper", "objects": small},
        "expert, n = 10": {**asked, "method": "expert", "objects": 10},
    }
    return pivot(read_rows(RESULTS / "worlds.jsonl"), "task", columns, with_interval)


def pretrained() -> str:
    return pivot(read_rows(RESULTS / "pretrained.jsonl"), "task", {f"n = {n}": {"objects": n} for n in (3, 5, 10)})


def robustness() -> str:
    rows = [row for row in read_rows(RESULTS / "robustness.jsonl") if "start" not in row]
    columns = {
        f"{name}, {noise}": {"method": method, "noise": noise}
        for noise in (0.7, 1.0, 1.5)
        for method, name in (("bison", "BISON"), ("expert", "expert"), ("bison, rules shown", "without completion"))
    }
    return pivot(rows, "task", columns)


def perception() -> str:
    rows = [{**row, "perception": row["perception"] or "perfect"} for row in read_rows(RESULTS / "perception.jsonl")]
    columns = {
        f"{name}, n = {n}": {"method": method, "objects": n}
        for method, name in (
            ("policy", "BISON"),
            ("policy without estimation", "without estimation"),
            ("expert with estimation", "expert with estimation"),
        )
        for n in (3, 10)
    }
    return pivot(rows, "perception", columns)


def trays() -> str:
    """Return success, and the steps of successful episodes, where trays are seen at their first spot."""
    asked = {"BISON": ("bison", 0.0), "plain network": ("plain network", 0.0), "expert": ("expert", 0.0)}
    columns = {name: {"method": method, "noise": noise} for name, (method, noise) in asked.items()}
    for noise in (0.7, 1.0):
        columns[f"BISON, n = 10, pushed by {noise}"] = {"method": "bison", "noise": noise}
        columns[f"expert, n = 10, pushed by {noise}"] = {"method": "expert", "noise": noise}
    return pivot(read_rows(RESULTS / "trays.jsonl"), "task", columns, with_interval)


def clutter() -> str:
    rows = [{**row, "posts": str(row["posts"])} for row in read_rows(RESULTS / "clutter.jsonl")]
    methods = dict.fromkeys(row["method"] for row in rows)
    return pivot(rows, "posts", {method: {"method": method} for method in methods}, with_interval)


def towers() -> str:
    """Return success, and the steps of successful episodes, for each height of a tower."""
    found, lines = read_rows(RESULTS / "towers.jsonl"), []
    for height in sorted({row["objects"] for row in found}):
        cells = []
        for method in ("bison", "expert"):
            rows = [row for row in found if row["objects"] == height and row["method"] == method]
            cells += [with_interval(rows), f"{mean(row['mean_steps'] or 0 for row in rows):.0f}"]
        lines.append([height, *cells])
    return markdown(["blocks", "BISON", "steps", "expert", "steps"], lines)


def few_demonstrations() -> str:
    rows = read_rows(RESULTS / "few-demonstrations.jsonl")
    numbers = sorted({row["demonstrations"] for row in rows if row["method"] == "bison"})
    columns: dict[str, dict[str, Any]] = {str(n): {"method": "bison", "demonstrations": n} for n in numbers}
    return pivot(rows, "task", {**columns, "expert": {"method": "expert"}})


def learned_domains() -> str:
    columns = {
        f"{domain}, {number}": {"domain": domain, "demonstrations": number}
        for number in (200, 50, 20)
        for domain in ("written", "learned")
    }
    return pivot(read_rows(RESULTS / "learned-domains.jsonl"), "task", columns)


def suites() -> str:
    """Return what policies do at the largest size of each environment, and their experts."""
    names = ("kinder", "robosuite", "own-worlds", "recorded-play")
    rows = [
        {**row, "environment": f"{row.get('setting', row['task'])}, n = {row['objects']}"}
        for name in names
        for row in read_rows(RESULTS / f"{name}.jsonl")
    ]
    columns = {"BISON": {"method": "bison"}, "expert": {"method": "expert"}}
    return pivot(rows, "environment", columns, with_interval)


def ogbench() -> str:
    """Return success in per cent for each environment, beside published figures and the best of later ones."""
    ours, published = read_rows(RESULTS / "ogbench.jsonl"), read_rows(RESULTS / "published.jsonl")
    lines = []
    for environment in ENVIRONMENTS:
        rows = [row for row in ours if row["setting"].startswith(environment) and row["method"] != "expert"]
        others = [row for row in published if row["environment"] == environment]
        figures = [
            " ".join(f"{100 * row['success']:.0f}" for row in others if row["method"] == name) or "–"
            for name in PUBLISHED
        ]
        later = [row for row in others if row["method"] not in PUBLISHED]
        best = max(later, key=lambda row: float(row["success"]), default=None)
        best_text = f"{100 * best['success']:.0f}, {best['method']}" if best else "–"
        lines.append([environment, fraction(rows), *figures, best_text])
    return markdown(["environment", "ours", *PUBLISHED, "best later"], lines)


def lerobot() -> str:
    """Return how often policies of LeRobot's succeed by how many objects were shown and how many there are."""
    names = {"act": "ACT", "diffusion": "Diffusion Policy", "bison": "BISON"}
    rows = [
        {**row, "policy": f"{names[row['method']]}, {row['task']}, shown n = {row['shown']}"}
        for row in read_rows(RESULTS / "lerobot.jsonl")
    ]
    return pivot(rows, "policy", {f"n = {n}": {"objects": n} for n in (1, 2, 3)}, with_interval)


def pictures() -> str:
    """Return success, and the steps of successful episodes, from pictures and from poses."""
    found, lines = [row for row in read_rows(RESULTS / "pictures.jsonl") if "source" in row], []
    for task, policy, objects in dict.fromkeys((row["task"], row["policy"], row["objects"]) for row in found):
        cells = []
        for source in ("pictures", "poses"):
            rows = [
                r
                for r in found
                if (r["task"], r["policy"], r["objects"], r["source"]) == (task, policy, objects, source)
            ]
            cells += [with_interval(rows), f"{mean(row['mean_steps'] or 0 for row in rows):.0f}"]
        lines.append([f"{task}, {policy}", objects, *cells])
    return markdown(["task, policy", "n", "from pictures", "steps", "from poses", "steps"], lines)


def detections() -> str:
    """Return how far off things are seen along each axis, and how many are not seen, in per cent of those in view."""
    lines: list[list[Any]] = []
    rows: dict[Any, Row] = {}
    for row in read_rows(RESULTS / "pictures.jsonl"):  # of the first of several policies
        if "kind" in row and rows.setdefault((row["task"], row["objects"], row["kind"]), row) is row:
            axes = [f"{row[f'{axis}_mm']:.1f} ({row[f'{axis}_95']:.0f})" for axis in "xyz"]
            in_view = row["seen"] + row["missed"]
            shares = [f"{100 * row[name] / in_view:.1f}" for name in ("missed", "false")]
            lines.append([f"{row['task']}, {row['kind']}", row["objects"], in_view, *axes, *shares])
    return markdown(["things", "n", "in view", "x, mm", "y, mm", "z, mm", "missed, %", "false, %"], lines)


def planning() -> str:
    rows = read_rows(RESULTS / "planning.jsonl")
    lines = []
    for domain in dict.fromkeys(row["domain"] for row in rows):
        mine = [row for row in rows if row["domain"] == domain]
        learning = [f"{row['seconds']:.1f}" for row in mine if row["problem"] == "training"]
        tests = [row for row in mine if row["problem"] != "training"]
        solved, seconds = sum(row["solved"] for row in tests), [row["seconds"] for row in tests]
        times = [f"{mean(seconds):.1f}", f"{max(seconds):.1f}"] if seconds else ["–", "–"]
        lines.append([domain, *(learning or ["–"]), f"{solved} of {len(tests)}", *times])
    return markdown(["domain", "learning, s", "solved", "mean s", "most s"], lines)


def ipc() -> str:
    """Return for each domain of the learning track how many problems of each level each method solves."""
    rows = [row for row in read_rows(RESULTS / "ipc-learning.jsonl") if row["method"] != "learning"]
    learned = [row for row in read_rows(RESULTS / "ipc-learning.jsonl") if row["method"] == "learning"]

    def solved(mine: Sequence[Row]) -> str:
        levels = [[row["solved"] for row in mine if row["level"] == level] for level in ("easy", "medium", "hard")]
        return ", ".join(f"{sum(found)}/{len(found)}" for found in levels if found)

    lines: list[list[str]] = []
    for one in learned:
        key = one["collection"], one["domain"]
        mine = {
            method: [row for row in rows if (row["collection"], row["domain"], row["method"]) == (*key, method)]
            for method in ("rules", "fallback", "lama")
        }
        seconds = [row["seconds"] for row in mine["rules"]]
        name = one["domain"] if one["collection"] == "generated" else f"{one['domain']}, published"
        alone, fallback, lama = map(solved, mine.values())
        mean_seconds = f"{mean(seconds):.1f}" if seconds else "–"
        lines.append([name, str(one["rules"]), f"{one['seconds']:.1f}", alone, mean_seconds, fallback, lama])
    head = ["domain", "rules", "learning, s", "by rules", "mean s", "with fallback", "LAMA"]
    return markdown(head, lines)


def rules() -> str:
    rows = read_rows(RESULTS / "rules.jsonl")
    sizes = sorted({row["objects"] for row in rows})

    def cell(method: str, shape: str, size: int) -> str:
        found = [row for row in rows if (row["method"], row["shape"], row["objects"]) == (method, shape, size)]
        return " ".join(f"{row['seconds']:.1f}" if row["solved"] else "not solved" for row in found) or "–"

    keys = dict.fromkeys((row["shape"], row["method"]) for row in rows)
    lines = [[f"{shape}, {method}", *(cell(method, shape, size) for size in sizes)] for shape, method in keys]
    return markdown(["problems", *(f"{size:,}" for size in sizes)], lines)


TABLES: Mapping[str, Callable[[], str]] = {
    "summary": summary,
    "all methods": all_methods,
    "by objects": by_objects,
    "worlds": worlds,
    "pretrained": pretrained,
    "robustness": robustness,
    "perception": perception,
    "trays": trays,
    "clutter": clutter,
    "pictures": pictures,
    "detections": detections,
    "towers": towers,
    "few demonstrations": few_demonstrations,
    "learned domains": learned_domains,
    "suites": suites,
    "ogbench": ogbench,
    "lerobot": lerobot,
    "planning": planning,
    "learning track": ipc,
    "rules": rules,
}
MARKED = re.compile(r"(<!-- table: (.+?) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def filled(page: str) -> str:
    """Return a page with each table between its marks."""
    return MARKED.sub(lambda found: f"{found[1]}\n{TABLES[found[2]]()}\n\n{found[3]}", page)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the tables into README and docs")
    if not parser.parse_args().write:
        print("\n\n".join(f"{name}\n\n{table()}" for name, table in TABLES.items()))
        return
    for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
