"""What the network sees of an action, found from the demonstrations: which arguments, and which other objects.

An action names what it is about, and some of that plays no part in the movement: to pick a block up, it does not matter
what it lies on. A network that is told of it anyway sees, in a few demonstrations, a pattern where there is none. Other
objects matter that the action does not name: which spot of a tray is free depends on the blocks that are there already,
and the hand goes round what stands in its way. So a network is trained briefly with and without, and the errors in
episodes that are set aside decide: an argument is left out, and others are seen, where these are clearly lower then. In
doubt, the network sees just the arguments.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby, islice, product
from typing import NamedTuple

import msgspec
import numpy as np
import torch

from bilevel.lowlevel.encoding import (
    RELATIVE,
    Encoding,
    FeatureEncoder,
    ObjectLink,
    Samples,
    Situation,
    encode_episode,
    sharing,
)
from bilevel.lowlevel.network import GraphNetwork
from bilevel.lowlevel.training import CPU, TrainingConfig, split, train
from bilevel.symbolic.domain import Facts
from bilevel.tasks.controls import Controls
from bilevel.tasks.scene import Array, Scene

# Of brief training, in which it learns from all that it is given.
BRIEF = TrainingConfig(epochs=1, updates=1000, learning_rate=3e-3, device=CPU, hold_out_from=2**31)
LONGER = msgspec.structs.replace(BRIEF, updates=3000)
SEED = 0
MOST_SAMPLES, MOST_EPISODES = 40_000, 100
HELD_OUT = 5  # every fifth episode
CLEARLY = 0.75  # an error is clearly lower if it is at most so much of the other
UNEXPLAINED = 0.1  # an error of so much of the controls' variance leaves something to be explained
USUALLY = 0.8  # of the times that something is seen
TYPICAL, MARGIN = 0.95, 1.3  # neighbours are as near as this share of those in demonstrations, and a bit further off


Recorded = tuple[Sequence[Scene], Sequence[Situation], Array]  # an episode, and the controls as they should be put out
Untold = Mapping[str, Collection[str]]  # parameters, by action


def relevant_encoding(
    encoding: Encoding, controls: Controls, recorded: Callable[[], Iterable[Recorded]], with_links: bool = True
) -> Encoding:
    """Return the encoding without irrelevant arguments and, if it shall be so, with helpful links."""
    shown = [*islice(recorded(), MOST_EPISODES)]
    samples = encode_all(encoding, shown)
    if len(np.unique(samples.episodes)) < 2:
        return encoding
    rough = brief_errors(*split(samples, HELD_OUT), encoding, controls)
    encoding = without(encoding, irrelevant_arguments(encoding, controls, shown, rough))
    return replace(encoding, links=helpful_links(encoding, controls, shown, rough)) if with_links else encoding


def encode_all(encoding: Encoding, recorded: Iterable[Recorded]) -> Samples:
    """Return the samples of all episodes."""
    return Samples.concatenate([encode_episode(encoding, *each, number) for number, each in enumerate(recorded)])


def irrelevant_arguments(
    encoding: Encoding, controls: Controls, recorded: Sequence[Recorded], rough: Mapping[str, float]
) -> Untold:
    """Return for each action the parameters without which its controls are predicted clearly better.

    One argument always stays. Those that the network is not told of already are not among them. `rough` are the errors
    of brief training with all others.
    """
    seen = {name: encoding.seen_parameters(name) for name in rough}
    shares: dict[str, dict[str, float]] = defaultdict(dict)

    def gain(untold: Untold) -> dict[str, float]:
        """The error where these are not told, as a share of that where they are, by action."""
        chosen = without(encoding, untold)
        found = brief_errors(*split(encode_all(chosen, recorded), HELD_OUT), chosen, controls) if untold else {}
        return {name: found[name] / rough[name] for name in untold}

    for place in range(encoding.arity):
        tried = {name: [names[place]] for name, names in seen.items() if place < len(names) > 1}
        for name, share in gain(tried).items():
            if share <= CLEARLY:
                shares[name][seen[name][place]] = share
    together = {name: [*found] for name, found in shares.items() if 1 < len(found) < len(seen[name])}
    fits = {name for name, share in gain(together).items() if share <= CLEARLY}
    return {
        name: [*found] if name in fits else [min(found, key=lambda each: found[each])] for name, found in shares.items()
    }


def without(encoding: Encoding, untold: Untold) -> Encoding:
    """Return the encoding of which the network is not told these arguments, either."""
    names = {name: {*encoding.untold.get(name, ()), *untold.get(name, ())} for name in {**encoding.untold, **untold}}
    named = {name: tuple(each for each in encoding.parameters[name] if each in names[name]) for name in names}
    return replace(encoding, features=FeatureEncoder(replace(encoding.spec, untold=named)), untold=named)


class _Sighting(NamedTuple):
    """That an argument shared a fact with another object: what held of either alone, and how far off it was."""

    about: frozenset[str]
    given: frozenset[str]
    step: float


def possible_links(encoding: Encoding, recorded: Iterable[Recorded]) -> list[ObjectLink]:
    """Return links for all facts that arguments ever shared with other objects, with what was nearly always so then.

    What they lead to is seen in the place of the argument that it is nearest to.
    """
    found = defaultdict[tuple[str, str, str, str, str], list[list[_Sighting]]](list)  # those of a scene together

    def is_told(scene: Scene, name: str) -> bool:
        return bool(encoding.features.mask([scene.roster.objects.get(name)]).any())

    def facts_about(state: Facts, name: str) -> frozenset[str]:
        return frozenset(predicate for predicate in encoding.unary if (predicate, (name,)) in state)

    for scenes, situations, _ in recorded:
        steps = [(state, act, scene) for (state, _, act), scene in zip(situations, scenes, strict=True) if act]
        for (state, action), stretch in groupby(steps, key=lambda step: step[:2]):
            *_, scene = next(stretch)
            arguments = dict(zip(encoding.parameters[action.name], action.arguments, strict=True))
            starts = [name for name in encoding.seen_parameters(action.name) if is_told(scene, arguments[name])]
            for (parameter, argument), instead in product(arguments.items(), starts):
                for predicate in {fact for fact, names in state if argument in names}:
                    others = [name for name in sharing(state, predicate, action, argument) if is_told(scene, name)]
                    sighted = defaultdict[str, list[_Sighting]](list)
                    for name, step in encoding.steps(scene, arguments[instead], others).items():
                        about, given = facts_about(state, name), facts_about(state, argument)
                        sighted[scene.roster.objects[name]].append(_Sighting(about, given, step))
                    for kind, sightings in sighted.items():
                        found[action.name, kind, predicate, parameter, instead].append(sightings)
    links = [_link(key, sightings, encoding.unary) for key, sightings in sorted(found.items())]
    by_distance = sorted(links, key=lambda link: -np.inf if link.first is None else -link.first)
    return sorted({(link.action, link.of, link.sharing, link.argument): link for link in by_distance}.values())


def _link(key: tuple[str, str, str, str, str], scenes: list[list[_Sighting]], unary: Sequence[str]) -> ObjectLink:
    """Return the link to what was sighted, without what was there by accident.

    What is as near to the argument as the nearest ever was, rather than as the farthest from the next, is in its place.
    """
    sightings = [*chain.from_iterable(scenes)]

    def usual(sets: Sequence[frozenset[str]]) -> tuple[str, ...]:
        return tuple(name for name in unary if sum(name in each for each in sets) >= USUALLY * len(sets))

    where, given = usual([each.about for each in sightings]), usual([each.given for each in sightings])
    near = [
        sorted(each.step for each in scene if each.about.issuperset(where) and each.given.issuperset(given))
        for scene in scenes
    ]
    first = [steps[0] for steps in near if steps]
    further = [step for steps in near for step in steps[1:]] or first
    link = ObjectLink(*key[:4], where, given, instead=key[4])
    if not np.isfinite(first).all() or not first:  # nothing to measure from
        return link
    shortest, longest = float(np.quantile(first, 1 - TYPICAL)), float(np.quantile(further, TYPICAL))
    at_first = max(MARGIN * shortest, (shortest + longest) / 2)
    return msgspec.structs.replace(link, within=MARGIN * longest, first=at_first)


def nearest_link(encoding: Encoding, action: str, kind: str, recorded: Sequence[Recorded]) -> ObjectLink:
    """Return the link to what is nearest of a type, as far off as it mostly was."""
    link = ObjectLink(action, kind)
    linked, axes = replace(encoding, links=(link,)), encoding.features.coordinates[kind]
    seen = encode_all(linked, recorded).objects[:, encoding.arity]
    seen = seen[seen[:, linked.kind_columns].any(axis=1), : encoding.features.object_size]
    apart = [each.form == RELATIVE and each.feature in axes for each in encoding.features.object_numbers]
    distances = np.linalg.norm(seen[:, apart], axis=1)
    return msgspec.structs.replace(link, within=float(np.quantile(distances, TYPICAL)) if len(seen) else 0.0)


def helpful_links(
    encoding: Encoding, controls: Controls, recorded: Sequence[Recorded], rough: Mapping[str, float]
) -> tuple[ObjectLink, ...]:
    """Return the links with which the controls of actions are predicted clearly better than without.

    What is nearest is tried where much of the controls is unexplained otherwise, and is seen in actions that nobody has
    shown, too.
    """
    samples, rows = encode_all(encoding, recorded), possible_links(encoding, recorded)
    by_action = [[*links] for _, links in groupby(rows, key=lambda link: link.action)]
    found = [link for links in by_action for link in _best([links], encoding, controls, recorded)]
    spread = {
        name: samples.targets[samples.schemas == encoding.schemas.index(name)].var(axis=0).mean() for name in rough
    }
    unexplained = {name for name in rough if rough[name] > UNEXPLAINED * spread[name]} - {link.action for link in found}
    kinds = [kind for kind, axes in encoding.features.coordinates.items() if axes and unexplained]
    options = [[nearest_link(encoding, name, kind, recorded) for name in sorted(unexplained)] for kind in kinds]
    nearest = _best(options, encoding, controls, recorded)
    unseen = [name for name in encoding.schemas if name not in rough and encoding.parameters[name]]
    nearest += [msgspec.structs.replace(link, action=name) for link in nearest[:1] for name in unseen]
    return tuple(sorted(found + nearest))


def _best(
    options: Sequence[Sequence[ObjectLink]], encoding: Encoding, controls: Controls, recorded: Sequence[Recorded]
) -> list[ObjectLink]:
    """Return for each action the links of the option with the lowest error, if that is clearly lower than without.

    What counts are errors where the links lead to something, however far it is from the argument.
    """
    actions = {link.action for links in options for link in links}
    if not actions:
        return []
    own = [_steps_of(actions, *each) for each in recorded]

    def encoded(links: Sequence[ObjectLink]) -> tuple[Encoding, Samples]:
        linked = replace(encoding, links=tuple(links))
        return linked, encode_all(linked, own)

    def errors(links: Sequence[ObjectLink]) -> Array:
        """(samples,): the error of each."""
        linked, samples = encoded(links)
        return _errors(_briefly_trained(split(samples, HELD_OUT)[0], linked, controls, LONGER), samples)

    alone, best = errors(()), dict[str, tuple[float, list[ObjectLink]]]()
    for links in options:
        linked, samples = encoded([msgspec.structs.replace(link, first=None) for link in links])
        counts = samples.objects[..., linked.kind_columns].any(axis=(1, 2))
        counts &= np.isin(samples.episodes, split(samples, HELD_OUT)[1].episodes)
        found = errors(links)
        for name in actions:
            part = counts & (samples.schemas == encoding.schemas.index(name))
            share = found[part].mean() / alone[part].mean() if part.any() else np.inf
            if share <= best.get(name, (CLEARLY,))[0]:
                best[name] = share, [link for link in links if link.action == name]
    return [link for _, links in best.values() for link in links]


def _steps_of(
    actions: Collection[str], scenes: Sequence[Scene], situations: Sequence[Situation], targets: Array
) -> Recorded:
    """Return the steps of an episode in which one of these is done."""
    kept = [step for step, (_, _, action) in enumerate(situations) if action is not None and action.name in actions]
    return [scenes[step] for step in kept], [situations[step] for step in kept], targets[kept]


def brief_errors(shown: Samples, counted: Samples, encoding: Encoding, controls: Controls) -> dict[str, float]:
    """Return the mean error of a network that was briefly trained on `shown`, for the other samples, by action."""
    errors = _errors(_briefly_trained(shown, encoding, controls, BRIEF), counted)
    schemas = {name: counted.schemas == number for number, name in enumerate(encoding.schemas)}
    return {name: float(errors[chosen].mean()) for name, chosen in schemas.items() if chosen.any()}


def _briefly_trained(shown: Samples, encoding: Encoding, controls: Controls, config: TrainingConfig) -> GraphNetwork:
    shown = shown.where(np.arange(len(shown)) % max(1, len(shown) // MOST_SAMPLES) == 0)
    trained = train(shown, lambda: GraphNetwork(encoding, controls), SEED, config)
    network = GraphNetwork(encoding, controls)
    network.load_state_dict({name: torch.from_numpy(array) for name, array in trained.weights.items()})
    return network


@torch.no_grad()
def _errors(network: GraphNetwork, samples: Samples) -> Array:
    """(samples,): the mean error of each."""
    outputs, targets = network.predict(network.table(samples), torch.arange(len(samples)))
    outputs = outputs.softmax(dim=1) if network.is_choice else outputs
    errors: Array = (outputs - targets).square().mean(dim=1).numpy()
    return errors
