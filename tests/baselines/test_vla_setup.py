"""The virtual environment of LeRobot: where it is, what is wrong with it, and what makes it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from model_folders import make_environment

from bilevel.baselines.vla_files import environment_folder, require_environment, run_all, setup_commands
from bilevel.symbolic.domain import BadInput


def test_the_folder_is_the_one_given_or_named_or_in_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BILEVEL_VLA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert environment_folder() == Path.home() / ".cache/bilevel/smolvla"
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert environment_folder() == Path("/cache/bilevel/smolvla")
    monkeypatch.setenv("BILEVEL_VLA", "/named")
    assert environment_folder() == Path("/named")
    assert environment_folder(Path("/given")) == Path("/given")


@pytest.mark.parametrize("version", ["0.4.0", "0.4.4", "0.4.10"])
def test_an_environment_that_will_do(tmp_path: Path, version: str) -> None:
    folder = make_environment(tmp_path / "there", version)
    assert require_environment(folder) == folder / "bin" / "python"


@pytest.mark.parametrize(
    ("lerobot", "complaint"),
    [
        ("none at all", "no such virtual environment for SmolVLA"),
        (None, "a virtual environment without lerobot"),
        ("0.3.3", "has lerobot 0.3.3, but 0.4 is supported"),
        ("0.40.0", "has lerobot 0.40.0, but 0.4 is supported"),
        ("0.5.1", "has lerobot 0.5.1, but 0.4 is supported"),
    ],
)
def test_one_that_will_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lerobot: str | None, complaint: str
) -> None:
    monkeypatch.delenv("BILEVEL_VLA", raising=False)
    folder = tmp_path / "environment"
    if lerobot != "none at all":
        make_environment(folder, lerobot)
    with pytest.raises(BadInput) as error:
        require_environment(folder)
    assert str(error.value) == f"{folder}: {complaint}; make it with: bilevel vla set-up --environment {folder}"


def test_the_commands_that_make_it() -> None:
    venv, upgrade, lerobot = setup_commands(Path("/there"), torch_index=None)
    assert venv == (sys.executable, "-m", "venv", "/there")
    assert upgrade[:4] == ("/there/bin/python", "-m", "pip", "install")
    assert lerobot[-1] == "lerobot[smolvla]>=0.4,<0.5"
    *_, torch, _ = setup_commands(Path("/there"), torch_index="file:///an/index")
    assert "file:///an/index" in torch
    assert torch[-2:] == ("torch>=2.2.1,<2.11", "torchvision>=0.21,<0.26")


def test_commands_run_until_one_fails(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    files = [str(tmp_path / name) for name in ("first", "second")]
    with pytest.raises(BadInput, match="exit code 1 of: false"):
        run_all(iter([("touch", files[0]), ("false",), ("touch", files[1])]))
    assert [Path(file).exists() for file in files] == [True, False]
    assert capfd.readouterr().out == f"$ touch {files[0]}\n$ false\n"
    with pytest.raises(BadInput, match="/nowhere/hf: cannot be run: No such file"):
        run_all(iter([("/nowhere/hf", "download")]))


def test_a_download_is_allowed_to_download(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    run_all(iter([(sys.executable, "-c", "import os; assert 'HF_HUB_OFFLINE' not in os.environ")]))
