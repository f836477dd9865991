"""`bilevel vla`: what it says of a machine, and which programs it runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bilevel.methods import smolvla
from command_line import refused, run, run_well

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


def make_quickly() -> Iterator[tuple[str, ...]]:
    yield sys.executable, "-c", MAKE, str(smolvla.environment_folder()), NOTE


def test_what_is_missing_is_said(environment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "vla", "check")
    first, second = out.splitlines()
    assert code == 1
    assert f"{environment}: no virtual environment with lerobot; make it with: bilevel vla set-up" in first
    assert "lerobot/smolvla_base: missing config.json, model.safetensors, " in first
    assert second.startswith("smolvla-metaworld: not run: ")
    assert f"{environment.parent}: missing config" in run(capsys, "vla", "check", "--folder", environment.parent)[1]
    assert refused(capsys, "vla", "fetch", "smolvla").endswith("make it with: bilevel vla set-up")
    known = "unknown model 'openvla'; known models: smolvla, smolvla-metaworld"
    assert refused(capsys, "vla", "fetch", "openvla") == known


def test_the_environment_is_made_and_a_model_fetched_with_its_backbone(
    environment: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smolvla, "setup_commands", lambda: iter([("false",)]))
    assert run(capsys, "vla", "set-up")[::2] == (2, "error: exit code 1 of: false\n")
    monkeypatch.setattr(smolvla, "setup_commands", make_quickly)
    assert run_well(capsys, "vla", "set-up").endswith(f"lerobot 0.4.4 is in {environment}\n")
    (environment / "bin" / "hf").write_text(HF)
    (environment / "bin" / "hf").chmod(0o755)
    run_well(capsys, "vla", "fetch", "smolvla-metaworld")
    policy, backbone = (environment / "bin" / "asked").read_text().splitlines()
    assert policy == "download jadechoghari/smolvla_metaworld"
    assert backbone.startswith("download HuggingFaceTB/SmolVLM2-500M-Video-Instruct config.json ")
