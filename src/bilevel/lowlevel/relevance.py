"""What the network sees of an action, found from the demonstrations: which arguments, and which other objects.

An action names what it is about, and some of that plays no part in the movement: to pick a block up, it does not matter
what it lies on. A network that is told of it anyway sees, in a few demonstrations, a pattern where there is none. Other
objects matter that the action does not name: which spot of a tray is free depends on the blocks that are there already.
So a network is trained briefly with and without, and the errors in episodes that are set aside decide: an argument is
left out, and others are seen, where these are clearly lower then. In doubt, the network sees just the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

import msgspec
import numpy as np
import torch

from bilevel.lowlevel.encoding import Encoding, FeatureEncoder, ObjectLink, Samples, Situation, encode_episode, sharing
from bilevel.lowlevel.network import GraphNetwork
from bilevel.lowlevel.training import CPU, TrainingConfig, split, train
from bilevel.symbolic.domain import Facts
from bilevel.tasks.controls import Controls
from bilevel.tasks.scene import Array, Scene

BRIEF = TrainingConfig(
    epochs=1, updates=1000, learning_rate=3e-3, device=CPU, hold_out_from=2**31
)  # it learns from all
LONGER = msgspec.structs.replace(BRIEF, updates=2000)
HELD_OUT = 5  # every fifth episode
MOST_SAMPLES = 40_000  # for brief training
SEED = 0  # of it
CLEARLY = 0.75  # an error is clearly lower if it is at most so much of the other
USUALLY = 0.8  # of the times that something is seen
TYPICAL, MARGIN = 0.95, 1.3  # neighbours are as near as this share of those in demonstrations, and a bit further off


Recorded = tuple[Sequence[Scene], Sequence[Situation], Array]  # an episode, and the controls as they should be put out


def relevant_encoding(
    encoding: Encoding, controls: Controls, recorded: Callable[[], Iterable[Recorded]], with_links: bool = True
) -> Encoding:
    """Return the encoding without irrelevant arguments and, if it shall be so, with helpful links."""
    spec, parameters = encoding.spec, encoding.parameters
    untold = {name: set(names) for name, names in spec.untold.items()}
    for name, numbers in irrelevant_arguments(encode_all(encoding, recorded()), encoding, controls).items():
        untold[name] = untold.get(name, set()) | {parameters[name][number] for number in numbers}
    named = {name: tuple(each for each in parameters[name] if each in untold[name]) for name in untold}
    excluded = {name: frozenset(map(parameters[name].index, names)) for name, names in named.items()}
    features = FeatureEncoder(replace(spec, untold=named))
    encoding = replace(encoding, features=features, excluded_parameters=excluded)
    links = possible_links(encoding, recorded()) if with_links else []
    if links:
        linked = replace(encoding, links=tuple(links))
        links = helpful_links(encode_all(linked, recorded()), linked, controls)
    return replace(encoding, links=tuple(links))


def encode_all(encoding: Encoding, recorded: Iterable[Recorded]) -> Samples:
    """Return the samples of all episodes."""
    return Samples.concatenate([encode_episode(encoding, *each, number) for number, each in enumerate(recorded)])


def irrelevant_arguments(samples: Samples, encoding: Encoding, controls: Controls) -> dict[str, frozenset[int]]:
    """Return for each schema the numbers of arguments without which its controls are predicted clearly better.

    One argument always stays. Those that the network is not told of already are not among them.
    """
    seen = _seen_arguments(samples, encoding)
    if len(np.unique(samples.episodes)) < 2 or all(len(numbers) < 2 for numbers in seen.values()):
        return {}
    whole = brief_errors(*split(samples, HELD_OUT), encoding, controls)

    def gain(untold: Mapping[str, Collection[int]]) -> dict[str, float]:
        """The error where these are not told, as a share of that where they are, by schema."""
        errors = brief_errors(*split(without(samples, encoding, untold), HELD_OUT), encoding, controls)
        return {name: errors[name] / whole[name] for name in untold if name in whole}

    shares: dict[str, dict[int, float]] = {name: {} for name in seen}
    for place in range(encoding.arity):
        tried = {name: [numbers[place]] for name, numbers in seen.items() if place < len(numbers) > 1}
        for name, share in gain(tried).items() if tried else ():
            shares[name] |= {seen[name][place]: share} if share <= CLEARLY else {}
    together = {name: sorted(found) for name, found in shares.items() if 1 < len(found) < len(seen[name])}
    fits = {name for name, share in gain(together).items() if share <= CLEARLY} if together else set()
    return {
        name: frozenset(found if name in fits else [min(found, key=lambda number: found[number])])
        for name, found in shares.items()
        if found
    }


def without(samples: Samples, encoding: Encoding, untold: Mapping[str, Collection[int]]) -> Samples:
    """Return the samples as they are encoded where these arguments are not told, either."""
    objects, seen = samples.objects.copy(), _seen_arguments(samples, encoding)
    for name, numbers in untold.items():
        rows = np.flatnonzero(samples.schemas == encoding.schemas.index(name))
        kept = encoding.padded([place for place, number in enumerate(seen[name]) if number not in numbers])
        objects[rows] = samples.objects[rows][:, kept]
    return replace(samples, objects=objects)


def _seen_arguments(samples: Samples, encoding: Encoding) -> dict[str, list[int]]:
    """The numbers of the arguments of each schema that the network is told of, in the order in which it is."""
    found: dict[str, list[int]] = {}
    for number, name in enumerate(encoding.schemas):
        first = samples.objects[samples.schemas == number][:1, : encoding.arity, -encoding.arity :]
        found[name] = list(dict.fromkeys(np.nonzero(first)[2].tolist()))
    return found


class _Sighting(NamedTuple):
    """That an argument shared a fact with another object: what held of either alone, and how far off it was."""

    scene: int  # the number of it
    about: frozenset[str]
    given: frozenset[str]
    step: float


def possible_links(encoding: Encoding, recorded: Iterable[Recorded]) -> list[ObjectLink]:
    """Return links for all facts that arguments ever shared with other objects, with what was nearly always so then."""
    found: dict[tuple[str, str, str, str], list[_Sighting]] = {}

    def facts_about(state: Facts, name: str) -> frozenset[str]:
        return frozenset(predicate for predicate in encoding.unary if (predicate, (name,)) in state)

    count = 0
    for scenes, situations, _ in recorded:
        steps = zip(situations, scenes, strict=True)
        for (state, _, action), stretch in groupby(steps, key=lambda step: step[0]):
            count, (_, scene) = count + 1, next(stretch)
            for number, argument in enumerate(action.arguments if action else ()):
                assert action is not None
                for predicate in sorted({fact for fact, names in state if argument in names}):
                    others = [
                        name
                        for name in sorted(sharing(state, predicate, action, number).intersection(scene.roster.row))
                        if encoding.features.mask([scene.roster.objects[name]]).any()
                    ]
                    for name, step in encoding.steps(scene, action, others).items():
                        parameter = encoding.parameters[action.name][number]
                        key = (action.name, scene.roster.objects[name], predicate, parameter)
                        seen = _Sighting(count, facts_about(state, name), facts_about(state, argument), step)
                        found.setdefault(key, []).append(seen)
    return [_link(key, sightings, encoding.unary) for key, sightings in sorted(found.items())]


def _link(key: tuple[str, str, str, str], sightings: list[_Sighting], unary: Sequence[str]) -> ObjectLink:
    """Return the link to what was sighted, without what was there by accident."""

    def usual(sets: Sequence[frozenset[str]]) -> tuple[str, ...]:
        return tuple(name for name in unary if sum(name in each for each in sets) >= USUALLY * len(sets))

    where, given = usual([each.about for each in sightings]), usual([each.given for each in sightings])
    near: dict[int, list[float]] = {}
    for each in sightings:
        if each.about.issuperset(where) and each.given.issuperset(given):
            near.setdefault(each.scene, []).append(each.step)
    first = [min(steps) for steps in near.values()]
    further = [step for steps in near.values() for step in sorted(steps)[1:]] or first
    if not np.isfinite(first).all() or not first:  # nothing to measure from
        return ObjectLink(*key, where, given)
    to_first, to_next = (float(np.quantile(steps, TYPICAL)) for steps in (first, further))
    return ObjectLink(*key, where, given, MARGIN * to_next, max(MARGIN * to_first, (to_first + to_next) / 2))


def helpful_links(samples: Samples, encoding: Encoding, controls: Controls) -> list[ObjectLink]:
    """Return the links of those schemas whose controls are predicted clearly better with their links than without.

    In the place of which argument neighbours are seen is decided likewise. What counts are errors where there are
    neighbours, and where there are more of them than in training: they have to be low for more than were ever shown.
    """
    best: dict[str, str] = {}
    for name in sorted({link.action for link in encoding.links}):
        own = samples.where(samples.schemas == encoding.schemas.index(name))
        neighbours = own.objects[:, encoding.arity :].any(axis=2).sum(axis=1)
        is_held_out = np.isin(own.episodes, split(own, HELD_OUT)[1].episodes)
        is_more = neighbours == max(neighbours.max(), 2)
        shown = own.where(~is_held_out & ~is_more)
        counted = [own.where(part) for part in (is_held_out & (neighbours > 0), is_more) if part.any()]
        if not (len(shown) and counted):
            continue
        plain = replace(encoding, links=())
        network = _briefly_trained(unlinked(shown, encoding), plain, controls, LONGER)
        alone = [_mean_errors(network, unlinked(part, encoding))[name] for part in counted]
        least = CLEARLY
        for number in _seen_arguments(own, encoding)[name]:
            parameter = encoding.parameters[name][number]
            network = _briefly_trained(shown, _seen_instead(encoding, {name: parameter}), controls, LONGER)
            errors = [_mean_errors(network, part)[name] for part in counted]
            share = max(error / other for error, other in zip(errors, alone, strict=True))
            if share <= least:
                least, best[name] = share, parameter
    return [link for link in _seen_instead(encoding, best).links if link.instead]


def _seen_instead(encoding: Encoding, parameters: Mapping[str, str]) -> Encoding:
    """Return the encoding in which neighbours are seen in the places of these parameters, by schema, and no others."""
    links = (msgspec.structs.replace(link, instead=parameters.get(link.action, "")) for link in encoding.links)
    return replace(encoding, links=tuple(links))


def unlinked(samples: Samples, encoding: Encoding) -> Samples:
    """Return the samples as they are encoded without any links."""
    kept = np.delete(np.arange(encoding.object_size), encoding.kind_columns)
    return replace(samples, objects=samples.objects[:, : encoding.arity, kept])


def brief_errors(shown: Samples, counted: Samples, encoding: Encoding, controls: Controls) -> dict[str, float]:
    """Return the mean error of a network that was briefly trained on `shown`, for the other samples, by schema."""
    return _mean_errors(_briefly_trained(shown, encoding, controls, BRIEF), counted)


def _briefly_trained(shown: Samples, encoding: Encoding, controls: Controls, config: TrainingConfig) -> GraphNetwork:
    shown = shown.where(np.arange(len(shown)) % max(1, len(shown) // MOST_SAMPLES) == 0)
    trained = train(shown, lambda: GraphNetwork(encoding, controls), SEED, config)
    network = GraphNetwork(encoding, controls)
    network.load_state_dict({name: torch.from_numpy(array) for name, array in trained.weights.items()})
    return network


def _mean_errors(network: GraphNetwork, counted: Samples) -> dict[str, float]:
    """Return the mean error for samples, by schema."""
    with torch.no_grad():
        outputs, targets = network.predict(network.table(counted), torch.arange(len(counted)))
    outputs = outputs.softmax(dim=1) if network.is_choice else outputs
    errors = (outputs - targets).square().mean(dim=1).numpy()
    schemas = {name: counted.schemas == number for number, name in enumerate(network.encoding.schemas)}
    return {name: float(errors[chosen].mean()) for name, chosen in schemas.items() if chosen.any()}
