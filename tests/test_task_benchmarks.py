"""The benchmarks of tasks and policies run, each at its smallest, and write what they measured."""

from __future__ import annotations

import json
import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import pytest
from expert_success import Trial, bad_luck
from label_faults import FAULTS
from pretrained import Settings, install
from schedules import KINDS, make_row

from bilevel.demonstrations.collection import collect
from bilevel.learning.networks import LearningConfig, LearningOptions
from bilevel.lowlevel.training import TrainingConfig
from bilevel.methods.methods import train
from bilevel.policies.policy_folder import read_card
from bilevel.tabletop import TASKS
from tiny_policies import blocks_folder

Row = dict[str, Any]


class Benchmark(Protocol):
    def __call__(self, program: str, *arguments: object) -> list[Row]:
        """Run a program; its rows."""


@pytest.fixture
def benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Benchmark:
    def run(program: str, *arguments: object) -> list[Row]:
        output = tmp_path / "rows.jsonl"
        words = [f"{program}.py", *map(str, arguments), "--output", str(output)]
        monkeypatch.setattr(sys, "argv", words)
        import_module(program).main()
        text = output.read_text(encoding="utf-8")
        assert str(tmp_path) not in text
        rows = [json.loads(line) for line in text.splitlines()]
        assert all(f"benchmarks/{program}.py" in row["command"] for row in rows if "command" in row)
        return rows

    return run


def test_experts_are_measured_at_every_size_in_place_of_earlier_rows(tmp_path: Path, benchmark: Benchmark) -> None:
    other = {"task": "gacha", "objects": 3, "noise": 0.0}
    outdated = {"task": "factory", "objects": 3, "noise": 0.0, "successes": -1}
    (tmp_path / "rows.jsonl").write_text(f"{json.dumps(outdated)}\n{json.dumps(other)}\n", encoding="utf-8")
    kept, *rows = benchmark("expert_success", "--episodes", 1, "--tasks", "factory", "--workers", 1)
    assert kept == other
    assert [(row["objects"], row["noise"]) for row in rows] == [(1, 0.0), (3, 0.0), (10, 0.0), (3, 0.7)]
    for row in rows:
        assert (row["task"], row["episodes"], row["successes"], row["failures"]) == ("factory", 1, 1, [])
        assert set(row["mean_steps_per_schema"]) == {"pick", "place"}


def test_experts_are_measured_with_each_argument_of_a_world(benchmark: Benchmark) -> None:
    rows = benchmark("expert_success", "--options", "--episodes", 1, "--tasks", "colour", "--sizes", 1, "--workers", 1)
    assert [row["arguments"] for row in rows] == [{"tray_position": name} for name in ("free-spot", "fixed", "belt")]
    assert {(row["successes"], row["mean_steps"]) for row in rows} == {(1, rows[0]["mean_steps"])}


def test_bad_luck_is_that_colours_do_not_come_up() -> None:
    one, three = Trial("gacha", 1), Trial("gacha", 3)
    assert bad_luck(one, {"roll": [200], "close": [56]}) == round((2 / 3) ** 8, 4)  # eight rolls, each of 256 steps
    assert bad_luck(three, {"roll": [3000]}) == 1  # two rolls for three colours
    assert bad_luck(three, {"roll": [2048]}) == round(1 - 6 / 5**3, 4)  # three rolls, of which each must give another


def test_methods_think_and_some_of_them_plan(tmp_path: Path, benchmark: Benchmark) -> None:
    task, policies = TASKS["blocks"], tmp_path / "made" / "policies" / "blocks"
    data = collect(task, tmp_path / "data", objects=1, episodes=4)
    for method in ("bison", "pure-nn"):
        config = LearningConfig(training=TrainingConfig(epochs=1))
        train(data, policies / f"{method}-paper-0", method, LearningOptions(task=task, preset="paper", config=config))
    places = ("--folder", tmp_path / "made", "--tasks", "blocks", "--objects", 1, "--episodes", 1)
    methods = {"bison": 0, "expert": 0, "det-plan": 1, "ndt-replan": 1, "pure-nn": 0}
    rows = {row["method"]: row for row in benchmark("inference_speed", "--methods", *methods, *places)}
    assert {method: row["plans"] for method, row in rows.items()} == {name: [n] for name, n in methods.items()}
    assert {row["preset"] for method, row in rows.items() if method != "expert"} == {"paper"}
    times = [row["microseconds_per_step"] for row in rows.values()]
    assert all(time["policy"] > 0 for time in times)
    assert [time["planning"] > 0 for time in times] == [bool(count) for count in methods.values()]
    with pytest.raises(SystemExit, match="`bilevel reproduce --methods pddl-nn` learns it"):
        benchmark("inference_speed", "--methods", "pddl-nn", *places)


