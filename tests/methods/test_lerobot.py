"""Policies of LeRobot, with a process that answers and has no model: what goes over, what comes back, what lacks."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import bilevel
from bilevel.experiments.rows import PAPER_TASKS as PAPERS_TASKS
from bilevel.experiments.rows import find_rows
from bilevel.methods import lerobot
from bilevel.methods.lerobot import (
    PUBLISHED,
    Config,
    LeRobotModel,
    LeRobotPolicy,
    ModelServer,
    PolicyFeature,
    find_model,
)
from bilevel.policies.episode import Episode
from bilevel.policies.rollout import rollout
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import TASKS
from bilevel.tasks.layout import StateLayout
from bilevel.tasks.scene_env import SceneEnv
from drawn_task import DRAWN
from tiny_task import TINY_DISCRETE

FAKE = Path(__file__).with_name("fake_lerobot_server.py")
INSTRUCTION = "Deliver {n} parcels."
TOLD = replace(DRAWN, instruction=INSTRUCTION)
STEPS = 12
PICTURE, STATE = PolicyFeature("VISUAL", (3, 64, 96)), PolicyFeature("STATE", (6,))
ACTIONS = {size: {"action": PolicyFeature("ACTION", (size,))} for size in (2, 3, 6)}
INPUTS = {"observation.images.corner": PICTURE, "observation.state": STATE}
LOOKS = Config("smolvla", INPUTS, ACTIONS[3], "some/backbone", n_action_steps=5)


@pytest.fixture(autouse=True)
def no_server_is_left() -> Iterator[None]:
    yield
    for server in lerobot._LOADED.values():
        server.close()
    lerobot._LOADED.clear()


@pytest.fixture
def env() -> SceneEnv:
    return SceneEnv(TOLD, 1, render_mode="rgb_array")


def model(folder: Path, behaviour: str = "well", **others: Any) -> LeRobotModel:
    settings: dict[str, Any] = {"config": LOOKS, "server": str(FAKE), **others}
    return LeRobotModel(sys.executable, str(folder / behaviour), **settings)


def run(env: SceneEnv, policy: LeRobotPolicy, seed: int = 3) -> Episode:
    steps = iter(range(STEPS - 1))
    return rollout(env, policy, seed, stop=lambda: next(steps, None) is None)


def asked(folder: Path) -> list[dict[str, Any]]:
    """Return what the model was asked to do."""
    lines = map(json.loads, (folder / "well.log").read_text().splitlines())
    return [line for line in lines if "sentence" in line]


def test_what_goes_over(env: SceneEnv, tmp_path: Path) -> None:
    actor = LeRobotPolicy(model(tmp_path), env)
    assert run(env, actor).steps == STEPS
    acts, scene = asked(tmp_path), env.reset(3)
    assert {(act["device"], act["sentence"]) for act in acts} == {("cpu", "Deliver 1 parcels.")}
    assert acts[0]["observation.state"] == [*scene.values.tolist(), 0, 0, 0] != acts[1]["observation.state"]
    assert (actor.goal, actor.action) == (env.labels.goal(scene), None)
    size = [100, 160]  # of a picture, when it is wanted
    assert [act.get("size") for act in acts] == ([size] + [None] * 4) * 2 + [size, None]
    assert {act["bytes"] for act in acts if "size" in act} == {3 * 100 * 160}


def test_a_state_is_told_by_the_names_of_its_numbers(tmp_path: Path) -> None:
    env, layout = SceneEnv(DRAWN, 1), StateLayout(DRAWN.spec, {"parcel": 2, "spot": 2})
    inputs = {"observation.state": STATE, "observation.environment_state": PolicyFeature("ENV", (4,))}
    told = model(tmp_path, config=Config("act", inputs, ACTIONS[3]), names=layout.names)
    run(env, LeRobotPolicy(told, env))
    first = asked(tmp_path)[0]
    assert first["observation.state"] == layout.encode(env.reset(3))[0].tolist()
    assert first["observation.environment_state"] == [1, 0, 1, 0]
    assert "size" not in first
    for names, complaint in (
        (StateLayout(DRAWN.spec, {"parcel": 1}).names, "there are places for 0 objects of the type 'spot', but 1 are"),
        (["motor"], "the numbers of the state are not those of the task: motor"),
    ):
        with pytest.raises(BadInput, match=complaint):
            run(env, LeRobotPolicy(told._replace(names=names), env))


def test_pictures_are_drawn_as_the_model_knows_them(tmp_path: Path) -> None:
    size = {"render_mode": "rgb_array", "picture_size": (96, 64)}
    for name, camera in (("images.corner", "corner"), ("images.front", "front"), ("image", "corner")):
        config = Config("act", {f"observation.{name}": PICTURE}, ACTIONS[3])
        assert model(tmp_path, config=config).pictures == {**size, "camera": camera}
    published = model(tmp_path, is_published=True).pictures
    with closing(SceneEnv(TASKS["blocks"], 1, **published)) as env:
        env.reset(0)
        assert env.render().shape == (64, 96, 3)
    assert model(tmp_path, config=Config("act", {}, ACTIONS[3])).pictures == {}


def test_what_cannot_go_together_is_told(tmp_path: Path) -> None:
    blind = SceneEnv(TOLD, 1)
    with pytest.raises(BadInput, match="the environment of 'drawn' gives no pictures"):
        run(blind, LeRobotPolicy(model(tmp_path), blind))
    with pytest.raises(BadInput, match="the controls of the task 'tiny-discrete' are a choice"):
        LeRobotPolicy(model(tmp_path), SceneEnv(TINY_DISCRETE, 1))
    with pytest.raises(BadInput, match="the task 'drawn' has no `instruction`"):
        LeRobotPolicy(model(tmp_path), SceneEnv(DRAWN, 1))
    for size, is_published in ((6, False), (2, True)):
        config = Config("smolvla", INPUTS, ACTIONS[size])
        with pytest.raises(BadInput, match=f"its actions are {size} numbers, but a control of the task 'drawn' is 3"):
            LeRobotPolicy(model(tmp_path, config=config, is_published=is_published), blind)


@pytest.mark.parametrize(
    ("behaviour", "complaint"),
    [
        ("not finite", "the model's action is not finite"),
        ("refuses", "the model cannot be run: no GPU: there is none"),
        ("dies", "the process that runs the model ended: exit code 1"),
    ],
)
def test_what_cannot_be_run_is_told(env: SceneEnv, tmp_path: Path, behaviour: str, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        run(env, LeRobotPolicy(model(tmp_path, behaviour), env))


@pytest.mark.parametrize(("behaviour", "size"), [("well", 3), ("six numbers", 6)])
def test_controls_are_within_bounds_and_longer_actions_of_published_models_are_cut(
    env: SceneEnv, tmp_path: Path, behaviour: str, size: int
) -> None:
    config = Config("smolvla", INPUTS, ACTIONS[size])
    actor = LeRobotPolicy(model(tmp_path, behaviour, config=config, is_published=True), env)
    actor.reset(env.reset(3))
    assert actor.act(env.scene).tolist() == pytest.approx([0.1, -0.05, 0.7])


OWNER = """
import sys, time
from bilevel.methods.lerobot import Config, LeRobotModel, ModelServer
server = ModelServer(LeRobotModel(sys.executable, sys.argv[2], Config("act", {}, {}), server=sys.argv[1]))
print(server._process.pid, flush=True)
time.sleep(600)
"""


def test_the_process_of_a_model_does_not_survive_us(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(FAKE), str(tmp_path / "well")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        owner.kill()
    end = time.monotonic() + 20
    while (runs := Path(f"/proc/{pid}").exists()) and time.monotonic() < end:
        time.sleep(0.01)
    assert not runs


def test_the_real_server_runs_without_any_package_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What PYTHONPATH names is not seen by LeRobot's Python."""
    package = tmp_path / "packages" / "torch.py"
    package.parent.mkdir()
    package.write_text("raise SystemExit('this is not the torch of that environment')\n")
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # without any installed package
    python.chmod(0o755)
    with pytest.raises(BadInput, match="the model cannot be run: ModuleNotFoundError: No module named 'torch'"):
        ModelServer(LeRobotModel(str(python), "any", LOOKS)).ask({"seed": 0})


