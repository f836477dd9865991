"""Seeds for training, for DAgger and for evaluation never meet, and each depends on its whole key."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bilevel.seeds import dagger_seed, evaluation_seed, training_seed

NUMBERS = st.integers(0, 2**40)


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_no_episode_is_for_training_and_for_evaluation(base: int, episode: int, attempt: int, other: int) -> None:
    assert training_seed(base, episode, attempt) % 2 == 0
    assert evaluation_seed(other, attempt, episode) % 2 == 1


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_no_episode_is_for_dagger_and_for_evaluation(base: int, round_: int, episode: int, other: int) -> None:
    assert dagger_seed(base, round_, episode) % 2 == 0
    assert dagger_seed(base, round_, episode) != evaluation_seed(other, round_, episode)


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


def test_dagger_with_many_bases_never_meets_anything_else() -> None:
    bases, rounds, episodes = range(12), range(1, 4), range(40)
    rollouts = [dagger_seed(base, round_, episode) for base in bases for round_ in rounds for episode in episodes]
    others = {training_seed(base, episode, attempt) for base in bases for episode in episodes for attempt in range(20)}
    others |= {
        evaluation_seed(base, objects, episode) for base in bases for objects in range(11) for episode in range(40)
    }
    assert len(set(rollouts)) == len(rollouts)
    assert not others & set(rollouts)


@given(NUMBERS, NUMBERS)
def test_seeds_are_numbers_that_any_generator_takes(base: int, episode: int) -> None:
    assert 0 <= training_seed(base, episode) < 2**63
    assert 0 <= evaluation_seed(base, 3, episode) < 2**63
    assert 0 <= dagger_seed(base, 1, episode) < 2**63
    assert training_seed(base, episode) == training_seed(base, episode, 0)


def test_every_part_of_the_key_counts() -> None:
    keys = [(base, episode, attempt) for base in range(8) for episode in range(8) for attempt in range(8)]
    assert len({training_seed(*key) for key in keys}) == len(keys)
    assert len({evaluation_seed(*key) for key in keys}) == len(keys)


def test_large_bases_keep_their_distance() -> None:
    assert training_seed(2**32, 5, 0) != training_seed(0, 1, 5)


def test_seeds_stay_the_same_for_ever() -> None:
    """Data sets are made from them: a change would make other episodes under the same name."""
    assert (training_seed(0, 0), training_seed(1, 2, 3), evaluation_seed(0, 3, 0), dagger_seed(0, 1, 2)) == (
        1317536309490288386,
        5464283449182725444,
        3369648461796229021,
        8465106434810208200,
    )
