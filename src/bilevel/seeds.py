"""Which seed an episode gets. Seeds for training are even, those for evaluation odd, so no episode is ever both."""

from __future__ import annotations

import numpy as np

_DAGGER, _EVALUATION = 1, 2  # the ends of keys that are no demonstration's

# The random streams of an episode: default_rng([seed, stream]); the environment's own is seeded by the seed alone.
CONTROL_NOISE, RANDOM_ACTIONS, PERCEPTION = 1, 2, 3

# A stream of learning: default_rng([seed, epoch, pass, IMAGES]) draws images of samples.
IMAGES = 3


def training_seed(base: int, episode: int, attempt: int = 0) -> int:
    """The seed of a demonstration; a failed one is tried again with another."""
    return 2 * _draw(base, episode, attempt)


def dagger_seed(base: int, round_: int, episode: int) -> int:
    """The seed of a DAgger rollout; also one for training, but none of a demonstration."""
    return 2 * _draw(base, round_, episode, _DAGGER)


def evaluation_seed(base: int, objects: int, episode: int) -> int:
    """The seed of an episode of an evaluation: odd, so none that a policy was trained on.

    It depends on the number of objects too: with one seed for all, the first object would stand in the same place in
    each, as worlds place their objects one after another, and episodes of different sizes would not be independent.
    """
    return 2 * _draw(base, objects, episode, _EVALUATION) + 1


def _draw(base: int, *key: int) -> int:
    """A number of 62 bits that depends on the base and the whole key."""
    return int(np.random.SeedSequence(base, spawn_key=key).generate_state(1, np.uint64)[0] >> np.uint64(2))