# Which models can be run


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One without an environment for LeRobot."""
    monkeypatch.setenv("BILEVEL_LEROBOT", str(tmp_path / "environment"))
    return tmp_path


def install(folder: Path, **versions: str) -> None:
    """Make what looks like a virtual environment, in which nothing can be run."""
    for name, version in versions.items():
        note = folder / f"lib/python3.11/site-packages/{name}-{version}.dist-info/METADATA"
        note.parent.mkdir(parents=True)
        note.write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n")


def save(folder: Path, **config: Any) -> None:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"input_features": {}, "output_features": {}, **config}))


def test_what_is_missing_is_said_with_what_to_do(machine: Path) -> None:
    with pytest.raises(BadInput, match=r"environment: no LeRobot, not 0\.4\.4; .*: bilevel lerobot install"):
        find_model("smolvla")
    install(machine / "environment", lerobot="0.4.4", torch="2.13.0+cpu", transformers="4.57.6")
    for method in PUBLISHED:
        with pytest.raises(BadInput, match=rf"model\.safetensors is missing; .* bilevel lerobot fetch {method}"):
            find_model(method)
    with pytest.raises(BadInput, match=r"model\.safetensors is missing; LeRobot's save_pretrained writes it"):
        find_model("lerobot", machine)


@pytest.mark.parametrize("method", ["lerobot", "smolvla-metaworld"])
def test_a_row_notes_what_ran_it(machine: Path, method: str) -> None:
    install(machine / "environment", lerobot="0.4.4", torch="2.13.0+cpu", transformers="4.57.6")
    folder = machine / "environment" / "models" / method
    save(folder, type="smolvla", vlm_model_name="some/backbone")
    (folder / "model.safetensors").write_bytes(b"weights")
    is_published = method in PUBLISHED
    found = find_model(method, None if is_published else folder)
    assert (found.folder, found.is_published) == (str(folder), is_published)
    assert found.settings == {
        "type": "smolvla", "device": "cpu", "lerobot": "0.4.4", "torch": "2.13.0+cpu", "transformers": "4.57.6",
    }  # fmt: skip
    assert len(found.digest) == 64


def test_the_names_of_a_state_are_those_of_the_data_set_that_was_trained_on(machine: Path) -> None:
    install(machine / "environment", lerobot="0.4.4", torch="2.13.0+cpu", transformers="4.57.6")
    policy, data = machine / "policy", machine / "data"
    save(policy, type="act", input_features={"observation.environment_state": {"type": "ENV", "shape": [4]}})
    (policy / "model.safetensors").write_bytes(b"weights")
    with pytest.raises(BadInput, match=r"no names of its numbers: put info\.json of its training data beside it"):
        find_model("lerobot", policy)
    (data / "meta").mkdir(parents=True)
    for folder, names in ((data / "meta", ["agent.x"]), (policy, ["agent.y"])):  # a copy beside the policy comes first
        (folder / "info.json").write_text(json.dumps({"features": {"observation.state": {"names": names}}}))
        (policy / "train_config.json").write_text(json.dumps({"dataset": {"root": str(data)}}))
        assert find_model("lerobot", policy).names == names


def test_a_method_for_any_policy_needs_one() -> None:
    with pytest.raises(BadInput, match="the method 'lerobot' needs a --policy; a folder that LeRobot saved"):
        bilevel.evaluate(task="blocks", method="lerobot", objects=[1], episodes=1)


def test_every_task_of_the_paper_has_an_instruction_that_smolvla_reads_to_its_end() -> None:
    instructions = [TASKS[name].instruction.format(n=10) for name in PAPERS_TASKS]
    assert len(set(instructions)) == len(PAPERS_TASKS)
    assert all("10" in words and len(words.split()) <= 38 for words in instructions)  # of its 48 tokens


def test_the_environment_is_made_and_a_model_fetched_with_its_backbone(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a Python that only notes what it is asked, but for what it reads."""
    asked, environment = machine / "asked", machine / "environment"
    folder = environment / "models" / "smolvla"
    save(folder, type="smolvla", vlm_model_name="some/backbone")
    python = machine / "python"
    python.write_text(
        f'#!/bin/sh\ncase "$2" in *json*) exec {sys.executable} "$@";; esac\necho "$@" >> {asked}\n'
        'if [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; cp "$0" "$3/bin/hf"; fi\n'
    )
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(BadInput, match=r"smolvla: .* make the environment with"):  # for nothing was really installed
        find_rows(["smolvla"], [])
    lines = asked.read_text().splitlines()
    assert lines[0] == f"-m venv {environment}"
    assert "-m pip install --disable-pip-version-check --quiet torch==2.13.0" in lines
    assert "-m pip install --disable-pip-version-check --quiet --no-deps torchvision==0.28.0 lerobot==0.4.4" in lines
    assert lines[-3:] == [
        f"download lerobot/smolvla_base config.json --revision main --local-dir {folder}",
        "download some/backbone --exclude onnx/*",
        f"download lerobot/smolvla_base --revision main --local-dir {folder}",
    ]
    (environment / "bin" / "hf").write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(BadInput, match=r"exit code 3 of: sh .*lerobot_install\.sh .* lerobot/smolvla_base main"):
        lerobot.install("smolvla")
    with pytest.raises(BadInput, match="unknown model 'openvla'; known models: smolvla, smolvla-metaworld"):
        lerobot.install("openvla")
