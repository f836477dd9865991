"""Numbers on the way reach TensorBoard and Weights & Biases; a stand-in takes the place of the latter."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import tiny_task
from bilevel.progress import open_log
from command_line import refused, run_well

EVALUATE = ("evaluate", f"{tiny_task.__file__}:TINY", "--method", "expert", "--objects", 1, "--output", "results.jsonl")


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """What was logged by a module that has of wandb what is used."""
    monkeypatch.chdir(tmp_path)
    found: list[Any] = []

    class Run(SimpleNamespace):
        def log(self, data: dict[str, float], step: int) -> None:
            self.logged.append((data, step))

        def __enter__(self) -> Run:
            return self

        def __exit__(self, kind: object, *_: object) -> None:
            self.exit_code = 0 if kind is None else 1

    wandb: Any = ModuleType("wandb")
    wandb.Error = type("Error", (Exception,), {})

    def init(project: str, config: dict[str, Any]) -> Run:
        if project == "nobody":
            raise wandb.Error("No API key configured.\nUse `wandb login`.")
        found.append(Run(project=project, config=config, logged=[]))
        return found[-1]  # type: ignore[no-any-return]

    wandb.init = init
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    return found


def test_an_evaluation_notes_its_success_rate(runs: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    run_well(capsys, *EVALUATE, "--log", "wandb=tiny", "--episodes", 2)
    run_well(capsys, *EVALUATE, "--log", "wandb=tiny", "--episodes", 3)
    assert [run.logged for run in runs] == [
        [({"success rate": 1.0}, 1), ({"success rate": 1.0}, 2)],
        [({"success rate": 1.0}, 3)],
    ]
    assert runs[0].project == "tiny"
    with pytest.raises(KeyboardInterrupt), open_log("wandb=blocks", {"seed": 3}):
        raise KeyboardInterrupt
    assert (runs[-1].config, runs[-1].exit_code) == ({"seed": 3}, 1)


def test_tensorboard_gets_numbers(runs: list[Any]) -> None:
    with open_log("tensorboard=board", {"seed": 3}) as log:
        log({"loss": 0.5, "rate": 0.1}, 1)
    assert list(Path("board").glob("events.*"))


def test_what_cannot_be_logged_is_one_line_before_anything_is_done(
    runs: list[Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refused(capsys, *EVALUATE, "--log", "foo=bar").startswith("--log takes tensorboard=DIR or wandb=PROJECT")
    told = "--log wandb=nobody: No API key configured. Use `wandb login`.; WANDB_MODE=offline keeps the run here"
    assert refused(capsys, *EVALUATE, "--log", "wandb=nobody") == told
    Path("file").touch()
    assert "file: cannot be written" in refused(capsys, *EVALUATE, "--log", "tensorboard=file")
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert refused(capsys, *EVALUATE, "--log", "wandb=blocks").endswith("pip install 'bilevel[wandb]'")
    assert not list(Path().glob("results*"))
