"""Numbers on the way reach TensorBoard and Weights & Biases; stand-ins take the place of both, with what we use."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, ClassVar

import pytest

import tiny_task
from bilevel.metrics import open_log
from bilevel.symbolic.domain import BadInput
from command_line import run

TINY = f"{tiny_task.__file__}:TINY"


class Writer:
    """As torch.utils.tensorboard.SummaryWriter."""

    made: ClassVar[list[Writer]] = []

    def __init__(self, log_dir: str) -> None:
        Path(log_dir).mkdir()
        self.scalars: list[tuple[str, float, int]] = []
        self.texts: dict[str, str] = {}
        self.is_open = True
        Writer.made.append(self)

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        self.scalars.append((tag, scalar_value, global_step))

    def add_text(self, tag: str, text_string: str) -> None:
        self.texts[tag] = text_string

    def flush(self) -> None: ...

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.is_open = False


class Run:
    """As wandb.Run: left by an error, it has failed."""

    made: ClassVar[list[Run]] = []

    def __init__(self, project: str, config: dict[str, Any]) -> None:
        if project == "nobody":
            raise WandbError("No API key configured.\nUse `wandb login`.")
        self.project, self.config = project, config
        self.logged: list[tuple[dict[str, float], int]] = []
        self.exit_code: int | None = None
        Run.made.append(self)

    def log(self, data: dict[str, float], step: int) -> None:
        assert not self.logged or step >= self.logged[-1][1]  # else W&B drops it
        self.logged.append((data, step))

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.exit_code = 0 if kind is None else 1


class WandbError(Exception):
    """As wandb.Error."""


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    board: Any = ModuleType("torch.utils.tensorboard")
    board.SummaryWriter = Writer
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", board)
    wandb: Any = ModuleType("wandb")
    wandb.init, wandb.Error = Run, WandbError
    monkeypatch.setitem(sys.modules, "wandb", wandb)


def test_tensorboard_gets_numbers_and_settings(tmp_path: Path) -> None:
    with open_log(f"tensorboard={tmp_path / 'board'}", {"seed": 3}) as log:
        log({"loss": 0.5, "rate": 0.1}, 1)
        log({"loss": 0.25}, 2)
    writer = Writer.made[-1]
    assert writer.scalars == [("loss", 0.5, 1), ("rate", 0.1, 1), ("loss", 0.25, 2)]
    assert (writer.is_open, writer.texts) == (False, {"settings": "    seed: 3"})


def test_weights_and_biases_gets_them_too() -> None:
    with open_log("wandb=blocks", {"seed": 3}) as log:
        log({"loss": 0.5, "rate": 0.1}, 1)
    assert (Run.made[-1].project, Run.made[-1].config) == ("blocks", {"seed": 3})
    assert (Run.made[-1].logged, Run.made[-1].exit_code) == ([({"loss": 0.5, "rate": 0.1}, 1)], 0)
    with pytest.raises(KeyboardInterrupt), open_log("wandb=blocks", {}):
        raise KeyboardInterrupt
    assert Run.made[-1].exit_code == 1


def test_without_a_key_it_is_one_line() -> None:
    with pytest.raises(BadInput) as refused, open_log("wandb=nobody", {}):
        pass
    told = "No API key configured. Use `wandb login`.; WANDB_MODE=offline keeps the run here"
    assert str(refused.value) == f"--log wandb=nobody: {told}"


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="cannot be written"), open_log(f"tensorboard={tmp_path / 'file'}", {}):
        pass


@pytest.mark.parametrize(("log", "package"), [("tensorboard=board", "tensorboard"), ("wandb=blocks", "wandb")])
def test_what_is_not_installed_is_named_before_anything_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, log: str, package: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "torch.utils.tensorboard", raising=False)
    found = run(capsys, "evaluate", TINY, "--method", "expert", "--output", "results.jsonl", "--log", log)
    assert found[:2] == (2, "")
    assert found[2].endswith(f"; install it with: pip install 'bilevel[{package}]'\n")


def test_evaluation_notes_its_success_rate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--method", "expert", "--objects", 1, "--output", tmp_path / "results.jsonl", "--log", "wandb=tiny")
    assert run(capsys, "evaluate", TINY, *options, "--episodes", 2)[0] == 0
    assert Run.made[-1].logged == [({"success rate": 1.0}, 1), ({"success rate": 1.0}, 2)]
    assert run(capsys, "evaluate", TINY, *options, "--episodes", 3)[0] == 0
    assert Run.made[-1].logged == [({"success rate": 1.0}, 3)]
