"""What a vision-language-action model is told to do in the paper's tasks: a sentence for each.

SmolVLA reads the first 48 tokens and drops the rest, so the sentences are short.
"""

from __future__ import annotations

from collections.abc import Mapping

from bilevel.baselines.vla import VlaPolicy, VlaSettings
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.scene_env import SceneEnv

CAMERA = "corner"  # about where LeRobot's MetaWorld has it, which the fine-tuned model was trained with

BLOCKS = "Put every block on the spot of its own colour, {n} in all."
FACTORY = f"{BLOCKS} As a block gets there, a new block and its spot appear."
COLOUR = (
    "Put the {n} brown blocks on the pink platform one by one, press the button to colour each, "
    "and take it to the tray of its colour."
)
GACHA = (
    "Put blocks of {n} target colours on their trays. "
    "While the box is closed, its button makes a block of a random colour inside."
)
JUMPS = "Blocks that are in place may jump elsewhere."

SENTENCES: Mapping[str, str] = {
    "blocks": BLOCKS,
    "blocks-noisy": f"{BLOCKS} {JUMPS}",
    "factory": FACTORY,
    "factory-noisy": f"{FACTORY} {JUMPS}",
    "colour": COLOUR,
    "colour-noisy": f"{COLOUR} {JUMPS}",
    "gacha": GACHA,
    "gacha-noisy": f"{GACHA} Blocks on trays may return to the box.",
}


def sentence(task: str, objects: int) -> str:
    """What to do in a task with so many blocks or, in Gacha, target colours."""
    if task not in SENTENCES:
        raise BadInput(f"there is no sentence for the task '{task}'; there are some for: {', '.join(SENTENCES)}")
    return SENTENCES[task].format(n=objects)


def make_policy(settings: VlaSettings, env: SceneEnv) -> VlaPolicy:
    """The policy of a model for a task of the paper."""
    instruction = sentence(env.task.name, env.objects)
    env.env.camera = CAMERA
    return VlaPolicy(settings, env, instruction)