def test_a_policy_is_learned_and_measured_and_kept(tmp_path: Path, benchmark: Benchmark) -> None:
    tiny = "--tasks blocks --presets best --seeds 1 --demonstrations 6 --epochs 1 --perturbed-episodes 1 --workers 1"
    words = (*tiny.split(), "--kinds", "perturbed", "--folder", tmp_path / "made")
    (row,) = benchmark("policy_success", *words)
    weights = tmp_path / "made" / "policies" / "blocks-best-0-1" / "weights.safetensors"
    learned = weights.stat().st_mtime_ns
    assert (row["task"], row["preset"], row["seed"], row["kind"]) == ("blocks", "best", 0, "perturbed")
    assert row["episodes"] == 1 == row["successes"] + sum(row["reasons"].values())
    assert row["settings"]["training"]["epochs"] == 1
    assert benchmark("policy_success", *words) == [row]
    assert weights.stat().st_mtime_ns == learned


def test_a_policy_for_the_package_is_learned_and_says_how_often_it_succeeds(
    tmp_path: Path, benchmark: Benchmark
) -> None:
    tiny = "--tasks blocks --demonstrations 2 --quick --sizes 1 2 --episodes 1 --workers 1"
    words = (*tiny.split(), "--folder", tmp_path / "made")
    (row,) = benchmark("pretrained", *words)
    folder = tmp_path / "made" / "policies" / "blocks"
    measured = read_card(folder).measured
    assert measured is not None
    assert {size: found[1] for size, found in measured.successes.items()} == {1: 1, 2: 1}
    assert sum(found[0] for found in measured.successes.values()) == row["successes"]
    assert measured.command.startswith("bilevel evaluate --policy blocks --objects 1,2 --episodes 1 --seed")
    install(Settings(tmp_path / "made", 2, (1, 2), 1, True), ["blocks"], tmp_path / "package")
    files = {path.name for path in (tmp_path / "package" / "blocks").iterdir()}
    assert files == {"policy.json", "rules.txt", "domain.pddl", "weights.safetensors"}
    assert benchmark("pretrained", *words) == [row]


def test_policies_and_the_expert_are_measured_with_imperfect_perception(tmp_path: Path, benchmark: Benchmark) -> None:
    folder = tmp_path / "made"
    shutil.copytree(blocks_folder(), folder / "policies" / "blocks-best-0")
    words = ("--tasks", "blocks", "--sizes", 1, "--episodes", 1, "--conditions", "missed=0.05", "--workers", 1)
    rows = benchmark("perception_success", *words, "--folder", folder)
    assert [row["method"] for row in rows] == ["policy", "policy without estimation", "expert with estimation"]
    assert {row["perception"] for row in rows} == {"missed=0.05"}
    assert rows[2]["successes"] == 1
    kept = [path for path in (folder / "perception").iterdir() if ".timings" not in path.suffixes]
    assert len(kept) == 3


def test_a_schedule_is_judged_by_all_of_its_networks() -> None:
    line = {"task": "blocks", "demonstrations": 3, "successes": 1, "episodes": 2, "learning": {"validation_loss": 0.5}}
    settings = [{"training": {"epochs": epochs}} for epochs in (1, 2)]
    lines = [{**line, "kind": kind, "settings": learned} for learned in settings for kind in KINDS]
    row = make_row("blocks", 2, [*lines, *lines])
    assert (row["epochs"], row["validation_losses"]) == (2, [0.5, 0.5])
    assert [(found["successes"], found["episodes"]) for found in row["successes"].values()] == [(2, 4)] * 2


