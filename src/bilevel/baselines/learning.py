"""Learning an end-to-end policy from demonstrations, as bilevel ones are learned, but for what is imitated.

A demonstration shows the controls of an expert that both decides and acts. In DAgger, too, the teacher decides by
itself what to do: it sees what the learner sees, and says what it would do next. As for a bilevel learner, some
episodes begin with random actions, which the expert carries out, so that a rival sees as much as BISON does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from bilevel.baselines.end_to_end import END_TO_END, EndToEndPolicy, LearnedEndToEnd
from bilevel.baselines.graph_encoding import ENCODINGS, GraphEncoding, GraphSamples, encode_graphs
from bilevel.baselines.graph_network import EndToEndNetwork
from bilevel.baselines.sizes import matching_hidden
from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.traces import label
from bilevel.learning.asking import random_action
from bilevel.learning.dagger import Apprentice
from bilevel.learning.learn import make_card, practice_for, require_actions, with_task, write_curve
from bilevel.learning.networks import Callback, LearningOptions, Progress, silent, train_network
from bilevel.learning.rule_gaps import RuleGaps
from bilevel.lowlevel.encoding import Situation, encoding_of
from bilevel.lowlevel.numpy_network import Weights
from bilevel.lowlevel.training import Trained
from bilevel.policies.policy import ControllingExpert, LabellingPolicy, expert_policy
from bilevel.policies.policy_folder import NetworkShape
from bilevel.symbolic.domain import Action, Domain
from bilevel.tasks.controls import Control, Controls
from bilevel.tasks.scene import Array, Scene
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Task


class LedAtFirst(LabellingPolicy):
    """A network, and an expert that carries out a few random actions before it, if that is wanted."""

    def __init__(self, network: EndToEndPolicy, expert: ControllingExpert, domain: Domain) -> None:
        super().__init__(network.labels)
        self._network, self._expert, self._domain = network, expert, domain
        self._random_actions, self._rng = 0, np.random.default_rng(0)

    def scramble(self, actions: int, rng: np.random.Generator) -> None:
        """Begin the next episode with so many random actions."""
        self._random_actions, self._rng = actions, rng

    def reset(self, scene: Scene) -> None:
        super().reset(scene)
        self.action = self._draw(scene)

    def act(self, scene: Scene) -> Control:
        """Return the expert's control for a random action while some are due, then the network's."""
        before = self.state, self.goal
        super().reset(scene)
        if self.action is not None and (self.state, self.goal) != before:
            self.action = self._draw(scene)
        if self.action is None:
            return self._network.act(scene)
        return self._expert.control(scene, self.state, self.goal, self.action)

    def _draw(self, scene: Scene) -> Action | None:
        """Return the next random action, as long as some are due."""
        if self._random_actions == 0:
            return None
        self._random_actions -= 1
        return random_action(self._domain, self.state, scene.objects, self._rng)


@dataclass(frozen=True)
class EndToEndLearner:
    """A network that does all; the teacher is the whole expert."""

    encoding: GraphEncoding
    controls: Controls
    weights: Weights
    rounds: int
    seed: int

    def begin(self, env: SceneEnv) -> Apprentice:
        """Return the policy as it is now, beside an expert that answers."""
        network = EndToEndPolicy(self.encoding, self.controls, self.weights, self.rounds, env.labels)
        expert, teacher = env.expert, expert_policy(env).act
        if expert is None or expert.control is None or env.task.domain.adl:
            return Apprentice(network, teacher)
        policy = LedAtFirst(network, ControllingExpert(expert.control), env.task.domain)
        return Apprentice(policy, teacher, policy.scramble)

    def encode(
        self, scenes: Sequence[Scene], situations: Sequence[Situation], targets: Array, number: int
    ) -> GraphSamples:
        """Return an episode as samples."""
        return encode_graphs(self.encoding, scenes, situations, targets, number)


def study_graphs(
    demonstrations: Demonstrations, encoding: GraphEncoding, task: Task | None, callback: Callback = silent
) -> GraphSamples:
    """Label every demonstration: all of its steps are samples."""
    parts = []
    for number, demonstration in enumerate(demonstrations):
        scenes = demonstration.scenes(demonstrations.spec)
        labels = zip(*label(demonstration, task, scenes), strict=True)
        situations = [(state, goal, None) for state, goal in labels]
        targets = demonstration.targets(demonstrations.controls)
        parts.append(encode_graphs(encoding, scenes[:-1], situations[:-1], targets, number))
        callback(Progress("labelling", number + 1, len(demonstrations)))
    return GraphSamples.concatenate(parts)


def learn_end_to_end(
    demonstrations: Demonstrations, output: Path, method: str, options: LearningOptions
) -> LearnedEndToEnd:
    """Learn a policy by one of the methods in `ENCODINGS` and write its folder; otherwise as `learn` does."""
    config = options.settings
    require_actions(demonstrations)
    options = with_task(options, demonstrations)
    encoding, controls = ENCODINGS[method](demonstrations.domain, demonstrations.spec), demonstrations.controls

    def learner(trained: Trained, gaps: RuleGaps) -> EndToEndLearner:
        return EndToEndLearner(encoding, controls, trained.weights, config.rounds, options.seed)

    samples = study_graphs(demonstrations, encoding, options.task, options.callback)
    like = encoding_of(demonstrations.domain, demonstrations.spec)
    hidden = config.end_to_end_hidden or matching_hidden(encoding, like, controls, config.hidden, config.rounds)
    make_network = partial(EndToEndNetwork, encoding, controls, hidden, config.rounds)
    practice = practice_for(demonstrations, options, is_bilevel=False)
    learned = train_network(samples, make_network, learner, practice, options)
    shape = NetworkShape(END_TO_END, hidden, config.rounds)
    card = make_card(demonstrations, options, learned, method, encoding.symbols, shape, {})
    policy = LearnedEndToEnd(card, demonstrations.domain, learned.trained.weights)
    write_curve(output, learned)
    policy.write(output)
    return policy
