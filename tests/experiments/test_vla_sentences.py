"""What SmolVLA is told in the paper's tasks, and what it sees there."""

from __future__ import annotations

import numpy as np
import pytest

from bilevel.baselines.vla import VlaSettings
from bilevel.experiments.methods import make_vla
from bilevel.experiments.paper import SENTENCES, sentence
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import TASKS, opengl
from bilevel.tasks.scene_env import SceneEnv


def test_every_task_has_a_sentence_that_smolvla_reads_to_its_end() -> None:
    for name in SENTENCES:
        assert name in TASKS
        assert "10" in sentence(name, 10)
        assert len(sentence(name, 10).split()) <= 38  # of its 48 tokens; nearly every word is one
    assert len(set(SENTENCES.values())) == len(SENTENCES) == 8
    with pytest.raises(BadInput, match="no sentence for the task 'chess'"):
        sentence("chess", 1)


def test_a_world_is_looked_at_from_where_the_model_was_trained() -> None:
    if not any(map(opengl.works, opengl.BACKENDS)):
        pytest.skip("no pictures can be drawn here")
    usual, ours = (SceneEnv(TASKS["blocks"], 1, render_mode="rgb_array") for _ in range(2))
    policy = make_vla(VlaSettings("python", "model", "backbone"), ours)
    assert policy.instruction == "Put every block on the spot of its own colour, 1 in all."
    for env in (usual, ours):
        env.reset(seed=1)
    assert not np.array_equal(usual.render(), ours.render())
    usual.close()
    ours.close()
