"""`bilevel vla`: what it says of a machine, and which programs it runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bilevel.methods import smolvla
from command_line import run

HF = """#!/bin/sh
echo "$@" >> "$(dirname "$0")/asked"
"""
NOTE = "lib/python3.11/site-packages/lerobot-0.4.4.dist-info/METADATA"
MAKE = """
import sys, pathlib
for name, text in (("bin/python", ""), (sys.argv[2], "Name: lerobot\\nVersion: 0.4.4\\n")):
    file = pathlib.Path(sys.argv[1]) / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
"""


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the environment would be on a machine that has nothing of what is needed."""
    monkeypatch.setenv("BILEVEL_VLA", str(tmp_path / "environment"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "environment"


def make_quickly(folder: Path, torch_index: str | None) -> Iterator[tuple[str, ...]]:
    yield sys.executable, "-c", MAKE, str(folder), NOTE


def test_check_says_what_is_missing(environment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "vla", "check")
    assert code == 1
    first, second = out.splitlines()
    assert f"{environment}: no virtual environment with lerobot; make it with: bilevel vla set-up" in first
    assert "lerobot/smolvla_base: missing config.json, model.safetensors, " in first
    assert second.startswith("smolvla-metaworld: not run: ")
    assert "jadechoghari/smolvla_metaworld: missing config.json, model.safetensors, " in second


def test_check_as_json(environment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "vla", "check", "--json", "--folder", environment.parent)
    found = json.loads(out)
    assert code == 1
    assert found["environment"] == str(environment)
    assert f"{environment.parent}: missing config.json" in found["smolvla"]


def test_set_up_makes_the_environment(
    environment: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smolvla, "setup_commands", make_quickly)
    code, out, _ = run(capsys, "vla", "set-up")
    assert code == 0
    assert out.endswith(f"lerobot 0.4.4 is in {environment}\n")
    elsewhere = environment.with_name("elsewhere")
    _, out, _ = run(capsys, "vla", "set-up", "--environment", elsewhere, "--torch-index", "here")
    assert out.endswith(f"lerobot 0.4.4 is in {elsewhere}\nset BILEVEL_VLA={elsewhere} to use it\n")


def test_set_up_that_fails(
    environment: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smolvla, "setup_commands", lambda folder, torch_index: iter([("false",)]))
    assert run(capsys, "vla", "set-up")[::2] == (2, "error: exit code 1 of: false\n")
    monkeypatch.setattr(smolvla, "setup_commands", lambda folder, torch_index: iter([("true",)]))
    code, _, err = run(capsys, "vla", "set-up")
    assert (code, err.startswith(f"error: {environment}: no virtual environment")) == (2, True)


def test_fetch_asks_for_a_model_and_its_backbone(
    environment: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smolvla, "setup_commands", make_quickly)
    run(capsys, "vla", "set-up")
    (environment / "bin" / "hf").write_text(HF)
    (environment / "bin" / "hf").chmod(0o755)
    assert run(capsys, "vla", "fetch", "smolvla-metaworld")[0] == 0
    policy, backbone = (environment / "bin" / "asked").read_text().splitlines()
    assert policy == "download jadechoghari/smolvla_metaworld"
    assert backbone.startswith("download HuggingFaceTB/SmolVLM2-500M-Video-Instruct config.json ")


def test_fetch_refuses_what_it_does_not_know_or_cannot_run(
    environment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "vla", "fetch", "openvla")
    assert (code, err) == (2, "error: unknown model 'openvla'; known models: smolvla, smolvla-metaworld\n")
    code, _, err = run(capsys, "vla", "fetch", "smolvla")
    assert (code, err.endswith("make it with: bilevel vla set-up\n")) == (2, True)
