"""Seeds for training, for DAgger and for evaluation never meet, and each depends on its whole key."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bilevel.seeds import dagger_seed, evaluation_seed, training_seed

NUMBERS = st.integers(0, 2**40)


SMALL = st.integers(0, 2**20)  # one word of 32 bits, as all rounds, episodes and attempts there will ever be


@given(NUMBERS, st.lists(st.tuples(SMALL, SMALL), unique=True), st.lists(SMALL, unique=True))
def test_no_episode_is_for_dagger_and_a_demonstration(
    base: int, pairs: list[tuple[int, int]], episodes: list[int]
) -> None:
    """Even where the rounds and episodes of the one are the episodes and attempts of the other."""
    rollouts = {dagger_seed(base, *pair) for pair in pairs}
    demonstrations = {training_seed(base, *pair) for pair in pairs}
    assert len(rollouts) == len(demonstrations) == len(pairs)
    assert not rollouts & demonstrations
    assert not rollouts & {training_seed(base, episode) for episode in episodes}
    assert not (rollouts | demonstrations) & {evaluation_seed(base, *pair) for pair in pairs}


@given(NUMBERS, NUMBERS)
def test_seeds_are_numbers_that_any_generator_takes(base: int, episode: int) -> None:
    assert 0 <= training_seed(base, episode) < 2**63
    assert 0 <= evaluation_seed(base, 3, episode) < 2**63
    assert 0 <= dagger_seed(base, 1, episode) < 2**63


def test_seeds_stay_the_same_for_ever() -> None:
    """Data sets are made from them: a change would make other episodes under the same name."""
    assert (training_seed(0, 0), training_seed(1, 2, 3), evaluation_seed(0, 3, 0), dagger_seed(0, 1, 2)) == (
        1317536309490288386,
        5464283449182725444,
        3369648461796229021,
        8465106434810208200,
    )