def test_learning_is_timed(benchmark: Benchmark, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = {"paper": LearningConfig(training=TrainingConfig(epochs=1))}
    monkeypatch.setattr("bilevel.learning.networks.PRESETS", quick)
    (row,) = benchmark("learning_speed", "--presets", "paper", "--demonstrations", 2, "--workers", 1)
    assert (row["preset"], row["rules"], row["samples"] > 100, "seconds" in row) == ("paper", 2, True, True)


def test_rules_from_demonstrations_are_compared_with_the_golden_ones(benchmark: Benchmark) -> None:
    (row,) = benchmark("learn_from_demonstrations", "--tasks", "blocks", "--episodes", 3, "--workers", 1)
    assert (row["golden_rules"], row["episodes"], row["traces"]) == (True, 3, 3)


def test_a_world_is_measured_beside_metaworld(benchmark: Benchmark, capsys: pytest.CaptureFixture[str]) -> None:
    rows = benchmark("world_speed", "--tasks", "blocks", "factory", "--objects", 1, 11, "--rounds", 1)
    assert [(row["task"], row["objects"]) for row in rows] == [("blocks", 1), ("blocks", 11), ("factory", 1)]
    assert all(row["steps_per_second"] > 0 < row["metaworld_steps_per_second"] for row in rows)
    assert "mujoco" in rows[0]["versions"]
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(rows)


def test_a_step_is_measured_beside_that_of_an_earlier_commit(benchmark: Benchmark) -> None:
    (row,) = benchmark("step_speed", "--tasks", "blocks", "--objects", 1, "--repeats", 1)
    assert (row["task"], row["objects"], row["same_episode"]) == ("blocks", 1, True)
    assert set(row["ratio"]) == {"environment", "labels and choice", "network", "step"}
    assert all(part > 0 for part in row["microseconds"].values())


def test_a_learned_domain_is_compared_with_the_written_one(tmp_path: Path, benchmark: Benchmark) -> None:
    tiny = "--task blocks --demonstrations 5 --epochs 1 --dagger-rounds 0 --objects 3 --episodes 1 --workers 1"
    words = (*tiny.split(), "--folder", tmp_path / "made")
    about, *rows = benchmark("learned_domains", *words)
    found = about["operators"]
    assert {name: (pair["learned"], pair["done"]) for name, pair in found.items() if pair["same"]} == {
        "pick": ("pick", 15),
        "place": ("place", 15),
    }
    assert (found["take"]["done"], found["put-aside"]["done"]) == (0, 0)
    assert about["held_out"] == {"episodes": 1, "changes": 6, "explained": 100, "ambiguous": 0, "contradicted": 0}
    assert "(:action pick" in about["pddl"]
    settings = [(row["domain"], row["setting"], row["episodes"]) for row in rows]
    assert settings == [(domain, "n = 3", 1) for domain in ("learned", "written")]
    assert all(row["successes"] + sum(row["reasons"].values()) == 1 for row in rows)
    weights = tmp_path / "made" / "blocks" / "learned-5" / "weights.safetensors"
    learned = weights.stat().st_mtime_ns
    assert benchmark("learned_domains", *words, "--only", "domains", "learn", "evaluate") == [about, *rows]
    assert weights.stat().st_mtime_ns == learned


def test_domains_are_learned_from_faulty_labels(tmp_path: Path, benchmark: Benchmark) -> None:
    words = ("--robustness", "--task", "swap", "--demonstrations", 6, "--workers", 1, "--folder", tmp_path / "made")
    rows = benchmark("learned_domains", *words)
    assert [row["fault"] for row in rows] == sorted(FAULTS)
    (usual,) = (row for row in rows if row["fault"] == "none")
    assert usual["held_out"]["explained"] == 100
    assert usual["operators"]["pick"]["same"]


def test_learning_rates_are_compared_by_what_was_set_aside(benchmark: Benchmark) -> None:
    size = "--updates", 20, "--demonstrations", 3, "--workers", 1
    rows = benchmark("learning_rates", "--tasks", "blocks", "--methods", "bison", "pddl-nn", "--rates", 0, 0.01, *size)
    losses = {(row["method"], row["learning_rate"]): row["validation_loss"] for row in rows}
    assert len(losses) == 4
    for method in ("bison", "pddl-nn"):
        assert 0 < losses[method, 0.01] < losses[method, 0]
