"""What the tests need from LeRobot itself, run in its environment: a tiny SmolVLA, and LeRobot's own evaluation steps.

`python in_lerobot.py make FOLDER` saves a SmolVLA with random weights, as the published one is saved: its backbone's
text is in bfloat16 by its settings. `python in_lerobot.py steps FOLDER OBSERVATIONS SEED` prints the actions that
LeRobot's evaluation takes on recorded observations.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lerobot.configs.policies import PreTrainedConfig
from lerobot.configs.types import FeatureType, PolicyFeature
from lerobot.envs.utils import preprocess_observation
from lerobot.policies.factory import get_policy_class, make_pre_post_processors

WORDS = ["put", "every", "block", "on", "the", "spot", "of", "its", "own", "colour", ",", "3", "in", "all", ".", "\n"]
SPECIAL = {
    "image_token": "<image>",
    "fake_image_token": "<fake_token_around_image>",
    "global_image_token": "<global-img>",
    "end_of_utterance_token": "<end_of_utterance>",
}


def make_backbone(folder: Path) -> None:
    """Save a vision-language model of the published one's architecture and types of numbers, but tiny."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import (
        AutoModelForImageTextToText,
        PreTrainedTokenizerFast,
        SmolVLMConfig,
        SmolVLMImageProcessor,
        SmolVLMProcessor,
        SmolVLMVideoProcessor,
    )

    vocabulary = {word: number for number, word in enumerate(["<pad>", "<unk>", *SPECIAL.values(), *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace()])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", extra_special_tokens=SPECIAL
    )
    size = {"longest_edge": 64}
    images = SmolVLMImageProcessor(size=size, max_image_size=size, do_image_splitting=False)
    SmolVLMProcessor(images, fast, SmolVLMVideoProcessor(), image_seq_len=4).save_pretrained(folder)
    text = {
        "model_type": "llama", "vocab_size": len(vocabulary), "hidden_size": 64, "intermediate_size": 128,
        "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "pad_token_id": 0,
        "torch_dtype": "bfloat16",
    }  # fmt: skip
    vision = {
        "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 64,
        "patch_size": 16,
    }  # fmt: skip
    config = SmolVLMConfig(text_config=text, vision_config=vision, scale_factor=2, image_token_id=2, pad_token_id=0)
    AutoModelForImageTextToText.from_config(config).to(torch.bfloat16).save_pretrained(folder)


def make(folder: Path) -> None:
    """Save a tiny SmolVLA and its backbone."""
    torch.manual_seed(0)
    make_backbone(folder / "backbone")
    features = {
        "observation.image": PolicyFeature(FeatureType.VISUAL, (3, 64, 64)),
        "observation.state": PolicyFeature(FeatureType.STATE, (6,)),
    }
    kind: Any = PreTrainedConfig.get_choice_class("smolvla")
    config = kind(
        input_features=features,
        output_features={"action": PolicyFeature(FeatureType.ACTION, (4,))},
        vlm_model_name=str(folder / "backbone"),
        load_vlm_weights=True,
        num_vlm_layers=4,
        chunk_size=5,
        n_action_steps=5,
        resize_imgs_with_padding=(64, 64),
        device="cpu",
    )
    policy = get_policy_class("smolvla")(config)
    policy.save_pretrained(folder / "policy")
    spread = {"mean": np.full(4, 0.1), "std": np.full(4, 0.5), "min": -np.ones(4), "max": np.ones(4)}
    numbers = {"mean": np.zeros(6), "std": np.ones(6), "min": -np.ones(6), "max": np.ones(6)}
    statistics: Any = {"action": spread, "observation.state": numbers}
    for processor in make_pre_post_processors(config, dataset_stats=statistics):
        processor.save_pretrained(folder / "policy")


def steps(folder: Path, observations: Path, seed: int) -> list[list[float]]:
    """Return the actions of a policy, loaded and asked as LeRobot's evaluation does."""
    config = PreTrainedConfig.from_pretrained(folder)
    config.device = "cpu"
    policy = get_policy_class(config.type).from_pretrained(folder, config=config).eval()
    before, after = make_pre_post_processors(config, str(folder))
    torch.manual_seed(seed)
    policy.reset()
    seen, actions = np.load(observations), []
    for step in range(len(seen["state"])):
        observation = {"agent_pos": seen["state"][step][None]}
        for name, key in (("pixels", "pixels"), ("places", "environment_state")):
            observation |= {key: seen[name][step][None]} if name in seen else {}
        batch = preprocess_observation(observation)
        camera = next(iter(config.image_features), None)
        if camera and camera != "observation.image":
            batch[camera] = batch.pop("observation.image")
        batch["task"] = [str(seen["sentence"])]
        with torch.inference_mode():
            actions.append(after(policy.select_action(before(batch)))[0].tolist())
    return actions


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]))
    else:
        print(json.dumps(steps(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))))
