"""Make a tiny SmolVLA with random weights, to try the adapter without the published ones.

Run by the Python of an environment that has LeRobot; nothing is downloaded:

    python make_tiny_smolvla.py DIR

DIR then holds the policy as LeRobot saves it and, in DIR/backbone, the configuration and the tokenizer of its
vision-language model, trained on a few sentences on the spot.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from lerobot.configs.types import FeatureType, PolicyFeature
from lerobot.policies.smolvla.configuration_smolvla import SmolVLAConfig
from lerobot.policies.smolvla.modeling_smolvla import SmolVLAPolicy
from lerobot.policies.smolvla.processor_smolvla import make_smolvla_pre_post_processors
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, SmolVLMConfig, SmolVLMImageProcessor, SmolVLMProcessor
from transformers.models.smolvlm.video_processing_smolvlm import SmolVLMVideoProcessor

IMAGE = 64  # pixels along each side, after SmolVLA's own resizing
CHUNK = 10  # actions
SENTENCES = ["Put each block on the spot of its own colour.", "Open the box, take the block, close the box again."]
# As the published backbone has them; SmolVLA looks some of them up.
SPECIAL = {
    "image_token": "<image>",
    "fake_image_token": "<fake_token_around_image>",
    "global_image_token": "<global-img>",
    "end_of_utterance_token": "<end_of_utterance>",
}


def make_tokenizer() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<unk>", "<pad>", "<eos>", *SPECIAL.values()],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="<unk>",
        pad_token="<pad>",
        eos_token="<eos>",
        extra_special_tokens=SPECIAL,
    )


def make_backbone(folder: Path) -> None:
    """The configuration of a vision-language model of two small layers, and its tokenizer; no weights."""
    tokenizer = make_tokenizer()
    config = SmolVLMConfig(
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "image_size": IMAGE,
            "patch_size": 16,
        },
        text_config={
            "model_type": "llama",
            "vocab_size": len(tokenizer),
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "head_dim": 32,
            "pad_token_id": tokenizer.pad_token_id,
        },
        image_token_id=tokenizer.convert_tokens_to_ids(SPECIAL["image_token"]),
        scale_factor=2,
    )
    config.save_pretrained(folder)
    SmolVLMProcessor(SmolVLMImageProcessor(), tokenizer, SmolVLMVideoProcessor()).save_pretrained(folder)


def make_policy(folder: Path, action_size: int) -> None:
    config = SmolVLAConfig(
        input_features={
            "observation.state": PolicyFeature(FeatureType.STATE, (4,)),
            "observation.image": PolicyFeature(FeatureType.VISUAL, (3, 480, 480)),
        },
        output_features={"action": PolicyFeature(FeatureType.ACTION, (action_size,))},
        vlm_model_name=str(folder / "backbone"),
        load_vlm_weights=False,
        resize_imgs_with_padding=(IMAGE, IMAGE),
        chunk_size=CHUNK,
        n_action_steps=CHUNK,
        num_vlm_layers=2,
        device="cpu",
    )
    SmolVLAPolicy(config).save_pretrained(folder)
    numbers = {"observation.state": 4, "action": action_size}
    statistics = {key: {"mean": torch.zeros(size), "std": torch.ones(size)} for key, size in numbers.items()}
    for processor in make_smolvla_pre_post_processors(config, statistics):
        processor.save_pretrained(folder)


def main() -> None:
    folder = Path(sys.argv[1]).absolute()
    torch.manual_seed(0)
    make_backbone(folder / "backbone")
    make_policy(folder, action_size=int(sys.argv[2]) if len(sys.argv) > 2 else 4)


if __name__ == "__main__":
    main()
